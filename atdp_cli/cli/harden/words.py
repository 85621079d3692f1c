"""The stages of a plan, and lengths of time, as the screens of `atdp harden` have them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atdp_cli.jobs.harden.request import Planned
    from atdp_cli.report.document import StageEntry


def stage_entries(planned: "Planned") -> "tuple[StageEntry, ...]":
    """The planned stages as a report lists them."""
    from atdp_cli.jobs.harden.describe import stage_entry

    return tuple(stage_entry(stage) for stage in planned.plan.stages)


def sigmas(multipliers: Sequence[float]) -> str:
    """The noise multipliers of a stage: one, the range of several, or none."""
    if not multipliers:
        return "none"
    low, high = f"{min(multipliers):.2f}", f"{max(multipliers):.2f}"
    return low if low == high else f"{low}–{high}"


def duration(seconds: float) -> str:
    """`80 s`, `7 min` or `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
