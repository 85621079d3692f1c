"""`atdp detect` and `atdp redact` as functions."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from atdp_cli.errors import InputError
from atdp_cli.events import Notify
from atdp_cli.jobs.detection import Detector, find
from atdp_cli.text.files import Bad, check_new, refuse, written_whole
from atdp_cli.text.records import Record, Unit, read_records
from atdp_cli.text.redaction import Edit, Style, edits
from atdp_cli.text.rewriting import rewrite_corpus
from atdp_cli.text.scan import load_pipeline
from atdp_cli.text.spanfile import read_spans, spans_line
from atdp_cli.text.spans import at_tier, merge


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus and how to read it.

    Attributes:
        skip_bad: Count lines, objects and rows that cannot be read, and go on, in place of an error.
    """

    path: Path
    unit: Unit = "line"
    text_field: str = "text"
    id_field: str | None = None
    skip_bad: bool = False


@dataclass(kw_only=True)
class Tally:
    """Counts over a corpus; tokens are spaCy's."""

    records: int = 0
    skipped: int = 0
    tokens: int = 0
    sensitive_tokens: int = 0
    by_label: Counter[str] = field(default_factory=Counter)

    @property
    def sensitive_share(self) -> float:
        """Sensitive tokens over all tokens, 0 for an empty corpus."""
        return self.sensitive_tokens / self.tokens if self.tokens else 0.0


Write = Callable[[str], None]
"""Takes one line of output, its ending included."""


def detect_corpus(corpus: Corpus, detector: Detector, write: Write, notify: Notify) -> Tally:
    """Find the spans of every record, hand each record's JSON line to `write`, and count."""
    tally = Tally()
    records = read_records(
        corpus.path,
        unit=corpus.unit,
        text_field=corpus.text_field,
        id_field=corpus.id_field,
        bad=_bad(corpus, tally),
    )
    for found in find(records, detector, load_pipeline(detector.pipeline), notify):
        spans = merge(at_tier(found.spans, detector.tier))
        tally.records += 1
        tally.tokens += len(found.tokens)
        tally.sensitive_tokens += found.sensitive_tokens(detector.tier)
        tally.by_label.update(span.label for span in spans)
        write(spans_line(found.record.id, spans) + "\n")
    return tally


def detect_to_file(corpus: Corpus, output: Path, detector: Detector, notify: Notify, *, force: bool) -> Tally:
    """`detect_corpus` into a file that appears whole or not at all."""
    check_new(output, force=force)
    with written_whole(output) as stream:
        return detect_corpus(corpus, detector, lambda line: _discard(stream.write(line.encode("utf-8"))), notify)


def redact_corpus(
    corpus: Corpus, output: Path, detector: Detector, notify: Notify, *, style: Style, spans: Path | None, force: bool
) -> Tally:
    """Write the corpus with placeholders over its sensitive spans, and count its records.

    What is skipped is left out: a line that cannot be read cannot be called redacted.

    Args:
        spans: A spans file of this corpus, used in place of the detector.
    """
    check_new(output, force=force)
    tally = Tally()

    def changes(records: Iterator[Record]) -> Iterator[Sequence[Edit]]:
        if spans is not None:
            return (edits(known, style) for _, known in read_spans(spans, records))
        found = find(records, detector, load_pipeline(detector.pipeline), notify)
        return (edits(at_tier(one.spans, detector.tier), style) for one in found)

    tally.records = rewrite_corpus(
        corpus.path,
        output,
        changes,
        unit=corpus.unit,
        text_field=corpus.text_field,
        id_field=corpus.id_field,
        bad=_bad(corpus, tally),
    )
    return tally


def _bad(corpus: Corpus, tally: Tally) -> Bad:
    def count(_: InputError) -> None:
        tally.skipped += 1

    return count if corpus.skip_bad else refuse


def _discard(_: object) -> None:
    """`Write` gives nothing back; a stream's `write` gives a count."""
