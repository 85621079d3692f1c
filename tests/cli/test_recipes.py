"""The list of recipes, the recipe file that a run writes, and runs from such a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.hardening.recipes import recipe_summaries
from atdp_cli.training.recipe_file import read_recipe
from tests.cli.badinput.case import line
from tests.cli.conftest import Atdp, Ended

UNUSUAL = {
    "tier": "low-entity",
    "privacy_unit": "paragraph",
    "max-windows-per-unit": "3",
    "jitter-seed": "9",
    "lora-rank": "2",
    "delta": "1e-5",
}
"""Each option of the table run at a value that is not its default."""


def events(folder: Path) -> Any:
    """What a run spent, whatever it was called."""
    actual = json.loads((folder / "privacy_ledger.json").read_text())
    return actual["records"], actual["delta"], [event | {"run": None} for event in actual["events"]]


def plan(ended: Ended) -> Any:
    assert ended.code == 0, ended.err
    return [ended.json[key] for key in ("recipe", "steps", "stages", "guarantees")]


@pytest.mark.ci
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            [*line("redacted+atdp --target-epsilon 3 --set run.unflagged-weight=record --set redacted.optimizer=sgd")],
            marks=pytest.mark.deep,
        ),
        ["atdp+noise", "--set", "run.sigma-max=2.5", "--set", "run.jitter-seed=4", "--set", "atdp.jitter=0.7,1.4"],
    ],
    ids=lambda options: options[0],
)
def test_a_run_from_the_file_that_a_run_wrote_is_the_same_run(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path, options: list[str]
) -> None:
    shared = ["--data", corpus, "--set", "run.insecure-seed=1", "--set", "run.threads=1", "--set", "run.max-records=60"]
    first = [*shared, "--epochs", "2", "--recipe", *options, "--tier", "low-entity", "--json"]
    planned = atdp("harden", checkpoint_folder, *first, "-o", tmp_path / "a", "--dry-run")
    assert atdp("harden", checkpoint_folder, *first, "-o", tmp_path / "a").code == 0
    again = [*shared, "--recipe", tmp_path / "a" / "recipe.toml", "-o", tmp_path / "b", "--json"]
    assert plan(atdp("harden", checkpoint_folder, *again, "--dry-run")) == plan(planned)
    assert atdp("harden", checkpoint_folder, *again).code == 0

    assert events(tmp_path / "b") == events(tmp_path / "a")
    for name in ("model.safetensors", "recipe.toml"):
        assert (tmp_path / "b" / name).read_bytes() == (tmp_path / "a" / name).read_bytes(), name
    reports = [json.loads((tmp_path / name / "privacy_report.json").read_text()) for name in ("a", "b")]
    assert [report["recipe"] for report in reports] == [options[0], options[0]]


@pytest.mark.ci
def test_the_file_has_everything_worked_out_and_nothing_private(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    options = [
        *line("--recipe atdp --target-epsilon 2 --epochs 1 --set run.max-records=40 --checkpoint-history public")
    ]
    assert atdp("harden", checkpoint_folder, "--data", corpus, "-o", tmp_path / "o", *options).code == 0
    text = (tmp_path / "o" / "recipe.toml").read_text()
    spent = json.loads((tmp_path / "o" / "privacy_ledger.json").read_text())["events"]
    (stage,) = read_recipe(tmp_path / "o" / "recipe.toml").recipe
    assert stage.mechanism.schedule.noise_multiplier == spent[0]["noise_multiplier"]  # type: ignore[union-attr]
    assert "expected_batch = 10\n" in text
    assert text.startswith("# ")
    assert "atdp harden MODEL --data CORPUS --recipe recipe.toml" in text
    for private in (corpus.name, str(tmp_path), checkpoint_folder.name, "checkpoint_history", "seed = 0x", "insecure"):
        assert private not in text


def run_file(tmp_path: Path, run: dict[str, str]) -> Path:
    """A recipe file with a table run."""
    path = tmp_path / "own.toml"
    values = {name.replace("-per-unit", "").replace("-", "_"): value for name, value in run.items()}
    lines = [f"{name} = {value if value[0].isdigit() else json.dumps(value)}" for name, value in values.items()]
    stage = 'name = "mine"\ntext = "redacted"\nepochs = 2\n'
    rest = 'objective = {kind = "uniform"}\nmechanism = {kind = "dp-sgd", schedule = {kind = "constant", '
    path.write_text(
        f'name = "of my own"\n[[stage]]\n{stage}{rest}noise_multiplier = 2.0}}}}\n[run]\n' + "\n".join(lines) + "\n"
    )
    return path


def written(atdp: Atdp, model: Path, corpus: Path, out: Path, *options: object) -> dict[str, Any]:
    """The options that a run has used, as its own recipe file says them."""
    shared = ["--data", corpus, "-o", out, "--set", "run.max-records=60", "--force", "--set", "run.threads=1"]
    ended = atdp("harden", model, *shared, *options)
    assert ended.code == 0, ended.err
    return read_recipe(out / "recipe.toml").run.given()


@pytest.mark.ci
def test_options_of_the_file_apply_where_the_command_line_is_silent(
    atdp: Atdp, checkpoint_folder: Path, lines: list[str], tmp_path: Path
) -> None:
    corpus = tmp_path / "paragraphs.txt"
    corpus.write_text("\n\n".join(lines[:60]) + "\n")
    file = run_file(tmp_path, UNUSUAL)
    expected = read_recipe(file).run.given()
    assert len(expected) == len(UNUSUAL)
    assert written(atdp, checkpoint_folder, corpus, tmp_path / "o", "--recipe", file) == expected
    assert json.loads((tmp_path / "o" / "privacy_report.json").read_text())["recipe"] == "of my own"
    # A default that is spelled out is said all the same.
    given = ["--tier", "high-contextual", "--privacy-unit", "line", "--set", "run.max-windows=8"]
    given += ["--set", "run.jitter-seed=0", "--delta", "1e-6", "--lora-rank", "3"]
    actual = written(atdp, checkpoint_folder, corpus, tmp_path / "o", "--recipe", file, *given)
    assert list(actual.values()) == ["high-contextual", "line", 8, 3, 1e-6, 0]


def test_the_list_says_what_the_ledger_allows() -> None:
    """The claims, written down a second time by hand."""
    held = {row.recipe: (row.public, row.unknown) for row in recipe_summaries()}
    assert held == {
        "base": ("whole records", "nothing"),
        "no-dp": ("nothing", "nothing"),
        "no-dp+atdp": ("noisy stages alone", "noisy stages alone"),
        "redacted": ("flagged values", "nothing"),
        "redacted+atdp": ("flagged values", "noisy stages alone"),
        "jft": ("flagged values", "noisy stages alone"),
        "jft+atdp": ("flagged values", "noisy stages alone"),
        "dp-sgd": ("whole records", "noisy stages alone"),
        "dp-sgd+atdp": ("whole records", "noisy stages alone"),
        "atdp": ("whole records", "noisy stages alone"),
        "noise": ("whole records", "nothing"),
        "interpolate": ("whole records", "nothing"),
        "anchored": ("whole records", "noisy stages alone"),
        "gradient-difference": ("nothing", "nothing"),
        "npo": ("nothing", "nothing"),
        "simnpo": ("nothing", "nothing"),
        "rmu": ("nothing", "nothing"),
        "negated": ("nothing", "nothing"),
        "decoys": ("flagged values", "nothing"),
        "no-dp+decoys": ("nothing", "nothing"),
        "fitted-decoys": ("flagged values", "noisy stages alone"),
        "no-dp+fitted-decoys": ("noisy stages alone", "noisy stages alone"),
    }
