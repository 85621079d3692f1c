"""The map of memorised text: places that stand out against records that the model never read.

Two passes over every record, one by the model and one by the public base model, give each token's gain. The score of a
group of records is its best stretch. Against the scores of held-out groups that is a p-value, and the findings are
those at the false discovery rate. No detector is asked; what it flagged among the findings is then ranked among decoys.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control

from atdp_cli.audit.attacks.extraction import queries_needed
from atdp_cli.corpus.spans import MEMORISED, Range, Span, merge
from atdp_cli.memorisation.ranks import Tails, score_tails, tokenise_tails
from atdp_cli.memorisation.results import MemorisedPlace, ValueRank
from atdp_cli.memorisation.scores import (
    FrequentNgrams,
    Gains,
    Stretch,
    TokenScores,
    best_stretch,
    log_ratios,
    stretches_above,
    token_gains,
)
from atdp_cli.model.checkpoint import Checkpoint
from atdp_cli.replacement.decoys import WITHOUT, Choose
from atdp_cli.replacement.draw import decoy_value

Floats = npt.NDArray[np.float64]

DECIMALS = 12
"""Decimals of adjusted p-values."""


def conformal_p_values(scores: Sequence[float] | Floats, held_out: Sequence[float] | Floats) -> Floats:
    """The p-value of each score by scores of records that the model never read; ties count against the model.

    Source: Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a Random World.

    Args:
        scores: Of the records to test, shape [m]; none is NaN.
        held_out: Shape [n], n ≥ 1.

    Returns:
        In [1 / (n + 1), 1], shape [m].
    """
    ordered = np.sort(np.asarray(held_out, dtype=np.float64))
    at_least = ordered.size - np.searchsorted(ordered, np.asarray(scores, dtype=np.float64), side="left")
    p_values: Floats = (1 + at_least) / (1 + ordered.size)
    return p_values


def adjusted_p_values(p_values: Floats) -> Floats:
    """Adjust p-values by Benjamini and Hochberg: the least false discovery rate that finds each, shape [m].

    Over conformal p-values of independent records the rate holds for scores that read none of them: Bates et al. 2023,
    Testing for outliers with conformal p-values, Theorem 2. A map's scores read held-out records (`FrequentNgrams`, the
    mean gain), so of it only (1 + 1/2 + … + 1/m) times the rate is proved: Benjamini and Yekutieli 2001, Theorem 1.3.
    """
    if p_values.size == 0:
        return p_values
    adjusted: Floats = false_discovery_control(p_values, method="bh")
    # A rate that p · m / k equals would be missed by a last digit.
    return np.round(adjusted, DECIMALS)


def fewest_findings(tested: int, held_out: int, rate: float) -> int:
    """How many records must stand out together before any is significant: no p-value is below 1 / (n + 1).

    Args:
        tested, held_out: Records, m ≥ 0 and n ≥ 1.
        rate: Of false discoveries, in (0, 1).
    """
    return max(1, ceil(tested / (rate * (held_out + 1)) - 1e-9))


CONTEXTS = 8
"""Held-out records before whose values of equal label a found value is tried, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedRecord:
    """What a model reads of a record of a map: its text, or one of its conversations.

    Attributes:
        number: Its place among what is read of the corpus, from 1.
        group: The number of the group that it belongs to, from 0, counted apart for training and held-out records.
    """

    number: int
    text: str
    spans: tuple[Span, ...]
    group: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedCorpus:
    """Records that a model was trained on, and held-out ones of the same kind that it never read."""

    training: tuple[MappedRecord, ...]
    held_out: tuple[MappedRecord, ...]

    @property
    def records(self) -> tuple[MappedRecord, ...]:
        """All, the held-out ones last."""
        return self.training + self.held_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The groups that stand out, and where.

    Attributes:
        tested, held_out: Groups.
        fewest: So many must stand out together before any is significant.
        calibrated: Whether `groups` are the findings at the false discovery rate; otherwise there are none, and
            `groups` are those that score above every held-out one.
        places: Of these groups, ranks and all else that a model is asked for left out; the greatest gain first.
    """

    tested: int
    held_out: int
    fewest: int
    calibrated: bool
    groups: frozenset[int]
    places: tuple[MemorisedPlace, ...]


def find_memorised(
    corpus: MappedCorpus, model: Sequence[TokenScores], reference: Sequence[TokenScores] | None, *, fdr: float
) -> Findings:
    """The places of the training records that stand out.

    Args:
        model, reference: Scores of `corpus.records`, in that order; None without a reference.
        fdr: The false discovery rate, in (0, 1).
    """
    gains = _gains(corpus, model, reference)
    count = len(corpus.training)
    scores = _by_group(corpus.training, gains[:count])
    held_out = _by_group(corpus.held_out, gains[count:])
    p_values = conformal_p_values(scores, held_out)
    adjusted = adjusted_p_values(p_values)
    significant = adjusted <= fdr
    calibrated = bool(significant.any())
    chosen = significant if calibrated else scores > held_out.max()
    groups = frozenset(np.flatnonzero(chosen).tolist())
    floor = float(scores[chosen].min()) if groups else 0.0
    places = [
        _place(record, own, stretch, float(p_values[record.group]), float(adjusted[record.group]))
        for record, own, gain in zip(corpus.training, model, gains, strict=False)
        if record.group in groups
        for stretch in stretches_above(gain, floor)
    ]
    return Findings(
        tested=scores.size,
        held_out=held_out.size,
        fewest=fewest_findings(scores.size, held_out.size, fdr),
        calibrated=calibrated,
        groups=groups,
        places=_numbered(sorted(places, key=lambda place: -place.gain), corpus.training),
    )


def _numbered(places: Sequence[MemorisedPlace], records: Sequence[MappedRecord]) -> tuple[MemorisedPlace, ...]:
    """The places with a number for each text, in the order of the places."""
    texts = {record.number: record.text for record in records}
    numbers: dict[str, int] = {}
    return tuple(
        place.model_copy(
            update={
                "value": numbers.setdefault(texts[place.record][place.start : place.end].casefold(), len(numbers) + 1)
            }
        )
        for place in places
    )


def _gains(
    corpus: MappedCorpus, model: Sequence[TokenScores], reference: Sequence[TokenScores] | None
) -> tuple[Gains, ...]:
    bases: Sequence[TokenScores | None] = [None] * len(model) if reference is None else reference
    ratios = [log_ratios(own, base) for own, base in zip(model, bases, strict=True)]
    later = [ratio[1:] for ratio in ratios]
    average = float(np.concatenate(later).mean()) if sum(map(len, later)) else 0.0
    count = len(corpus.training)
    known = FrequentNgrams(
        (scores.ids, record.group) for scores, record in zip(model[count:], corpus.held_out, strict=True)
    )
    return tuple(
        token_gains(
            ratio,
            average,
            known.ends(scores.ids, group=None if place < count else record.group) | _blank(record.text, scores),
        )
        for place, (ratio, scores, record) in enumerate(zip(ratios, model, corpus.records, strict=True))
    )


def _blank(text: str, scores: TokenScores) -> npt.NDArray[np.bool_]:
    """Which tokens are white space alone, or no character: a stretch of them is no text, shape [T]."""
    return np.array([not text[start:end].strip() for start, end in scores.offsets.tolist()], dtype=np.bool_)


def _by_group(records: Sequence[MappedRecord], gains: Sequence[Gains]) -> Floats:
    """The best stretch of each group, nats, shape [groups]."""
    scores = np.zeros(1 + max((record.group for record in records), default=-1))
    for record, gain in zip(records, gains, strict=True):
        stretch = best_stretch(gain)
        if stretch is not None:
            scores[record.group] = max(scores[record.group], stretch.gain)
    return scores


def _place(
    record: MappedRecord, scores: TokenScores, stretch: Stretch, p_value: float, adjusted_p: float
) -> MemorisedPlace:
    covered = scores.offsets[stretch.start : stretch.end]
    start, end = _whole_words(record.text, int(covered[:, 0].min()), int(covered[:, 1].max()))
    inside = (scores.offsets[:, 0] < end) & (scores.offsets[:, 1] > start)
    queries = queries_needed(float(scores.log_p[inside].sum(dtype=np.float64)), 0.5)
    span = _covering(record.spans, (start, end))
    return MemorisedPlace(
        record=record.number,
        start=start,
        end=end,
        value=1,
        label=MEMORISED if span is None else span.label,
        gain=stretch.gain,
        p_value=p_value,
        adjusted_p=adjusted_p,
        greedy=bool(scores.greedy[inside].all()),
        queries_half=queries,
        rank=None,
    )


def _whole_words(text: str, start: int, end: int) -> Range:
    """The characters without white space at either end, and up to the ends of their words."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return start, end


