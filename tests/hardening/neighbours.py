"""What sentences about guarantees say of two corpora, and what the stages of a recipe tell about them.

Both are written apart from what makes the sentences: the sentences are read word by word, and what a stage reads is
made by the functions that training uses.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import dp_accounting
from dp_accounting.pld import PLDAccountant

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier, at_tier, merge
from atdp_cli.detection.detect import detect_records
from atdp_cli.detection.scan import load_pipeline
from atdp_cli.replacement.decoys import shape
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
    same_shapes: bool = False
    same_pattern: bool = False


_NUMBER = r"(?P<epsilon>\d[\d.]*)"
_TIER = r"at tier (?P<tier>[a-z-]+)"
_VALUES = (
    r"other values(?P<shapes> of the same shapes)?"
    r"(?P<pattern> and the same equalities within the line)? that the detector would "
    rf"flag identically {_TIER}"
)
_CLAIMS = {
    "end to end": [
        rf"End to end, for each line: ε = {_NUMBER} at δ",
        rf"whether it was used or not changes the odds .* factor of (?P<factor>[\d,.]+) \(ε = {_NUMBER} at δ",
    ],
    "flagged": [
        rf"flagged characters alone, for (?P<whose>each|any number of) lines?, ε = {_NUMBER} .*against {_VALUES}\.",
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
    if [span.label for span in here] != [span.label for span in there] or _between(before, here) != _between(
        after, there
    ):
        return False
    pairs = [
        (span.label, before[span.start : span.end], after[other.start : other.end])
        for span, other in zip(here, there, strict=True)
    ]
    if claim.same_shapes and not all(_profile(label, old) == _profile(label, new) for label, old, new in pairs):
        return False
    if claim.same_pattern and _values([pair[:2] for pair in pairs]) != _values([pair[::2] for pair in pairs]):
        return False
    return claim.scope != "uncounted" or all(_uncounted(*pair) for pair in pairs)


def _between(text: str, spans: Sequence[Span]) -> list[str]:
    ends, starts = [0, *(span.end for span in spans)], [*(span.start for span in spans), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


def _values(named: Sequence[tuple[str, ...]]) -> list[int]:
    """Which words, whole numbers and domains are equal, in whatever case. For ASCII."""
    values: list[str] = []
    for label, surface in named:
        name, at, domain = surface.partition("@") if label == "EMAIL" else (surface, "", "")
        word = "[A-Za-z]+(?:['’][A-Za-z]+)*" if label in _WITH_WORDS else "[A-Za-z]+"
        values += [value.lower() for value in (*re.findall(f"{word}|[0-9]+", name), *([domain] if at else []))]
    return [values.index(value) for value in values]


_NAMES = ("PERSON", "PER", "EMAIL", "GPE", "LOC", "FAC", "ADDRESS", "ORG", "NORP", "LANGUAGE", "PROPN", "MISC", "EVENT")
_AMOUNTS = ("CARDINAL", "ORDINAL", "QUANTITY", "PERCENT", "MONEY", "DATE", "DATE_OF_BIRTH", "TIME")
_WITH_WORDS = frozenset((*_NAMES, *_AMOUNTS, "PRODUCT", "WORK_OF_ART", "LAW"))
"""Labels of names, places, dates and amounts."""


def _profile(label: str, surface: str) -> tuple[str, ...]:
    """Digits where digits are; in names, places, dates and amounts, words of the same case where words are,
    abbreviations of the same length; elsewhere letters of the same case where letters are; all other characters the
    same, but for domains of e-mail addresses. For ASCII."""
    if label == "EMAIL":
        name, _, domain = surface.partition("@")
        return (*_words(name), "@" if domain else "")
    if label in _WITH_WORDS:
        return _words(surface)
    return tuple(re.sub("[0-9]", "0", re.sub("[a-z]", "a", re.sub("[A-Z]", "A", surface))))


def _words(surface: str) -> tuple[str, ...]:
    parts = re.findall(r"[A-Za-z]+(?:['’][A-Za-z]+)*|.", surface)
    return tuple(_case(part) if part[0].isalpha() else "0" if part.isdigit() else part for part in parts)


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
    return _between(text, spans), [shape(span.label, text[span.start : span.end]) for span in spans]


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
