"""`atdp redact` as a function: a corpus with placeholders over what is sensitive."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from atdp_cli.corpus.edits import Edit
from atdp_cli.corpus.record import Record
from atdp_cli.corpus.rewrite import rewrite_corpus
from atdp_cli.corpus.spans import Span, at_tier, merge
from atdp_cli.detection.crosscheck.request import check_crosscheck
from atdp_cli.detection.detector import (
    Detector,
    check_detector,
    detector_files,
    make_detector,
)
from atdp_cli.detection.options import CorpusRequest, SpanFileOptions
from atdp_cli.detection.results import CorpusCounts, RedactionSummary
from atdp_cli.detection.run import CorpusSource, corpus_source, count_skipped, no_counts, run_over
from atdp_cli.detection.span_file import read_spans
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify, ignore
from atdp_cli.files.atomic_write import check_apart, check_new
from atdp_cli.files.corpus_file import Writable
from atdp_cli.files.documents import copy_fields
from atdp_cli.replacement.edits import edits
from atdp_cli.replacement.placeholders import Masking, Style, fresh_masking, read_or_create_key
from atdp_cli.settings import OUTPUT, Option, named_paths


class RedactRequest(CorpusRequest, SpanFileOptions):
    """What `redact` is asked for."""

    output: Annotated[Path, Option(OUTPUT, main=True, flags=("--output", "-o"), writes=True)]
    """The redacted corpus, in the same format; - for standard output, escaped where that is a terminal."""

    style: Annotated[Style, Option(OUTPUT, main=True, metavar="STYLE")] = Style.LABEL
    """Placeholders: label, as [PERSON]; angle, <PERSON>; numbered, [PERSON_1], equal texts of a record alike;
    pseudonym, [PERSON_k7f2q4xa], equal texts of all records alike, by a keyed hash. Numbered leaks which mentions of a
    record are the same (equality and co-reference), pseudonym which of the whole corpus."""

    pseudonym_key: Annotated[Path | None, Option(OUTPUT)] = None
    """File of the key for pseudonyms, 32 bytes or more, created if it does not exist. Corpora with one key share their
    pseudonyms; who has it can test guesses. Default: a random key, thrown away."""


def redact(request: RedactRequest, notify: Notify = ignore, stream: Writable | None = None) -> RedactionSummary:
    """Write a corpus with placeholders in place of its sensitive spans.

    What is skipped is left out: a line that cannot be read cannot be called redacted.

    Args:
        request: What to redact, and how.
        notify: Called with how many records are done.
        stream: Where it is written, in place of the file.

    Raises:
        UsageError: The output exists or is one of the files that are read, or there is a key without pseudonyms.
        InputError: The corpus, the spans or the key cannot be used.
    """
    corpus = corpus_source(request, request.corpus)
    detector = make_detector(request, request.corpus, run_on=request.run_on)
    read, written = named_paths(request)
    check_apart((*read, *detector_files(detector)), written)
    output, spans = stream or request.output, request.spans
    if isinstance(output, Path):
        check_new(output, force=request.force)
    check_crosscheck(detector.crosscheck, spans=spans is not None)
    if spans is None:
        check_detector(detector)
    masking = _masking(request.style, request.pseudonym_key)
    counts = no_counts(detector)

    def changes(records: Iterator[Record]) -> Iterator[Sequence[Edit]]:
        for record, of_record in spans_of_records(records, corpus, detector, notify, counts, spans):
            counts.add(record.text, merge(of_record))
            yield edits(record.text, of_record, masking)

    skip = count_skipped(corpus, counts)
    rewrite_corpus(corpus.path, output, changes, corpus, skip, replace=request.force)
    written_to = str(output) if isinstance(output, Path) else None
    return copy_fields(RedactionSummary, counts, output=written_to, flagged=counts.flagged())


def spans_of_records(  # noqa: PLR0917 - what a corpus is redacted by
    records: Iterator[Record],
    corpus: CorpusSource,
    detector: Detector,
    notify: Notify,
    counts: CorpusCounts,
    spans: Path | None,
) -> Iterator[tuple[Record, Sequence[Span]]]:
    """Yield each record with its sensitive spans, from a spans file or the detector, in the records' order."""
    if spans is not None:
        for record, of_record in read_spans(spans, records):
            yield record, detector.label_filter.apply(of_record)
        return
    for detection in run_over(records, corpus, detector, notify, counts):
        yield detection.record, at_tier(detection.spans, detector.tier)


def _masking(style: Style, pseudonym_key: Path | None) -> Masking:
    if pseudonym_key is None:
        return fresh_masking(style)
    if style is not Style.PSEUDONYM:
        raise UsageError("--pseudonym-key goes with --style pseudonym.", "Add that style, or leave the key out.")
    return Masking(style, read_or_create_key(pseudonym_key))
