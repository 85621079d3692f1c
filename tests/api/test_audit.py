"""`audit_canary` and `audit_corpus` of the API: the command's JSON, for folders and for models in memory."""

import copy
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.api import InputError, UsageError, audit_canary, audit_corpus, events
from atdp_cli.audit_result import Audit
from tests.cli.conftest import Atdp, Leaky


@pytest.fixture(scope="session")
def remembering(leaky: Leaky) -> Any:
    """The model that remembers its canaries, in memory."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(leaky.model)


@pytest.mark.ci
def test_a_model_in_memory_is_audited_as_its_folder(
    leaky: Leaky, remembering: Any, loaded: Any, checkpoint_folder: Path, atdp: Atdp
) -> None:
    reported = atdp(
        *("audit-canary", leaky.model, "--manifest", leaky.manifest, "--reference", checkpoint_folder),
        *("--attacks", "extraction", "--samples", 50, "--json", "--device", "cpu"),
    )
    asked: dict[str, Any] = {"manifest": leaky.manifest, "attacks": "extraction", "samples": 50, "device": "cpu"}
    of_folder = audit_canary(leaky.model, reference=checkpoint_folder, **asked)
    assert of_folder.model_dump(mode="json") == reported.json
    actual = audit_canary(remembering, tokenizer=loaded[1], reference=loaded[0], **asked).models[0]
    [theirs] = of_folder.models
    assert isinstance(theirs, Audit)
    assert isinstance(actual, Audit)
    assert theirs.verdict == "FAIL"
    assert actual.model == "model"
    # It has no ledger beside it, which the folder has, so no claim of one to test.
    ledger = {"model", "weights", "epsilon", "group_epsilon", "reasons", "notices"}
    assert actual.model_dump(exclude=ledger) == theirs.model_dump(exclude=ledger)
    assert actual.weights["model.safetensors"] == theirs.weights["model.safetensors"]


def test_several_models_share_a_tokenizer_and_one_that_fails_is_told(
    leaky: Leaky, remembering: Any, loaded: Any, temporary: Path
) -> None:
    broken = copy.deepcopy(loaded[0])
    broken.transformer.ln_f.weight.data.fill_(float("nan"))
    heard: list[events.Event] = []
    audits = audit_canary(
        [remembering, broken, leaky.model],
        tokenizer=loaded[1],
        manifest=leaky.manifest,
        device="cpu",
        notify=heard.append,
    )
    assert [audit.verdict for audit in audits.models] == ["FAIL", "ERROR", "FAIL"]
    assert [audit.model for audit in audits.models] == ["model-1", "model-2", str(leaky.model)]
    assert audits.models[1].reasons[0].startswith("model-2: the weights of")
    assert {event.model for event in heard if isinstance(event, events.NodesScored)} == {"model-1", str(leaky.model)}
    with pytest.raises(InputError, match=r"^model: the weights of") as raised:
        audit_canary(broken, tokenizer=loaded[1], manifest=leaky.manifest)
    assert str(temporary) not in str(raised.value)


def test_files_for_ci_are_written_and_nothing_is_printed(
    leaky: Leaky, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    capfd.readouterr()
    audits = audit_canary(leaky.model, manifest=leaky.manifest, junit=tmp_path / "junit.xml", device="cpu")
    assert audits.models[0].verdict == "FAIL"
    assert "<failure" in (tmp_path / "junit.xml").read_text()
    assert capfd.readouterr() == ("", "")


@pytest.mark.ci
def test_a_map_is_that_of_the_command(  # noqa: PLR0917 - fixtures
    leaky: Leaky, remembering: Any, loaded: Any, atdp: Atdp, tmp_path: Path, lines: list[str]
) -> None:
    records = leaky.corpus.read_text(encoding="utf-8").splitlines()
    unread = [line.replace("said", "wrote") for line in lines]
    valid = tmp_path / "unread.txt"
    valid.write_text("\n".join(unread) + "\n")
    options = ["--data", leaky.corpus, "--valid", valid, "--max-memorised", 3, "--device", "cpu", "--no-store"]
    reported = atdp("audit-corpus", leaky.model, *options, "--json").json
    asked: dict[str, Any] = {"max_memorised": 3, "device": "cpu"}
    assert (
        audit_corpus(leaky.model, leaky.corpus, valid=valid, no_store=True, **asked).model_dump(mode="json") == reported
    )
    [actual] = audit_corpus(
        remembering, records, valid=unread, tokenizer=loaded[1], output=tmp_path / "map.jsonl", **asked
    ).models
    ours, [theirs] = actual.model_dump(mode="json"), reported["models"]
    assert theirs["memorised"] > 0
    assert actual.model == "model"
    assert {name for name in theirs if theirs[name] != ours[name]} <= {"model", "weights"}
    assert (tmp_path / "map.jsonl").read_text().count("\n") == len(records)


@pytest.mark.parametrize("name", ["html", "sarif"])
def test_a_file_about_the_corpus_needs_one(name: str, leaky: Leaky, tmp_path: Path) -> None:
    asked: dict[str, Any] = {name: tmp_path / "file"}
    with pytest.raises(UsageError, match=f"{name} is about the file of data, which is in memory"):
        audit_corpus(leaky.model, ["a"], valid=["b"], **asked)
