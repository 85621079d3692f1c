"""How far a run that goes on may go: steps that are taken again are spent again, and ε has a limit. No torch here."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from atdp_cli.privacy.ledger import LedgerEvent, PrivateEvent, SubsampledGaussian, private_events
from atdp_cli.training.plan import Plan, StagePlan

WithinBudget = Callable[[Sequence[LedgerEvent]], bool]
"""Whether spending so much, all that came before the run included, stays within the limits of ε."""


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """A place in a plan.

    Attributes:
        stage: The position of a stage in the recipe.
        step: How many of its steps are taken.
        released: Whether what the stage releases before its first step was released.
    """

    stage: int = 0
    step: int = 0
    released: bool = False


@dataclass(frozen=True, kw_only=True)
class _Left:
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


def allowance(plan: Plan, at: Cursor, spent: Sequence[LedgerEvent], within: WithinBudget) -> Cursor | None:
    """Before what a run has to end that stands at a place and has spent so much; None where it can go to its end.

    `Cursor.step` is the last step of that stage that it can take. A stage that could release and take no step is not
    begun. Stages before it spend what they were planned to, or nothing.

    Args:
        spent: What the run itself has spent, in events.
    """
    left = tuple(_left(plan, at))

    def fits(count: int) -> bool:
        return within((*plan.before, *spent, *_first(left, count)))

    fitting, above = 0, sum(one.count for one in left)
    if fits(above):
        return None
    while above - fitting > 1:
        middle = (fitting + above) // 2
        fitting, above = (middle, above) if fits(middle) else (fitting, middle)
    return _behind(left, fitting)


def _first(left: Sequence[_Left], count: int) -> Iterator[PrivateEvent]:
    for one in left:
        if count < 1:
            return
        yield one.first(count)
        count -= one.count


def _behind(left: Sequence[_Left], count: int) -> Cursor | None:
    """Where the step or release belongs that comes behind the first so many; None where none does."""
    for one in left:
        if count < one.count:
            return Cursor(stage=one.stage, step=one.taken + count)
        count -= one.count
    return None


def _left(plan: Plan, at: Cursor) -> Iterator[_Left]:
    """What is still to be spent, in order."""
    for position, stage in enumerate(plan.stages):
        if position < at.stage or not isinstance(stage, StagePlan):
            continue
        here = at if position == at.stage else Cursor(stage=position)
        ended = 0
        for event in private_events(stage.events):
            if not isinstance(event, SubsampledGaussian):
                if not here.released:
                    yield _Left(stage=position, taken=0, event=event)
                continue
            taken, ended = max(here.step, ended), ended + event.steps
            if taken < ended:
                steps = event.model_copy(update={"steps": ended - taken})
                yield _Left(stage=position, taken=taken, event=steps)


def one_step_events(plan: Plan) -> tuple[LedgerEvent, ...]:
    """Every event that a run of the plan may be about to write into its journal, a step each."""
    return tuple(
        event.model_copy(update={"steps": 1}) if isinstance(event, SubsampledGaussian) else event
        for stage in plan.stages
        for event in stage.events
    )
