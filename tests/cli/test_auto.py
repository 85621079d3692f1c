"""`harden --auto`: what it chooses, from what it is given, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.jobs.harden.auto import LEAST_RATE, RATE, learning_rate
from tests.cli.conftest import Ended, Harden


def planned(ended: Ended) -> Any:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


DRY = ("--auto", "--dry-run", "--json")


def test_it_takes_fitted_decoys_of_entities_within_a_budget(harden: Harden) -> None:
    found = planned(harden(*DRY, "--prior", "public"))
    assert found["recipe"] == "fitted-decoys"
    by_scope = {one["scope"]: one["epsilon"] for one in found["guarantees"]}
    assert 2.99 <= by_scope["selective"] <= 3


def test_a_checkpoint_of_unknown_past_is_promised_nothing_that_does_not_hold(harden: Harden) -> None:
    ended = harden(*DRY)
    by_scope = {one["scope"]: one["epsilon"] for one in planned(ended)["guarantees"]}
    assert by_scope["end_to_end"] == "inf"
    assert "selective" not in by_scope
    assert 2.99 <= by_scope["increment"] <= 3


def test_with_a_public_base_it_starts_there(harden: Harden, checkpoint_folder: Path, tmp_path: Path) -> None:
    assert harden("--recipe", "no-dp", "--epochs", 1, out="leaky").code == 0
    ended = harden("--auto", "--epochs", 1, "--reference", checkpoint_folder, out="safe")
    assert ended.code == 0, ended.err
    ledger = json.loads((tmp_path / "safe" / "privacy_ledger.json").read_text())
    assert ledger["prior"] == "public"
    assert [event["stage"] for event in ledger["events"]] == ["fitted-decoys"] * 2


def test_the_ledger_beside_a_base_is_believed(harden: Harden, tmp_path: Path) -> None:
    """It says that nobody knows the past, and naming it as a reference does not change that."""
    assert harden("--recipe", "no-dp", "--epochs", 1, out="used").code == 0
    found = planned(harden(*DRY, "--reference", tmp_path / "used", out="other"))
    assert "selective" not in {one["scope"] for one in found["guarantees"]}


@pytest.mark.parametrize(("epsilon", "tier"), [(1.0, "high-entity"), (0.5, "low-entity")])
def test_what_the_command_line_says_goes_first(harden: Harden, epsilon: float, tier: str) -> None:
    found = planned(harden(*DRY, "--prior", "public", "--target-epsilon", epsilon, "--tier", tier, "--epochs", 2))
    assert {one["scope"]: one["epsilon"] for one in found["guarantees"]}["selective"] <= epsilon
    assert [stage["epochs"] for stage in found["stages"]] == [2]


@pytest.mark.parametrize(
    ("options", "rate"),
    [
        ((), "0.004"),
        (("--learning-rate", "1e-3"), "0.001"),
        (("--set", "fitted-decoys.learning-rate=3e-3"), "0.003"),
    ],
)
def test_the_rate_suits_the_width_unless_one_is_given(harden: Harden, options: tuple[str, ...], rate: str) -> None:
    """The small checkpoint is narrower than any that was measured."""
    [stage] = planned(harden(*DRY, *options))["stages"]
    assert f"learning rate {rate} falling to 0" in stage["optimizer"]


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_wider_models_never_get_a_higher_rate(one: int, other: int) -> None:
    narrow, wide = sorted((one, other))
    assert LEAST_RATE <= learning_rate(wide) <= learning_rate(narrow) <= RATE


def test_a_budget_of_minutes_takes_epochs(harden: Harden) -> None:
    """The estimate is of this machine, so the budget is taken from it."""
    whole = planned(harden(*DRY))
    [three] = [stage["epochs"] for stage in whole["stages"]]
    third = planned(harden(*DRY, "--minutes", whole["estimated_seconds"] / 60 * 0.55))
    assert [stage["epochs"] for stage in third["stages"]] < [three]
    plenty = planned(harden(*DRY, "--minutes", 1000))
    assert [stage["epochs"] for stage in plenty["stages"]] == [three]
    refused = harden(*DRY, "--minutes", 1e-6)
    assert refused.code == 2
    assert "One epoch takes about" in refused.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--auto", "--recipe", "atdp"), "--auto chooses the recipe"),
        (("--auto", "--minutes", 0), "above 0"),
        (("--minutes", 5), "goes with --auto"),
        (("--auto", "--tier", "low-contextual"), "--tier high-entity or low-entity"),
    ],
)
def test_what_contradicts_it_is_refused(harden: Harden, options: tuple[object, ...], said: str, tmp_path: Path) -> None:
    ended = harden(*options)
    assert ended.code == 2
    assert said in " ".join(ended.err.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("recipe", "prior", "advised"),
    [("atdp", "unknown", True), ("no-dp", "public", True), ("atdp", "public", False), ("decoys", "unknown", False)],
)
def test_who_could_do_better_is_told(harden: Harden, recipe: str, prior: str, advised: bool) -> None:
    ended = harden("--recipe", recipe, "--prior", prior, "--epochs", 1, "--tier", "low-entity")
    assert ended.code == 0, ended.err
    assert ("docs/choosing.md" in ended.err) is advised
