"""Decoys: flagged spans replaced by random values of the same shape. Nothing else changes.

What stands for a span is drawn anew each time and depends on its shape alone, never on which digit, letter or word was
there, so texts that differ only within shapes have decoys of the same distribution. Public lists say which words may
stand at a place; replacement/frequencies.py draws them as often as a corpus has them.
"""

import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, product
from pathlib import Path
from typing import NamedTuple

from atdp_cli.corpus.spans import MEMORISED
from atdp_cli.files.word_lists import read_lists
from atdp_cli.privacy.rng import KeyStream, insecure_stream
from atdp_cli.replacement import plausible

Draw = Callable[[int], int]
"""n → a uniform draw from 0, …, n−1, for n ≥ 1."""

Choices = tuple[str, ...]


class DecoySlot(NamedTuple):
    """One place of a decoy.

    Attributes:
        choices: What may stand there; a single choice is kept as it is.
        common: How many of the choices, from the first, are drawn from where nothing is known of their frequencies.
        table: The name of the table of frequencies that the place may be drawn by; empty for places that must be
            uniform.
        within: Where the choices stand in the table, one number each, if they are not all of it in its order.
    """

    choices: Choices
    common: int
    table: str = ""
    within: tuple[int, ...] = ()

    def __hash__(self) -> int:
        # Not of all choices: there are thousands.
        return hash((self.table, self.common, len(self.choices), self.choices[0]))


Shape = tuple[DecoySlot, ...]
"""All that a decoy depends on, place by place."""

Choose = Callable[[DecoySlot], str]
"""Draw the text at a place that has more than one choice."""

DIGITS, LOWER, UPPER = tuple(string.digits), tuple(string.ascii_lowercase), tuple(string.ascii_uppercase)

DOMAINS = ("example.com", "example.net", "example.org", "mail.example", "post.example", "office.example")
"""Domains that RFC 2606 keeps for examples."""

_PERSON, _NAMES = ("given", "family"), ("names", "names")

_DATE, _AMOUNT, _PLACE, _PEOPLE = (("calendar",) * 2, ("amounts",) * 2, ("places",) * 2, ("peoples",) * 2)

WORDS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("PERSON", "PER", "EMAIL", "USERNAME"), _PERSON),
    **dict.fromkeys(("GPE", "LOC", "FAC", "ADDRESS"), _PLACE),
    "ORG": ("organisations", "organisations"),
    **dict.fromkeys(("NORP", "LANGUAGE"), _PEOPLE),
    **dict.fromkeys(("DATE", "DATE_OF_BIRTH", "TIME"), _DATE),
    **dict.fromkeys(("CARDINAL", "ORDINAL", "QUANTITY", "PERCENT", "MONEY"), _AMOUNT),
    **dict.fromkeys(("PROPN", "MISC", "EVENT", "PRODUCT", "WORK_OF_ART", "LAW", MEMORISED), _NAMES),
}
"""The lists for the first and the later words of a span, by its label. Under other labels letters are drawn singly."""

FITTED_DIGITS = frozenset({"DATE", "DATE_OF_BIRTH", "PHONE", "TIME"})
"""Labels whose digits follow rules, as months and dialling codes do. In all others each digit is as likely."""

UNFITTED = frozenset({MEMORISED, "USERNAME"})
"""Labels whose words are drawn uniformly from all of their list. How often a model's memories stand in the corpus is
not to be learnt either; user names are rarely words of a list."""

MAX_CAPITALS = 3
"""The most letters of an abbreviation; longer words in capitals are drawn from the lists."""

MAX_DIGITS = 16
"""The most digits of a span with fitted digits; in longer spans they are uniform under every label."""

WITHOUT = frozenset({"PRON", "VERB", "SUBJ", "OBJ"})
"""Labels of contextual tiers: words that have no decoys, since a sentence does not live without them."""

_WORD = r"[Aa]+(?:['’][Aa]+)*"

_PARTS = re.compile(rf"{_WORD}|.", re.DOTALL)

_EMAIL_PARTS = re.compile(rf"(?P<domain>(?<=@)[Aa0._-]+)|{_WORD}|.", re.DOTALL)

_CHARACTERS = re.compile(".", re.DOTALL)

_POSSESSIVE = re.compile(r"(?<=[^\W\d_])['’][sS](?![^\W\d_])")


@dataclass(frozen=True, slots=True)
class WordList:
    """Public words, capitalised.

    Attributes:
        common: Those that are drawn where nothing is known of a corpus.
        more: Those that are drawn only where a corpus is known to have them.
    """

    common: Choices
    more: Choices


