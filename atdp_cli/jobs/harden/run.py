"""`atdp harden` as a function: fold a recipe over a checkpoint, and write the model with its report."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from transformers import PreTrainedModel

from atdp_cli.errors import DivergedError, InputError, RunError
from atdp_cli.events import Notify, ignore
from atdp_cli.files.private import FAILED, beside
from atdp_cli.files.provenance import file_sha256, software, timestamp
from atdp_cli.jobs.harden.data import RunData, prepare_data
from atdp_cli.jobs.harden.encoding import Windows
from atdp_cli.jobs.harden.model import LoadedModel, unshard
from atdp_cli.jobs.harden.model_card import inherited_card
from atdp_cli.jobs.harden.preflight import check_room
from atdp_cli.jobs.harden.recipes import resolved_recipe
from atdp_cli.jobs.harden.report import Measurements, private_report, public_report
from atdp_cli.jobs.harden.request import HardenRequest, Planned
from atdp_cli.jobs.harden.result import HardenResult, completed_run
from atdp_cli.jobs.harden.review_each_epoch import review_each_epoch
from atdp_cli.jobs.harden.sentence import Surprise, compare_surprise, mark_sentence, surprise
from atdp_cli.jobs.harden.spec import run_spec
from atdp_cli.jobs.harden.stages import StageContext, fold
from atdp_cli.jobs.harden.until_exposure import below_exposure, watch_canaries, write_unseen
from atdp_cli.jobs.machine import hardware
from atdp_cli.jobs.report import write_reports
from atdp_cli.model.adapter import merged
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from atdp_cli.model.folder import is_adapter, weight_files
from atdp_cli.model.perplexity import Perplexity, perplexity
from atdp_cli.privacy.accountant import grid_for
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.journal import read_journal
from atdp_cli.privacy.ledger import LEDGER_FILE, Ledger, compact, private_events, write_ledger
from atdp_cli.report.document import MADE_UP_SENTENCE
from atdp_cli.runs.autosave import StopSignal, autosave, never_stop
from atdp_cli.runs.broadcast import RunState, broadcast_state, check_same_run
from atdp_cli.runs.checkpoint import Progress, read_state, restore_state
from atdp_cli.runs.resume import ResumePoint, ended_early, missing_steps, resume_hint, resume_point, steps_of
from atdp_cli.runs.workspace import Finished, Workspace, check_output, finish, publish, workspace
from atdp_cli.text.detection.span_file import spans_line
from atdp_cli.text.detection.term_lists import read_terms
from atdp_cli.training.distributed.collectives import broadcast_bytes
from atdp_cli.training.distributed.ranks import Ranks
from atdp_cli.training.loop import StopCriterion
from atdp_cli.training.objective import Weighing, sensitive_share
from atdp_cli.training.plan import AnyPlan, InterpolatePlan, StagePlan
from atdp_cli.training.recipe_file import RECIPE_FILE, write_recipe
from atdp_cli.training.state import StageResult

SPANS_FILE = "spans.jsonl"


def harden(planned: Planned, opened: LoadedModel, notify: Notify, hear: StopSignal = never_stop) -> HardenResult:
    """Run the plan and write OUT/ and OUT.private/, or OUT.failed/ and OUT.failed.private/.

    Args:
        hear: Who asks the run to stop while it trains; it then ends after the step, with its state saved.

    Raises:
        UsageError: Something is in the way, another run is at work there, or the interrupted run is another one.
        InputError: The manifest or the spans do not fit, or no held-out record has a token; or what is left of an
            interrupted run cannot be used.
        BudgetError: What an interrupted run has spent leaves no step with noise.
        InterruptedRunError: Somebody asked for it.
        RunError: Training left the finite numbers, the result does not load again, or the disk is too small.
    """
    started = time.monotonic()
    request = planned.request
    if request.resume and (before := completed_run(planned)) is not None:
        return before
    if request.max_increase is not None:
        check_output(beside(request.output, FAILED), force=request.force)
    spec = run_spec(planned)
    with workspace(request.output, spec.fingerprint, force=request.force, resume=request.resume) as work:
        check_room(request, opened, work.root)
        at = resume_point(spec, work, notify) if work.session else ResumePoint()
        with resume_hint(spec, work):
            run = _train(planned, opened, work, at=at, hear=hear, started=started, notify=notify)
            hardened, finished = _write(planned, opened, work, run)
            finish(work, finished)
        publish(work.root, finished)
    return hardened


def harden_worker(planned: Planned, opened: LoadedModel, hear: StopSignal = never_stop) -> None:
    """Take part in a run whose first process writes what there is to write, by `harden`.

    Raises:
        RunError: Training left the finite numbers, the first process was given another run, or one has ended.
        InterruptedRunError: Somebody asked for it.
    """
    with TemporaryDirectory(prefix="atdp-") as folder:
        work = Workspace(root=Path(folder))
        _train(planned, opened, work, at=ResumePoint(), hear=hear, started=time.monotonic(), notify=ignore)


@dataclass(frozen=True, kw_only=True)
class _Trained:
    """A run after its last step.

    Attributes:
        checkpoint: The model whole.
        seconds: That it has taken so far, asked at any time.
    """

    checkpoint: Checkpoint
    material: RunData
    before: Perplexity
    sentence: Windows
    expected: Surprise
    results: tuple[tuple[StageResult, Weighing], ...]
    seconds: Callable[[], float]
    created: str


def _train(
    planned: Planned,
    opened: LoadedModel,
    work: Workspace,
    *,
    at: ResumePoint,
    hear: StopSignal,
    started: float,
    notify: Notify,
) -> _Trained:
    """Measure the model, put it where the run stands, and take the steps that are left."""
    request, checkpoint, created = planned.request, opened.checkpoint, timestamp()
    check_same_run(request.ranks, run_spec(planned).fingerprint)
    material = prepare_data(planned, checkpoint, notify)
    before = perplexity(checkpoint.model, material.held_out)
    sentence = _sentence(request, checkpoint)
    expected = surprise(checkpoint, sentence)
    begun = _begun(request.ranks, at, work, checkpoint.model)

    def seconds() -> float:
        return begun.progress.seconds + time.monotonic() - started

    with hear() as asked:
        bench = StageContext(
            request=request,
            model=checkpoint.model,
            reference=opened.reference,
            material=material,
            engine=opened.engine.run,
            reread=review_each_epoch(planned, checkpoint, work, notify),
            enough=_enough(request, opened, work, notify),
            notify=notify,
            session=begun.session,
            end=begun.end,
            keep=autosave(
                work,
                checkpoint.model,
                _changed(planned, checkpoint.model),
                minutes=request.checkpoint_every,
                since=seconds,
                asked=asked,
                notify=notify,
                ranks=request.ranks,
            ),
        )
        results = fold(planned, bench, work, begun.progress)
    return _Trained(
        checkpoint=unshard(request, checkpoint),
        material=material,
        before=before,
        sentence=sentence,
        expected=expected,
        results=results,
        seconds=seconds,
        created=created,
    )


def _begun(ranks: Ranks, at: ResumePoint, work: Workspace, model: PreTrainedModel) -> RunState:
    """Where the run goes on, and the model with it."""
    parameters: Mapping[str, torch.Tensor] = {}
    if at.state is None:
        stands = Progress()
    elif ranks.size == 1:
        stands = restore_state(at.state, model)
    else:
        stands, parameters = read_state(at.state)
    return broadcast_state(ranks, RunState(progress=stands, end=at.end, session=work.session), parameters, model)


def _changed(planned: Planned, model: PreTrainedModel) -> tuple[str, ...]:
    """The names of parameters that the run may change; a tied one has the first of its names."""
    drawn = any(isinstance(stage, InterpolatePlan) for stage in planned.plan.stages)
    return tuple(name for name, parameter in model.named_parameters() if drawn or parameter.requires_grad)


def _write(planned: Planned, opened: LoadedModel, work: Workspace, run: _Trained) -> tuple[HardenResult, Finished]:
    """Write all that becomes OUT/ and OUT.private/, measured on the file as it was written."""
    request, checkpoint, material = planned.request, run.checkpoint, run.material
    stages = [result for result, _ in run.results]
    _check_finite(stages)
    finished = merged(checkpoint.model) if request.merge_adapter else checkpoint.model
    save_checkpoint(finished, checkpoint.tokenizer, work.model, request.dtype or checkpoint.stored_dtype)
    written = _reload(work.model)
    after = perplexity(written.model, material.held_out)
    if after.all is None or not math.isfinite(after.all):
        raise DivergedError("The hardened model's held-out perplexity is not finite.", "Lower the learning rate.")
    ledger = _seal(planned, work, stages, run.created)
    found = guarantees(ledger)
    measured = Measurements(
        engine=opened.engine,
        before=run.before,
        after=after,
        results=stages,
        weighings=[weighing for _, weighing in run.results],
        seconds=run.seconds(),
        sensitive_share=sensitive_share(material.held_out),
        pipeline=material.pipeline,
        planted=material.planted,
        start={file.name: file_sha256(file) for file in weight_files(request.model)},
        sentence=compare_surprise(run.expected, surprise(written, run.sentence)),
        hardware=hardware(opened.checkpoint.model.device),
        card=inherited_card(
            request.model,
            encoder=bool(checkpoint.model.config.is_encoder_decoder),
            adapter=is_adapter(work.model),
        ),
        flagged_spans=sum(len(one.spans) for one in material.trained),
        unread_records=material.unread,
        listed_terms=sum(len(read_terms(file)) for file in (*request.detector.allow, *request.detector.deny)),
        interruptions=work.session,
        repeated_steps=steps_of(ledger.events)
        - steps_of(planned.plan.ledger.events)
        + missing_steps(planned.plan, stages),
        ended_early=ended_early(run_spec(planned), stages),
    )
    write_recipe(work.model / RECIPE_FILE, resolved_recipe(planned))
    public = public_report(planned, ledger, found, measured)
    write_reports(work.model, work.private, public, private_report(public, measured, request.command))
    _write_spans(material, work)
    failed = _failed(run.before, after, request.max_increase)
    output = request.output if failed is None else beside(request.output, FAILED)
    hardened = HardenResult(
        output=output,
        ledger=ledger,
        guarantees=found,
        before=run.before,
        after=after,
        steps=sum(_taken(stage, one) for stage, one in zip(planned.plan.stages, stages, strict=True)),
        seconds=measured.seconds,
        failed=failed,
        ended_early=measured.ended_early,
    )
    return hardened, Finished(folder=output.name, replaces=request.force, failed=failed, steps=hardened.steps)


def _check_finite(results: Sequence[StageResult]) -> None:
    """Refuse a model that says nothing any more, though its parameters are finite."""
    measured = [one.perplexities[-1].all for one in results if one.perplexities]
    if measured and measured[-1] is not None and not math.isfinite(measured[-1]):
        raise DivergedError("The hardened model's held-out perplexity is not finite.", "Lower the learning rate.")


def _taken(stage: AnyPlan, result: StageResult) -> int:
    if not isinstance(stage, StagePlan):
        return 0
    return stage.steps if result.ended_after is None else result.ended_after


def _enough(request: HardenRequest, opened: LoadedModel, work: Workspace, notify: Notify) -> StopCriterion | None:
    """The stopping rule that --until-exposure asks for, the canaries that it never looks at written down."""
    if request.until_exposure is None or request.manifest is None or opened.reference is None:
        return None
    tokenizer, model = opened.checkpoint.tokenizer, opened.checkpoint.model
    watching = watch_canaries(request.manifest, request.until_exposure, tokenizer, opened.reference, notify)
    write_unseen(watching, work.private)
    # What one process finds all have to find, whatever hardware they have.
    return lambda: broadcast_bytes(request.ranks, bytes([below_exposure(model, watching, notify)])) == b"\x01"


def _failed(before: Perplexity, after: Perplexity, limit: float | None) -> str | None:
    """What --max-perplexity-increase says to the result; None where it is within."""
    if limit is None or before.all is None or after.all is None:
        return None
    rise = after.all / before.all - 1
    if rise <= limit:
        return None
    return f"Held-out perplexity rose by {rise:.1%}, more than --max-perplexity-increase {limit:.4g} allows."


def _reload(folder: Path) -> Checkpoint:
    try:
        return load_checkpoint(folder)
    except InputError as error:
        raise RunError(f"The hardened model does not load again: {error.problem}", "Try --dtype float32.") from error


def _seal(planned: Planned, work: Workspace, results: Sequence[StageResult], created: str) -> Ledger:
    """The ledger of what was spent, as the journal has it, with the hashes of the weights just written."""
    before, promised = planned.plan.before, planned.plan.ledger
    spent = read_journal(work.journal)
    if steps_of(before) + steps_of(spent) < steps_of(promised.events) - missing_steps(planned.plan, results):
        raise RunError("The journal has fewer steps than were taken.", "Run again; report this if it happens twice.")
    events = compact(before + spent)
    ledger = promised.model_copy(
        update={
            "events": events,
            "grid": grid_for(private_events(events)),
            "seal": {file.name: file_sha256(file) for file in sorted(work.model.glob("*.safetensors"))},
            "created": created,
            "software": software(),
        }
    )
    write_ledger(work.model / LEDGER_FILE, ledger)
    return ledger


def _sentence(request: HardenRequest, checkpoint: Checkpoint) -> Windows:
    """The made-up sentence for this model; none for a model that reads one text and says another."""
    if checkpoint.model.config.is_encoder_decoder:
        return ()
    return mark_sentence(MADE_UP_SENTENCE, request.detector.tier, checkpoint, pipeline=request.detector.pipeline)


def _write_spans(material: RunData, work: Workspace) -> None:
    with (work.private / SPANS_FILE).open("w", encoding="utf-8") as spans:
        spans.writelines(spans_line(one.record.id, one.spans) + "\n" for one in material.flagged)
