"""`atdp detect` and `atdp redact` as functions."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from atdp_cli.errors import InputError
from atdp_cli.events import Notify
from atdp_cli.text.corrections import read_terms
from atdp_cli.text.detector import Detection, detect
from atdp_cli.text.files import Bad, check_new, refuse, written_whole
from atdp_cli.text.records import Record, Unit, read_records
from atdp_cli.text.redaction import Edit, Style, edits
from atdp_cli.text.rewriting import rewrite_corpus
from atdp_cli.text.scan import load_pipeline
from atdp_cli.text.spanfile import read_spans, spans_line
from atdp_cli.text.spans import Tier, at_tier, merge


@dataclass(frozen=True, kw_only=True)
class Search:
    """How to look for sensitive spans.

    Attributes:
        skip_bad: Count lines, objects and rows that cannot be read, and go on, in place of an error.
    """

    tier: Tier
    unit: Unit = "line"
    text_field: str = "text"
    id_field: str | None = None
    skip_bad: bool = False
    pipeline: str | None = None
    allow: Path | None = None
    deny: Path | None = None
    jobs: int = 1


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


def detect_corpus(corpus: Path, search: Search, write: Write, notify: Notify) -> Tally:
    """Find the spans of every record, hand each record's JSON line to `write`, and count."""
    tally = Tally()
    records = read_records(
        corpus, unit=search.unit, text_field=search.text_field, id_field=search.id_field, bad=_bad(search, tally)
    )
    for found in _found(records, search, notify):
        spans = merge(at_tier(found.spans, search.tier))
        tally.records += 1
        tally.tokens += found.tokens
        tally.sensitive_tokens += found.sensitive_tokens[search.tier]
        tally.by_label.update(span.label for span in spans)
        write(spans_line(found.record.id, spans) + "\n")
    return tally


def detect_to_file(corpus: Path, output: Path, search: Search, notify: Notify, *, force: bool) -> Tally:
    """`detect_corpus` into a file that appears whole or not at all."""
    check_new(output, force=force)
    with written_whole(output) as stream:
        return detect_corpus(corpus, search, lambda line: _discard(stream.write(line.encode("utf-8"))), notify)


def redact_corpus(
    corpus: Path, output: Path, search: Search, notify: Notify, *, style: Style, spans: Path | None, force: bool
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
        return (edits(at_tier(found.spans, search.tier), style) for found in _found(records, search, notify))

    tally.records = rewrite_corpus(
        corpus,
        output,
        changes,
        unit=search.unit,
        text_field=search.text_field,
        id_field=search.id_field,
        bad=_bad(search, tally),
    )
    return tally


def _bad(search: Search, tally: Tally) -> Bad:
    def count(_: InputError) -> None:
        tally.skipped += 1

    return count if search.skip_bad else refuse


def _found(records: Iterable[Record], search: Search, notify: Notify) -> Iterator[Detection]:
    return detect(
        records,
        pipeline=load_pipeline(search.pipeline),
        jobs=search.jobs,
        allow=read_terms(search.allow) if search.allow else (),
        deny=read_terms(search.deny) if search.deny else (),
        notify=notify,
    )


def _discard(_: object) -> None:
    """`Write` gives nothing back; a stream's `write` gives a count."""
