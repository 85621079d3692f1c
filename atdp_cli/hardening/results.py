"""A trained run, a finished run, and one that was finished before."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from atdp_cli.errors import InputError
from atdp_cli.files.private import LOCK_FILE, PARTIAL, PRIVATE, beside, locked
from atdp_cli.hardening.data import RunData
from atdp_cli.hardening.fingerprint import check_same_fingerprint, first_difference
from atdp_cli.hardening.measure import Measured, Surprise
from atdp_cli.hardening.run_spec import RunSpec
from atdp_cli.hardening.workspace import Finished, publish, read_record
from atdp_cli.model.checkpoint import Checkpoint
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import LEDGER_FILE, Ledger, read_ledger
from atdp_cli.privacy.scope import Guarantee
from atdp_cli.reporting.document import PrivateReport, StageEntry
from atdp_cli.reporting.entries import BeforeAfter, RanksBeforeAfter
from atdp_cli.reporting.write import read_report
from atdp_cli.training.clip.select import SelectedEngine
from atdp_cli.training.objective import Weighing
from atdp_cli.training.state import StageResult


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """A run after its last step, before any of it is written.

    Attributes:
        checkpoint: The trained model, whole.
        before: Of the model as it was loaded.
        surprise: How surprising it found the made-up sentence.
        stages: The result of each stage.
        untraced: Steps with noise of which it is not known what they used; see `check_conformance`.
        seconds: That the run has taken so far, whenever it is called.
        created: When it started.
        device: That it trained on.
    """

    checkpoint: Checkpoint
    engine: SelectedEngine
    data: RunData
    before: Measured
    surprise: Surprise
    stages: tuple[tuple[StageResult, Weighing], ...]
    untraced: int
    seconds: Callable[[], float]
    created: str
    device: torch.device

    @property
    def results(self) -> tuple[StageResult, ...]:
        """The result of each stage without its weighing."""
        return tuple(result for result, _ in self.stages)


@dataclass(frozen=True, kw_only=True)
class HardenResult:
    """A finished run. Perplexities are of held-out private text, as it is and with decoys.

    Attributes:
        output: OUT/, where the model is.
        stages: As they were trained, with the settings that were chosen.
        steps: Steps that were taken; repeated ones count once.
        ended_early: Why the run took fewer steps than planned, as a sentence.
    """

    output: Path
    stages: tuple[StageEntry, ...]
    ledger: Ledger
    guarantees: tuple[Guarantee, ...]
    perplexity: BeforeAfter
    decoyed: BeforeAfter | None
    ranks: RanksBeforeAfter | None
    steps: int
    seconds: float
    ended_early: str | None = None


def completed_run(spec: RunSpec) -> HardenResult | None:
    """The result of a run that is over, after finishing what a crash interrupted in `publish`; None if it is not over.

    Raises:
        UsageError: The run that is over is another one, or another process is at work there.
        InputError: What it left cannot be read.
    """
    partial = beside(spec.output, PARTIAL)
    record = read_record(partial)
    if record is not None and record.finished is not None:
        with locked(partial):
            check_same_fingerprint(partial, record.identity, spec.fingerprint)
            publish(spec.output, record.finished)
            return _read(spec.output, record.finished)
    if record is not None:
        return None
    private = beside(spec.output, PRIVATE)
    record = read_record(private)
    if spec.output.exists() and record and record.finished and not first_difference(record.identity, spec.fingerprint):
        with suppress(FileNotFoundError):
            (private / LOCK_FILE).unlink()
        return _read(spec.output, record.finished)
    return None


def _read(folder: Path, finished: Finished) -> HardenResult:
    ledger, report = read_ledger(folder / LEDGER_FILE), read_report(beside(folder, PRIVATE))
    if not isinstance(report, PrivateReport):
        raise InputError(f"{beside(folder, PRIVATE)} holds a report without private figures.", "Harden again.")
    return HardenResult(
        output=folder,
        stages=report.public.stages,
        ledger=ledger,
        guarantees=guarantees(ledger),
        perplexity=report.perplexity,
        decoyed=report.decoyed_perplexity,
        ranks=report.value_ranks,
        steps=finished.steps,
        seconds=report.seconds,
        ended_early=report.public.ended_early,
    )
