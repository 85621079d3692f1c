"""The fold over a plan's stages: one model, one journal."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TextIO

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from atdp_cli.events import FellBack, Notify
from atdp_cli.jobs.harden.data import RunData
from atdp_cli.jobs.harden.encoding import FlaggedRecord, Windows
from atdp_cli.jobs.harden.request import HardenRequest, Planned
from atdp_cli.jobs.harden.streams import integer_draws, order_seed, stream
from atdp_cli.model.perplexity import Perplexity, perplexity
from atdp_cli.privacy.journal import open_journal, read_journal, spend
from atdp_cli.privacy.ledger import PlainTraining, ReadModel
from atdp_cli.privacy.release import clipped_votes, released_share, shrink_counts
from atdp_cli.privacy.rng import Floats, KeyStream
from atdp_cli.runs.autosave import Checkpointer, no_checkpoint
from atdp_cli.runs.budget import Cursor
from atdp_cli.runs.checkpoint import Progress
from atdp_cli.runs.workspace import Workspace
from atdp_cli.text.redaction.decoys import Choose
from atdp_cli.text.redaction.frequencies import Frequencies, Table, by_frequency, frequencies, items, tables, votes
from atdp_cli.training.clipping.engine import ClippingEngine
from atdp_cli.training.distributed.fsdp import local_shard, shard_like
from atdp_cli.training.loop import HeldOut, Randomness, StageRun, StopCriterion, run_noise, run_plain, run_private
from atdp_cli.training.noise import normals
from atdp_cli.training.objective import Example, Weighing, make_example, sensitive_share, weigh
from atdp_cli.training.plan import AnyPlan, InterpolatePlan, StagePlan, frequencies_event, release_event
from atdp_cli.training.recipe import Text, Weighted, reads_records, reads_reference
from atdp_cli.training.state import AfterStep, StageResult, StageState

ALL_ALIKE = (
    "sensitive tokens already carry the target share, so w is 1 and all tokens weigh the same; "
    "a narrower --tier or a larger --target-share changes that"
)

EpochData = Callable[[StagePlan, int, Choose], Sequence[Windows]]
"""(stage, epoch, what decoys are drawn with) → the training records' windows as the lists of that moment flag them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StageContext:
    """What every stage works with.

    Attributes:
        reference: The model that some stages read.
        reread: None where the detector's lists are read once.
        enough: Asked after each epoch of a DP stage; None where all run to their end.
        session: How often the run was interrupted before.
        end: Before what the run ends, as `allowance` has it; None where it may go to its end.
        keep: Is told where the run stands.
    """

    request: HardenRequest
    model: PreTrainedModel
    reference: PreTrainedModel | None
    material: RunData
    engine: ClippingEngine
    reread: EpochData | None
    enough: StopCriterion | None
    notify: Notify
    session: int = 0
    end: Cursor | None = None
    keep: Checkpointer = no_checkpoint


class _Stopwatch:
    """Seconds since it was made, by the clock and of the processors, without those in which it was held."""

    def __init__(self) -> None:
        self._since = _now()

    @contextmanager
    def hold(self) -> Iterator[None]:
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


def fold(
    planned: Planned, bench: StageContext, work: Workspace, begun: Progress
) -> tuple[tuple[StageResult, Weighing], ...]:
    """Run the stages that are left in order on one model, the journal ahead of each step.

    Args:
        begun: Where the run stands, and the model with it.
    """
    results = list(begun.results)
    with open_journal(work.journal) as journal:
        said = read_journal(work.journal)
        for position, stage in enumerate(planned.plan.stages):
            if position < begun.stage:
                continue
            if _is_behind(position, bench.end):
                results.append((StageResult(perplexities=(), ended_after=0), Weighing()))
                continue
            here = begun if position == begun.stage else Progress(stage=position, results=tuple(results))
            if here is not begun:
                bench.keep(partial(replace, here), between=True)
            for event in stage.events:
                if isinstance(event, ReadModel | PlainTraining) and event not in said:
                    spend(journal, event)
            results.append(_run_stage(stage, bench, here, journal=journal))
        over = Progress(stage=len(planned.plan.stages), results=tuple(results))
        bench.keep(partial(replace, over), between=True)
    return tuple(results)