def uniformly(draw: Draw) -> Choose:
    """Draw from the common choices of a place, each with equal probability."""
    return lambda place: place.choices[draw(place.common)]


def shape(label: str, surface: str) -> Shape:
    """The shape of a flagged text, which its decoy is drawn from.

    A digit stands for any digit and a letter for any ASCII letter of the same case, where letters without a case and
    combining marks count as lower-case; other characters stay. Under the labels of `WORDS` a word, with its inner
    apostrophes, stands for any word of its list in the same case (upper, lower, capitalised) unless it is one letter
    or up to three capitals; what follows the @ of an e-mail address is one of `DOMAINS`.
    """
    return tuple(place for place, _ in places(label, surface))


def places(label: str, surface: str) -> Iterator[tuple[DecoySlot, str]]:
    """The places of a flagged text's shape, each with what stands there."""
    lists = WORDS.get(label)
    profile = _profile(surface, possessives=lists is not None and label != "EMAIL")
    parts = _CHARACTERS if lists is None else _EMAIL_PARTS if label == "EMAIL" else _PARTS
    matches = list(parts.finditer(profile))
    likes = [_like(match.group()) for match in matches]
    ends = dict(zip(accumulate(map(len, likes)), [match.end() for match in matches], strict=True))
    rules, kept = plausible.rules(label, "".join(likes)), kept_words(label)
    words, digits, all_digits, done = 0, 0, profile.count("0"), 0
    for match, end, like in zip(matches, ends, likes, strict=True):
        part, stands = match.group(), surface[match.start() : match.end()]
        rule = rules.get(end - len(like))
        if end <= done:
            digits += part == "0"
        elif rule is not None and rule.end >= end and stands.casefold() not in kept:
            done = rule.end
            yield _ruled(label, rule.choices, digits, all_digits), surface[match.start() : ends[done]]
            digits, words = digits + (part == "0"), words + (part[0] in "Aa")
        elif match.groupdict().get("domain"):
            yield DecoySlot(DOMAINS, len(DOMAINS)), stands
        elif part == "0":
            yield _digit(label, digits, all_digits), stands
            digits += 1
        elif lists is None or part[0] not in "Aa":
            yield _single(part), stands
        elif stands.casefold() in kept:
            yield DecoySlot((stands,), 1), stands
        else:
            if part == "a":
                yield _single(part), stands
            else:
                place = _capitals(len(part)) if _is_short(part) else _words(lists[words > 0], _case(part))
                yield _unfitted(place) if label in UNFITTED else place, stands
            words += 1


def _like(part: str) -> str:
    """A part of a profile as rules read it: words of one case alike, since how long they are is no part of a shape."""
    if len(part) == 1 or not set(part) <= set("Aa'’") or _is_short(part):
        return part
    return {"lower": "aa", "upper": "AAAA", "capitalised": "Aaa"}[_case(part)]


def _is_short(part: str) -> bool:
    """Whether it is so few capitals that their number stays."""
    return len(part) <= MAX_CAPITALS and set(part) == {"A"}


def _profile(surface: str, *, possessives: bool) -> str:
    """A text with its letters as A or a and its digits as 0; the 's of a possessive stays."""
    profile = "".join(map(_class, surface))
    if not possessives:
        return profile
    for match in _POSSESSIVE.finditer(surface):
        profile = profile[: match.start()] + match.group() + profile[match.end() :]
    return profile


@cache
def _ruled(label: str, choices: Choices, place: int, digits: int) -> DecoySlot:
    """A place with rules of its own, drawn by the table that it would have without them."""
    if len(choices[0]) == 1 and choices[0].isdigit() and (table := _digit(label, place, digits).table):
        return DecoySlot(choices, len(choices), table, tuple(map(DIGITS.index, choices)))
    if choices[0].capitalize() == plausible.MONTHS[0]:
        return DecoySlot(choices, len(choices), "calendar", tuple(range(len(choices))))
    return DecoySlot(choices, len(choices))


def capitals_table(letters: int) -> str:
    """The table for abbreviations of 1 to `MAX_CAPITALS` capital letters."""
    return f"{letters} capitals"


def digit_table(label: str, place: int, digits: int) -> str:
    """The table for the digit at `place` ≥ 0 of a span with so many `digits`."""
    return f"{label} {place + 1}/{digits}"


