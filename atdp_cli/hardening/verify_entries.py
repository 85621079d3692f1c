"""Comparison of an entry of the trace with the event that paid for it and with the plan."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from atdp_cli.privacy.ledger import GaussianRelease, PrivateEvent, SubsampledGaussian
from atdp_cli.privacy.pld import largest_sample
from atdp_cli.privacy.trace import Clipped, Noised, ReleaseTrace, Sampled, StepTrace, TracedSession, TraceEntry, Used
from atdp_cli.training.clip.engine import sensitivity
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.recipe import DPSGD

ROUNDING = 1e-12
"""The largest relative difference between figures that count as equal."""

SUM_ROUNDING = 1e-3
"""The most by which rounding may lengthen a sum of clipped gradients. A larger norm bound would lengthen it by more."""

MIN_WIDTHS = 2.0**52
"""The fewest grid widths in a release's standard deviation for which its noise is accounted for as a Gaussian's."""


@dataclass(frozen=True, kw_only=True)
class TrainedWith:
    """The engine and the device of this session.

    Attributes:
        engine: The name of the clipping engine, as the report has it.
        device: The type of the model's device.
    """

    engine: str
    device: str


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference between what was used and what was planned or paid for."""

    what: str
    planned: object
    used: object


def declared_sensitivity(stage: StagePlan, uses: Sequence[Used]) -> float:
    """S: how far one record can move the sum that gets noise, from the planned N, q and C.

    Raises:
        ValueError: The stage has no noise.
    """
    if not isinstance(stage.stage.mechanism, DPSGD):
        raise ValueError(f"stage {stage.stage.name} has no noise")
    clip_norm = stage.stage.mechanism.clip_norm
    if stage.sampling_rate is None:
        return clip_norm
    limit = largest_sample(round(stage.batch / stage.sampling_rate), stage.sampling_rate)
    effects = [used.batch_effect for used in uses if isinstance(used, Clipped)]
    return sensitivity(clip_norm, limit, max(0.0, *effects) if effects else 0.0)


@dataclass(frozen=True, kw_only=True)
class PaidEntry:
    """An entry of the trace beside its event and plan.

    Attributes:
        position: Of its stage in the recipe.
        steps: What a step of each of the stage's epochs spends; none for a stage that reads no record under noise.
        event: The journal's event that paid for it; None for noise that is spent on no record.
    """

    position: int
    stage: StagePlan
    steps: tuple[SubsampledGaussian, ...]
    entry: TraceEntry
    event: PrivateEvent | None


