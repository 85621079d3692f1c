"""Recipes, settings and the plan."""

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.errors import BudgetError, UsageError
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.schedule import Constant, RiseReset
from atdp_cli.training.objectives import NPO, Weighted
from atdp_cli.training.plan import CorpusFacts, Plan, Reference, make_plan
from atdp_cli.training.recipe import (
    ATDP,
    DP_SGD,
    DPSGD,
    NO_DP,
    RECIPES,
    REDACTED,
    SGD,
    NonPrivate,
    Recipe,
    last_private,
    parse_recipe,
    reads_reference,
)
from atdp_cli.training.solve import planned_epsilon, solve_noise
from atdp_cli.training.stage_options import SETTINGS, apply_settings, parse_setting, stage_setting
from tests.privacy.relations import plain
from tests.training.stages import trained

NAMES = st.lists(st.sampled_from(sorted(RECIPES)), min_size=1, max_size=3)
PUBLIC = Reference(ledger=None, weights={"model.safetensors": "ab"}, past="declared")


def plan(recipe: Recipe, *, records: int = 1000, inherited: Ledger | None = None) -> Plan:
    corpus = CorpusFacts(records=records, relation=hypothetical("line"))
    reference = PUBLIC if any(reads_reference(stage) for stage in recipe) else None
    return make_plan(recipe, corpus, delta=1e-6, checkpoint_history="public", inherited=inherited, reference=reference)


def changed(recipe: Recipe, **options: object) -> Recipe:
    return apply_settings(
        recipe, [stage_setting(recipe, name.replace("_", "-"), value) for name, value in options.items()]
    )


@settings(deadline=None, max_examples=30)
@given(NAMES, NAMES)
def test_the_ledger_of_a_sum_is_the_sum_of_the_ledgers(first: list[str], second: list[str]) -> None:
    def spent(names: list[str]) -> list[object]:
        """Events without stage names (a name that comes twice is numbered) and without jitter (keyed by position)."""
        recipe = parse_recipe("+".join(names))
        steady = [
            parse_setting(recipe, f"{stage.name}.jitter=1,1")
            for stage in recipe
            if stage.name.startswith(("atdp", "anchored", "noise"))
        ]
        stages = plan(apply_settings(recipe, steady)).stages
        return [event.model_copy(update={"stage": ""}) for stage in stages for event in stage.events]

    assert spent(first + second) == spent(first) + spent(second)


def test_what_follows_a_stage_does_not_change_it() -> None:
    longer = plan(parse_recipe("atdp+no-dp+atdp")).training
    assert longer[0] == plan(ATDP).training[0]
    assert longer[2].noise_multipliers[1:] != longer[0].noise_multipliers[1:]


def test_plus_joins_and_numbers_what_comes_twice() -> None:
    assert parse_recipe("redacted+dp-sgd") == REDACTED + DP_SGD
    assert [stage.name for stage in parse_recipe("atdp+no-dp+atdp+atdp")] == ["atdp", "no-dp", "atdp-2", "atdp-3"]


@pytest.mark.parametrize("text", ["", "atdp+", "ATDP", "jft2"])
def test_an_unknown_recipe_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="recipe"):
        parse_recipe(text)


def test_the_defaults_are_those_of_the_page_of_usage() -> None:
    stage = plan(ATDP, records=1900).training[0]
    assert stage.batch == 256
    assert stage.steps_per_epoch == 8
    assert stage.stage.epochs == 3
    assert stage.sampling_rate == 256 / 1900
    assert stage.noise_multipliers[0] == 1.0
    assert plan(ATDP, records=285).training[0].batch == 72


def test_bare_options_act_on_the_last_private_stage() -> None:
    recipe = parse_recipe("dp-sgd+atdp+no-dp")
    actual = changed(recipe, epochs=7, clip_norm=0.5)
    assert [stage.epochs for stage in trained(actual)] == [3, 7, 3]
    assert last_private(NO_DP) == 0


def test_every_setting_reaches_its_stage() -> None:
    recipe = changed(
        ATDP,
        epochs=5,
        batch_size=32,
        optimizer="sgd",
        learning_rate=1e-3,
        weight_decay=0.5,
        noise_multiplier=2.0,
        sigma_growth=1.5,
        jitter="1,1",
        sigma_max=6.0,
        clip_norm=0.3,
        unflagged_weight="record",
        target_share=0.25,
    )
    [stage] = trained(recipe)
    shape = RiseReset(noise_multiplier=2.0, sigma_growth=1.5, jitter=(1.0, 1.0), sigma_max=6.0)
    assert stage.mechanism == DPSGD(clip_norm=0.3, expected_batch=32, schedule=shape)
    assert stage.objective == Weighted(unflagged_weight="record", target_share=0.25)
    assert (stage.epochs, stage.optimizer.learning_rate, stage.optimizer.weight_decay) == (5, 1e-3, 0.5)
    assert type(stage.optimizer).__name__ == "SGD"


def test_set_names_a_stage() -> None:
    recipe = parse_recipe("no-dp+atdp")
    actual = apply_settings(recipe, [parse_setting(recipe, "no-dp.learning_rate=0.1")])
    assert [stage.optimizer.learning_rate for stage in trained(actual)] == [0.1, 5e-4]


@pytest.mark.parametrize("text", ["epochs=3", "atdp.epochs", "nobody.epochs=3", ".epochs=3", "atdp.=3"])
def test_a_setting_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--set"):
        parse_setting(ATDP, text)


