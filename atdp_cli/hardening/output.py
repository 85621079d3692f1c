"""The output of a trained run: the model, its ledger, its recipe and its reports."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from atdp_cli.detection.span_file import spans_line
from atdp_cli.errors import ConformanceError, DivergedError, InputError, RunError
from atdp_cli.files.documents import software, timestamp
from atdp_cli.hardening.budget import EpsilonLimits
from atdp_cli.hardening.measure import measure, measure_given
from atdp_cli.hardening.plan import Planned
from atdp_cli.hardening.recipes import trained_recipe
from atdp_cli.hardening.report import TrainedRun, private_report, public_report
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.hardening.resume import ended_early, missing_steps, steps_of
from atdp_cli.hardening.verify_run import REMEDY
from atdp_cli.hardening.workspace import Finished, Workspace
from atdp_cli.model.adapter import merged
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from atdp_cli.privacy.accountant import grid_for
from atdp_cli.privacy.journal import read_journal
from atdp_cli.privacy.ledger import LEDGER_FILE, Ledger, LedgerEvent, compact, private_events, read_ledger, write_ledger
from atdp_cli.reporting.document import PrivateReport
from atdp_cli.reporting.write import write_reports
from atdp_cli.training.plan import Plan
from atdp_cli.training.recipe_file import RECIPE_FILE, write_recipe
from atdp_cli.training.state import StageResult


def seal_ledger(plan: Plan, results: Sequence[StageResult], work: Workspace, seal: Mapping[str, str]) -> Ledger:
    """Write the ledger of what was spent, from the journal, with the hashes of the model just written.

    Args:
        results: Of all stages.
        seal: Hashes of the model's files, as they were read again.

    Raises:
        RunError: The journal has fewer steps than the plan and the results, or the file is not what the journal has.
    """
    spent = read_journal(work.journal)
    if steps_of(plan.before) + steps_of(spent) < steps_of(plan.ledger.events) - missing_steps(plan, results):
        raise RunError("The journal has fewer steps than were taken.", "Run again; report this if it happens twice.")
    events = compact(plan.before + spent)
    ledger = plan.ledger.model_copy(
        update={
            "events": events,
            "grid": grid_for(private_events(events)),
            "seal": dict(seal),
            # When the run ended, as the files' times say too; with its start anyone would know how long it took.
            "created": timestamp(),
            "software": software(),
        }
    )
    write_ledger(work.model / LEDGER_FILE, ledger)
    _check_written(plan, work)
    return ledger


def _check_written(plan: Plan, work: Workspace) -> None:
    """Check that the file has every event of the journal and of the time before the run."""
    written = read_ledger(work.model / LEDGER_FILE).events
    expected = compact(plan.before + read_journal(work.journal))
    if [_unnamed(event) for event in written] != [_unnamed(event) for event in expected]:
        raise ConformanceError("The ledger that was written is not what the journal has.", REMEDY)


def _unnamed(event: LedgerEvent) -> LedgerEvent:
    """An event without the name of its run, which the journal does not hold."""
    return event.model_copy(update={"run": None})


SPANS_FILE = "spans.jsonl"


def write_output(
    planned: Planned, limits: EpsilonLimits, trained: TrainedRun, work: Workspace
) -> tuple[PrivateReport, Finished]:
    """Write everything that becomes OUT/ and OUT.private/, and measure the files as written.

    Returns:
        The whole report, and how the run ended.

    Raises:
        DivergedError: A held-out perplexity is not finite.
        RunError: The model does not load again, or the journal lacks steps.
    """
    request, plan, results = planned.request, planned.plan, trained.results
    _check_finite([result.perplexities[-1].all for result in results if result.perplexities][-1:])
    written = _save(request, trained.checkpoint, work.model)
    measured = measure(written, trained.data.yardstick)
    given = measure_given(request.asked, written, trained.data.yardstick)
    after = measured.raw.all
    _check_finite([math.nan if after is None else after])
    ledger = seal_ledger(plan, results, work, written.seal)
    write_recipe(work.model / RECIPE_FILE, trained_recipe(planned, [result.tuned for result in results]))
    public = public_report(
        planned, trained, ledger, written, work.model, ended_early=ended_early(plan, limits, results)
    )
    private = private_report(trained, measured, given, public, request, interruptions=work.session)
    write_reports(work.model, work.root, public, private)
    with (work.root / SPANS_FILE).open("w", encoding="utf-8") as stream:
        stream.writelines(spans_line(flagged.record.id, flagged.spans) + "\n" for flagged in trained.data.flagged)
    return private, Finished(
        replaces=request.force,
        steps=sum(
            stage.steps if result.ended_after is None else result.ended_after
            for stage, result in zip(plan.stages, results, strict=True)
        ),
    )


def _check_finite(figures: Sequence[float | None]) -> None:
    """Refuse a model with finite parameters that predicts nothing any more."""
    if any(figure is not None and not math.isfinite(figure) for figure in figures):
        raise DivergedError("The hardened model's held-out perplexity is not finite.", "Lower the learning rate.")


def _save(request: SettledRequest, trained: Checkpoint, folder: Path) -> Checkpoint:
    """Write the model, merged if asked for, and load it again."""
    model = merged(trained.model) if request.merge_adapter else trained.model
    save_checkpoint(model, trained.tokenizer, folder, request.save_dtype or trained.stored_dtype)
    try:
        return load_checkpoint(folder, request.device)
    except InputError as error:
        raise RunError(
            f"The hardened model does not load again: {error.problem}", "Try --set run.save-dtype=float32."
        ) from error
