"""A sample of a corpus's sentences for people to review: half flagged, half unflagged, drawn in one pass."""

import bisect
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Range, Span, Tier, at_tier, merge
from atdp_cli.detection.detect import Detection
from atdp_cli.errors import UsageError


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a record.

    Attributes:
        record: The record.
        position: Which record of the corpus it is, from 0.
        place: Where the sentence is in the record, without the white space around it.
        spans: The merged spans that share a character with it; the first and the last may reach beyond it.
        disputed: Whether detector and cross-check disagree about it.
    """

    record: Record
    position: int
    place: Range
    spans: tuple[Span, ...]
    disputed: bool = False


@dataclass(frozen=True, slots=True)
class Drawn:
    """A sentence of the sample, and how many sentences of the corpus it stands for."""

    sentence: Sentence
    stands_for: float


@dataclass(slots=True)
class _Reservoir:
    """Two of the sentences offered, each pair as likely as any other; the one where only one was."""

    draw: random.Random
    seen: int = 0
    sentences: list[Sentence] = field(default_factory=list)

    def offer(self, sentence: Sentence) -> None:
        self.seen += 1
        if len(self.sentences) < 2:
            self.sentences.append(sentence)
        elif (at := self.draw.randrange(self.seen)) < 2:
            self.sentences[at] = sentence

    def take(self, number: int) -> list[Drawn]:
        number = min(number, len(self.sentences))
        return [Drawn(sentence, self.seen / number) for sentence in self.draw.sample(self.sentences, number)]


def sentences_of(detections: Iterable[Detection], tier: Tier) -> Iterator[Sentence]:
    """The sentences that have a letter or a digit, in order, with the spans that `tier` flags in them."""
    for position, detection in enumerate(detections):
        record, spans = detection.record, merge(at_tier(detection.spans, tier))
        for start, end in detection.sentences:
            place = _trimmed(record.text, start, end)
            if any(map(str.isalnum, record.text[slice(*place)])):
                yield Sentence(record, position, place, _touching(spans, place), _is_disputed(detection, place))


def _trimmed(text: str, start: int, end: int) -> Range:
    piece = text[start:end]
    return end - len(piece.lstrip()), start + len(piece.rstrip())


def _touching(spans: tuple[Span, ...], place: Range) -> tuple[Span, ...]:
    first = bisect.bisect_right(spans, place[0], key=lambda span: span.end)
    last = bisect.bisect_left(spans, place[1], key=lambda span: span.start)
    return spans[first:last]


def _is_disputed(detection: Detection, place: Range) -> bool:
    """Whether a disputed place begins in a sentence."""
    at = bisect.bisect_left(detection.disputed, (place[0], 0))
    return at < len(detection.disputed) and detection.disputed[at][0] < place[1]


def check_rate(rate: float) -> None:
    """Raise UsageError unless `rate` is a share of the sentences that can be drawn."""
    if not 0 < rate <= 1:
        raise UsageError(
            f"review-share is {rate}.", "Choose a share of the sentences above 0 and at most 1, such as 0.01."
        )


def sample_sentences(sentences: Iterable[Sentence], rate: float, draw: random.Random) -> Iterator[Drawn]:
    """Draw a share `rate` of the sentences, half of them flagged; four in memory, besides disputed ones.

    The sentences are cut, in order, into blocks of about 2/rate. Of each block one flagged and one unflagged
    sentence are drawn uniformly, or two of a kind where the other is missing. So n sentences give rate·n of
    them rounded up to an even number, or all where the last block holds one alone, and every sentence can be
    drawn. A disputed sentence is not drawn from: it is in the sample for certain, and stands for itself alone.

    Args:
        sentences: Those of the corpus.
        rate: Above 0 and at most 1.
        draw: Where chance comes from; `random.SystemRandom()` unless a test must repeat itself.

    Raises:
        UsageError: `rate` is out of range.
    """
    check_rate(rate)
    return _sample(sentences, rate, draw)


def _sample(sentences: Iterable[Sentence], rate: float, draw: random.Random) -> Iterator[Drawn]:
    blocks = 0
    flagged, unflagged, certain = _Reservoir(draw), _Reservoir(draw), list[Drawn]()
    for seen, sentence in enumerate(sentences, start=1):
        if sentence.disputed:
            certain.append(Drawn(sentence, 1.0))
        else:
            (flagged if sentence.spans else unflagged).offer(sentence)
        if math.floor(seen * rate / 2) > blocks:
            yield from _taken(flagged, unflagged, certain)
            blocks += 1
            flagged, unflagged, certain = _Reservoir(draw), _Reservoir(draw), []
    yield from _taken(flagged, unflagged, certain)


def _taken(flagged: _Reservoir, unflagged: _Reservoir, certain: list[Drawn]) -> list[Drawn]:
    each = 1 if flagged.seen and unflagged.seen else 2
    drawn = [*certain, *flagged.take(each), *unflagged.take(each)]
    return sorted(drawn, key=lambda each: (each.sentence.position, each.sentence.place))