def _covering(spans: Iterable[Span], place: Range) -> Span | None:
    """The flagged span that covers at least half of a place."""
    start, end = place
    shared = [(min(end, span.end) - max(start, span.start), span) for span in merge(spans)]
    most, span = max(shared, key=lambda pair: pair[0], default=(0, None))
    return span if 2 * most >= end - start else None


def rank_places(
    checkpoint: Checkpoint,
    reference: Checkpoint | None,
    corpus: MappedCorpus,
    places: Sequence[MemorisedPlace],
    *,
    decoys: int,
    choose: Choose,
) -> tuple[MemorisedPlace, ...]:
    """The places, the first one of each flagged value with its rank among decoys, here and after other records' text.

    Args:
        checkpoint, reference: In eval mode.
        decoys: For each value, from 1.
        choose: Draws them, from their shapes alone.
    """
    by_number = {record.number: record for record in corpus.training}
    contexts = _contexts(corpus.held_out)
    tails: list[Tails] = []
    owners: list[tuple[int, bool]] = []
    first = {place.value: number for number, place in reversed(list(enumerate(places)))}
    for number in sorted(first.values()):
        place = places[number]
        record = by_number[place.record]
        span = _covering(record.spans, (place.start, place.end))
        if span is None or span.label in WITHOUT:
            continue
        value = record.text[span.start : span.end]
        surfaces = [value, *(decoy_value(span.label, value, choose) for _ in range(decoys))]
        own = tokenise_tails(checkpoint.tokenizer, record.text[: span.start], surfaces)
        others = [tokenise_tails(checkpoint.tokenizer, text, surfaces) for text in contexts.get(span.label, ())]
        for here, tokenised in ((True, own), *((False, other) for other in others)):
            if tokenised is not None:
                tails.append(tokenised)
                owners.append((number, here))
    scores = score_tails(checkpoint.model, tails)
    if reference is not None:
        scores = [own - base for own, base in zip(scores, score_tails(reference.model, tails), strict=True)]
    shares: dict[tuple[int, bool], list[float]] = {}
    for owner, values in zip(owners, scores, strict=True):
        shares.setdefault(owner, []).append(
            float((values[1:] > values[0]).mean() + (values[1:] == values[0]).mean() / 2)
        )
    return tuple(
        place.model_copy(update={"rank": _rank(decoys, shares.get((number, True)), shares.get((number, False)))})
        for number, place in enumerate(places)
    )


def _rank(decoys: int, here: Sequence[float] | None, elsewhere: Sequence[float] | None) -> ValueRank | None:
    if not here:
        return None
    return ValueRank(decoys=decoys, likelier=here[0], elsewhere=median(elsewhere) if elsewhere else None)


def _contexts(held_out: Sequence[MappedRecord]) -> Mapping[str, Sequence[str]]:
    """The texts before values of some held-out records, by label."""
    before: dict[str, list[str]] = {}
    for record in held_out:
        for span in merge(record.spans)[:1]:
            known = before.setdefault(span.label, [])
            if len(known) < CONTEXTS:
                known.append(record.text[: span.start])
    return before
