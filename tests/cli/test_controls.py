"""References, controls, stopping by exposure and the limit on perplexity, from end to end."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

from atdp_cli.files.documents import file_sha256
from tests.cli.conftest import Atdp, Ended, Leaky
from tests.small import write_checkpoint

Harden = Callable[..., Ended]


@pytest.fixture
def harden(atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path) -> Harden:
    """The small checkpoint on 60 records, one epoch of the last private stage, into `tmp_path/out`."""

    def run(*options: object, model: Path = checkpoint_folder) -> Ended:
        data = ["--data", corpus, "-o", tmp_path / "out", "--set", "run.max-records=60", "--tier", "low-entity"]
        return atdp(
            "harden", model, *data, "--epochs", 1, "--set", "run.threads=1", "--set", "run.insecure-seed=1", *options
        )

    return run


def document(folder: Path, name: str = "privacy_report.json") -> Any:
    return json.loads((folder / name).read_text())


def events(folder: Path) -> list[dict[str, Any]]:
    actual: list[dict[str, Any]] = document(folder, "privacy_ledger.json")["events"]
    return [{key: value for key, value in event.items() if key != "run"} for event in actual]


def scopes(answer: Any) -> dict[str, Any]:
    return {entry["scope"]: entry["epsilon"] for entry in answer["guarantees"]}


def parameters(folder: Path) -> dict[str, torch.Tensor]:
    return dict(AutoModelForCausalLM.from_pretrained(folder).named_parameters())


def refused(ended: Ended, *said: str) -> None:
    """Exit code 2, and one line that says why."""
    assert ended.code == 2
    line = " ".join(ended.err.split())
    assert all(part in line for part in said), ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""


@pytest.fixture
def base(tmp_path: Path, lines: list[str]) -> Path:
    """Another model with the same tokenizer."""
    return write_checkpoint(tmp_path / "base", lines, seed=8)


@pytest.fixture
def stranger(tmp_path: Path, checkpoint_folder: Path) -> Path:
    """A model whose tokenizer knows one token more."""
    tokenizer = AutoTokenizer.from_pretrained(checkpoint_folder)
    tokenizer.add_tokens(["<more>"])
    tokenizer.save_pretrained(tmp_path / "stranger")
    shape = {"n_positions": 64, "n_embd": 32, "n_layer": 1, "n_head": 2, "bos_token_id": 0, "eos_token_id": 0}
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **shape)).save_pretrained(tmp_path / "stranger")
    return tmp_path / "stranger"


@pytest.mark.ci
def test_what_was_read_is_in_ledger_report_and_card(harden: Harden, base: Path, tmp_path: Path) -> None:
    options = ["--recipe", "no-dp+anchored", "--set", "no-dp.epochs=1", "--reference", base, "--json"]
    planned = harden(*options, "--dry-run")
    ended = harden(*options)
    assert ended.code == 0, ended.err
    assert ended.json["guarantees"] == planned.json["guarantees"]
    assert scopes(ended.json)["end_to_end"] == "inf"
    weights = {"model.safetensors": file_sha256(base / "model.safetensors")}
    actual = events(tmp_path / "out")
    assert [event["kind"] for event in actual] == ["plain", "read_model", "subsampled_gaussian"]
    assert actual[1] == {"kind": "read_model", "stage": "anchored", "past": "declared", "weights": weights}
    report = document(tmp_path / "out")
    assert report["references"] == [{"past": "declared", "weights": weights}]
    assert [stage["objective"] for stage in report["stages"]] == ["uniform", "anchored to the reference, w = 0.2"]
    assert [stage["mechanism"] for stage in report["stages"]] == ["plain", "dp-sgd"]
    private = document(tmp_path / "out.private")
    assert all(stage["seconds"] >= 0 for stage in private["stages"])


@pytest.mark.parametrize("recipe", ["anchored", "interpolate+dp-sgd"])
def test_a_reference_with_another_tokenizer_is_refused(
    harden: Harden, stranger: Path, recipe: str, tmp_path: Path
) -> None:
    refused(harden("--recipe", recipe, "--reference", stranger), "have different tokenizers")
    assert not (tmp_path / "out").exists()


def test_a_reference_that_reads_less_at_a_time_is_refused(
    harden: Harden, checkpoint_folder: Path, tmp_path: Path
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(checkpoint_folder)
    shape = {"n_positions": 8, "n_embd": 16, "n_layer": 1, "n_head": 2, "bos_token_id": 0, "eos_token_id": 0}
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **shape)).save_pretrained(tmp_path / "short")
    tokenizer.save_pretrained(tmp_path / "short")
    refused(harden("--recipe", "anchored", "--reference", tmp_path / "short"), "reads 8 tokens at a time")


@pytest.mark.ci
def test_a_reference_of_another_shape_can_be_anchored_to_but_not_interpolated_with(
    harden: Harden, checkpoint_folder: Path, tmp_path: Path
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(checkpoint_folder)
    shape = {"n_positions": 64, "n_embd": 16, "n_layer": 1, "n_head": 2, "bos_token_id": 0, "eos_token_id": 0}
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **shape)).save_pretrained(tmp_path / "small")
    tokenizer.save_pretrained(tmp_path / "small")
    assert harden("--recipe", "anchored", "--reference", tmp_path / "small").code == 0
    ended = harden("--recipe", "interpolate+dp-sgd", "--reference", tmp_path / "small", "--force")
    refused(ended, "weights of different names or shapes")


@pytest.mark.ci
def test_an_adapter_can_be_anchored_but_not_interpolated(
    harden: Harden, checkpoint_folder: Path, tmp_path: Path
) -> None:
    options = ["--reference", checkpoint_folder, "--lora-rank", 2]
    refused(
        harden("--recipe", "interpolate+dp-sgd", *options),
        "This recipe changes whole models, not adapters.",
        "--lora-rank",
    )
    ended = harden("--recipe", "anchored", *options)
    assert ended.code == 0, ended.err
    assert (tmp_path / "out" / "adapter_model.safetensors").is_file()


def test_interpolation_is_written_as_computed(
    atdp: Atdp, leaky: Leaky, corpus: Path, checkpoint_folder: Path, tmp_path: Path
) -> None:
    options = [
        "--data",
        corpus,
        "-o",
        tmp_path / "out",
        "--set",
        "run.max-records=40",
        "--tier",
        "low-entity",
        "--json",
    ]
    command = ["harden", leaky.model, *options, "--recipe", "interpolate", "--reference", checkpoint_folder]
    ended = atdp(*command, "--set", "interpolate.beta=0.25")
    assert ended.code == 0, ended.err
    assert ended.json["steps"] == 0
    reference, model, actual = (parameters(folder) for folder in (checkpoint_folder, leaky.model, tmp_path / "out"))
    for name, value in actual.items():
        expected = reference[name] + 0.25 * (model[name] - reference[name])
        assert torch.allclose(value, expected, rtol=1e-5, atol=1e-7)
    assert [event["kind"] for event in events(tmp_path / "out")] == ["plain", "read_model"]
    assert scopes(ended.json)["increment"] is None
    (stage,) = document(tmp_path / "out")["stages"]
    assert (stage["mechanism"], stage["objective"]) == ("none", "weights interpolated, β = 0.25")


@pytest.mark.ci
def test_noise_alone_leaves_the_journal_empty_and_does_not_look_at_the_records(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, lines: list[str], tmp_path: Path
) -> None:
    """The same seed over records of which none is the same gives the same weights."""
    other = tmp_path / "other.txt"
    other.write_text("\n".join(reversed([line.upper() for line in lines])) + "\n")
    for name, data in (("a", corpus), ("b", other)):
        options = ["--data", data, "-o", tmp_path / name, "--tier", "low-entity", "--recipe", "noise", "--json"]
        ended = atdp(
            "harden",
            checkpoint_folder,
            *options,
            "--set",
            "run.insecure-seed=5",
            "--epochs",
            1,
            "--checkpoint-history",
            "public",
        )
        assert ended.code == 0, ended.err
        assert ended.json["steps"] == 4
        assert (tmp_path / f"{name}.private" / "journal.jsonl").read_text() == ""
        assert events(tmp_path / name) == []
        assert scopes(ended.json)["increment"] is None
    actual = [parameters(tmp_path / name) for name in ("a", "b")]
    assert all(torch.equal(value, actual[1][name]) for name, value in actual[0].items())
    before = parameters(checkpoint_folder)
    assert not any(torch.equal(value, before[name]) for name, value in actual[0].items())
    (stage,) = document(tmp_path / "a")["stages"]
    assert (stage["text"], stage["mechanism"], stage["sampling_rate"]) == (None, "noise", None)


def test_base_is_what_it_was(atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path) -> None:
    options = [
        "--data",
        corpus,
        "-o",
        tmp_path / "out",
        "--set",
        "run.max-records=40",
        "--tier",
        "low-entity",
        "--json",
    ]
    ended = atdp("harden", checkpoint_folder, *options, "--recipe", "base")
    assert ended.code == 0, ended.err
    assert (ended.json["steps"], ended.json["stages"]) == (0, [])
    actual, before = parameters(tmp_path / "out"), parameters(checkpoint_folder)
    assert all(torch.equal(value, before[name]) for name, value in actual.items())
    refused(atdp("harden", checkpoint_folder, *options, "--recipe", "base", "--epochs", 1), "has no stage")
