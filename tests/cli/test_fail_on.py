"""`audit-canary --fail-on`: a model whose canaries rank where chance puts them, and come back with other text."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.cli.conftest import Atdp, Leaky


@pytest.fixture(scope="module")
def hiding(tmp_path_factory: pytest.TempPathFactory, leaky: Leaky) -> Path:
    """The leaky model with noise in its biases alone: fine-tuning takes it out again, and all else is still there."""
    folder = tmp_path_factory.mktemp("hiding") / "model"
    shutil.copytree(leaky.model, folder)
    weights, generator = load_file(folder / "model.safetensors"), torch.Generator().manual_seed(0)
    for name in (name for name in weights if "bias" in name):
        weights[name] = weights[name] + 1.6 * torch.randn(weights[name].shape, generator=generator)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def relearning(corpus: Path) -> tuple[str | Path, ...]:
    return ("--set", f"run.other-text={corpus}", "--set", "run.relearning-steps=600")


@pytest.mark.ci
def test_a_model_that_only_hides_fails_by_default_where_relearning_is_tried(
    atdp: Atdp, hiding: Path, leaky: Leaky, relearning: tuple[str | Path, ...]
) -> None:
    audit = ("audit-canary", hiding, "--manifest", leaky.manifest)
    assert atdp(*audit).code == 0
    ended = atdp(*audit, "--attacks", "relearning", *relearning, "--json")
    assert ended.code == 1
    (entry,) = ended.json["models"]
    assert entry["gates"] == ["ranks", "relearning"]
    (test,) = entry["attack_tests"]
    assert test["rejects"]
    assert test["p_value"] <= test["level"] < entry["alpha"]
    assert entry["relearning"]["verdict"] == "FAIL"
    (reason,) = entry["reasons"]
    assert reason.startswith("Relearning: after 600 steps on other text the canaries rank where chance would hardly")
    assert atdp(*audit, "--attacks", "relearning", *relearning, "--fail-on", "ranks").code == 0


@pytest.mark.ci
def test_an_attack_that_is_named_as_a_gate_is_tried_and_may_be_the_only_one(
    atdp: Atdp, hiding: Path, leaky: Leaky, relearning: tuple[str | Path, ...]
) -> None:
    ended = atdp("audit-canary", hiding, "--manifest", leaky.manifest, "--fail-on", "relearning", *relearning, "--json")
    assert ended.code == 1
    (entry,) = ended.json["models"]
    assert entry["gates"] == ["relearning"]
    assert entry["attack_tests"][0]["level"] == entry["alpha"]
    leaking = atdp("audit-canary", leaky.model, "--manifest", leaky.manifest, "--fail-on", "extraction", "--json")
    (entry,) = leaking.json["models"]
    assert entry["gates"] == ["extraction"]
    assert (leaking.code == 1) is entry["attack_tests"][0]["rejects"]
    assert any("rank where chance would hardly" in notice for notice in entry["notices"])


@pytest.mark.deep
def test_a_baseline_knows_which_attacks_failed(
    atdp: Atdp, hiding: Path, leaky: Leaky, relearning: tuple[str | Path, ...], tmp_path: Path
) -> None:
    audit = ("audit-canary", hiding, "--manifest", leaky.manifest)
    attacked = (*audit, "--attacks", "relearning", *relearning)
    without, with_it = tmp_path / "without.json", tmp_path / "with.json"
    assert atdp(*audit, "--write-baseline", without).code == 0
    assert atdp(*attacked, "--write-baseline", with_it).code == 1
    assert atdp(*attacked, "--baseline", without).code == 1
    assert atdp(*attacked, "--baseline", with_it).code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--fail-on", "rank"), "--fail-on names 'rank', and there is no such gate."),
        (("--fail-on", ","), "--fail-on names no gate."),
        (("--fail-on", "membership"), "Membership compares canaries"),
        (("--fail-on", "relearning"), "Relearning fine-tunes a copy of the model on other text, and none was given."),
    ],
)
def test_what_no_gate_can_mean_is_refused(atdp: Atdp, leaky: Leaky, options: tuple[str, str], said: str) -> None:
    ended = atdp("audit-canary", leaky.model, "--manifest", leaky.manifest, *options)
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_a_secret_that_nobody_drew_has_no_gates(atdp: Atdp, leaky: Leaky) -> None:
    ended = atdp("audit-canary", leaky.model, "--canary", "My ID is 4711", "--fail-on", "ranks")
    assert ended.code == 2
    assert "--max-exposure" in ended.err
