"""The limit of a resumed run: repeated steps are spent again, and ε has a limit. No torch here."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from atdp_cli.errors import BudgetError
from atdp_cli.privacy.accountant import epsilon_pld, grid_for
from atdp_cli.privacy.ledger import (
    Ledger,
    LedgerEvent,
    PlainTraining,
    PrivateEvent,
    ReadModel,
    SubsampledGaussian,
    compact,
    private_events,
)
from atdp_cli.training.plan import Plan, StagePlan
from atdp_cli.training.solve import strongest_epsilon

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


def allowance(plan: Plan, cursor: Cursor, spent: Sequence[LedgerEvent], within: WithinBudget) -> Cursor | None:
    """The position at which a run must end, given where it is and what it has spent; None if it can complete.

    What is judged is all that the ledger would have: of stages that are begun also that they trained without noise or
    read a model, for the scope in which ε is finite depends on it. `Cursor.step` is the last step of that stage that
    the run can take; 0 where the stage is not begun. The result is the position of the cursor where nothing fits.

    Args:
        spent: What the run itself has spent, in events.
        within: Of the events of one stage more steps never cost less; between stages it may be anything.
    """

    def fits(end: Cursor) -> bool:
        return within(events_left_by(plan, cursor, spent, end))

    if fits(Cursor(stage=len(plan.stages))):
        return None
    for position in range(len(plan.stages) - 1, cursor.stage - 1, -1):
        taken = cursor.step if position == cursor.stage else 0
        last = _last_fitting(plan.stages[position], Cursor(stage=position, step=taken), fits)
        if last is not None:
            return last
    return Cursor(stage=cursor.stage, step=cursor.step)


def _last_fitting(stage: StagePlan, at: Cursor, fits: Callable[[Cursor], bool]) -> Cursor | None:
    """The last position of a stage, from `at` on, within the limits; None where there is none."""

    def fits_after(step: int) -> bool:
        return fits(replace(at, step=step))

    above = (stage.steps if stage.sampling_rate is not None else 0) + 1
    # A stage that is begun has more than its first step's cost, so its scope may be another than before it.
    if above <= at.step + 1 or not fits_after(at.step + 1):
        return at if fits(at) else None
    fitting = at.step + 1
    while above - fitting > 1:
        middle = (fitting + above) // 2
        fitting, above = (middle, above) if fits_after(middle) else (fitting, middle)
    return replace(at, step=fitting)


def events_left_by(plan: Plan, cursor: Cursor, spent: Sequence[LedgerEvent], end: Cursor) -> tuple[LedgerEvent, ...]:
    """The ledger's events after a run that resumes at a position, has spent these events so far and ends at `end`.

    A stage of which `end` takes no step is not begun, nor are those behind it.
    """
    left = [*plan.before, *spent]
    for position, stage in enumerate(plan.stages):
        if position < cursor.stage or (position, 1) > (end.stage, end.step):
            continue
        begun = cursor if position == cursor.stage else Cursor(stage=position)
        left += [event for event in stage.events if isinstance(event, PlainTraining | ReadModel) and event not in spent]
        left += _noisy_events(stage, begun, end.step if position == end.stage else None)
    return tuple(left)


def _noisy_events(stage: StagePlan, begun: Cursor, last: int | None) -> Iterator[PrivateEvent]:
    """The events that a stage still spends up to one of its steps, or all of them."""
    ended = 0
    for event in private_events(stage.events):
        if not isinstance(event, SubsampledGaussian):
            if not begun.released:
                yield event
            continue
        first, ended = max(begun.step, ended), ended + event.steps
        steps = (ended if last is None else min(ended, last)) - first
        if steps > 0:
            yield event.model_copy(update={"steps": steps})


@dataclass(frozen=True)
class EpsilonLimits:
    """The limits of ε that a resumed run must keep; None where there is none."""

    target_epsilon: float | None
    max_epsilon: float | None

    @property
    def words(self) -> str:
        """The options that limit ε, under their command-line names; empty if there are none."""
        given = (("--target-epsilon", self.target_epsilon), ("--max-epsilon", self.max_epsilon))
        return " and ".join(f"{name} {value:g}" for name, value in given if value is not None)


def within_limits(plan: Plan, limits: EpsilonLimits) -> WithinBudget:
    """Whether a ledger of the plan keeps the limits on ε: on its strongest guarantee and on all its noise.

    The target was solved for a scope that the whole plan has. A ledger that ends before a stage without noise may
    have another. It has to keep the target in both.
    """

    def within(events: Sequence[LedgerEvent]) -> bool:
        try:
            if limits.target_epsilon is not None and _strongest(plan.ledger, events) > limits.target_epsilon:
                return False
            private = private_events(compact(events))
            spent = epsilon_pld(private, plan.ledger.delta, grid=grid_for(private))
            return limits.max_epsilon is None or spent <= limits.max_epsilon
        except BudgetError:  # ε in the thousands
            return False

    return within


def _strongest(planned: Ledger, events: Sequence[LedgerEvent]) -> float:
    """The larger of two ε: of a ledger with these events, and of one that also has the plan's other stages."""
    unreached = [
        event for event in planned.events if isinstance(event, PlainTraining | ReadModel) and event not in events
    ]
    grid = grid_for(private_events(compact(events)))
    ledgers = [
        planned.model_copy(update={"events": compact((*events, *more)), "grid": grid})
        for more in ([(), unreached] if unreached else [()])
    ]
    return max(strongest_epsilon(ledger) for ledger in ledgers)


def one_step_events(plan: Plan) -> tuple[LedgerEvent, ...]:
    """Every event that a run of the plan may write to its journal, each for one step."""
    return tuple(
        event.model_copy(update={"steps": 1}) if isinstance(event, SubsampledGaussian) else event
        for stage in plan.stages
        for event in stage.events
    )
