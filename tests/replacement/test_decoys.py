"""The laws of decoys: what replaces a flagged span depends on its shape alone."""

import itertools
import random
import string
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from atdp_cli.corpus.spans import MEMORISED, Span, Tier, merge
from atdp_cli.replacement.decoys import DOMAINS, WORDS, Choose, DecoySlot, kept_words, lists, places, shape, uniformly
from atdp_cli.replacement.draw import decoy_text
from atdp_cli.replacement.frequencies import votes
from tests.strategies import flagged_texts

LETTERWISE = ("NUMBER", "KEY", "PASSWORD", "A_LABEL_OF_MY_OWN")

NAMED = ("PERSON", "PER", "EMAIL", MEMORISED)
"""Labels without words that stay."""
SEEDS = st.integers(0, 2**32)


def span(start: int, end: int, label: str) -> Span:
    return Span(start, end, label, "ner", Tier.LOW_ENTITY)


def whole(surface: str, label: str, choose: Choose) -> str:
    """The decoy of a text that is flagged from end to end."""
    return decoy_text(surface, [span(0, len(surface), label)] if surface else [], choose).text


def at_random(source: random.Random) -> Choose:
    return uniformly(source.randrange)


def first(place: DecoySlot) -> str:
    return place.choices[0]


def flagged_surfaces() -> st.SearchStrategy[str]:
    """Values as text has them: words, some of them kept, numbers and what stands between."""
    parts = ("March", "MAY", "the", "of", "days", "5", "21", "2024", "th", "T", "PM", "pm", "'s", "DE", "ab")
    return st.lists(st.sampled_from([*parts, " ", "-", "/", ":", ".", ","]), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("label", "surface", "expected"),
    [
        ("NUMBER", "493021", "000000"),
        ("PHONE", "+49 (0)170-12", "+00 (0)000-00"),
        ("CREDIT_CARD", "4111 1111", "0000 0000"),
        ("USERNAME", "@jDoe_7", "@aaron_0"),
        ("IBAN", "DE12 x", "AA00 a"),
        ("PERSON", "Emma O'Brien-Clarke", "Aaron Abbott-Abbott"),
        ("PERSON", "EMMA CLARKE", "AARON ABBOTT"),
        ("PERSON", "emma’s", "aaron’s"),
        ("PERSON", "J. R. Tolkien", "A. A. Abbott"),
        ("PERSON", "王小明", "aaron"),
        ("PERSON", "Jose\u0301", "Aaron"),
        ("GPE", "New York, NY", "Aarhus Aarhus, AA"),
        ("ORG", "IBM of NASA 54", "AAA of ACADEMY 00"),
        ("NORP", "Swiss", "African"),
        ("DATE", "March 3, 2021", "January 1, 1900"),
        ("EMAIL", "jane.doe42@mail.host.org", "aaron.abbott00@example.com"),
        ("CARDINAL", "②½Ⅷ", "100"),
        ("KEY", "Ⓐéß字😀", "Aaaa😀"),
    ],
)
def test_an_example_of_each_shape(label: str, surface: str, expected: str) -> None:
    assert whole(surface, label, first) == expected


def test_the_places_are_those_of_the_decoys_and_overlapping_spans_are_one() -> None:
    text = "Emma Clarke is 42, Emma."
    actual = decoy_text(
        text, [span(0, 4, "PERSON"), span(2, 11, "GPE"), span(15, 17, "NUMBER"), span(19, 23, "ORG")], first
    )
    assert actual.text == "Aarhus Aarhus is 00, Academy."
    assert [actual.text[start:end] for start, end in actual.places] == ["Aarhus Aarhus", "00", "Academy"]


@given(flagged_texts(), SEEDS)
def test_what_is_not_flagged_stays_and_what_is_marked_is_what_was_replaced(
    case: tuple[str, list[Span]], seed: int
) -> None:
    text, spans = case
    actual = decoy_text(text, spans, at_random(random.Random(seed)))
    merged = merge(spans)
    restored, kept_to = "", 0
    for (start, end), merged_span in zip(actual.places, merged, strict=True):
        restored += actual.text[kept_to:start] + text[merged_span.start : merged_span.end]
        kept_to = end
    assert restored + actual.text[kept_to:] == text


