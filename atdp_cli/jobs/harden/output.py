"""What a trained run writes: the model, its ledger, its recipe and its reports."""

import math
from collections.abc import Sequence
from pathlib import Path

from atdp_cli.errors import DivergedError, InputError, RunError
from atdp_cli.files.private import FAILED, beside
from atdp_cli.jobs.harden.encoding import FlaggedRecord
from atdp_cli.jobs.harden.measure import compared, measure
from atdp_cli.jobs.harden.plan import Planned
from atdp_cli.jobs.harden.recipes import trained_recipe
from atdp_cli.jobs.harden.report import private_report, public_report, trained_stages
from atdp_cli.jobs.harden.request import SettledRequest
from atdp_cli.jobs.harden.result import HardenResult, TrainedRun
from atdp_cli.jobs.report import write_reports
from atdp_cli.model.adapter import merged
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.runs.resume import ended_early
from atdp_cli.runs.seal import seal_ledger
from atdp_cli.runs.spec import RunSpec
from atdp_cli.runs.workspace import Workspace
from atdp_cli.text.detection.span_file import spans_line
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.recipe_file import RECIPE_FILE, write_recipe
from atdp_cli.training.state import StageResult

SPANS_FILE = "spans.jsonl"


def write_output(planned: Planned, spec: RunSpec, trained: TrainedRun, work: Workspace) -> HardenResult:
    """Write all that becomes OUT/ and OUT.private/, measured on the files as they were written.

    Raises:
        DivergedError: A held-out perplexity is not finite.
        RunError: The model does not load again, or the journal lacks steps.
    """
    results = trained.results
    _check_finite([result.perplexities[-1].all for result in results if result.perplexities][-1:])
    written = _save(planned.request, trained.checkpoint, work.model)
    measured = measure(written, trained.data.yardstick)
    perplexity, decoyed, ranks = compared(trained.before, measured)
    before, after = trained.before.raw.all, measured.raw.all
    _check_finite([math.nan if after is None else after])
    ledger = seal_ledger(spec.plan, results, work, trained.created)
    failed = _failed(before, after, planned.request.max_increase)
    result = HardenResult(
        output=spec.output if failed is None else beside(spec.output, FAILED),
        stages=trained_stages(planned, trained),
        ledger=ledger,
        guarantees=guarantees(ledger),
        perplexity=perplexity,
        decoyed=decoyed,
        ranks=ranks,
        steps=sum(_steps_taken(stage, result) for stage, result in zip(spec.plan.stages, results, strict=True)),
        seconds=trained.seconds(),
        failed=failed,
        ended_early=ended_early(spec, results),
    )
    write_recipe(work.model / RECIPE_FILE, trained_recipe(planned, [result.tuned for result in results]))
    public = public_report(planned, trained, result, written, work.model)
    private = private_report(planned.request, trained, result, public, interruptions=work.session)
    write_reports(work.model, work.private, public, private)
    _write_spans(trained.data.flagged, work.private / SPANS_FILE)
    return result


def _check_finite(figures: Sequence[float | None]) -> None:
    """Refuse a model that predicts nothing any more, though its parameters are finite."""
    if any(figure is not None and not math.isfinite(figure) for figure in figures):
        raise DivergedError("The hardened model's held-out perplexity is not finite.", "Lower the learning rate.")


def _save(request: SettledRequest, trained: Checkpoint, folder: Path) -> Checkpoint:
    """Write the model, merged if asked for, and load it again."""
    model = merged(trained.model) if request.merge_adapter else trained.model
    save_checkpoint(model, trained.tokenizer, folder, request.save_dtype or trained.stored_dtype)
    try:
        return load_checkpoint(folder)
    except InputError as error:
        raise RunError(
            f"The hardened model does not load again: {error.problem}", "Try --save-dtype float32."
        ) from error


def _failed(before: float | None, after: float | None, limit: float | None) -> str | None:
    """Why the result is above --max-perplexity-increase; None where it is not."""
    if limit is None or before is None or after is None:
        return None
    increase = after / before - 1
    if increase <= limit:
        return None
    return f"Held-out perplexity rose by {increase:.1%}, more than --max-perplexity-increase {limit:.4g} allows."


def _steps_taken(stage: StagePlan, result: StageResult) -> int:
    return stage.steps if result.ended_after is None else result.ended_after


def _write_spans(records: Sequence[FlaggedRecord], path: Path) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(spans_line(flagged.record.id, flagged.spans) + "\n" for flagged in records)
