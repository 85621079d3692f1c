"""`harden` without `--recipe`: what is chosen, what is said of it first, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.errors import UsageError
from atdp_cli.hardening.request import MIN_RATE, RATE, RECIPE, learning_rate, missing_options
from atdp_cli.training.options import STAGE_OPTIONS
from atdp_cli.training.recipe import DPSGD, Train, parse_recipe
from atdp_cli.training.recipe_file import read_recipe
from atdp_cli.training.search import TRIAL_WARMUP
from atdp_cli.training.stage_options import apply_settings, stage_setting
from tests.cli.conftest import Atdp, Ended, Harden


def planned(ended: Ended) -> Any:
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


DRY = ("--dry-run", "--json")


def test_it_takes_fitted_decoys_of_entities_within_a_budget(harden: Harden) -> None:
    actual = planned(harden(*DRY, "--checkpoint-history", "public"))
    assert actual["recipe"] == "fitted-decoys"
    by_scope = {guarantee["scope"]: guarantee["epsilon"] for guarantee in actual["guarantees"]}
    assert 2.99 <= by_scope["selective"] <= 3


def test_a_checkpoint_of_unknown_past_is_promised_nothing_that_does_not_hold(harden: Harden) -> None:
    ended = harden(*DRY)
    by_scope = {guarantee["scope"]: guarantee["epsilon"] for guarantee in planned(ended)["guarantees"]}
    assert by_scope["end_to_end"] == "inf"
    assert "selective" not in by_scope
    assert 2.99 <= by_scope["increment"] <= 3


@pytest.mark.ci
def test_with_a_public_base_it_starts_there(
    atdp: Atdp, harden: Harden, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    assert harden("--recipe", "no-dp", "--epochs", 1, out="leaky").code == 0
    run = ("harden", tmp_path / "leaky", "--data", corpus, "--epochs", 1, "--set", "run.threads=1")
    ended = atdp(*run, "--reference", checkpoint_folder, "-o", tmp_path / "safe")
    assert ended.code == 0, ended.err
    ledger = json.loads((tmp_path / "safe" / "privacy_ledger.json").read_text())
    assert ledger["checkpoint_history"] == "public"
    assert [event["stage"] for event in ledger["events"]] == ["fitted-decoys"] * 2


@pytest.mark.ci
def test_the_ledger_beside_a_base_is_believed(harden: Harden, tmp_path: Path) -> None:
    """It says that nobody knows the past, and naming it as a reference does not change that."""
    assert harden("--recipe", "no-dp", "--epochs", 1, out="used").code == 0
    actual = planned(harden(*DRY, "--reference", tmp_path / "used", out="other"))
    assert "selective" not in {guarantee["scope"] for guarantee in actual["guarantees"]}


@pytest.mark.parametrize(("epsilon", "tier"), [(1.0, "high-entity"), (0.5, "low-entity")])
def test_what_the_command_line_says_goes_first(harden: Harden, epsilon: float, tier: str) -> None:
    actual = planned(
        harden(*DRY, "--checkpoint-history", "public", "--target-epsilon", epsilon, "--tier", tier, "--epochs", 2)
    )
    assert {guarantee["scope"]: guarantee["epsilon"] for guarantee in actual["guarantees"]}["selective"] <= epsilon
    assert [stage["epochs"] for stage in actual["stages"]] == [2]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("options", "rate"),
    [
        ((), "0.008"),
        (("--checkpoint-history", "public"), "0.004"),
        (("--learning-rate", "1e-3"), "0.001"),
        (("--set", "fitted-decoys.learning-rate=3e-3"), "0.003"),
        (("--review-each-epoch",), "0.008"),
        (("--review-each-epoch", "--checkpoint-history", "public"), "0.004"),
    ],
)
def test_the_rate_suits_the_width_unless_one_is_given(harden: Harden, options: tuple[str, ...], rate: str) -> None:
    """The small checkpoint is narrower than any that was measured, and of unknown past."""
    [stage] = planned(harden(*DRY, "--epochs", 30, *options))["stages"]
    assert f"learning rate {rate} falling to 0" in stage["optimizer"]


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_wider_models_never_get_a_higher_rate(width: int, other: int) -> None:
    narrow, wide = sorted((width, other))
    assert MIN_RATE <= learning_rate(wide) <= learning_rate(narrow) <= RATE


def said(ended: Ended) -> str:
    """What a command says on standard error, in one line."""
    assert ended.code == 0, ended.err
    return " ".join(ended.err.split())


STAYS, READS = "It does not remove what", ", since it reads raw text."
NOTHING = "There is nothing memorised to remove, as its start never saw the corpus."
HID = "It trains MODEL on decoys, which hid what it memorised in most of our audits; no ε bounds that."


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("recipe", "checkpoint_history", "removes"),
    [
        ("atdp", "unknown", f"{STAYS} MODEL may have memorised{READS}"),
        ("decoys+atdp", "unknown", f"{STAYS} MODEL may have memorised{READS}"),
        ("redacted", "unknown", f"{STAYS} MODEL may have memorised."),
        ("no-dp", "public", f"{STAYS} its stage no-dp memorises."),
        ("no-dp+atdp", "public", f"{STAYS} its stage no-dp memorises{READS}"),
        ("no-dp+decoys", "public", NOTHING),
        ("atdp", "public", NOTHING),
        ("redacted+atdp", "public", NOTHING),
        ("decoys", "unknown", HID),
        ("base", "unknown", "It trains nothing."),
    ],
)
def test_what_stays_memorised_is_said_before_the_plan(
    harden: Harden, checkpoint_folder: Path, recipe: str, checkpoint_history: str, removes: str
) -> None:
    ended = harden(
        "--recipe",
        recipe,
        "--checkpoint-history",
        checkpoint_history,
        "--tier",
        "low-entity",
        "--set",
        "run.max-records=60",
        "--dry-run",
    )
    first = f"Recipe: {recipe}, as asked. {removes.replace('MODEL', str(checkpoint_folder))}"
    assert said(ended).startswith(f"{first} Plan")
    advice = "Where secrets were memorised, decoys measured better: leave --recipe out (docs/choosing.md)."
    assert (advice in said(ended)) == removes.startswith(STAYS)


@pytest.mark.ci
def test_a_ledger_that_tells_of_raw_training_is_an_unprotected_past(
    atdp: Atdp, harden: Harden, corpus: Path, tmp_path: Path
) -> None:
    """Also where the first checkpoint was public, so that the past is known."""
    short = ("--epochs", 1, "--set", "run.max-records=40")
    assert harden("--recipe", "no-dp", "--checkpoint-history", "public", *short, "-q", out="leaky").code == 0
    asked = ("harden", tmp_path / "leaky", "--data", corpus, *short, "--dry-run")
    for more in ((), ("--recipe", "dp-sgd")):
        reported = said(atdp(*asked, *more))
        assert ("no ε bounds that" if not more else f"{STAYS} {tmp_path / 'leaky'} may have memorised") in reported


@pytest.mark.ci
@pytest.mark.parametrize(
    ("checkpoint_history", "objective", "best"), [("unknown", "distilled", None), ("public", "uniform", True)]
)
def test_where_people_review_nothing_is_searched_and_the_settings_are_the_same(
    harden: Harden, tmp_path: Path, checkpoint_history: str, objective: str, best: bool | None
) -> None:
    ended = harden(
        "--review-each-epoch",
        "--checkpoint-history",
        checkpoint_history,
        "--epochs",
        2,
        "--set",
        "run.max-records=60",
        "--json",
    )
    assert ended.code == 0, ended.err
    [stage] = read_recipe(tmp_path / "out" / "recipe.toml").recipe
    assert isinstance(stage, Train)
    assert (stage.objective.kind, stage.warmup, stage.restore_best) == (objective, TRIAL_WARMUP, best)
    [reported] = json.loads((tmp_path / "out.private" / "privacy_report.json").read_text())["stages"]
    assert reported["trial_losses"] == reported["trial_p_values"] == []
    events = json.loads((tmp_path / "out" / "privacy_ledger.json").read_text())["events"]
    assert "raw" not in [event.get("chosen_on") for event in events]


def test_the_options_that_the_default_lacks_are_those_of_dp_stages() -> None:
    """Each is taken by a stage of the paper's recipe, refused by that of the default, and the rest is taken by both."""
    [paper], [default] = parse_recipe("atdp"), parse_recipe(RECIPE)
    assert isinstance(paper.mechanism, DPSGD)
    values = {"jitter": "1,1", "sigma-growth": "2", "sigma-max": "9", "unflagged-weight": "0.5", "target-share": "0.5"}
    missing = set(missing_options())
    assert {
        "noise-multiplier",
        "clip-norm",
        "sigma-growth",
        "sigma-max",
        "jitter",
        "unflagged-weight",
        "target-share",
    } == missing
    for name in STAGE_OPTIONS:
        setting = stage_setting((paper,), name, values.get(name, "3"))
        apply_settings((paper,), [setting])
        if name in missing:
            with pytest.raises(UsageError, match="has no"):
                apply_settings((default,), [setting])
        else:
            apply_settings((default,), [setting])


@pytest.mark.ci
def test_the_budget_is_beside_what_was_spent_before(atdp: Atdp, harden: Harden, corpus: Path, tmp_path: Path) -> None:
    """Or a model that was hardened with less noise could not be hardened again without a word on ε."""
    short = ("--epochs", 1, "--set", "run.max-records=60")
    first = planned(harden("--recipe", "dp-sgd", "--checkpoint-history", "public", *short, "--json", out="private"))
    [spent] = {guarantee["epsilon"] for guarantee in first["guarantees"]}
    assert spent > 3
    again = planned(atdp("harden", tmp_path / "private", "--data", corpus, *short, "--dry-run", "--json"))
    epsilon = {guarantee["scope"]: guarantee["epsilon"] for guarantee in again["guarantees"]}["selective"]
    assert spent < epsilon < spent * 2 + 3


def test_noise_of_the_release_that_is_set_is_kept(harden: Harden) -> None:
    """No budget chooses another."""
    [stage] = planned(harden("--set", "fitted-decoys.release-noise=7", "--dry-run", "--json"))["stages"]
    assert stage["release_noise_multiplier"] == 7