def differences(paid: PaidEntry, session: TracedSession, now: TrainedWith | None) -> Iterator[Difference]:
    """The differences of an entry from plan and event, the first and plainest one first.

    Args:
        now: None for an earlier session, which another machine may have trained.
    """
    stage, entry, event = paid.stage, paid.entry, paid.event
    yield from _same("the stage", stage.stage.name, entry.stage)
    match entry:
        case ReleaseTrace():
            yield from _of_release(paid, entry)
        case StepTrace():
            yield from _same("the epoch", (entry.step - 1) // stage.steps_per_epoch + 1, entry.epoch)
            planned = paid.steps[entry.epoch - 1] if 1 <= entry.epoch <= len(paid.steps) else None
            yield from _same("the journal's event", _unrelated(planned), _unrelated(event))
            yield from _of_step(paid, entry, now)
            yield from _within_step(entry, session)


def _unrelated(event: PrivateEvent | None) -> PrivateEvent | None:
    """The event without its relation: another version of the detector may have flagged for an earlier session."""
    return event and event.model_copy(update={"relation": None})


def planned_deviation(paid: PaidEntry) -> float:
    """The standard deviation that an entry's noise was paid for with; of noise that is spent on no record, the plan's.

    Raises:
        ValueError: The stage has no noise.
    """
    match paid.event:
        case GaussianRelease():
            return paid.event.noise_multiplier * paid.event.sensitivity
        case SubsampledGaussian():
            sigma = paid.event.noise_multiplier
        case None:
            sigma = paid.stage.noise_multipliers[paid.entry.epoch - 1 if isinstance(paid.entry, StepTrace) else 0]
    return sigma * declared_sensitivity(paid.stage, paid.entry.uses)


def _of_step(paid: PaidEntry, entry: StepTrace, now: TrainedWith | None) -> Iterator[Difference]:
    private = paid.event if isinstance(paid.event, SubsampledGaussian) else None
    done = ("noised",) if private is None else ("sampled", "clipped", "noised")
    yield from _same("what was done", ", ".join(done), ", ".join(used.kind for used in entry.uses))
    for used in entry.uses:
        if private is not None:
            yield from _of_mechanism(paid.stage, private, used)
        if isinstance(used, Noised):
            yield from _same("the noise's standard deviation", planned_deviation(paid), used.standard_deviation)
        if now is not None and isinstance(used, Clipped):
            yield from _same("the clipping engine", now.engine, used.engine)
        if now is not None and isinstance(used, Clipped | Noised):
            yield from _same("the sum's device", now.device, used.device)


def _of_mechanism(stage: StagePlan, event: SubsampledGaussian, used: Used) -> Iterator[Difference]:
    match used:
        case Sampled():
            yield from _same("the sampling rate", event.sampling_rate, used.sampling_rate)
            yield from _same("the records to sample from", round(stage.batch / event.sampling_rate), used.records)
            yield from _same("the draws of the sample's stream", used.records, used.end - used.start)
        case Clipped():
            yield from _same("the norm bound", event.clip_norm, used.clip_norm)
            if not used.length <= used.longest + SUM_ROUNDING * max(used.longest, used.clip_norm):
                yield Difference(what="the length of the clipped sum", planned=f"≤ {used.longest:g}", used=used.length)


def _within_step(entry: StepTrace, session: TracedSession) -> Iterator[Difference]:
    """Check that sample, clip and noise of one step belong together."""
    by_kind = {used.kind: used for used in entry.uses}
    sampled, clipped, noised = by_kind.get("sampled"), by_kind.get("clipped"), by_kind.get("noised")
    if isinstance(noised, Noised):
        yield from _same("the noise's dtype", "float64", noised.drawn_in)
        if noised.end - noised.start < noised.coordinates:
            drawn = noised.end - noised.start
            yield Difference(what="the draws of the noise's stream", planned=f"≥ {noised.coordinates}", used=drawn)
    if isinstance(sampled, Sampled) and isinstance(clipped, Clipped):
        share = len(range(session.rank, sampled.drawn, session.processes))
        yield from _same("the number of clipped records", share, clipped.records)
    if isinstance(clipped, Clipped) and isinstance(noised, Noised):
        yield from _same("the number of coordinates with noise", clipped.coordinates, noised.coordinates)
        yield from _same("the dtype of the sum with noise", clipped.dtype, noised.dtype)


def _of_release(paid: PaidEntry, entry: ReleaseTrace) -> Iterator[Difference]:
    releases = (event for event in paid.stage.events if isinstance(event, GaussianRelease))
    planned = next((release for release in releases if release.statistic == entry.statistic), None)
    yield from _same("the journal's event", _unrelated(planned), _unrelated(paid.event))
    yield from _same("how often noise was added", 1, len(entry.uses))
    scale = planned_deviation(paid)
    for used in entry.uses:
        yield from _same("the noise's standard deviation", scale, used.standard_deviation)
        if used.grid * MIN_WIDTHS > scale:
            yield Difference(what="the width of the grid", planned=f"≤ {scale / MIN_WIDTHS:g}", used=used.grid)


def _same(what: str, planned: object, used: object) -> Iterator[Difference]:
    if isinstance(planned, float) and isinstance(used, float) and math.isclose(planned, used, rel_tol=ROUNDING):
        return
    if planned != used:
        yield Difference(what=what, planned=planned, used=used)
