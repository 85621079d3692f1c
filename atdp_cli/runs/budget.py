"""How far a resumed run may go: repeated steps are spent again, and ε has a limit. No torch here."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from atdp_cli.privacy.ledger import LedgerEvent, PrivateEvent, SubsampledGaussian, private_events
from atdp_cli.training.plan import Plan, StagePlan

WithinBudget = Callable[[Sequence[LedgerEvent]], bool]
"""Whether spending so much, all that came before the run included, stays within the limits of ε."""


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """A position in a plan.

    Attributes:
        stage: The position of a stage in the recipe.
        step: How many of its steps are taken.
        released: Whether the stage's release, which comes before its first step, is made.
    """

    stage: int = 0
    step: int = 0
    released: bool = False


@dataclass(frozen=True, kw_only=True)
class _Remaining:
    """Equal steps of a stage that are still to be taken, or a release that is still to be made.

    Attributes:
        taken: The stage's steps before them.
    """

    stage: int
    taken: int
    event: PrivateEvent

    @property
    def count(self) -> int:
        return self.event.steps if isinstance(self.event, SubsampledGaussian) else 1

    def first(self, count: int) -> PrivateEvent:
        """So many of them, at least one."""
        if isinstance(self.event, SubsampledGaussian):
            return self.event.model_copy(update={"steps": min(count, self.event.steps)})
        return self.event


def allowance(plan: Plan, cursor: Cursor, spent: Sequence[LedgerEvent], within: WithinBudget) -> Cursor | None:
    """Where a run at a position that has spent so much has to end; None where it can go to its end.

    `Cursor.step` is the last step of that stage that it can take. A stage that could release and take no step is not
    begun. Stages before it spend what they were planned to, or nothing.

    Args:
        spent: What the run itself has spent, in events.
    """
    remaining = tuple(_remaining(plan, cursor))

    def fits(count: int) -> bool:
        return within((*plan.before, *spent, *_first(remaining, count)))

    fitting, above = 0, sum(part.count for part in remaining)
    if fits(above):
        return None
    while above - fitting > 1:
        middle = (fitting + above) // 2
        fitting, above = (middle, above) if fits(middle) else (fitting, middle)
    return _cursor_after(remaining, fitting)


def _first(remaining: Sequence[_Remaining], count: int) -> Iterator[PrivateEvent]:
    for part in remaining:
        if count < 1:
            return
        yield part.first(count)
        count -= part.count


def _cursor_after(remaining: Sequence[_Remaining], count: int) -> Cursor | None:
    """Where the step or release belongs that comes after the first so many; None where none does."""
    for part in remaining:
        if count < part.count:
            return Cursor(stage=part.stage, step=part.taken + count)
        count -= part.count
    return None


def _remaining(plan: Plan, cursor: Cursor) -> Iterator[_Remaining]:
    """What is still to be spent, in order."""
    for position, stage in enumerate(plan.stages):
        if position < cursor.stage or not isinstance(stage, StagePlan):
            continue
        start = cursor if position == cursor.stage else Cursor(stage=position)
        ended = 0
        for event in private_events(stage.events):
            if not isinstance(event, SubsampledGaussian):
                if not start.released:
                    yield _Remaining(stage=position, taken=0, event=event)
                continue
            taken, ended = max(start.step, ended), ended + event.steps
            if taken < ended:
                steps = event.model_copy(update={"steps": ended - taken})
                yield _Remaining(stage=position, taken=taken, event=steps)


def one_step_events(plan: Plan) -> tuple[LedgerEvent, ...]:
    """Every event that a run of the plan may be about to write into its journal, a step each."""
    return tuple(
        event.model_copy(update={"steps": 1}) if isinstance(event, SubsampledGaussian) else event
        for stage in plan.stages
        for event in stage.events
    )
