"""`account` and `report` of the API: the commands' JSON."""

from pathlib import Path
from typing import Any

import pytest

from atdp_cli.api import (
    RECIPES,
    BudgetError,
    InputError,
    RecipeFile,
    UsageError,
    account,
    audit_canary,
    load_recipe,
    report,
)
from tests.cli.conftest import Atdp, Leaky


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (
            "--sample-rate 0.01 --noise-multiplier 1 --steps 1000",
            {"sample_rate": 0.01, "noise_multiplier": 1, "steps": 1000},
        ),
        (
            "--recipe atdp --records 5000 --epochs 2 --group 3 --replace-one --floor --prior public",
            {"records": 5000, "epochs": 2, "group": 3, "replace_one": True, "floor": True, "prior": "public"},
        ),
        (
            "--recipe atdp --records 5000 --solve noise --target-epsilon 4 --set atdp.clip-norm=0.5",
            {"records": 5000, "solve": "noise", "target_epsilon": 4, "set": ["atdp.clip-norm=0.5"]},
        ),
    ],
)
def test_figures_are_those_of_the_command(options: str, keywords: dict[str, Any], atdp: Atdp) -> None:
    reported = atdp("account", *options.split(), "--json").json
    recipes: list[Any] = [None] if "sample_rate" in keywords else ["atdp", RECIPES["atdp"], load_recipe("atdp")]
    for recipe in recipes:
        assert account(recipe=recipe, **keywords).model_dump(mode="json") == reported


def test_what_nobody_asked_is_none_and_not_in_the_json(atdp: Atdp) -> None:
    plain = account(recipe="atdp", records=5000)
    assert (plain.group, plain.floor, plain.ledgers, plain.parameters) == (None, None, None, None)
    assert set(plain.model_dump(mode="json")) == set(
        atdp("account", "--recipe", "atdp", "--records", 5000, "--json").json
    )


def test_ledgers_and_reports_are_those_of_the_command(leaky: Leaky, atdp: Atdp, tmp_path: Path) -> None:
    """Of one folder, and of two that compose; with an audit from memory, the report of a copy."""
    reported = atdp("account", leaky.model, "--json").json
    assert account(leaky.model).model_dump(mode="json") == account([leaky.model]).model_dump(mode="json") == reported
    several = atdp("account", leaky.model, leaky.model / "privacy_ledger.json", "--json").json
    assert account([leaky.model, leaky.model / "privacy_ledger.json"]).model_dump(mode="json") == several
    assert report(leaky.model).model_dump(mode="json") == atdp("report", leaky.model, "--json").json
    private = leaky.model.with_name("model.private")
    assert report(private).model_dump(mode="json") == atdp("report", private, "--json").json


def test_an_audit_is_attached_from_memory_as_from_a_file(leaky: Leaky, atdp: Atdp, tmp_path: Path) -> None:
    import shutil

    copies = [tmp_path / name for name in ("one", "other")]
    for copy in copies:
        shutil.copytree(leaky.model, copy)
    audits = audit_canary(leaky.model, manifest=leaky.manifest, device="cpu")
    file = tmp_path / "audit.json"
    file.write_text(audits.model_dump_json())
    page = report(copies[0], audit=audits)
    assert page.model_dump(mode="json") == atdp("report", copies[1], "--audit", file, "--json").json
    for name in ("privacy_report.json", "privacy_report.html", "README.md"):
        assert (copies[0] / name).read_bytes() == (copies[1] / name).read_bytes()


def test_a_named_recipe_keeps_its_name(atdp: Atdp, checkpoint_folder: Path, corpus: Path) -> None:
    from atdp_cli.api import plan

    planned = plan(checkpoint_folder, corpus, recipe=RecipeFile(name="ours", recipe=RECIPES["atdp"]))
    assert planned.recipe == "ours"


@pytest.mark.parametrize(
    ("call", "command"),
    [
        (account, "account"),
        (lambda: account("gone"), "account gone"),
        (lambda: account(recipe="nope", records=10), "account --recipe nope --records 10"),
        (lambda: account(recipe="atdp"), "account --recipe atdp"),
        (
            lambda: account(sample_rate=2, noise_multiplier=1, steps=3),
            "account --sample-rate 2 --noise-multiplier 1 --steps 3",
        ),
        (
            lambda: account(recipe="atdp", records=100, solve="noise", target_epsilon=1e-9),
            "account --recipe atdp --records 100 --solve noise --target-epsilon 1e-9",
        ),
        (lambda: report("gone"), "report gone"),
        (lambda: report("gone", audit="gone.json"), "report gone --audit gone.json"),
    ],
)
def test_an_error_has_the_line_of_the_command(call: Any, command: str, atdp: Atdp) -> None:
    reported = atdp(*command.split(), "--json")
    with pytest.raises((UsageError, InputError, BudgetError)) as raised:
        call()
    assert (f"atdp: {raised.value}\n", raised.value.exit_code) == (reported.err, reported.code)
