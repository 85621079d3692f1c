"""`atdp decoy` as a function: copies of a corpus with decoys, one an epoch, and the ledger of what they reveal.

The corpus is read once to count and commit to its records, once to find spans and count their words, and once a copy;
a record at a time is in memory. The spans between the passes lie in OUT.partial/ and go with it.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from atdp_cli.corpus.edits import Edit
from atdp_cli.corpus.record import Record, select_records
from atdp_cli.corpus.rewrite import Edits, rewrite_corpus
from atdp_cli.corpus.spans import FlaggedRecord, Span, merge
from atdp_cli.decoys.folder import copies_folder, copy_names
from atdp_cli.decoys.request import DecoyPlan, DecoyRequest
from atdp_cli.detection.redact import spans_of_records
from atdp_cli.detection.results import CorpusCounts, CrosscheckCounts, FlaggedSummary
from atdp_cli.detection.run import count_skipped, no_counts
from atdp_cli.detection.span_file import read_spans, spans_line
from atdp_cli.errors import ConformanceError, InputError, RunError
from atdp_cli.events import ChoiceWarning, Notify
from atdp_cli.files.documents import Frozen, software, timestamp
from atdp_cli.hardening.context import Streams
from atdp_cli.hardening.releases import decoy_choice, fit_frequencies
from atdp_cli.hardening.verify_run import first_broken, noise_test
from atdp_cli.privacy.ledger import LEDGER_FILE, write_ledger
from atdp_cli.privacy.wording import guarantee_sentences, shared_words
from atdp_cli.replacement.decoys import WITHOUT, Choose
from atdp_cli.replacement.draw import decoy_record
from atdp_cli.replacement.edits import edits_by_line
from atdp_cli.replacement.equality import DecoyEquality
from atdp_cli.replacement.frequencies import Frequencies, unlisted_words
from atdp_cli.reporting.entries import GuaranteeEntry, guarantee_entries


def copy_edits(spans: Path, choose: Choose, equality: DecoyEquality) -> Edits:
    """The edits that make a copy of a corpus.

    Args:
        spans: A spans file of the corpus.
        choose: The source of all randomness, asked record by record.
        equality: As for `hardening.encode.encode`.
    """

    def edits(records: Iterator[Record]) -> Iterator[Sequence[Edit]]:
        for record, record_spans in read_spans(spans, records):
            yield _drawn(record.text, record_spans, choose, equality)

    return edits


def _drawn(text: str, spans: Sequence[Span], choose: Choose, equality: DecoyEquality) -> Sequence[Edit]:
    edited = decoy_record([(text, spans)], choose, equality)[0]
    places = zip(merge(spans), edited.places, strict=True)
    return list(
        edits_by_line(text, [Edit(span.start, span.end, edited.text[start:end]) for span, (start, end) in places])
    )


SPANS = ".spans.jsonl"
"""The spans file in the unfinished folder, which is removed before the folder appears."""

POSITION = 0
"""The position of the stage in a run of harden that would draw the same decoys."""


class DecoySummary(Frozen):
    """The result of `decoy`, which `atdp decoy --json` prints.

    Attributes:
        copies: The files, one an epoch, in their order.
        records: In each copy.
        release_noise_multiplier: Of the release; None where decoys are drawn uniformly.
        statements: What the ledger beside the copies guarantees, a sentence each.
        crosscheck: None where nobody was asked.
    """

    schema_version: Literal[1] = 1
    output: str
    copies: tuple[str, ...]
    records: int
    skipped: int
    flagged: FlaggedSummary
    release_noise_multiplier: float | None
    statements: tuple[str, ...]
    guarantees: tuple[GuaranteeEntry, ...]
    crosscheck: CrosscheckCounts | None


def write_copies(request: DecoyRequest, plan: DecoyPlan, notify: Notify) -> DecoySummary:
    """Write the copies and their ledger into a folder that appears whole or not at all.

    Raises:
        InputError: The corpus, the spans or a list cannot be used, or a span has no decoy.
        RunError: The corpus changed while it was read, or the disk is full.
    """
    before, counts = _state(request.corpus), no_counts(plan.detector)
    streams = Streams(seed=request.insecure_seed)
    names = copy_names(request.corpus, request.epochs)
    with copies_folder(request.output, plan.key, force=request.force) as folder:
        flagged = _found(plan, request.spans, folder / SPANS, counts, notify)
        fitted = _released(plan, flagged, streams)
        if not counts.flagged().spans:
            notify(ChoiceWarning(what="the copies", reason="nothing is flagged in them, so nothing is protected"))
        if words := unlisted_words(fitted or {}):
            notify(ChoiceWarning(what="the copies", reason=shared_words(len(words), plan.source.unit)))
        if counts.records != plan.records:
            raise _changed(request.corpus)
        for epoch, name in enumerate(names, start=1):
            choose = decoy_choice(streams, POSITION, f"epoch {epoch}", fitted)
            skip = count_skipped(plan.source, no_counts(plan.detector))
            edits = copy_edits(folder / SPANS, choose, request.decoy_equality)
            rewrite_corpus(request.corpus, folder / name, edits, plan.source, skip)
        if _state(request.corpus) != before:
            raise _changed(request.corpus)
        ledger = plan.ledger.model_copy(update={"created": timestamp(), "software": software()})
        write_ledger(folder / LEDGER_FILE, ledger)
    return DecoySummary(
        output=str(request.output),
        copies=tuple(str(request.output / name) for name in names),
        records=counts.records,
        skipped=counts.skipped,
        flagged=counts.flagged(),
        release_noise_multiplier=None if plan.release is None else plan.release.noise_multiplier,
        statements=guarantee_sentences(ledger, plan.guarantees),
        guarantees=guarantee_entries(plan.guarantees),
        crosscheck=counts.crosscheck,
    )


def _found(
    plan: DecoyPlan, given: Path | None, spans: Path, counts: CorpusCounts, notify: Notify
) -> Iterator[FlaggedRecord]:
    """Each record with its spans, which are also written to a file for the passes to come."""
    corpus = plan.source
    records = select_records(corpus.path, corpus, count_skipped(corpus, counts))
    with open(spans, "x", encoding="utf-8", opener=_private) as stream:
        for record, record_spans in spans_of_records(records, corpus, plan.detector, notify, counts, given):
            merged = merge(record_spans)
            if contextual := sorted({span.label for span in merged} & WITHOUT):
                raise InputError(
                    f"The spans hold words of a contextual tier ({', '.join(contextual)}), and decoys stand for "
                    "entities.",
                    "Write them again by atdp detect --tier high-entity.",
                )
            counts.add(record.text, merged)
            stream.write(spans_line(record.id, merged) + "\n")
            yield FlaggedRecord(record, merged)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _released(plan: DecoyPlan, flagged: Iterator[FlaggedRecord], streams: Streams) -> Frequencies | None:
    """Release the frequencies that decoys are drawn by, with the noise of the ledger; None if they are uniform.

    Nothing of it is anywhere but in memory until the copies appear beside the ledger.
    """
    if plan.release is None:
        deque(flagged, maxlen=0)
        return None
    sigma = plan.release.noise_multiplier * plan.release.sensitivity
    fitted, used = fit_frequencies(flagged, sigma, streams.fresh_stream(POSITION, "frequencies"))
    law = noise_test("the release", squares=used.squares, coordinates=used.coordinates, standard_deviation=sigma)
    if used.standard_deviation != sigma or first_broken([law]) is not None:
        raise ConformanceError("The noise of the release is not what the ledger says.", "Nothing was published.")
    return fitted


def _state(corpus: Path) -> tuple[int, ...]:
    """The figures of a file that change with its content."""
    about = corpus.stat()
    return about.st_ino, about.st_size, about.st_mtime_ns


def _changed(corpus: Path) -> RunError:
    return RunError(f"{corpus} changed while it was read.", "Leave the file as it is until atdp is done.")