def other(character: str, draw: random.Random) -> str:
    """Any character of the same class: digits, and letters by case; others are alone in theirs."""
    for group in (string.digits + "٣७", string.ascii_lowercase + "éßж字", string.ascii_uppercase + "ÉЖ"):
        if character in group:
            return draw.choice(group)
    return character


@given(flagged_texts(st.sampled_from("09٣ azéж字AZÉЖ'@.-_ \n😀")), SEEDS, SEEDS)
def test_texts_of_one_shape_have_the_same_decoys(case: tuple[str, list[Span]], seed: int, twin: int) -> None:
    """Each flagged digit and letter is another: with the same randomness nobody sees a difference."""
    text, spans = case
    flagged = {place for span in spans for place in range(span.start, span.end)}
    chosen = random.Random(twin)
    changed = "".join(other(c, chosen) if place in flagged else c for place, c in enumerate(text))
    assert decoy_text(text, spans, at_random(random.Random(seed))) == decoy_text(
        changed, spans, at_random(random.Random(seed))
    )


def spelled(case: str) -> st.SearchStrategy[str]:
    """A word in this case of at least two letters, or four in upper case; perhaps with an apostrophe in it."""
    lower, upper = "abcxyzéж", "ABCXYZÉЖ"
    bare = {
        "lower": st.text(lower, min_size=2, max_size=9),
        "upper": st.text(upper, min_size=4, max_size=9),
        "capitalised": st.builds(str.__add__, st.sampled_from(upper), st.text(lower, min_size=1, max_size=9)),
    }[case]
    values = bare.filter(lambda word: not any(word.casefold() in kept_words(label) for label in WORDS))
    return st.builds(lambda word, mark: word[:1] + mark + word[1:], values, st.sampled_from(("", "'", "’")))


@st.composite
def twins(draw: st.DrawFn) -> tuple[str, str, str]:
    """A label, and two flagged texts that differ in which words and digits they have, and in the words' lengths."""
    label = draw(st.sampled_from(sorted(WORDS)))
    ours = theirs = ""
    for _ in range(draw(st.integers(1, 5))):
        word = spelled(draw(st.sampled_from(("lower", "upper", "capitalised"))))
        digits = draw(st.integers(0, 3))
        number = st.text(string.digits, min_size=digits, max_size=digits)
        between = draw(st.sampled_from((" ", "-", ". ", " & ", ", ", "/", "")))
        first = draw(st.booleans())
        for value in (word, number) if first else (number, word):
            ours, theirs = ours + draw(value), theirs + draw(value)
        ours, theirs = ours + between, theirs + between
    if label == "EMAIL":
        host = st.text("abXY09.-", min_size=1, max_size=12)
        ours, theirs = f"{ours}@{draw(host)}", f"{theirs}@{draw(host)}"
    return label, ours, theirs


@example(("TIME", "aa0 aa ", "aa0 aaa "), 1)
@example(("TIME", "5pm", "5min"), 1)
@example(("DATE", "5th", "5xyz"), 1)
@example(("DATE", "Ab 5", "Abcd 5"), 1)
@example(("DATE", "0aa ", "0a'a "), 1)
@given(twins(), SEEDS)
def test_words_of_one_case_have_the_same_decoys(case: tuple[str, str, str], seed: int) -> None:
    label, ours, theirs = case
    our_dice, their_dice = random.Random(seed), random.Random(seed)
    assert whole(ours, label, at_random(our_dice)) == whole(theirs, label, at_random(their_dice))
    assert our_dice.random() == their_dice.random(), "the records behind must not tell, either"


@given(st.sampled_from([*NAMED, *LETTERWISE]), st.text(max_size=20).filter(lambda text: "s" not in text.casefold()))
def test_no_letter_and_no_digit_stays(label: str, surface: str) -> None:
    """Each is drawn from at least six choices; what stays is neither."""
    places = shape(label, surface)
    kept = [place.choices for place in places if len(place.choices) == 1]
    assert not any(character.isalnum() for (character,) in kept)
    assert all(len(place.choices) >= place.common >= 6 for place in places if len(place.choices) > 1)
    assert [character for (character,) in kept if character not in "@._-'’"] == [
        c for c in surface if c not in "@._-'’" and not drawn(c)
    ]


