"""A copy's edits: what stands for each flagged span, drawn as harden draws it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from atdp_cli.text.corpus.records import Record
from atdp_cli.text.corpus.rewriting import Edits
from atdp_cli.text.detection.span_file import read_spans
from atdp_cli.text.detection.spans import Span, merge
from atdp_cli.text.redaction.decoys import Choose, decoy_text
from atdp_cli.text.redaction.edits import Edit, edits_by_line
from atdp_cli.text.redaction.equality import equal_decoys
from atdp_cli.training.recipe import DecoyEquality


def copy_edits(spans: Path, choose: Choose, equality: DecoyEquality | None) -> Edits:
    """What makes a copy of a corpus.

    Args:
        spans: A spans file of the corpus.
        choose: The source of all randomness, asked record by record.
        equality: As for `jobs/harden/encoding.encode`.
    """

    def edits(records: Iterator[Record]) -> Iterator[Sequence[Edit]]:
        for record, record_spans in read_spans(spans, records):
            yield _drawn(record.text, record_spans, choose, equality)

    return edits


def _drawn(text: str, spans: Sequence[Span], choose: Choose, equality: DecoyEquality | None) -> Sequence[Edit]:
    edited = decoy_text(text, spans, choose) if equality is None else equal_decoys([(text, spans)], choose)[0]
    places = zip(merge(spans), edited.places, strict=True)
    return list(
        edits_by_line(text, [Edit(span.start, span.end, edited.text[start:end]) for span, (start, end) in places])
    )