def _is_behind(position: int, end: Cursor | None) -> bool:
    """Whether a stage takes no step because the run ends before it."""
    return end is not None and (position, 1) > (end.stage, end.step)


def _run_stage(plan: AnyPlan, bench: StageContext, here: Progress, *, journal: TextIO) -> tuple[StageResult, Weighing]:
    watch = _Stopwatch()

    def held_out() -> Perplexity:
        with watch.hold():
            return perplexity(bench.model, bench.material.held_out)

    weighing = Weighing()
    if isinstance(plan, InterpolatePlan):
        interpolate(bench.model, _reference(bench), plan.stage.beta)
        result = StageResult(perplexities=(held_out(),))
    elif not reads_records(plan.stage):
        run = StageRun(
            model=bench.model,
            plan=plan,
            held_out=held_out,
            notify=bench.notify,
            resume_from=here.underway,
            after_step=_keeping(bench, here, watch),
            ranks=bench.request.ranks,
        )
        result = run_noise(run, noise=stream(bench.request, here.stage, _anew("noise", bench)))
    else:
        result, weighing = _train(plan, bench, here, journal=journal, held_out=held_out, watch=watch)
    return _timed(result, here, watch), weighing


def _timed(result: StageResult, here: Progress, watch: _Stopwatch) -> StageResult:
    """The result with the seconds of all sessions."""
    seconds, processor_seconds = watch.read()
    before = StageResult(perplexities=()) if here.underway is None else here.underway.result
    return replace(
        result,
        seconds=before.seconds + seconds,
        processor_seconds=before.processor_seconds + processor_seconds,
    )


def _keeping(bench: StageContext, here: Progress, watch: _Stopwatch) -> AfterStep:
    """Tells `bench.keep` after each step where the run stands."""

    def after_step(underway: Callable[[], StageState]) -> None:
        def progress() -> Progress:
            found = underway()
            return replace(here, underway=replace(found, result=_timed(found.result, here, watch)))

        with watch.hold():
            bench.keep(progress, between=False)

    return after_step


def _anew(purpose: str, bench: StageContext) -> str:
    """What a stream is for: after an interruption even one from --insecure-seed is another."""
    return purpose if bench.session == 0 else f"{purpose} after interruption {bench.session}"


def _train(
    plan: StagePlan, bench: StageContext, here: Progress, *, journal: TextIO, held_out: HeldOut, watch: _Stopwatch
) -> tuple[StageResult, Weighing]:
    request, model, notify, position = bench.request, bench.model, bench.notify, here.stage
    records, objective = bench.material.training[plan.stage.text], plan.stage.objective
    here = _released(plan, bench, here, records, journal)
    weighing = weigh(records, objective, here.alpha)
    if weighing.weight == 1 or (weighing.clamped or 0) > 0.5:
        notify(FellBack(what=f"stage {plan.stage.name}", reason=ALL_ALIKE))
    reference = _reference(bench) if reads_reference(plan.stage) else None

    def weighed(windows: Sequence[Windows]) -> list[Example]:
        return [
            make_example(record, objective, released_weight=weighing.weight, reference=reference) for record in windows
        ]

    def enough() -> bool:
        with watch.hold():
            return bench.enough is not None and bench.enough()

    again = _again(position, plan, bench, here.frequencies or {})
    refresh = None if again is None else lambda epoch: weighed(again(epoch))
    run = StageRun(
        model=model,
        plan=plan,
        examples=weighed(records),
        held_out=held_out,
        notify=notify,
        refresh=refresh,
        resume_from=here.underway,
        after_step=_keeping(bench, here, watch),
        ranks=request.ranks,
    )
    if plan.sampling_rate is None:
        summing = bench.engine if request.ranks.sharded else None
        return run_plain(run, seed=order_seed(request), engine=summing, precision=request.precision), weighing
    result = run_private(
        run,
        engine=bench.engine,
        randomness=Randomness(
            sample=stream(request, position, _anew("sample", bench)),
            noise=stream(request, position, _anew("noise", bench)),
        ),
        journal=journal,
        max_steps=bench.end.step if bench.end is not None and bench.end.stage == position else None,
        stop_criterion=enough,
    )
    return result, weighing


