"""`atdp account` as functions: the ledgers, and every figure about them. Only the cross-check loads torch."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Literal

from atdp_cli.errors import BudgetError, UsageError
from atdp_cli.jobs.opacus_accountants import OpacusEpsilons, opacus_epsilons
from atdp_cli.model.seal import verified_ledger
from atdp_cli.privacy.accountant import (
    Epsilons,
    Point,
    epsilon_floor,
    epsilon_over_delta,
    epsilon_over_steps,
    epsilon_pld,
    epsilons,
    grid_for,
)
from atdp_cli.privacy.adjacency import Adjacency
from atdp_cli.privacy.calibrate import calibrate_noise, most_steps
from atdp_cli.privacy.compose import compose_ledgers
from atdp_cli.privacy.guarantee import check_seen
from atdp_cli.privacy.ledger import (
    LEAST_RATE,
    MOST_RECORDS,
    MOST_STEPS,
    Ledger,
    Prior,
    SubsampledGaussian,
    private_events,
)
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.scope import Guarantee, Scope, scope_epsilon
from atdp_cli.ranges import require_at_least, require_at_most, require_delta, require_noise, require_positive
from atdp_cli.text.detection.spans import DEFAULT_TIER, PAPER_TIER
from atdp_cli.training.objectives.kinds import Weighted
from atdp_cli.training.plan import CorpusFacts, Plan, Reference, make_plan
from atdp_cli.training.recipe import Recipe, TextVariant, reads_reference
from atdp_cli.training.solve import HIGHEST_NOISE, LOWEST_NOISE, SOLVE_TOLERANCE, solve_noise

DEFAULT_DELTA = 1e-6
MOST_STEPS_SOLVED = 10_000_000
LEAST_RATE_SOLVED = 1e-7
LARGEST_GROUP = 1000

Unknown = Literal["noise", "steps", "sample-rate"]


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """A hypothetical run of equal steps: q in (0, 1], σ > 0, and how many."""

    sample_rate: float
    noise_multiplier: float
    steps: int

    def __post_init__(self) -> None:
        require_positive("sample-rate", self.sample_rate)
        if self.sample_rate < LEAST_RATE:
            raise UsageError(f"sample-rate is {self.sample_rate}.", f"Choose at least {LEAST_RATE:g}.")
        if self.sample_rate > 1:
            raise UsageError(f"sample-rate is {self.sample_rate}.", "It is a probability: choose at most 1.")
        require_noise("noise-multiplier", self.noise_multiplier)
        require_at_least("steps", self.steps, 1)
        require_at_most("steps", self.steps, MOST_STEPS)

    def ledger(self, delta: float) -> Ledger:
        """The ledger of such a run."""
        event = SubsampledGaussian(
            stage="hypothetical",
            sampling_rate=self.sample_rate,
            noise_multiplier=self.noise_multiplier,
            clip_norm=1.0,
            steps=self.steps,
            relation=hypothetical(),
        )
        return Ledger(unit="record", prior="unknown", records=1, delta=delta, grid=grid_for([event]), events=(event,))


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A recipe over a hypothetical corpus."""

    recipe: Recipe
    records: int
    unit: str = "record"
    prior: Prior = "unknown"
    jitter_seed: int = 0


@dataclass(frozen=True, kw_only=True)
class AccountRequest:
    """Which figures to compute beside those that are always given."""

    group: int | None = None
    replace_one: bool = False
    floor: bool = False
    cross_check: bool = False
    curves: bool = False

    def __post_init__(self) -> None:
        if self.group is not None:
            require_at_least("group", self.group, 1)
            if self.group > LARGEST_GROUP:
                raise UsageError(
                    f"group is {self.group}.", f"Choose at most {LARGEST_GROUP}; or harden with --privacy-unit FIELD."
                )


@dataclass(frozen=True, kw_only=True)
class ScopeFigures:
    """ε of a scope by each accountant, and for a group of records where that was requested."""

    scope: Scope
    adjacency: Adjacency
    delta: float
    epsilons: Epsilons
    group: float | None = None


