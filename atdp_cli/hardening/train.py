"""Training a plan: load, read the data, train, write, publish."""

import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from atdp_cli.events import Notify, ignore
from atdp_cli.hardening.budget import EpsilonLimits
from atdp_cli.hardening.checkpoint import StopSignal, autosave
from atdp_cli.hardening.context import StageContext, Streams
from atdp_cli.hardening.data import prepare_data, review_each_epoch
from atdp_cli.hardening.fingerprint import Fingerprint
from atdp_cli.hardening.measure import measure, surprise
from atdp_cli.hardening.model import LoadedModel, unshard
from atdp_cli.hardening.output import write_output
from atdp_cli.hardening.plan import Planned
from atdp_cli.hardening.preflight import check_room, rehearse_output
from atdp_cli.hardening.report import TrainedRun
from atdp_cli.hardening.resume import ResumePoint, check_same_run, restore_run, resume_hint, resume_point
from atdp_cli.hardening.stages import changing_parameters, run_stages
from atdp_cli.hardening.summary import HardenSummary, result_summary
from atdp_cli.hardening.verify_run import check_conformance
from atdp_cli.hardening.workspace import Workspace, finish, publish, workspace


def run_plan(
    planned: Planned, fingerprint: Fingerprint, model: LoadedModel, notify: Notify, stop_signal: StopSignal
) -> HardenSummary:
    """Run the plan and write OUT/ and OUT.private/.

    Args:
        fingerprint: Of a run that can begin, from `open_run`.
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
    request = planned.request
    limits = EpsilonLimits(request.target_epsilon, request.max_epsilon)
    with workspace(request.output, fingerprint, planned.corpus_key, force=request.force, resume=request.resume) as work:
        check_room(request, model, work.root)
        resume_from = resume_point(planned.plan, limits, work, notify) if work.session else ResumePoint()
        with resume_hint(work, request.command):
            merge = request.merge_adapter and not request.ranks.sharded
            rehearse_output(model.checkpoint, work.root, request.model, merge=merge)
            trained = _train(
                planned,
                fingerprint,
                model,
                work,
                resume_from=resume_from,
                stop_signal=stop_signal,
                started=started,
                notify=notify,
            )
            report, finished = write_output(planned, limits, trained, work)
            finish(work, finished)
        publish(request.output, finished)
    return result_summary(request.output, report, steps=finished.steps)


def harden_worker(planned: Planned, fingerprint: Fingerprint, model: LoadedModel, stop_signal: StopSignal) -> None:
    """Take part in `run_plan` of a run whose first process writes everything.

    Raises:
        RunError: Training left the finite numbers, the first process was given another run, or one has ended.
        InterruptedRunError: A stop was requested.
    """
    with TemporaryDirectory(prefix="atdp-") as folder:
        work = Workspace(root=Path(folder))
        _train(
            planned,
            fingerprint,
            model,
            work,
            resume_from=ResumePoint(),
            stop_signal=stop_signal,
            started=time.monotonic(),
            notify=ignore,
        )


def _train(
    planned: Planned,
    fingerprint: Fingerprint,
    loaded: LoadedModel,
    work: Workspace,
    *,
    resume_from: ResumePoint,
    stop_signal: StopSignal,
    started: float,
    notify: Notify,
) -> TrainedRun:
    """Measure the model, restore it to where the run resumes, and take the remaining steps."""
    request, checkpoint = planned.request, loaded.checkpoint
    model, ranks = checkpoint.model, request.ranks
    check_same_run(ranks, fingerprint)
    streams = Streams(seed=request.insecure_seed, ranks=ranks)
    data = prepare_data(planned, loaded, streams.stream(0, "decoys"), notify)
    before, sentence = measure(checkpoint, data.yardstick), surprise(checkpoint, data.sentence)
    state = restore_run(ranks, resume_from, work.session, model)

    def elapsed() -> float:
        return state.progress.seconds + time.monotonic() - started

    with stop_signal() as stop_requested:
        context = StageContext(
            model=model,
            reference=loaded.reference,
            data=data,
            streams=replace(streams, session=state.session),
            engine=loaded.engine.run,
            epoch_data=review_each_epoch(request, planned.split, data, work.root, notify),
            notify=notify,
            precision=request.compute_dtype,
            end=state.end,
            checkpointer=autosave(
                work,
                model,
                changing_parameters(planned.plan, model),
                minutes=request.checkpoint_every,
                elapsed=elapsed,
                stop_requested=stop_requested,
                notify=notify,
                ranks=ranks,
            ),
        )
        stages = run_stages(planned.plan.stages, context, work, state.progress)
    untraced = check_conformance(
        planned.plan, stages, work, state.progress, engine=loaded.engine.name, device=model.device.type, ranks=ranks
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
        device=model.device,
    )
