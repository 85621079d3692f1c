"""`atdp harden` from end to end on a small real checkpoint."""

import gzip
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import dp_accounting
import pytest
import torch
from dp_accounting.pld import PLDAccountant
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.cli.conftest import Atdp, Leaky

PRIVATE_FILES = {
    "corpus.key",
    "journal.jsonl",
    "privacy_report.html",
    "privacy_report.json",
    "run.json",
    "spans.jsonl",
    "trace.jsonl",
}
OUTPUT_FILES = {
    "README.md",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "privacy_ledger.json",
    "privacy_report.html",
    "privacy_report.json",
    "recipe.toml",
    "tokenizer.json",
    "tokenizer_config.json",
}


def pld(ledger: dict[str, Any]) -> float:
    """ε of a ledger file, by dp_accounting used directly."""
    accountant = PLDAccountant(value_discretization_interval=ledger["grid"])
    for event in ledger["events"]:
        accountant.compose(
            dp_accounting.PoissonSampledDpEvent(
                event["sampling_rate"], dp_accounting.GaussianDpEvent(event["noise_multiplier"])
            ),
            event["steps"],
        )
    return float(accountant.get_epsilon(ledger["delta"]))


def scopes(answer: dict[str, Any]) -> dict[str, Any]:
    return {entry["scope"]: entry["epsilon"] for entry in answer["guarantees"]}


def test_the_main_command(atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--data", corpus, "-o", out, "--recipe", "atdp", "--epochs", "2", "--json"]
    planned = atdp("harden", checkpoint_folder, *options, "--dry-run")
    assert planned.code == 0
    assert re.findall(r"^(\w[\w ]*?)  +\w", planned.err, re.MULTILINE)[:5] == [
        "protects",
        "does not protect",
        "ε",
        "cost",
        "next",
    ]
    assert not list(tmp_path.iterdir())
    ended = atdp("harden", checkpoint_folder, *options)
    assert ended.code == 0, ended.err
    answer = ended.json

    assert answer["guarantees"] == planned.json["guarantees"]
    assert answer["steps"] == planned.json["steps"] == 8
    assert scopes(answer)["end_to_end"] == "inf"
    ledger = json.loads((out / "privacy_ledger.json").read_text())
    assert scopes(answer)["increment"] == pytest.approx(pld(ledger), abs=1e-6)
    assert answer["output"] == str(out)
    assert answer["recipe"] == "atdp"
    for moment in ("before", "after"):
        assert all(math.isfinite(answer["perplexity"][moment][kind]) for kind in ("all", "sensitive", "other"))

    assert {path.name for path in out.iterdir()} == OUTPUT_FILES
    assert {path.name for path in tmp_path.iterdir()} == {"out", "out.private"}
    private = tmp_path / "out.private"
    assert private.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in private.iterdir()} == PRIVATE_FILES
    journal = [json.loads(line) for line in (private / "journal.jsonl").read_text().splitlines()]
    assert len(journal) == 8
    [stage] = json.loads((private / "privacy_report.json").read_text())["stages"]
    assert 0 < stage["sensitive_weight"] < 1
    report = json.loads((out / "privacy_report.json").read_text())
    assert "sensitive_weight" not in report["stages"][0]
    assert report["epsilon"]["without_amplification"] > report["epsilon"]["pld"]

    model = AutoModelForCausalLM.from_pretrained(out)
    tokenizer = AutoTokenizer.from_pretrained(out)
    tokens = tokenizer("the order", return_tensors="pt")
    written = model.generate(**tokens, max_new_tokens=5, do_sample=False, pad_token_id=0)
    assert written.shape[1] == tokens["input_ids"].shape[1] + 5
    before = AutoModelForCausalLM.from_pretrained(checkpoint_folder)
    assert not torch.equal(model.get_input_embeddings().weight, before.get_input_embeddings().weight)


def test_the_public_folder_tells_nothing_of_the_text(
    atdp: Atdp, checkpoint_folder: Path, lines: list[str], tmp_path: Path
) -> None:
    corpus = tmp_path / "xyzzyplugh.txt"
    corpus.write_text("\n".join(f"Zaphodbeeble {line}" for line in lines[:60]) + "\n")
    out = tmp_path / "out"
    ended = atdp("harden", checkpoint_folder, "--data", corpus, "-o", out, "--epochs", "1")
    assert ended.code == 0
    report = json.loads((tmp_path / "out.private" / "privacy_report.json").read_text())
    figures = [value for kind in report["perplexity"].values() for value in kind.values()]
    measured = [f"{value:.{digits}f}" for value in figures for digits in (2, 3, 4)] + [str(report["seconds"])]
    for path in out.iterdir():
        if path.suffix != ".safetensors":
            text = path.read_text()
            assert not any(secret in text for secret in ["Zaphodbeeble", "xyzzyplugh", *measured]), path.name
    assert "Zaphodbeeble" not in ended.err