@given(st.sampled_from([*WORDS, "IBAN", "IP_ADDRESS", "MAC_ADDRESS", "ORDINAL", "CARD_EXPIRY"]), flagged_surfaces())
def test_what_stays_of_other_values_is_public(label: str, surface: str) -> None:
    """Words of a public list, the 's of a possessive, and the letters of a form; no digit."""
    public = kept_words(label) | {"th", "t", "z", "s"}
    for place, _ in places(label, surface):
        assert all(
            choice.casefold() in public for choice in place.choices if len(place.choices) == 1 and drawn(choice[0])
        )
        assert len(place.choices) == 1 or len(place.choices) >= place.common >= 2


def drawn(character: str) -> bool:
    """By Unicode's own properties: letters, marks, numbers, and symbols with a case."""
    cased = character.isupper() or character.islower()
    return cased or character.isalnum() or unicodedata.category(character).startswith("M")


@given(st.sampled_from(LETTERWISE), st.text(max_size=20), SEEDS)
def test_without_a_list_length_case_and_punctuation_stay(label: str, surface: str, seed: int) -> None:
    actual = whole(surface, label, at_random(random.Random(seed)))
    assert len(actual) == len(surface)
    tests: tuple[Callable[[str], bool], ...] = (str.isdecimal, str.islower, str.isupper)
    for ours, theirs in zip(actual, surface, strict=True):
        if theirs.isascii():
            assert [test(ours) for test in tests] == [test(theirs) for test in tests]


def test_digits_are_uniform() -> None:
    """Uniform draws are digits one to one."""
    actual = set()
    for draws in itertools.product(range(10), repeat=3):
        given_out = iter(draws)
        actual.add(whole("4-21", "NUMBER", uniformly(lambda n, source=given_out: next(source))))  # type: ignore[misc]
    assert actual == {f"{a}-{b}{c}" for a, b, c in itertools.product(string.digits, repeat=3)}


def test_a_word_is_any_of_its_list_once() -> None:
    people = lists()["given"].common
    assert [whole("Emma", "PERSON", uniformly(lambda n, k=k: k)) for k in range(len(people))] == list(people)  # type: ignore[misc]
    assert whole("a@b", "EMAIL", uniformly(lambda n: n - 1)).split("@")[1] == DOMAINS[-1]


@given(st.sampled_from(sorted(WORDS)), st.text(max_size=20), SEEDS)
def test_rare_words_are_never_drawn_without_a_reason(label: str, surface: str, seed: int) -> None:
    source = random.Random(seed)
    asked = [place for place in shape(label, surface) if place.table in lists()]
    assert all(uniformly(source.randrange)(place) in place.choices[: place.common] for place in asked)


def test_the_lists_hold_plain_capitalised_words() -> None:
    for name, words in lists().items():
        assert len(words.common) >= 50, name
        assert all(word.isascii() and word.isalpha() and word == word.capitalize() for word in words.common), name
        both = [word.casefold() for word in (*words.common, *words.more)]
        assert len(set(both)) == len(both), name
        assert all(word[0].isupper() and word.replace("'", "").isalpha() for word in words.more), name
    assert all(150 <= len(lists()[name].common) <= 301 for name in ("given", "family", "places", "organisations"))
    assert {name for pair in WORDS.values() for name in pair} <= lists().keys()


@given(flagged_texts())
def test_what_a_model_remembers_has_no_frequencies_to_learn(flagged: tuple[str, list[Span]]) -> None:
    """Its words are uniform over a whole list, and no vote is cast for them; also where a detector flags a part."""
    text, spans = flagged
    memories = [span(0, len(text), MEMORISED)] if text else []
    merged = merge([*spans, *memories])
    assert {each.label for each in merged} <= {MEMORISED}
    assert not votes(text, merged)
    for each in merged:
        for place in shape(each.label, text[each.start : each.end]):
            assert not place.table
            assert place.common == len(place.choices)