@dataclass(frozen=True, kw_only=True)
class Figures:
    """ε of a ledger at its δ; what is None was not requested, or no stage had noise.

    Attributes:
        scopes: Of each scope in which a finite ε holds, the strongest first.
        replace_one, floor, cross_check, over_delta, over_steps: Of the stages with noise alone; zero-out adjacency but
            for the first.
    """

    scopes: tuple[ScopeFigures, ...] = ()
    replace_one: float | None = None
    floor: float | None = None
    cross_check: OpacusEpsilons | None = None
    over_delta: tuple[Point, ...] = ()
    over_steps: tuple[Point, ...] = ()


def read_ledgers(paths: Sequence[Path]) -> tuple[Ledger, tuple[Ledger, ...]]:
    """The ledgers in files or model folders, seals checked: as one, and each.

    Raises:
        InputError: One cannot be read, or does not fit the weights beside it.
        UsageError: They protect different units.
    """
    ledgers = tuple(verified_ledger(path) for path in paths)
    return compose_ledgers(ledgers), ledgers


def check_limit(ledger: Ledger, supported: Sequence[Guarantee], limit: float, *, accept_declared: bool) -> None:
    """Refuse a ledger whose strongest guarantee has more than this ε.

    Args:
        supported: Its guarantees, the strongest first; of parameters alone, the increment.
        accept_declared: Take one that somebody declared.

    Raises:
        BudgetError: It has more, or none is finite, or it is declared.
    """
    if not accept_declared:
        check_seen(ledger)
    counted = supported if len(supported) == 1 else [each for each in supported if each.scope != "increment"]
    finite = [each.epsilon or 0.0 for each in counted if math.isfinite(each.epsilon or 0.0)]
    if not finite:
        raise BudgetError("No guarantee has a finite ε, so no --max-epsilon holds.", "See what is said of the ledger.")
    if finite[0] > limit:
        raise BudgetError(
            f"The strongest guarantee has ε = {finite[0]:.3g}, above --max-epsilon {limit:g}.",
            "Spend less, or allow more.",
        )


def with_delta(ledger: Ledger, delta: float | None) -> Ledger:
    """The ledger with another δ.

    Raises:
        UsageError: δ is not below 1/N.
    """
    if delta is None:
        return ledger
    require_delta(delta)
    if delta >= 1 / ledger.records:
        raise UsageError(
            f"delta is {delta:g}, not below 1/N for {ledger.records:,} training records.", "Choose a smaller one."
        )
    return ledger.model_copy(update={"delta": delta})


def plan_hypothesis(hypothesis: Hypothesis, delta: float, target: float | None = None) -> Plan:
    """What a recipe would spend; with `target`, with the noise solved for.

    Raises:
        UsageError: δ, a batch or the target is out of range.
        BudgetError: No noise reaches the target.
    """
    require_at_least("records", hypothesis.records, 1)
    require_at_most("records", hypothesis.records, MOST_RECORDS)
    corpus = CorpusFacts(records=hypothesis.records, relation=hypothetical(hypothesis.unit, _tier(hypothesis.recipe)))
    reads = any(reads_reference(stage) for stage in hypothesis.recipe)

    def plan_with(recipe: Recipe) -> Plan:
        return make_plan(
            recipe,
            corpus,
            delta=delta,
            prior=hypothesis.prior,
            reference=Reference(ledger=None, weights={}, past="declared") if reads else None,
            jitter_seed=hypothesis.jitter_seed,
        )

    recipe = hypothesis.recipe if target is None else solve_noise(hypothesis.recipe, target, plan_with)
    return plan_with(recipe)


def _tier(recipe: Recipe) -> str:
    """The tier that harden flags with by default: the paper's where a stage weighs sensitive tokens of raw text."""
    stages = recipe
    weighs = any(isinstance(stage.objective, Weighted) and stage.text is TextVariant.RAW for stage in stages)
    decoys = any(stage.text is TextVariant.DECOY for stage in stages)
    return (PAPER_TIER if weighs and not decoys else DEFAULT_TIER).value


