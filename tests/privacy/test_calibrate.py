"""The search for a setting at which ε meets its target."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.accounting.equal_steps import Parameters, solve_hypothesis
from atdp_cli.accounting.request import Unknown
from atdp_cli.errors import BudgetError, UsageError
from atdp_cli.privacy.accountant import epsilon_pld
from atdp_cli.privacy.calibrate import calibrate_noise, most_steps
from atdp_cli.privacy.ledger import private_events
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.training.plan import CorpusFacts, Plan, Reference, make_plan
from atdp_cli.training.recipe import RECIPES, Recipe, parse_recipe
from atdp_cli.training.solve import planned_epsilon, solve_noise
from atdp_cli.training.stage_options import apply_settings, stage_setting

DELTA = 1e-6
PUBLIC = Reference(ledger=None, weights={"model.safetensors": "ab"}, past="declared")


def epsilon(actual: Parameters) -> float:
    ledger = actual.ledger(DELTA)
    return epsilon_pld(private_events(ledger.events), DELTA, grid=ledger.grid)


@given(st.floats(0.01, 100), st.floats(0.6, 5), st.floats(0.3, 300))
def test_a_falling_power_law_is_inverted(scale: float, power: float, start: float) -> None:
    def cost(x: float) -> float:
        return scale * x**-power if x > 0.3 else math.inf

    actual = calibrate_noise(cost, 1.0, start=start, cheapest=1e9, dearest=0.2, tolerance=1e-3)
    assert actual is not None
    assert cost(actual) <= 1
    assert cost(actual) >= 1 - 1e-3 or actual == pytest.approx(0.3)


@given(st.integers(1, 10**6))
def test_the_most_steps_are_found_exactly(exact: int) -> None:
    assert most_steps(math.sqrt, math.sqrt(exact), most=10**7) == exact
    assert most_steps(math.sqrt, 0.5, most=10**7) is None


def test_ends_of_the_range() -> None:
    assert calibrate_noise(lambda x: 1 / x, 10.0, start=1.0, cheapest=100, dearest=0.5, tolerance=1e-3) == 0.5
    assert calibrate_noise(lambda x: 1 / x, 1e-3, start=1.0, cheapest=100, dearest=0.5, tolerance=1e-3) is None


@pytest.mark.parametrize(
    ("name", "records", "epochs", "share", "seed"), [("atdp", 1000, 3, 2.0, 7), ("redacted+dp-sgd", 400, 2, 0.5, 0)]
)
def test_the_noise_of_a_recipe_meets_its_target_and_never_passes_it(
    name: str, records: int, epochs: int, share: float, seed: int
) -> None:
    check_noise(name, records, epochs, share, seed)


@pytest.mark.ci
@settings(max_examples=8, deadline=None)
@given(
    st.builds(
        lambda names, last: "+".join([*names, last]),
        st.lists(st.sampled_from(sorted(RECIPES)), min_size=1, max_size=2),
        st.sampled_from(["atdp", "dp-sgd"]),
    ),
    st.integers(200, 5000),
    st.integers(1, 6),
    st.floats(0.3, 6),
    st.integers(0, 50),
)
def test_the_noise_of_any_recipe_meets_its_target_and_never_passes_it(
    name: str, records: int, epochs: int, share: float, seed: int
) -> None:
    check_noise(name, records, epochs, share, seed)


def check_noise(name: str, records: int, epochs: int, share: float, seed: int) -> None:
    """The noise that is found spends the target, or a thousandth less."""

    def plan_with(recipe: Recipe) -> Plan:
        corpus = CorpusFacts(records=records, relation=hypothetical("line"))
        return make_plan(recipe, corpus, delta=DELTA, checkpoint_history="public", reference=PUBLIC, jitter_seed=seed)

    recipe = parse_recipe(name)
    recipe = apply_settings(recipe, [stage_setting(recipe, "epochs", epochs)])
    # Stages before the last keep their noise, so the target is a multiple of what they spend on their own.
    before = plan_with(recipe[:-1])
    target = max(share, planned_epsilon(before) * (1 + share / 2))
    actual = planned_epsilon(plan_with(solve_noise(recipe, target, plan_with)))
    assert target * (1 - 1e-3) <= actual <= target


@pytest.mark.parametrize("unknown", list(Unknown))
@pytest.mark.parametrize("target", [0.5, 4.0])
def test_each_parameter_can_be_solved_for(unknown: Unknown, target: float) -> None:
    known = Parameters(sampling_probability=0.02, noise_multiplier=1.5, steps=400)
    actual = solve_hypothesis(unknown, known, target, DELTA)
    assert epsilon(actual) <= target
    if unknown is Unknown.STEPS:
        assert epsilon(Parameters(sampling_probability=0.02, noise_multiplier=1.5, steps=actual.steps + 1)) > target
    else:
        assert epsilon(actual) >= target * (1 - 1.1e-3)
    assert float(f"{actual.noise_multiplier:.6g}") == actual.noise_multiplier
    assert float(f"{actual.sampling_probability:.6g}") == actual.sampling_probability


@pytest.mark.ci
def test_a_target_out_of_reach_is_said_to_be() -> None:
    known = Parameters(sampling_probability=1.0, noise_multiplier=1.0, steps=10)
    with pytest.raises(BudgetError, match="cannot be reached: with steps at 1"):
        solve_hypothesis(Unknown.STEPS, known, 0.5, DELTA)
    with pytest.raises(UsageError, match="target-epsilon"):
        solve_hypothesis(Unknown.STEPS, known, 0.0, DELTA)
