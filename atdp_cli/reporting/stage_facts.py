"""What the stages of a report did: clipped, drew, released, added noise.

What a report says of engines, noise and accountants goes by these.
"""

import math
from collections.abc import Iterable, Sequence

from atdp_cli.reporting.document import PublicReport, StageEntry
from atdp_cli.reporting.entries import GuaranteeEntry


def clipped(stages: Iterable[StageEntry]) -> bool:
    """Whether a stage clipped gradients."""
    return any(stage.mechanism == "dp-sgd" and _began(stage) for stage in stages)


def had_noise(stages: Sequence[StageEntry]) -> bool:
    """Whether a step or a release had noise."""
    return bool(releasing(stages)) or had_noisy_steps(stages)


def had_noisy_steps(stages: Iterable[StageEntry]) -> bool:
    """Whether a step had noise, which unlike a release's is in floating point."""
    return any(stage.mechanism in ("dp-sgd", "noise") and _began(stage) for stage in stages)


def releasing(stages: Iterable[StageEntry]) -> tuple[str, ...]:
    """The names of stages with a release of frequencies before them."""
    return tuple(stage.name for stage in stages if stage.release_noise_multiplier is not None and _began(stage))


def _began(stage: StageEntry) -> bool:
    return stage.ended_after != 0


def engine_used(report: PublicReport) -> str | None:
    """The clipping engine; None where nothing was clipped."""
    return report.engine if clipped(report.stages) else None


def noise_used(report: PublicReport) -> str | None:
    """Where the noise came from; None where there was none."""
    return report.noise_source if had_noise(report.stages) else None


def draws_accounted(report: PublicReport) -> bool:
    """Whether ε rests on records that were drawn in secret, by this run or by one whose ledger is composed in."""
    return report.sampling is not None or report.inherited_ledger or bool(report.references)


def stated_guarantees(report: PublicReport) -> tuple[tuple[int, GuaranteeEntry], ...]:
    """The guarantees that are worth a row, with their positions: an increment only where noise added something."""
    return tuple(
        (position, guarantee)
        for position, guarantee in enumerate(report.guarantees)
        if guarantee.scope != "increment" or guarantee.epsilon is not None
    )


def accountant_of(report: PublicReport, guarantee: GuaranteeEntry) -> str | None:
    """The accountant that gave an ε, or that it is exact; None where nothing had to, as with an infinite one."""
    computed = report.epsilon is not None or guarantee.delta == 0
    return guarantee.accountant if computed and guarantee.epsilon not in (None, math.inf) else None
