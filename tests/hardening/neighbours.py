"""What sentences about guarantees say of two corpora, and what the stages of a recipe tell about them.

Both are written apart from what makes the sentences: the sentences are read word by word, and what a stage reads is
made by the functions that training uses.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import dp_accounting
from dp_accounting.pld import PLDAccountant

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier, at_tier, merge
from atdp_cli.detection.detect import detect_records
from atdp_cli.detection.scan import load_pipeline
from atdp_cli.replacement.decoys import kept_words
from atdp_cli.replacement.draw import decoy_law
from atdp_cli.replacement.edits import redact_text
from atdp_cli.replacement.equality import equality_pattern
from atdp_cli.replacement.frequencies import Item, votes
from atdp_cli.training.objectives import Uniform
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.recipe import TextVariant

Corpus = tuple[str, ...]
Run = tuple[Sequence[StagePlan], Tier]
"""A run's planned stages and its tier."""


@cache
def spans_of(text: str, tier: Tier) -> tuple[Span, ...]:
    """The merged spans of a record, read by itself."""
    [detection] = detect_records([Record(id="1", text=text)], pipeline=_pipeline())
    return tuple(merge(at_tier(detection.spans, tier)))


@cache
def _pipeline() -> Any:
    return load_pipeline()


# What the sentences say.


@dataclass(frozen=True, kw_only=True)
class Claim:
    """ε and δ, and the conditions on the two corpora, as a sentence has them."""

    scope: str
    epsilon: float
    tier: Tier = Tier.LOW_ENTITY
    any_number: bool = False
    same_bytes: bool = False
    same_shapes: bool = False
    same_pattern: bool = False


_NUMBER = r"(?P<epsilon>\d[\d.]*)"
_TIER = r"at tier (?P<tier>[a-z-]+)"
_VALUES = (
    r"other values(?P<shapes> of the same shapes)?"
    r"(?P<pattern> and the same equalities within the line)? that the detector would "
    rf"flag (?P<bytes>identically)?(?:as well)? {_TIER}"
)
_CLAIMS = {
    "end to end": [
        rf"Whole records, for each line: ε = {_NUMBER} at δ",
        r"whether it was used or not changes the probability p .* to at most (?P<factor>[\d,.]+)·p .*?"
        rf"\(ε = {_NUMBER} at δ",
    ],
    "flagged": [
        rf"Flagged values, for (?P<whose>each|any number of) lines?: ε = {_NUMBER} .*against {_VALUES}\.",
        rf"places of (?P<whose>one|any number of) lines? held {_VALUES}, .*?\(ε = {_NUMBER} ",
    ],
    "uncounted": [
        rf"letters and digits flagged {_TIER} that the release does not count: for (?P<whose>any number of) lines, "
        rf"which .* \(ε = {_NUMBER} and δ = 0\); .* counts words and abbreviations in names, places, dates "
        r"and amounts, and digits in dates, times and phone numbers\."
        r"(?P<pattern> Which values of a line are equal or made of one another is left open\.)?"
    ],
}


def claims_in(sentence: str) -> Iterator[Claim]:
    """What a sentence says of pairs of corpora."""
    for scope, patterns in _CLAIMS.items():
        for match in (match for pattern in patterns for match in re.finditer(pattern, sentence)):
            said = match.groupdict()
            epsilon = float(said["epsilon"])
            if factor := said.get("factor"):
                assert float(factor.replace(",", "")) >= math.exp(epsilon) * (1 - 1e-9), sentence
            yield Claim(
                scope=scope,
                epsilon=epsilon,
                tier=Tier(said.get("tier") or Tier.LOW_ENTITY),
                any_number=said.get("whose") == "any number of",
                same_bytes=bool(said.get("bytes")) or scope == "uncounted",
                same_shapes=bool(said.get("shapes")) or scope == "uncounted",
                same_pattern=bool(said.get("pattern")),
            )


def covers(claim: Claim, before: Corpus, after: Corpus) -> bool:
    """Whether a sentence speaks of this pair of corpora, of as many records each."""
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    if len(changed) > 1 and not claim.any_number:
        return False
    if claim.scope == "end to end":
        return all(not new for _, new in changed)
    return all(_covers_record(claim, *pair) for pair in changed)


def _covers_record(claim: Claim, before: str, after: str) -> bool:
    here, there = spans_of(before, claim.tier), spans_of(after, claim.tier)
    if len(here) != len(there) or _between(before, here) != _between(after, there):
        return False
    old = [(span.label, before[span.start : span.end]) for span in here]
    new = [(span.label, after[span.start : span.end]) for span in there]
    labels = [(before_label, after_label) for (before_label, _), (after_label, _) in zip(old, new, strict=True)]
    if claim.same_bytes and any(label != other for label, other in labels):
        return False
    if claim.same_shapes:
        if any(_lists_and_rules(label) != _lists_and_rules(other) for label, other in labels):
            return False
        if [profile(*each) for each in old] != [profile(*each) for each in new]:
            return False
    if claim.same_pattern and _equalities(old) != _equalities(new):
        return False
    pairs = zip(old, new, strict=True)
    return claim.scope != "uncounted" or all(_uncounted(label, value, other) for (label, value), (_, other) in pairs)


