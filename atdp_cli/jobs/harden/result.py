"""A finished run: what it tells its caller, and one that was finished before and has only its names to get."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from atdp_cli.errors import InputError
from atdp_cli.files.lock import LOCK_FILE, locked
from atdp_cli.files.private import FAILED, PARTIAL, PRIVATE, beside
from atdp_cli.jobs.harden.request import Planned
from atdp_cli.jobs.harden.spec import fingerprint
from atdp_cli.jobs.report import read_report
from atdp_cli.model.perplexity import Perplexity
from atdp_cli.privacy.guarantee import Guarantee, guarantees
from atdp_cli.privacy.ledger import LEDGER_FILE, Ledger, read_ledger
from atdp_cli.report.document import PerplexityEntry, PrivateReport
from atdp_cli.report.numbers import Number
from atdp_cli.runs.fingerprint import check_same_fingerprint
from atdp_cli.runs.workspace import Finished, publish, read_record


@dataclass(frozen=True, kw_only=True)
class HardenResult:
    """A finished run. Perplexities are of held-out private text.

    Attributes:
        output: Where the model is: OUT/, or OUT.failed/ where its perplexity rose above the limit.
        steps: That were taken, each once.
        failed: Why it is there, as a sentence.
        ended_early: Why it took fewer steps than planned, as a sentence.
    """

    output: Path
    ledger: Ledger
    guarantees: tuple[Guarantee, ...]
    before: Perplexity
    after: Perplexity
    steps: int
    seconds: float
    failed: str | None = None
    ended_early: str | None = None


def completed_run(planned: Planned) -> HardenResult | None:
    """This run, if it is over; what a crash left to do of giving it its names is done. None where it is not over.

    Raises:
        UsageError: The run that is over is another one, or another process is at work there.
        InputError: What it left cannot be read.
    """
    output = planned.request.output
    partial = beside(output, PARTIAL)
    left = read_record(partial)
    if left is not None and left.finished is not None:
        with locked(partial):
            check_same_fingerprint(partial, left.identity, fingerprint(planned))
            return _read(publish(partial, left.finished), left.finished)
    if left is not None:
        return None
    for folder in (output, beside(output, FAILED)):
        record = read_record(beside(folder, PRIVATE))
        if folder.exists() and record is not None and record.finished is not None:
            if record.identity != fingerprint(planned):
                continue
            with suppress(FileNotFoundError):
                (beside(folder, PRIVATE) / LOCK_FILE).unlink()
            return _read(folder, record.finished)
    return None


def _read(folder: Path, finished: Finished) -> HardenResult:
    ledger, report = read_ledger(folder / LEDGER_FILE), read_report(beside(folder, PRIVATE))
    if not isinstance(report, PrivateReport):
        raise InputError(f"{beside(folder, PRIVATE)} holds a report without private figures.", "Harden again.")
    return HardenResult(
        output=folder,
        ledger=ledger,
        guarantees=guarantees(ledger),
        before=_perplexity(report.perplexity.before),
        after=_perplexity(report.perplexity.after),
        steps=finished.steps,
        seconds=report.seconds,
        failed=finished.failed,
        ended_early=report.public.ended_early,
    )


def _perplexity(entry: PerplexityEntry) -> Perplexity:
    return Perplexity(all=_figure(entry.all), sensitive=_figure(entry.sensitive), other=_figure(entry.other))


def _figure(value: Number) -> float | None:
    return None if value is None else float(value)