def _released(
    plan: StagePlan, bench: StageContext, here: Progress, records: Sequence[Windows], journal: TextIO
) -> Progress:
    """Where the run stands once the stage has released what it needs: once, and kept before the first step."""
    alpha, frequencies = here.alpha, here.frequencies
    if alpha is None:
        alpha = _release(here.stage, plan, bench, records, journal)
    if frequencies is None:
        frequencies = _fit(here.stage, plan, bench, journal)
    if (alpha, frequencies) == (here.alpha, here.frequencies):
        return here
    found = replace(here, alpha=alpha, frequencies=frequencies)
    bench.keep(partial(replace, found), between=True)
    return found


def _fit(position: int, plan: StagePlan, bench: StageContext, journal: TextIO) -> Frequencies | None:
    """What decoys are drawn by, if the stage has them fitted; paid for first."""
    if plan.stage.release_noise_multiplier is None:
        return None
    event = frequencies_event(plan.stage)
    spend(journal, event)
    source = stream(bench.request, position, _anew("frequencies", bench))
    return fit_frequencies(bench.material.trained, event.noise_multiplier * event.sensitivity, source)


def _again(
    position: int, plan: StagePlan, bench: StageContext, frequencies: Frequencies
) -> Callable[[int], Sequence[Windows]] | None:
    """What the stage reads from an epoch on; None where that is what it has read before."""
    if bench.reread is None and plan.stage.text is not Text.DECOY:
        return None

    def windows(epoch: int) -> Sequence[Windows]:
        draw = integer_draws(stream(bench.request, position, f"decoys of epoch {epoch}"))
        choose = by_frequency(draw, frequencies)
        return bench.material.decoys(choose) if bench.reread is None else bench.reread(plan, epoch, choose)

    return windows


def _reference(bench: StageContext) -> PreTrainedModel:
    if bench.reference is None:
        raise ValueError("the plan has no reference")
    return bench.reference


@torch.no_grad()
def interpolate(model: PreTrainedModel, reference: PreTrainedModel, beta: float) -> None:
    """θ ← θ_ref + β(θ − θ_ref), in place; both have the same parameters."""
    towards = dict(reference.named_parameters())
    for name, parameter in model.named_parameters():
        origin = local_shard(shard_like(parameter, towards[name].to(device=parameter.device, dtype=parameter.dtype)))
        local_shard(parameter).copy_(torch.lerp(origin, local_shard(parameter), beta))


def _release(
    position: int, plan: StagePlan, bench: StageContext, records: Sequence[Windows], journal: TextIO
) -> float | None:
    """The corpus' share of sensitive tokens with noise, if the stage's weight asks for it; paid for first."""
    objective = plan.stage.objective
    if not (isinstance(objective, Weighted) and objective.weight == "released"):
        return None
    event = release_event(plan.stage.name, objective)
    spend(journal, event)
    draw = float(normals(stream(bench.request, position, _anew("release", bench)), 1)[0])
    return released_share([sensitive_share(record) for record in records], event.noise_multiplier * draw)


def fit_frequencies(records: Sequence[FlaggedRecord], sigma: float, source: KeyStream) -> Frequencies:
    """How often each public item stands in the flagged spans of the records, from one release with noise σ > 0."""
    total = clipped_votes((_votes(one) for one in records), items())
    noisy = total + sigma * normals(source, len(total)).numpy()
    return frequencies({name: _estimated(noisy, table, sigma) for name, table in tables().items()})


def _estimated(noisy: Floats, table: Table, sigma: float) -> list[float]:
    """Common words and the rest each have a prior of their own: far fewer of the rest occur."""
    ends = (table.start, table.start + table.common, table.start + table.size)
    groups = [noisy[start:end] for start, end in pairwise(ends) if end > start]
    return [float(count) for group in groups for count in shrink_counts(group, sigma)]


def _votes(one: FlaggedRecord) -> dict[int, float]:
    """Of the record, together with what its encoder reads."""
    found = votes(one.record.text, one.spans)
    if one.source is not None:
        for item, count in _votes(one.source).items():
            found[item] = found.get(item, 0.0) + count
    return found