def _lists_and_rules(label: str) -> str:
    """Labels that nobody can tell apart by their decoys: those of plain digits and letters."""
    own = _WITH_WORDS | {"CREDIT_CARD", "IBAN", "IP_ADDRESS", "MAC_ADDRESS", "CARD_EXPIRY", "PHONE", "USERNAME"}
    return label if label in own else ""


def _between(text: str, spans: Sequence[Span]) -> list[str]:
    ends, starts = [0, *(span.end for span in spans)], [*(span.start for span in spans), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


def _equalities(named: Sequence[tuple[str, str]]) -> list[object]:
    """Which words, numbers and domains are equal, in whatever case; which numbers are so without their separators or as
    an ending; which words are made of which others; which dates are one. For ASCII."""
    words: list[str] = []
    numbers: list[str] = []
    for label, surface in named:
        name, at, domain = surface.partition("@") if label == "EMAIL" else (surface, "", "")
        values = [value.lower() for value in re.findall("[A-Za-z]+(?:['’][A-Za-z]+)*|[0-9]+", name)]
        words += [value for value in values if not value.isdigit()] + ([domain.lower()] if at else [])
        parts = [value for value in values if value.isdigit()]
        numbers += [*parts, "".join(parts)]
    found: list[object] = [[each.index(value) for value in each] for each in (words, numbers)]
    found += [longer.endswith(number) for number in numbers for longer in numbers]
    found += [_made_of(word, words) for word in words]
    days = [_day(surface) for label, surface in named if label == "DATE"]
    return [*found, [[_same_day(day, other) for other in days] for day in days]]


def _made_of(word: str, words: Sequence[str]) -> list[tuple[int, int, int]]:
    """Where a word has another, or its first letter, from where on."""
    bare = [re.sub("['’]s$", "", other) for other in words]
    return [
        (at, number, length)
        for number, other in enumerate(bare)
        for length in {1, len(other)} - {2}
        for at in _places(other[:length], word)
    ]


def _places(part: str, word: str) -> list[int]:
    return [match.start() for match in re.finditer(f"(?={re.escape(part)})", word)]


_FORMS = ("%d %B %Y", "%B %d, %Y", "%B %d", "%d %B", "%m/%d/%Y", "%d/%m/%Y", "%Y-%m-%d")


def _day(surface: str) -> set[tuple[int, int, int]]:
    days = set()
    for form in _FORMS:
        with suppress(ValueError):
            if "%Y" in form:
                day = datetime.strptime(surface, form)
                days.add((day.year, day.month, day.day))
            else:  # in a leap year every day exists
                day = datetime.strptime(f"{surface} 2024", f"{form} %Y")
                days.add((0, day.month, day.day))
    return days


def _same_day(days: set[tuple[int, int, int]], others: set[tuple[int, int, int]]) -> bool:
    pairs = [(day, other) for day in days for other in others if day[1:] == other[1:]]
    return any(day[0] == other[0] or 0 in (day[0], other[0]) for day, other in pairs)


_NAMES = ("PERSON", "PER", "EMAIL", "GPE", "LOC", "FAC", "ADDRESS", "ORG", "NORP", "LANGUAGE", "PROPN", "MISC", "EVENT")
_AMOUNTS = ("CARDINAL", "ORDINAL", "QUANTITY", "PERCENT", "MONEY", "DATE", "DATE_OF_BIRTH", "TIME")
_WITH_WORDS = frozenset((*_NAMES, *_AMOUNTS, "PRODUCT", "WORK_OF_ART", "LAW"))
"""Labels of names, places, dates and amounts."""


def profile(label: str, surface: str) -> tuple[str, ...]:
    """Digits where digits are; in names, places, dates and amounts, words of the same case where words are,
    abbreviations of the same length; elsewhere letters of the same case where letters are; all other characters the
    same, but for domains of e-mail addresses, and so words of a public list and the 's of a possessive. For ASCII."""
    if label == "EMAIL":
        name, _, domain = surface.partition("@")
        return (*_words(name, frozenset()), "@" if domain else "")
    if label in _WITH_WORDS:
        return _words(surface, kept_words(label))
    return tuple(re.sub("[0-9]", "0", re.sub("[a-z]", "a", re.sub("[A-Z]", "A", surface))))


def _words(surface: str, kept: frozenset[str]) -> tuple[str, ...]:
    possessive = r"['’][sS](?![A-Za-z])"
    parts = re.findall(rf"{possessive}|[A-Za-z]+(?:(?!{possessive})['’][A-Za-z]+)*|.", surface)
    shown = []
    for before, part in zip(("", *parts), parts, strict=False):
        if not part[0].isalpha():
            shown.append("0" if part.isdigit() else part)
        elif part.lower() in kept:
            shown.append(part)
        else:
            # Two letters behind a digit may be an ending, and three capitalised ones a month.
            shown.append(f"{_case(part)} {len(part) if before.isdigit() else min(len(part), 3)}")
    return tuple(shown)


def _case(word: str) -> str:
    letters = re.sub("['’]", "", word)
    if len(word) == 1 or (len(word) <= 3 and word.isalpha() and word.isupper()):
        return f"{'A' if letters.isupper() else 'a'} {len(word)}"
    return "upper" if letters.isupper() else "capitalised" if letters[0].isupper() else "lower"


def _uncounted(label: str, before: str, after: str) -> bool:
    """Whether two surfaces of one shape differ in what the release does not count alone."""
    digits = label in ("DATE", "DATE_OF_BIRTH", "TIME", "PHONE")
    if digits and re.findall("[0-9]", before) != re.findall("[0-9]", after):
        return False
    if label not in _WITH_WORDS:
        return True
    words = [re.findall(r"[A-Za-z]+(?:['’][A-Za-z]+)*", surface) for surface in (before, after)]
    return words[0] == words[1]


# What the stages tell.


def true_epsilon(runs: Sequence[tuple[Sequence[Any], Tier]], before: Corpus, after: Corpus, delta: float) -> float:
    """An upper bound on ε for this very pair: infinite where a stage without noise reads another text.

    Args:
        runs: One after the other.
    """
    changed = sum(old != new for old, new in zip(before, after, strict=True))
    emptied = all(not new for old, new in zip(before, after, strict=True) if old != new)
    spent: list[tuple[float, float, int]] = []
    for plans, tier in runs:
        for plan in plans:
            assert isinstance(plan, StagePlan)
            here, there = (_read(plan, corpus, tier) for corpus in (before, after))
            if plan.stage.release_noise_multiplier is not None:
                here_votes, there_votes = _votes(before, tier), _votes(after, tier)
                moved = math.hypot(*(here_votes[item] - there_votes[item] for item in {**here_votes, **there_votes}))
                if moved > 1e-12:
                    spent.append((1.0, plan.stage.release_noise_multiplier / moved, 1))
            if here == there:
                continue
            if plan.sampling_rate is None or changed > 1:
                return math.inf
            steps = plan.steps_per_epoch
            spent += [(plan.sampling_rate, sigma, steps) for sigma in plan.noise_multipliers]
    return _composed(tuple(sorted(spent)), delta, emptied=emptied)


def _read(plan: StagePlan, corpus: Corpus, tier: Tier) -> object:
    """All of a corpus on which what a stage trains on depends, in distribution."""
    if plan.stage.text is TextVariant.RAW:
        weighs = not isinstance(plan.stage.objective, Uniform)
        return [(text, spans_of(text, tier) if weighs else ()) for text in corpus]
    if plan.stage.text is TextVariant.DECOY:
        pattern = plan.stage.decoy_equality == "record"
        return [
            (_drawn_from(text, tier), equality_pattern([(text, spans_of(text, tier))]) if pattern else ())
            for text in corpus
        ]
    return [redact_text(text, spans_of(text, tier)).text for text in corpus]


def _drawn_from(text: str, tier: Tier) -> object:
    spans = spans_of(text, tier)
    return _between(text, spans), [decoy_law(span.label, text[span.start : span.end]) for span in spans]


def _votes(corpus: Corpus, tier: Tier) -> dict[Item, float]:
    total: dict[Item, float] = defaultdict(float)
    for text in corpus:
        own = votes(text, spans_of(text, tier))
        for item, weight in own.items():
            total[item] += weight / max(1.0, math.hypot(*own.values()))
    return total


@cache
def _composed(spent: tuple[tuple[float, float, int], ...], delta: float, *, emptied: bool) -> float:
    """A record that is emptied moves a step's sum by its clip norm, one that is replaced by twice that; a release moves
    as far as it was measured to."""
    relations = dp_accounting.NeighboringRelation
    relation = relations.ADD_OR_REMOVE_ONE if emptied else relations.REPLACE_ONE
    accountant = PLDAccountant(relation, value_discretization_interval=1e-3)
    for q, sigma, steps in spent:
        if q == 1:
            accountant.compose(dp_accounting.GaussianDpEvent(sigma if emptied else 2 * sigma))
        else:
            accountant.compose(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma)), steps)
    return float(accountant.get_epsilon(delta))