@pytest.mark.ci
def test_a_hardened_model_brings_its_ledger_along(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    options = ["--data", corpus, "--epochs", "1", "--json"]
    first_report = atdp(
        "harden", checkpoint_folder, *options, "-o", first, "--recipe", "dp-sgd", "--checkpoint-history", "public"
    ).json
    assert scopes(first_report)["end_to_end"] == scopes(first_report)["increment"] < math.inf
    second_report = atdp("harden", first, *options, "-o", second, "--recipe", "atdp").json
    assert scopes(second_report)["end_to_end"] > scopes(first_report)["end_to_end"]
    events = [json.loads((path / "privacy_ledger.json").read_text())["events"] for path in (first, second)]
    assert events[1][0] == events[0][0]
    third_report = atdp("harden", second, *options, "-o", tmp_path / "third", "--recipe", "no-dp", "--dry-run").json
    assert scopes(third_report)["end_to_end"] == "inf"


@pytest.mark.ci
def test_the_same_insecure_seed_gives_the_same_weights_and_is_stamped(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        options = [
            "--data",
            corpus,
            "-o",
            tmp_path / name,
            "--epochs",
            "1",
            "--set",
            "run.insecure-seed=1",
            "--set",
            "run.threads=1",
        ]
        assert atdp("harden", checkpoint_folder, *options, "--recipe", "atdp").code == 0
    seals = [json.loads((tmp_path / name / "privacy_ledger.json").read_text())["seal"] for name in ("a", "b")]
    assert seals[0] == seals[1]
    report = json.loads((tmp_path / "a" / "privacy_report.json").read_text())
    assert "run.insecure-seed" in report["verdict"][-1]
    assert "insecure" in report["noise_source"]


@pytest.mark.ci
def test_spans_from_detect_take_the_detectors_place(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    spans = tmp_path / "spans.jsonl"
    assert atdp("detect", corpus, "-o", spans, "--tier", "low-entity").code == 0
    options = ["--data", corpus, "-o", tmp_path / "o", "--spans", spans, "--epochs", "1", "--set", "run.max-records=80"]
    ended = atdp("harden", checkpoint_folder, *options)
    assert ended.code == 0, ended.err
    assert (tmp_path / "o.private" / "spans.jsonl").read_text().splitlines() == spans.read_text().splitlines()[:80]
    assert json.loads((tmp_path / "o" / "privacy_report.json").read_text())["detector"]["pipeline"] is None


@pytest.mark.ci
def test_all_records_of_a_user_are_one_privacy_unit(
    atdp: Atdp, checkpoint_folder: Path, lines: list[str], tmp_path: Path
) -> None:
    """Ten users with twenty lines each: more than one window of 64 tokens a user."""
    corpus = tmp_path / "chats.jsonl.gz"
    rows = [json.dumps({"user": f"u{number % 10}", "text": line}) for number, line in enumerate(lines)]
    with gzip.open(corpus, "wt") as stream:
        stream.write("\n".join(rows))
    options = ["--data", corpus, "--privacy-unit", "user", "-o", tmp_path / "o", "--epochs", "2", "--json"]
    ended = atdp(
        "harden", checkpoint_folder, *options, "--recipe", "atdp", "--batch-size", "3", "--checkpoint-history", "public"
    )
    assert ended.code == 0, ended.err
    ledger = json.loads((tmp_path / "o" / "privacy_ledger.json").read_text())
    assert (ledger["unit"], ledger["records"]) == ("user", 9)
    assert {event["sampling_rate"] for event in ledger["events"]} == {3 / 9}
    assert "All text: ε = " in ended.err
    assert "for each user." in ended.err


@pytest.mark.ci
def test_the_dtype_is_kept_by_default(atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path) -> None:
    half = tmp_path / "half"
    model = AutoModelForCausalLM.from_pretrained(checkpoint_folder, dtype=torch.float16)
    model.save_pretrained(half)
    AutoTokenizer.from_pretrained(checkpoint_folder).save_pretrained(half)
    options = ["--data", corpus, "--set", "run.max-records=40", "--epochs", "1"]
    assert atdp("harden", half, *options, "-o", tmp_path / "kept").code == 0
    assert atdp("harden", half, *options, "-o", tmp_path / "told", "--set", "run.save-dtype=float32").code == 0
    for name, dtype in (("kept", torch.float16), ("told", torch.float32)):
        assert AutoModelForCausalLM.from_pretrained(tmp_path / name).dtype == dtype


@pytest.mark.ci
def test_a_manifest_whose_canaries_are_not_all_trained_on_is_refused(
    atdp: Atdp, checkpoint_folder: Path, leaky: Leaky, tmp_path: Path
) -> None:
    options = ["--data", leaky.corpus, "--manifest", leaky.manifest, "-o", tmp_path / "o", "--epochs", "1"]
    options += ["--recipe", "atdp"]
    cut = atdp("harden", checkpoint_folder, *options, "--set", "run.max-records=20")
    assert cut.code == 2
    assert "in no training record" in cut.err
    assert not (tmp_path / "o").exists()
    whole = atdp("harden", checkpoint_folder, *options)
    assert whole.code == 0, whole.err
    planted = json.loads((tmp_path / "o.private" / "privacy_report.json").read_text())["planted_canaries"]
    assert all(0 < count <= 10 for count in planted)
    assert f"{sum(planted)} of 100 repeats train" in whole.err


@pytest.mark.ci
def test_a_run_that_diverges_is_not_published(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    options = ["--data", corpus, "-o", tmp_path / "o", "--learning-rate", "1e6", "--epochs", "1", "--json"]
    ended = atdp("harden", checkpoint_folder, *options)
    assert ended.code == 3
    assert "finite" in ended.err
    assert ended.out == ""
    # What was saved before the step stays, for --resume.
    assert {path.name for path in tmp_path.iterdir()} <= {"o.partial"}


@pytest.mark.ci
def test_the_default_output_lies_beside_the_model(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Path(shutil.copytree(checkpoint_folder, tmp_path / "[bold]m"))
    (tmp_path / "link").symlink_to(model)
    monkeypatch.chdir(model)
    for named, expected in ((".", "[bold]m-hardened"), ("../link", "link-hardened"), (f"{model}/", "[bold]m-hardened")):
        ended = atdp("harden", named, "--data", corpus, "--dry-run", "--json")
        assert Path(ended.json["output"]).resolve() == tmp_path / expected
    ran = atdp("harden", ".", "--data", corpus, "--epochs", "1", "--set", "run.max-records=40")
    assert ran.code == 0, ran.err
    assert (tmp_path / "[bold]m-hardened" / "config.json").is_file()
    assert "[bold]m-hardened" in ran.err


def test_a_model_that_looks_ahead_is_refused(atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path) -> None:
    from transformers import BertConfig, BertForMaskedLM

    tokenizer = AutoTokenizer.from_pretrained(checkpoint_folder)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    torch.manual_seed(0)
    BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), initializer_range=0.5, **shape)).save_pretrained(
        tmp_path / "b"
    )
    tokenizer.save_pretrained(tmp_path / "b")
    ended = atdp("harden", tmp_path / "b", "--data", corpus, "-o", tmp_path / "o")
    assert ended.code == 2
    assert "looks at later tokens" in ended.err


@pytest.mark.ci
def test_nothing_is_overwritten_without_force(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = ["harden", checkpoint_folder, "--data", corpus, "-o", out, "--set", "run.max-records=40", "--epochs", "1"]
    assert atdp(*command).code == 0
    sealed = (out / "privacy_ledger.json").read_bytes()
    refused, planned = atdp(*command), atdp(*command, "--dry-run")
    assert refused.code == planned.code == 2
    assert "--force" in refused.err
    assert refused.err == planned.err
    assert (out / "privacy_ledger.json").read_bytes() == sealed
    assert atdp(*command, "--force").code == 0
    assert (out / "privacy_ledger.json").read_bytes() != sealed
    assert {path.name for path in tmp_path.iterdir()} == {"out", "out.private"}


@pytest.mark.parametrize("name", ["out", "out.private", "out.partial"])
def test_what_others_wrote_is_never_replaced(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").write_text("kept")
    ended = atdp("harden", checkpoint_folder, "--data", corpus, "-o", tmp_path / "out", "--force")
    assert ended.code == 2
    assert "not written by atdp" in ended.err
    assert (tmp_path / name / "thesis.txt").read_text() == "kept"
