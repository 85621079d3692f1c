"""The fold over a plan's stages: one model, one journal."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TextIO

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from atdp_cli.events import FellBack, Notify
from atdp_cli.jobs.encoding import Windows
from atdp_cli.jobs.fitting import fit
from atdp_cli.jobs.material import Material
from atdp_cli.jobs.randomness import stream, whole_numbers
from atdp_cli.jobs.request import HardenRequest, Planned
from atdp_cli.jobs.workplace import Workplace
from atdp_cli.model.perplexity import Perplexity, perplexity
from atdp_cli.privacy.journal import JOURNAL_FILE, open_journal, spend
from atdp_cli.privacy.ledger import PlainTraining, ReadModel
from atdp_cli.privacy.weights import released_share
from atdp_cli.text.decoys import Choose
from atdp_cli.text.frequencies import Frequencies, by_frequency
from atdp_cli.training.clipping.engine import ClippingEngine
from atdp_cli.training.noise import normals
from atdp_cli.training.objective import Example, Weighing, make_example, sensitive_share, weigh
from atdp_cli.training.plan import AnyPlan, InterpolatePlan, StagePlan, frequencies_event, release_event
from atdp_cli.training.recipe import Text, Weighted, reads_records, reads_reference
from atdp_cli.training.stage import Enough, HeldOut, Randomness, run_noise, run_plain, run_private
from atdp_cli.training.underway import StageResult

ALL_ALIKE = (
    "sensitive tokens already carry the target share, so w is 1 and all tokens weigh the same; "
    "a narrower --tier or a larger --target-share changes that"
)

Reread = Callable[[StagePlan, int, Choose], Sequence[Windows]]
"""(stage, epoch, what decoys are drawn with) → the training records' windows as the lists of that moment flag them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bench:
    """What every stage works with.

    Attributes:
        reference: The model that some stages read.
        reread: None where the detector's lists are read once.
        enough: Asked after each epoch of a DP stage; None where all run to their end.
    """

    request: HardenRequest
    model: PreTrainedModel
    reference: PreTrainedModel | None
    material: Material
    engine: ClippingEngine
    reread: Reread | None
    enough: Enough | None
    notify: Notify


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


def fold(planned: Planned, bench: Bench, work: Workplace) -> tuple[tuple[StageResult, Weighing], ...]:
    """Run the stages in order on one model, the journal ahead of each step."""
    with open_journal(work.private / JOURNAL_FILE) as journal:
        return tuple(
            _run_stage(position, stage, bench, journal=journal) for position, stage in enumerate(planned.plan.stages)
        )


def _run_stage(position: int, plan: AnyPlan, bench: Bench, *, journal: TextIO) -> tuple[StageResult, Weighing]:
    watch = _Stopwatch()

    def held_out() -> Perplexity:
        with watch.hold():
            return perplexity(bench.model, bench.material.held_out)

    for event in plan.events:
        if isinstance(event, ReadModel | PlainTraining):
            spend(journal, event)
    weighing = Weighing()
    if isinstance(plan, InterpolatePlan):
        interpolate(bench.model, _reference(bench), plan.stage.beta)
        result = StageResult(perplexities=(held_out(),))
    elif not reads_records(plan.stage):
        noise = stream(bench.request, position, "noise")
        result = run_noise(bench.model, plan, noise=noise, held_out=held_out, notify=bench.notify)
    else:
        result, weighing = _train(position, plan, bench, journal=journal, held_out=held_out, watch=watch)
    seconds, processor_seconds = watch.read()
    return replace(result, seconds=seconds, processor_seconds=processor_seconds), weighing


def _train(
    position: int, plan: StagePlan, bench: Bench, *, journal: TextIO, held_out: HeldOut, watch: _Stopwatch
) -> tuple[StageResult, Weighing]:
    request, model, notify = bench.request, bench.model, bench.notify
    records, objective = bench.material.training[plan.stage.text], plan.stage.objective
    weighing = weigh(records, objective, _release(position, plan, request, records, journal))
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

    again = _again(position, plan, bench, _fit(position, plan, bench, journal))
    refresh = None if again is None else lambda epoch: weighed(again(epoch))
    if plan.sampling_rate is None:
        seed = request.insecure_seed
        result = run_plain(model, weighed(records), plan, held_out=held_out, notify=notify, seed=seed, refresh=refresh)
        return result, weighing
    result = run_private(
        model,
        weighed(records),
        plan,
        engine=bench.engine,
        randomness=Randomness(sample=stream(request, position, "sample"), noise=stream(request, position, "noise")),
        journal=journal,
        held_out=held_out,
        notify=notify,
        refresh=refresh,
        enough=enough,
    )
    return result, weighing


def _fit(position: int, plan: StagePlan, bench: Bench, journal: TextIO) -> Frequencies:
    """What decoys are drawn by, if the stage has them fitted; paid for first."""
    if plan.stage.release_noise_multiplier is None:
        return {}
    event = frequencies_event(plan.stage)
    spend(journal, event)
    source = stream(bench.request, position, "frequencies")
    return fit(bench.material.trained, event.noise_multiplier * event.sensitivity, source)


def _again(
    position: int, plan: StagePlan, bench: Bench, frequencies: Frequencies
) -> Callable[[int], Sequence[Windows]] | None:
    """What the stage reads from an epoch on; None where that is what it has read before."""
    if bench.reread is None and plan.stage.text is not Text.DECOY:
        return None

    def windows(epoch: int) -> Sequence[Windows]:
        draw = whole_numbers(stream(bench.request, position, f"decoys of epoch {epoch}"))
        choose = by_frequency(draw, frequencies)
        return bench.material.decoys(choose) if bench.reread is None else bench.reread(plan, epoch, choose)

    return windows


def _reference(bench: Bench) -> PreTrainedModel:
    if bench.reference is None:
        raise ValueError("the plan has no reference")
    return bench.reference


@torch.no_grad()
def interpolate(model: PreTrainedModel, reference: PreTrainedModel, beta: float) -> None:
    """θ ← θ_ref + β(θ − θ_ref), in place; both have the same parameters."""
    towards = dict(reference.named_parameters())
    for name, parameter in model.named_parameters():
        parameter.copy_(torch.lerp(towards[name].to(parameter), parameter, beta))


def _release(
    position: int, plan: StagePlan, request: HardenRequest, records: Sequence[Windows], journal: TextIO
) -> float | None:
    """The corpus' share of sensitive tokens with noise, if the stage's weight asks for it; paid for first."""
    objective = plan.stage.objective
    if not (isinstance(objective, Weighted) and objective.weight == "released"):
        return None
    event = release_event(plan.stage.name, objective)
    spend(journal, event)
    draw = float(normals(stream(request, position, "release"), 1)[0])
    return released_share([sensitive_share(record) for record in records], event.noise_multiplier * draw)
