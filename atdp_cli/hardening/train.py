"""Training a plan: load, read the data, train, write, publish."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from atdp_cli.events import Notify, ignore
from atdp_cli.files.documents import timestamp
from atdp_cli.hardening.autosave import StopSignal, autosave, never_stop
from atdp_cli.hardening.broadcast import check_same_run, restore_run
from atdp_cli.hardening.context import StageContext
from atdp_cli.hardening.data import prepare_data
from atdp_cli.hardening.measure import measure, surprise
from atdp_cli.hardening.model import LoadedModel, unshard
from atdp_cli.hardening.output import write_output
from atdp_cli.hardening.plan import Planned
from atdp_cli.hardening.preflight import check_room, rehearse_output
from atdp_cli.hardening.results import HardenResult, TrainedRun
from atdp_cli.hardening.resume import ResumePoint, resume_hint, resume_point
from atdp_cli.hardening.review_each_epoch import review_each_epoch
from atdp_cli.hardening.run_spec import RunSpec
from atdp_cli.hardening.stages import changing_parameters, run_stages
from atdp_cli.hardening.streams import Streams
from atdp_cli.hardening.verify_run import check_conformance
from atdp_cli.hardening.workspace import Finished, Workspace, finish, publish, workspace


def run_plan(
    planned: Planned, spec: RunSpec, model: LoadedModel, notify: Notify, stop_signal: StopSignal = never_stop
) -> HardenResult:
    """Run the plan and write OUT/ and OUT.private/.

    Args:
        spec: Of a run that can begin, from `open_run`.
        stop_signal: Requests the run to stop while it trains; it then ends after the step, with its state saved.

    Raises:
        UsageError: Another run is at work there, or the interrupted run is another one.
        InputError: The checkpoint cannot be written again, the manifest or the spans do not fit, or no held-out
            record has a token; or what is left of an interrupted run cannot be used.
        BudgetError: What an interrupted run has spent leaves no step with noise.
        InterruptedRunError: A stop was requested.
        RunError: Training left the finite numbers, what it used is not what its journal says, the result does not
            load again, or the disk is too small.
    """
    started = time.monotonic()
    with workspace(spec) as work:
        check_room(planned.request, model, work.root)
        resume_from = resume_point(spec, work, notify) if work.session else ResumePoint()
        with resume_hint(spec, work):
            rehearse_output(planned, model, work.root)
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
            finished = Finished(replaces=spec.force, steps=result.steps)
            finish(work, finished)
        publish(spec.output, finished)
    return result


def harden_worker(planned: Planned, spec: RunSpec, model: LoadedModel, stop_signal: StopSignal = never_stop) -> None:
    """Take part in `run_plan` of a run whose first process writes everything.

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
    """Measure the model, restore it to where the run resumes, and take the remaining steps."""
    request, checkpoint, created = planned.request, loaded.checkpoint, timestamp()
    model, ranks = checkpoint.model, request.ranks
    check_same_run(ranks, spec.fingerprint)
    data = prepare_data(planned, loaded, Streams(seed=request.insecure_seed, ranks=ranks), notify)
    before = measure(checkpoint, data.yardstick)
    sentence = surprise(checkpoint, data.sentence)
    state = restore_run(ranks, resume_from, work.session, model)

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
            notify=notify,
            precision=request.compute_dtype,
            end=state.end,
            checkpointer=autosave(
                work,
                model,
                changing_parameters(spec.plan, model),
                minutes=request.checkpoint_every,
                elapsed=elapsed,
                stop_requested=stop_requested,
                notify=notify,
                ranks=ranks,
            ),
        )
        stages = run_stages(spec.plan.stages, context, work, state.progress)
    untraced = check_conformance(
        spec.plan, stages, work, state.progress, engine=loaded.engine.name, device=model.device.type, ranks=ranks
    )
    return TrainedRun(
        checkpoint=unshard(request, checkpoint),
        engine=loaded.engine,
        data=data,
        before=before,
        surprise=sentence,
        stages=stages,
        untraced=untraced,
        seconds=elapsed,
        created=created,
        device=model.device,
    )