@pytest.mark.parametrize("option", SETTINGS)
def test_every_option_refuses_nonsense(option: str) -> None:
    nonsense = {"optimizer": ("", "adamax")}.get(option, ("", "many", "nan", "-1"))
    for recipe in (ATDP, parse_recipe("anchored")):
        for value in nonsense:
            with pytest.raises(UsageError):
                apply_settings(recipe, [stage_setting(recipe, option, value)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Weighted(unflagged_weight=1.5), "unflagged-weight is 1.5. Choose a number of at most 1, or 'record'."),
        (lambda: NPO(beta=0), "beta is 0. Choose a number above 0."),
        (lambda: NPO(strength=float("nan")), "strength is nan. Choose a finite number."),
        (lambda: NonPrivate(batch_size=True), "batch-size: Input should be a valid integer. Correct this key."),
        (lambda: NonPrivate(batch_size=0), "batch-size is 0. Choose a number of at least 1."),
        (lambda: SGD(learning_rate="1"), "learning-rate: Input should be a valid number. Correct this key."),  # type: ignore[arg-type]
        (lambda: replace(trained(NO_DP)[0], epochs=10**30), "epochs is a number of 31 digits. Choose a number of at "),
    ],
)
def test_what_code_builds_wrong_is_refused_in_one_line(make: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_an_optimizer_takes_its_settings_in_any_order() -> None:
    options = {"weight-decay": "0.2", "optimizer": "sgd", "learning-rate": "1"}
    expected = SGD(learning_rate=1.0, weight_decay=0.2)
    for order in permutations(options):
        [stage] = trained(apply_settings(ATDP, [stage_setting(ATDP, option, options[option]) for option in order]))
        assert stage.optimizer == expected


@pytest.mark.parametrize(
    ("recipe", "option"), [(NO_DP, "clip-norm"), (NO_DP, "noise-multiplier"), (DP_SGD, "weight"), (DP_SGD, "jitter")]
)
def test_an_option_that_a_stage_lacks_is_refused(recipe: Recipe, option: str) -> None:
    with pytest.raises(UsageError, match=option):
        apply_settings(recipe, [stage_setting(recipe, option, "1")])


def test_delta_must_lie_below_one_over_the_records() -> None:
    with pytest.raises(UsageError, match="delta"):
        make_plan(
            ATDP,
            CorpusFacts(records=1000, relation=hypothetical("line", "high-contextual")),
            delta=1e-3,
            checkpoint_history="public",
        )


def test_a_batch_larger_than_the_corpus_is_refused() -> None:
    with pytest.raises(UsageError, match="batch-size"):
        plan(changed(ATDP, batch_size=1001))


def test_the_checkpoints_own_ledger_comes_first() -> None:
    earlier = plan(DP_SGD).ledger
    composed = plan(ATDP, inherited=earlier).ledger
    assert composed.events[: len(earlier.events)] == earlier.events
    assert planned_epsilon(plan(ATDP, inherited=earlier)) > planned_epsilon(plan(ATDP))
    other = earlier.model_copy(update={"unit": "document"})
    with pytest.raises(UsageError, match="document"):
        plan(ATDP, inherited=other)


def test_an_insecure_run_stays_stamped_when_it_is_hardened_again() -> None:
    earlier = plan(DP_SGD).ledger.model_copy(update={"insecure_seed": True})
    assert plan(ATDP, inherited=earlier).ledger.insecure_seed
    assert not plan(ATDP, inherited=plan(DP_SGD).ledger).ledger.insecure_seed


def test_delta_lies_below_one_over_the_largest_corpus_of_all_runs() -> None:
    earlier = plan(DP_SGD).ledger.model_copy(update={"records": 2_000_000})
    with pytest.raises(UsageError, match="2,000,000"):
        plan(ATDP, inherited=earlier)
    assert plan(ATDP, records=500, inherited=plan(DP_SGD).ledger).ledger.records == 1000


def test_redacted_text_has_its_own_name_in_the_ledger() -> None:
    assert plan(REDACTED).ledger.events == (plain("bytes", stage="redacted", detector="0" * 64, corpus=None),)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", [0.3, 2.0, 8.0])
@pytest.mark.parametrize("recipe", [ATDP, DP_SGD], ids=["rise-reset", "constant"])
def test_the_solved_noise_meets_the_target_closely_and_never_passes_it(recipe: Recipe, target: float) -> None:
    actual = planned_epsilon(plan(solve_noise(recipe, target, plan)))
    assert target * (1 - 1e-3) <= actual <= target


def test_scaling_leaves_the_shape_alone() -> None:
    mechanism = trained(solve_noise(changed(ATDP, jitter="1,1"), 1.0, plan))[0].mechanism
    assert isinstance(mechanism, DPSGD)
    assert mechanism.schedule == RiseReset(
        noise_multiplier=mechanism.schedule.noise_multiplier, sigma_growth=1.2, jitter=(1.0, 1.0)
    )
    assert not isinstance(mechanism.schedule, Constant)


def test_an_epsilon_out_of_reach_is_said_to_be() -> None:
    with pytest.raises(BudgetError, match="cannot be reached"):
        solve_noise(ATDP, 1e-9, plan)
    with pytest.raises(UsageError, match="no DP stage"):
        solve_noise(NO_DP, 1.0, plan)