def solve_hypothesis(unknown: Unknown, known: Parameters, target: float, delta: float) -> Parameters:
    """`known` with one of its fields made as cheap in accuracy as ε ≤ `target` allows; that field's value is ignored.

    The least noise and the largest sampling rate are found to 0.1 % of ε, the most steps exactly.

    Raises:
        UsageError: The target is not above 0.
        BudgetError: No value reaches the target.
    """
    require_positive("target-epsilon", target)
    changed, start, cheapest, dearest = _search(unknown, known)

    def cost(value: float) -> float:
        ledger = changed(value).ledger(delta)
        try:
            return epsilon_pld(private_events(ledger.events), delta, grid=ledger.grid)
        except BudgetError:
            return math.inf

    value: float | None
    if unknown == "steps":
        value = most_steps(cost, target, most=MOST_STEPS_SOLVED)
    else:
        value = calibrate_noise(
            cost, target, start=start, cheapest=cheapest, dearest=dearest, tolerance=SOLVE_TOLERANCE
        )
    if value is None:
        raise BudgetError(
            f"ε = {target:g} cannot be reached: with {unknown} at {cheapest:g}, ε is {cost(cheapest):.3g}.",
            "Ask for a larger ε, or change the other parameters.",
        )
    return changed(value if unknown == "steps" else _shortened(value, up=unknown == "noise"))


def _shortened(value: float, *, up: bool) -> float:
    """`value` to six digits, rounded to the side where ε is smaller, so that it can be typed in again."""
    exact = Decimal(repr(value))
    step = Decimal(1).scaleb(exact.adjusted() - 5)
    return float(exact.quantize(step, rounding=ROUND_CEILING if up else ROUND_FLOOR))


def _search(unknown: Unknown, known: Parameters) -> tuple[Callable[[float], Parameters], float, float, float]:
    """How a value changes the parameters, where to start, and the cheapest and dearest value in ε."""
    match unknown:
        case "noise":
            return lambda value: replace(known, noise_multiplier=value), 1.0, HIGHEST_NOISE, LOWEST_NOISE
        case "steps":
            return lambda value: replace(known, steps=int(value)), 1000, 1, MOST_STEPS_SOLVED
        case "sample-rate":
            return lambda value: replace(known, sample_rate=value), 0.01, LEAST_RATE_SOLVED, 1.0


def figures(ledger: Ledger, request: AccountRequest, supported: Sequence[Guarantee]) -> Figures:
    """Every figure about a ledger.

    Args:
        supported: The guarantees that are to have figures.

    Raises:
        BudgetError: ε is in the thousands.
    """
    private, delta, grid = private_events(ledger.events), ledger.delta, ledger.grid
    finite = [each for each in supported if each.epsilon is not None and math.isfinite(each.epsilon)]
    scopes = tuple(_scope_figures(ledger, guarantee, request.group) for guarantee in finite)
    if not private:
        return Figures(scopes=scopes)
    return Figures(
        scopes=scopes,
        replace_one=epsilon_pld(private, delta, grid=grid, adjacency="replace-one") if request.replace_one else None,
        floor=epsilon_floor(private, delta) if request.floor else None,
        cross_check=opacus_epsilons(private, delta) if request.cross_check else None,
        over_delta=epsilon_over_delta(private, _deltas(ledger), grid=grid) if request.curves else (),
        over_steps=epsilon_over_steps(private, delta, grid=grid) if request.curves else (),
    )


def _scope_figures(ledger: Ledger, guarantee: Guarantee, group: int | None) -> ScopeFigures:
    private, adjacency = private_events(ledger.events), guarantee.adjacency
    return ScopeFigures(
        scope=guarantee.scope,
        adjacency=adjacency,
        delta=guarantee.delta,
        epsilons=Epsilons(pld=0.0, rdp=0.0, paper=0.0, without_amplification=0.0)
        if guarantee.exact
        else epsilons(private, ledger.delta, grid=ledger.grid, adjacency=adjacency),
        group=None if group is None else _group(ledger, guarantee.scope, group),
    )


def _group(ledger: Ledger, scope: Scope, records: int) -> float | None:
    """ε of a group; infinite where it is in the thousands, as is usual for many records."""
    try:
        return scope_epsilon(ledger, scope, records)
    except BudgetError:
        return math.inf


def _deltas(ledger: Ledger) -> list[float]:
    """Powers of ten from 1e-12 to below 1/N."""
    powers = [float(f"1e{power}") for power in range(-12, -2)]
    return [delta for delta in powers if delta < 1 / ledger.records]
