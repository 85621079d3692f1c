"""`atdp harden` as a function: fold a recipe over a checkpoint, and write the model with its report."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from atdp_cli.errors import InputError, RunError
from atdp_cli.events import Notify
from atdp_cli.jobs.describe import Measured, private_report, public_report
from atdp_cli.jobs.material import Material, prepare
from atdp_cli.jobs.opening import Opened
from atdp_cli.jobs.request import Planned
from atdp_cli.jobs.reviewing import review_each_epoch
from atdp_cli.jobs.stages import Bench, fold
from atdp_cli.jobs.workplace import Workplace, workplace
from atdp_cli.model.adapter import merged
from atdp_cli.model.checkpoint import (
    Checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from atdp_cli.model.perplexity import Perplexity, perplexity
from atdp_cli.privacy.guarantee import Guarantee, guarantees
from atdp_cli.privacy.journal import JOURNAL_FILE, read_journal
from atdp_cli.privacy.ledger import (
    LEDGER_FILE,
    Ledger,
    LedgerEvent,
    SubsampledGaussian,
    compact,
    file_sha256,
    software,
    timestamp,
    write_ledger,
)
from atdp_cli.report.card import render_card
from atdp_cli.report.document import REPORT_FILE, PublicReport
from atdp_cli.text.spanfile import spans_line
from atdp_cli.training.objective import sensitive_share

SPANS_FILE = "spans.jsonl"


@dataclass(frozen=True, kw_only=True)
class Hardened:
    """A finished run. Perplexities are of held-out private text."""

    output: Path
    ledger: Ledger
    guarantees: tuple[Guarantee, ...]
    before: Perplexity
    after: Perplexity
    steps: int
    seconds: float


def harden(planned: Planned, opened: Opened, notify: Notify) -> Hardened:
    """Run the plan and write OUT/ and OUT.private/.

    Raises:
        InputError: The manifest or the spans do not fit, or no held-out record has a token.
        RunError: Training left the finite numbers, or the result does not load again.
    """
    started, created = time.monotonic(), timestamp()
    request, checkpoint = planned.request, opened.checkpoint
    with workplace(request.output, force=request.force) as work:
        material = prepare(planned, checkpoint, notify)
        before = perplexity(checkpoint.model, material.held_out)
        bench = Bench(
            request=request,
            model=checkpoint.model,
            material=material,
            engine=opened.engine.run,
            reread=review_each_epoch(planned, checkpoint, work, notify),
            notify=notify,
        )
        results = fold(planned, bench, work)
        finished = merged(checkpoint.model) if request.merge_adapter else checkpoint.model
        save_checkpoint(finished, checkpoint.tokenizer, work.model, request.dtype or checkpoint.stored_dtype)
        after = perplexity(_reload(work.model).model, material.held_out)
        if after.all is None or not math.isfinite(after.all):
            raise RunError("The hardened model's held-out perplexity is not finite.", "Lower the learning rate.")
        ledger = _seal(planned, work, created)
        found = guarantees(ledger)
        measured = Measured(
            engine=opened.engine,
            before=before,
            after=after,
            results=[result for result, _ in results],
            weighings=[weighing for _, weighing in results],
            seconds=time.monotonic() - started,
            sensitive_share=sensitive_share(material.held_out),
            pipeline=material.pipeline,
            planted=material.planted,
        )
        _write_reports(public_report(planned, ledger, found, measured), measured, material, work)
    return Hardened(
        output=request.output,
        ledger=ledger,
        guarantees=found,
        before=before,
        after=after,
        steps=sum(stage.steps for stage in planned.plan.stages),
        seconds=measured.seconds,
    )


def _reload(folder: Path) -> Checkpoint:
    try:
        return load_checkpoint(folder)
    except InputError as error:
        raise RunError(f"The hardened model does not load again: {error.problem}", "Try --dtype float32.") from error


def _seal(planned: Planned, work: Workplace, created: str) -> Ledger:
    """The ledger of what was spent, as the journal has it, with the hashes of the weights just written."""
    inherited = planned.inherited.events if planned.inherited else ()
    spent = read_journal(work.private / JOURNAL_FILE)
    if _steps(inherited) + _steps(spent) < _steps(planned.plan.ledger.events):
        raise RunError("The journal has fewer steps than were taken.", "Run again; report this if it happens twice.")
    events = compact(inherited + spent)
    seal = {file.name: file_sha256(file) for file in sorted(work.model.glob("*.safetensors"))}
    ledger = planned.plan.ledger.model_copy(
        update={
            "events": events,
            "seal": seal,
            "created": created,
            "software": software(),
        }
    )
    write_ledger(work.model / LEDGER_FILE, ledger)
    return ledger


def _steps(events: Sequence[LedgerEvent]) -> int:
    return sum(event.steps for event in events if isinstance(event, SubsampledGaussian))


def _write_reports(public: PublicReport, measured: Measured, material: Material, work: Workplace) -> None:
    (work.model / REPORT_FILE).write_text(public.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (work.model / "README.md").write_text(render_card(public), encoding="utf-8")
    private = private_report(public, measured)
    (work.private / REPORT_FILE).write_text(private.model_dump_json(indent=2) + "\n", encoding="utf-8")
    with (work.private / SPANS_FILE).open("w", encoding="utf-8") as spans:
        spans.writelines(spans_line(one.record.id, one.spans) + "\n" for one in material.flagged)
