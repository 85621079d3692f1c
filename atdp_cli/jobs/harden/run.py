"""`atdp harden` as a function: load → data → train → write → publish."""

import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from transformers import PreTrainedModel

from atdp_cli.events import Notify, ignore
from atdp_cli.files.provenance import timestamp
from atdp_cli.jobs.harden.data import prepare_data
from atdp_cli.jobs.harden.model import LoadedModel, unshard
from atdp_cli.jobs.harden.output import write_output
from atdp_cli.jobs.harden.preflight import check_room
from atdp_cli.jobs.harden.request import Planned
from atdp_cli.jobs.harden.result import HardenResult, TrainedRun
from atdp_cli.jobs.harden.review_each_epoch import review_each_epoch
from atdp_cli.jobs.harden.sentence import surprise
from atdp_cli.jobs.harden.stages import StageContext, fold
from atdp_cli.jobs.harden.streams import Streams
from atdp_cli.jobs.harden.until_exposure import below_exposure, watch_canaries, write_unseen
from atdp_cli.model.perplexity import perplexity
from atdp_cli.runs.autosave import StopSignal, autosave, never_stop
from atdp_cli.runs.broadcast import RunState, broadcast_state, check_same_run
from atdp_cli.runs.checkpoint import Progress, read_state, restore_state
from atdp_cli.runs.resume import ResumePoint, resume_hint, resume_point
from atdp_cli.runs.spec import RunSpec
from atdp_cli.runs.workspace import Finished, Workspace, finish, publish, workspace
from atdp_cli.training.distributed.collectives import broadcast_bytes
from atdp_cli.training.distributed.ranks import Ranks
from atdp_cli.training.loop import StopCriterion
from atdp_cli.training.plan import InterpolatePlan, Plan


def harden(
    planned: Planned, spec: RunSpec, model: LoadedModel, notify: Notify, stop_signal: StopSignal = never_stop
) -> HardenResult:
    """Run the plan and write OUT/ and OUT.private/, or OUT.failed/ and OUT.failed.private/.

    Args:
        spec: Of a run that can begin, from `open_run`.
        stop_signal: Requests the run to stop while it trains; it then ends after the step, with its state saved.

    Raises:
        UsageError: Another run is at work there, or the interrupted run is another one.
        InputError: The manifest or the spans do not fit, or no held-out record has a token; or what is left of an
            interrupted run cannot be used.
        BudgetError: What an interrupted run has spent leaves no step with noise.
        InterruptedRunError: A stop was requested.
        RunError: Training left the finite numbers, the result does not load again, or the disk is too small.
    """
    started = time.monotonic()
    with workspace(spec) as work:
        check_room(planned.request, model, work.root)
        resume_from = resume_point(spec, work, notify) if work.session else ResumePoint()
        with resume_hint(spec, work):
            trained = _train(
                planned,
                spec,
                model,
                work,
                resume_from=resume_from,
                stop_signal=stop_signal,
                started=started,
                notify=notify,
            )
            result = write_output(planned, spec, trained, work)
            finished = Finished(
                folder=result.output.name, replaces=spec.force, failed=result.failed, steps=result.steps
            )
            finish(work, finished)
        publish(work.root, finished)
    return result


def harden_worker(planned: Planned, spec: RunSpec, model: LoadedModel, stop_signal: StopSignal = never_stop) -> None:
    """Take part in a run whose first process writes everything, by `harden`.

    Raises:
        RunError: Training left the finite numbers, the first process was given another run, or one has ended.
        InterruptedRunError: A stop was requested.
    """
    with TemporaryDirectory(prefix="atdp-") as folder:
        work = Workspace(root=Path(folder))
        _train(
            planned,
            spec,
            model,
            work,
            resume_from=ResumePoint(),
            stop_signal=stop_signal,
            started=time.monotonic(),
            notify=ignore,
        )


def _train(
    planned: Planned,
    spec: RunSpec,
    loaded: LoadedModel,
    work: Workspace,
    *,
    resume_from: ResumePoint,
    stop_signal: StopSignal,
    started: float,
    notify: Notify,
) -> TrainedRun:
    """Measure the model, bring it to where the run resumes, and take the remaining steps."""
    request, checkpoint, created = planned.request, loaded.checkpoint, timestamp()
    model, ranks = checkpoint.model, request.ranks
    check_same_run(ranks, spec.fingerprint)
    data = prepare_data(planned, checkpoint, Streams(seed=request.insecure_seed, ranks=ranks), notify)
    before = perplexity(model, data.held_out)
    sentence = surprise(checkpoint, data.sentence)
    state = _resume(ranks, resume_from, work, model)

    def elapsed() -> float:
        return state.progress.seconds + time.monotonic() - started

    with stop_signal() as stop_requested:
        context = StageContext(
            model=model,
            reference=loaded.reference,
            data=data,
            streams=Streams(seed=request.insecure_seed, ranks=ranks, session=state.session),
            engine=loaded.engine.run,
            epoch_data=review_each_epoch(request, planned.split, data, work.private, notify),
            stop_criterion=_stop_criterion(planned, loaded, work, notify),
            notify=notify,
            ranks=ranks,
            precision=request.precision,
            end=state.end,
            checkpointer=autosave(
                work,
                model,
                _changing(spec.plan, model),
                minutes=request.checkpoint_every,
                elapsed=elapsed,
                stop_requested=stop_requested,
                notify=notify,
                ranks=ranks,
            ),
        )
        stages = fold(spec.plan.stages, context, work, state.progress)
    return TrainedRun(
        checkpoint=unshard(request, checkpoint),
        engine=loaded.engine,
        data=data,
        before=before,
        surprise=sentence,
        stages=stages,
        seconds=elapsed,
        created=created,
        device=model.device,
    )


def _resume(ranks: Ranks, resume_from: ResumePoint, work: Workspace, model: PreTrainedModel) -> RunState:
    """The state from which the run starts or resumes, its parameters in the model of every process."""
    parameters: Mapping[str, torch.Tensor] = {}
    if resume_from.state is None:
        progress = Progress()
    elif ranks.size == 1:
        progress = restore_state(resume_from.state, model)
    else:
        progress, parameters = read_state(resume_from.state)
    state = RunState(progress=progress, end=resume_from.end, session=work.session)
    return broadcast_state(ranks, state, parameters, model)


def _changing(plan: Plan, model: PreTrainedModel) -> tuple[str, ...]:
    """The names of parameters that the run may change; a tied one has the first of its names."""
    all_change = any(isinstance(stage, InterpolatePlan) for stage in plan.stages)
    return tuple(name for name, parameter in model.named_parameters() if all_change or parameter.requires_grad)


def _stop_criterion(planned: Planned, loaded: LoadedModel, work: Workspace, notify: Notify) -> StopCriterion | None:
    """The criterion of --until-exposure; the manifest of the canaries that it does not watch is written."""
    bar, ranks = planned.request.until_exposure, planned.request.ranks
    if bar is None or planned.manifest is None or loaded.reference is None:
        return None
    tokenizer, model = loaded.checkpoint.tokenizer, loaded.checkpoint.model
    watch = watch_canaries(planned.manifest, bar, tokenizer, loaded.reference, notify)
    write_unseen(watch, work.private)
    # All processes follow the first, whatever their hardware computes.
    return lambda: broadcast_bytes(ranks, bytes([below_exposure(model, watch, notify)])) == b"\x01"
