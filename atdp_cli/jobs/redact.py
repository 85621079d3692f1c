"""`atdp redact` as a function."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from atdp_cli.errors import UsageError
from atdp_cli.events import Notify
from atdp_cli.files.atomic_write import check_new, same_file
from atdp_cli.files.compression import Writable
from atdp_cli.jobs.detect import CorpusSource, DetectionCounts, count_skipped, no_counts, run_over
from atdp_cli.jobs.detector import Detector, check_detector
from atdp_cli.text.corpus.records import Record
from atdp_cli.text.corpus.rewriting import rewrite_corpus
from atdp_cli.text.crosscheck.request import check_crosscheck
from atdp_cli.text.detection.span_file import read_spans
from atdp_cli.text.detection.spans import Span, at_tier, merge
from atdp_cli.text.redaction.edits import Edit, edits
from atdp_cli.text.redaction.placeholders import Masking, Style, fresh_masking, read_or_create_key


def redact_corpus(
    corpus: CorpusSource,
    output: Path | Writable,
    detector: Detector,
    notify: Notify,
    *,
    style: Style = Style.LABEL,
    pseudonym_key: Path | None = None,
    spans: Path | None = None,
    force: bool = False,
) -> DetectionCounts:
    """Write the corpus with placeholders over its sensitive spans, and count its records.

    What is skipped is left out: a line that cannot be read cannot be called redacted.

    Args:
        output: The file to write, or a stream.
        style: How placeholders look.
        pseudonym_key: The file of the key for pseudonyms, created if it does not exist; None for a random key
            that is thrown away.
        spans: A spans file of this corpus, or of the same shard of it, used in place of the detector.

    Raises:
        UsageError: The output exists, or there is a key without pseudonyms or in the place of the output; the shard
            would replace the corpus, or have pseudonyms of its own.
        InputError: The corpus, the spans or the key cannot be used.
    """
    if isinstance(output, Path):
        check_new(output, force=force)
    if corpus.shard is not None:
        _check_part(corpus, output, style, pseudonym_key)
    check_crosscheck(detector.crosscheck, spans=spans is not None)
    if spans is None:
        check_detector(detector)
    masking = _masking(style, pseudonym_key, output)
    counts = no_counts(detector)

    def changes(records: Iterator[Record]) -> Iterator[Sequence[Edit]]:
        for record, of_record in spans_of_records(records, corpus, detector, notify, counts, spans):
            counts.flagged.add(record.text, merge(of_record))
            yield edits(record.text, of_record, masking)

    counts.records = rewrite_corpus(corpus.path, output, changes, corpus, count_skipped(corpus, counts), replace=force)
    return counts


def spans_of_records(  # noqa: PLR0917 - what a corpus is redacted by
    records: Iterator[Record],
    corpus: CorpusSource,
    detector: Detector,
    notify: Notify,
    counts: DetectionCounts,
    spans: Path | None,
) -> Iterator[tuple[Record, Sequence[Span]]]:
    """Each record with what is sensitive in it, from a file of spans or by the detector, in the records' order."""
    if spans is not None:
        for record, of_record in read_spans(spans, records):
            yield record, detector.label_filter.apply(of_record)
        return
    for detection in run_over(records, corpus, detector, notify, counts):
        yield detection.record, at_tier(detection.spans, detector.tier)


def _check_part(corpus: CorpusSource, output: Path | Writable, style: Style, pseudonym_key: Path | None) -> None:
    if isinstance(output, Path) and same_file(output, corpus.path):
        raise UsageError(
            "--output names the corpus, but --shard reads only a part of it.", "Write the part to another file."
        )
    if style is Style.PSEUDONYM and pseudonym_key is None:
        raise UsageError(
            "--shard with pseudonyms of a random key would give every part other names.",
            "Give all parts the same --pseudonym-key.",
        )


def _masking(style: Style, pseudonym_key: Path | None, output: Path | Writable) -> Masking:
    if pseudonym_key is None:
        return fresh_masking(style)
    if style is not Style.PSEUDONYM:
        raise UsageError("--pseudonym-key goes with --style pseudonym.", "Add that style, or leave the key out.")
    if isinstance(output, Path) and same_file(pseudonym_key, output):
        raise UsageError("--pseudonym-key and --output name the same file.", "Keep the key elsewhere.")
    return Masking(style, read_or_create_key(pseudonym_key))
