"""The stages of a run in order, on one model and one journal."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
from transformers import PreTrainedModel

from atdp_cli.events import ChoiceWarning
from atdp_cli.hardening.context import StageContext, StageLogs, open_logs
from atdp_cli.hardening.encode import Windows
from atdp_cli.hardening.progress import Progress
from atdp_cli.hardening.releases import decoy_choice, held_out_decoys, release_frequencies, tuned
from atdp_cli.hardening.workspace import Workspace
from atdp_cli.model.perplexity import Perplexity, perplexity
from atdp_cli.privacy.wording import shared_words
from atdp_cli.replacement.frequencies import unlisted_words
from atdp_cli.training.examples import Example, Weighing, make_example, weigh
from atdp_cli.training.objectives import Interpolate
from atdp_cli.training.plan import Plan, StagePlan, with_chosen_rate
from atdp_cli.training.recipe import TextVariant, reads_records, reads_reference
from atdp_cli.training.state import AfterStep, StageResult, StageState
from atdp_cli.training.trainable import interpolate
from atdp_cli.training.trainer import Randomness, StageRun, run_noise, run_plain, run_private
from atdp_cli.training.trials import decoyed_loss

ALL_ALIKE = (
    "in most records sensitive tokens already carry the target share, so w is 1 and all tokens weigh the same; "
    "a narrower --tier or a larger run.target-share changes that"
)


class _Stopwatch:
    """Seconds since it was made, by the clock and of the processors, without those in which it was paused."""

    def __init__(self) -> None:
        self._since = _now()

    @contextmanager
    def pause(self) -> Iterator[None]:
        before = _now()
        try:
            yield
        finally:
            self._since = self._since + (_now() - before)

    def read(self) -> tuple[float, float]:
        clock, processors = _now() - self._since
        return float(clock), float(processors)


def _now() -> npt.NDArray[np.float64]:
    return np.array([time.monotonic(), time.process_time()])


def run_stages(
    stages: Sequence[StagePlan], context: StageContext, work: Workspace, start: Progress
) -> tuple[tuple[StageResult, Weighing], ...]:
    """Run the remaining stages in order on one model, with the journal written before each step.

    Args:
        start: From where to continue; the model is there already.
    """
    results = list(start.results)
    with open_logs(work, context.streams.ranks) as logs_of:
        for position, stage in enumerate(stages):
            if position < start.stage:
                continue
            if context.end is not None and (position, 1) > (context.end.stage, context.end.step):
                results.append((StageResult(perplexities=(), ended_after=0), Weighing()))
                continue
            progress = start
            if position > start.stage:
                progress = Progress(stage=position, results=tuple(results))
                context.checkpointer(partial(replace, progress), between=True)
            results.append(_run_stage(stage, context, progress, logs_of(position, stage.events)))
        done = Progress(stage=len(stages), results=tuple(results))
        context.checkpointer(partial(replace, done), between=True)
    return tuple(results)


def changing_parameters(plan: Plan, model: PreTrainedModel) -> tuple[str, ...]:
    """The names of the parameters that the stages may change; a tied one under its first name."""
    all_change = any(isinstance(stage.stage.objective, Interpolate) for stage in plan.stages)
    return tuple(name for name, parameter in model.named_parameters() if all_change or parameter.requires_grad)


def _run_stage(
    plan: StagePlan, context: StageContext, progress: Progress, logs: StageLogs
) -> tuple[StageResult, Weighing]:
    stopwatch = _Stopwatch()

    def held_out() -> Perplexity:
        with stopwatch.pause():
            return perplexity(context.model, context.data.yardstick.held_out)

    if isinstance(plan.stage.objective, Interpolate):
        if context.reference is None:
            raise ValueError("the plan has no reference")
        interpolate(context.model, context.reference, plan.stage.objective.beta)
        return _timed(StageResult(perplexities=(held_out(),)), progress, stopwatch), Weighing()
    if reads_records(plan.stage):
        progress = _released(plan, context, progress, logs)
        progress = tuned(plan, context, progress)
        plan = plan if progress.tuned is None else with_chosen_rate(plan, progress.tuned.learning_rate)
    run = StageRun(
        model=context.model,
        plan=plan,
        held_out=held_out,
        notify=context.notify,
        resume_from=progress.stage_state,
        after_step=_after_step(context, progress, stopwatch),
        trace=logs.trace,
        ranks=context.streams.ranks,
    )
    if reads_records(plan.stage):
        result, weighing = _train(run, context, progress, logs, stopwatch)
        result = replace(result, tuned=progress.tuned, unlisted_words=unlisted_words(progress.frequencies or {}))
    else:
        result = run_noise(run, noise=context.streams.fresh_stream(progress.stage, "noise"))
        weighing = Weighing()
    return _timed(result, progress, stopwatch), weighing


def _timed(result: StageResult, progress: Progress, stopwatch: _Stopwatch) -> StageResult:
    """The result with the seconds of all sessions added."""
    seconds, processor_seconds = stopwatch.read()
    if progress.stage_state is not None:
        seconds += progress.stage_state.result.seconds
        processor_seconds += progress.stage_state.result.processor_seconds
    return replace(result, seconds=seconds, processor_seconds=processor_seconds)


def _after_step(context: StageContext, progress: Progress, stopwatch: _Stopwatch) -> AfterStep:
    """Call the checkpointer after each step."""

    def after_step(stage_state: Callable[[], StageState]) -> None:
        def now() -> Progress:
            state = stage_state()
            return replace(progress, stage_state=replace(state, result=_timed(state.result, progress, stopwatch)))

        with stopwatch.pause():
            context.checkpointer(now, between=False)

    return after_step


def _train(
    run: StageRun, context: StageContext, progress: Progress, logs: StageLogs, stopwatch: _Stopwatch
) -> tuple[StageResult, Weighing]:
    plan, streams, end = run.plan, context.streams, context.end
    records, objective = context.data.training[plan.stage.text], plan.stage.objective
    weighing = weigh(records, objective)
    if (weighing.clamped or 0) > 0.5:
        context.notify(ChoiceWarning(what=f"stage {plan.stage.name}", reason=ALL_ALIKE))
    reference = context.reference if reads_reference(plan.stage) else None

    def weighed(windows: Sequence[Windows]) -> list[Example]:
        return [make_example(record, objective, reference=reference) for record in windows]

    epoch_windows = _epoch_windows(plan, context, progress)
    refresh = None if epoch_windows is None else lambda epoch: weighed(epoch_windows(epoch))
    judged = held_out_decoys(plan, context, progress) if plan.stage.restore_best else ()

    def loss() -> float:
        with stopwatch.pause():
            return decoyed_loss(run.model, judged, run.ranks)

    run = replace(run, examples=weighed(records), refresh=refresh, decoyed_loss=loss)
    if plan.sampling_rate is None:
        engine = context.engine if run.ranks.sharded else None
        return run_plain(run, seed=streams.order_seed(), engine=engine, precision=context.precision), weighing
    result = run_private(
        run,
        engine=context.engine,
        randomness=Randomness(
            sample=streams.fresh_stream(progress.stage, "sample"),
            noise=streams.fresh_stream(progress.stage, "noise"),
        ),
        journal=logs.journal,
        max_steps=end.step if end is not None and end.stage == progress.stage else None,
    )
    return result, weighing


def _released(plan: StagePlan, context: StageContext, progress: Progress, logs: StageLogs) -> Progress:
    """The progress with the stage's releases, made once and saved before the first step."""
    if progress.frequencies is not None:
        return progress
    frequencies = release_frequencies(plan, context.data.trained, context.streams, progress.stage, logs)
    if frequencies is None:
        return progress
    if words := unlisted_words(frequencies):
        context.notify(
            ChoiceWarning(what=f"stage {plan.stage.name}", reason=shared_words(len(words), plan.relation.unit))
        )
    released = replace(progress, frequencies=frequencies)
    context.checkpointer(partial(replace, released), between=True)
    return released


def _epoch_windows(
    plan: StagePlan, context: StageContext, progress: Progress
) -> Callable[[int], Sequence[Windows]] | None:
    """The stage's records for an epoch; None if all epochs read the same."""
    data, epoch_data = context.data, context.epoch_data
    if epoch_data is None and plan.stage.text is not TextVariant.DECOY:
        return None

    def windows(epoch: int) -> Sequence[Windows]:
        choose = decoy_choice(context.streams, progress.stage, f"epoch {epoch}", progress.frequencies)
        return data.decoys(choose, plan.stage.decoy_equality) if epoch_data is None else epoch_data(plan, epoch, choose)

    return windows