@cache
def _class(character: str) -> str:
    """A for an upper-case letter, a for another, 0 for a digit, and any other character itself."""
    if character.isalpha():
        return "A" if character.isupper() or character.istitle() else "a"
    if character.isnumeric():
        return "0"
    if character.isupper():  # a circled letter is a symbol
        return "A"
    return "a" if character.islower() or unicodedata.category(character).startswith("M") else character


@cache
def _digit(label: str, place: int, digits: int) -> DecoySlot:
    fitted = label in FITTED_DIGITS and digits <= MAX_DIGITS
    return DecoySlot(DIGITS, len(DIGITS), digit_table(label, place, digits) if fitted else "")


@cache
def _capitals(letters: int) -> DecoySlot:
    choices = abbreviations(letters)
    return DecoySlot(choices, len(choices), capitals_table(letters))


@cache
def abbreviations(letters: int) -> Choices:
    """All of so many capital letters."""
    return tuple("".join(capitals) for capitals in product(UPPER, repeat=letters))


@cache
def _single(character: str) -> DecoySlot:
    choices = {"a": LOWER, "A": UPPER}.get(character, (character,))
    return DecoySlot(choices, len(choices))


def _case(word: str) -> str:
    letters = word.replace("'", "").replace("’", "")
    if letters[0] == "a":
        return "lower"
    return "upper" if set(letters) == {"A"} else "capitalised"


@cache
def _words(name: str, case: str) -> DecoySlot:
    words = lists()[name]
    spelled = (
        word.upper() if case == "upper" else word.lower() if case == "lower" else word
        for word in (*words.common, *words.more)
    )
    return DecoySlot(tuple(spelled), len(words.common), name)


@cache
def _unfitted(place: DecoySlot) -> DecoySlot:
    return DecoySlot(place.choices, len(place.choices))


@cache
def kept_words(label: str) -> frozenset[str]:
    """Public words that stay in values of a label: they tell a date or an amount from nobody's, as `days` and `of`."""
    sections = _sections()
    if label in NAMED_AFTER:
        return frozenset()
    of_label = sections.get(f"{KEPT}, {WORDS[label][0]}", ()) if label in WORDS else ()
    return frozenset(word.casefold() for word in (*sections[KEPT], *of_label))


@cache
def _sections() -> Mapping[str, Choices]:
    return read_lists(Path(__file__).with_name("decoy_words.txt"))


@cache
def lists() -> Mapping[str, WordList]:
    """The public lists that words are drawn from."""
    sections = _sections()
    words = WordList(common=(), more=sections[f"words{MORE}"])
    named = {
        name: WordList(common=listed, more=sections.get(f"{name}{MORE}", ()))
        for name, listed in sections.items()
        if name and not name.endswith(MORE) and not name.startswith(KEPT)
    }
    names = [named[name] for name in NAMES]
    # What a detector calls an organisation, or just a proper noun, is often another name, or a line's first word.
    return named | {
        "organisations": _joined([named["organisations"]], [*names, words]),
        "names": _joined(names, [words]),
    }


MORE, KEPT = ", more", "kept"
"""The suffix of a section with a list's further words, and the prefix of one with words that stay."""

NAMED_AFTER = frozenset({"PERSON", "PER", "EMAIL", "USERNAME", MEMORISED})
"""Labels whose values have no words that stay."""

NAMES = ("given", "family", "places", "organisations")


def _joined(own: Sequence[WordList], others: Iterable[WordList]) -> WordList:
    """The common words of our own lists, all their further words, and any words of the other lists."""
    common = {word.casefold(): word for part in own for word in part.common}
    further = (word for part in (*own, *others) for word in (*part.more, *part.common))
    more = {word.casefold(): word for word in further if word.casefold() not in common}
    return WordList(common=tuple(common.values()), more=tuple(more.values()))


_BLOCK = 4096


def integer_draws(stream: KeyStream) -> Draw:
    """Draws from 0, …, n−1 for n far below 2⁵³, uniform up to the stream's 53 bits."""
    uniforms = _uniforms(stream)
    # A uniform can round up to 1.
    return lambda n: min(int(next(uniforms) * n), n - 1)


def public_draws(purpose: str) -> Draw:
    """Draws that are alike in every run: for text that models are measured on, and never trained on."""
    return integer_draws(insecure_stream(0, purpose))


def _uniforms(stream: KeyStream) -> Iterator[float]:
    while True:
        yield from stream.uniforms(_BLOCK).tolist()
