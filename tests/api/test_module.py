"""What `atdp_cli` exports: functions that do what their commands do, and that import nothing before they are used."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import atdp_cli
from atdp_cli.errors import AtdpError, UsageError
from atdp_cli.events import Event, StepDone
from atdp_cli.hardening.request import HardenRequest
from atdp_cli.reporting.entries import GuaranteeEntry
from tests.cli.conftest import Atdp, atdp

__all__ = ["atdp"]

SHORT: dict[str, Any] = {"max_records": 60, "epochs": 1, "threads": 1}
NO_FLAGS = ("threads", "insecure_seed", "max_records", "store", "progress")
PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def line_of(model: Path, request: dict[str, Any]) -> list[object]:
    """The command line that says the same."""
    words: list[object] = [model]
    for name, value in request.items():
        key = name.replace("_", "-")
        for each in value if isinstance(value, list) else [value]:
            words += ["--set", f"run.{key}={each}"] if name in NO_FLAGS else [f"--{key}", each]
    return words


def test_all_that_is_exported_is_there_and_nothing_else_is_listed() -> None:
    assert dir(atdp_cli) == sorted(atdp_cli.__all__)
    assert all(getattr(atdp_cli, name).__doc__ for name in atdp_cli.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = atdp_cli.nothing


def test_importing_it_and_asking_for_a_request_loads_nothing_heavy() -> None:
    heavy = "{'torch', 'spacy', 'rich', 'typer'} & set(sys.modules)"
    code = f"import sys, atdp_cli; atdp_cli.HardenRequest; sys.exit(str({heavy}))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert ended.stderr == "set()\n"


def test_a_plan_is_what_the_command_prints(atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path) -> None:
    asked = SHORT | {"data": [corpus], "output": tmp_path / "out"}
    printed = atdp("harden", *line_of(checkpoint_folder, asked), "--dry-run", "--json").json
    planned = atdp_cli.plan(HardenRequest(model=checkpoint_folder, **asked)).model_dump(mode="json")
    for told in (printed, planned):
        del told["estimated_bytes"]
    assert planned == printed
    assert not (tmp_path / "out").exists()


def test_a_run_is_that_of_the_command(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = SHORT | {"data": [corpus], "recipe": "dp-sgd", "insecure_seed": 1, "tier": "low-entity"}
    printed = atdp("harden", *line_of(checkpoint_folder, asked | {"output": tmp_path / "told"}), "--json").json
    heard: list[Event] = []
    capfd.readouterr()
    result = atdp_cli.harden(
        HardenRequest(model=checkpoint_folder, output=tmp_path / "asked", **asked), notify=heard.append
    )
    assert capfd.readouterr() == ("", "")
    returned = result.model_dump(mode="json")
    for name in ("output", "seconds"):
        assert returned.pop(name) != printed.pop(name)
    assert returned == printed
    assert [event.step for event in heard if isinstance(event, StepDone)] == list(range(1, result.steps + 1))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("told", "asked")]
    assert weights[0] == weights[1]


def test_an_infinite_epsilon_is_a_float_here_and_a_word_in_json() -> None:
    whole = GuaranteeEntry(
        scope="end_to_end", epsilon=math.inf, delta=1e-6, adjacency="zero-out", accountant=None, assumptions=()
    )
    assert json.loads(whole.model_dump_json())["epsilon"] == whole.model_dump(mode="json")["epsilon"] == "inf"
    read = GuaranteeEntry.model_validate_json(whole.model_dump_json(), strict=True)
    assert (read, read.epsilon) == (whole, math.inf)


def test_a_failure_says_what_the_command_says(atdp: Atdp, checkpoint_folder: Path, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"data": [tmp_path / "gone.txt"]}
    told = atdp("harden", *line_of(checkpoint_folder, asked))
    with pytest.raises(AtdpError) as caught:
        atdp_cli.harden(HardenRequest(model=checkpoint_folder, **asked))
    assert told.err == f"atdp: {caught.value}\n"
    with pytest.raises(AtdpError, match="max-windows"):
        HardenRequest(model=checkpoint_folder, **asked, max_windows=0)


SENTENCES = ("Ada moved to Paris in 1843. " * 40, "Ada/moved/" * 500, "Ada moved\0to Paris")
REQUESTS: dict[str, Any] = {
    "HardenRequest": {"model": "m", "data": ["c.txt"], "output": "o", "spans": "s", "allow": ["a"], "reference": "r"},
    "DetectRequest": {"corpus": "c.txt", "output": "s.jsonl"},
    "RedactRequest": {"corpus": "c.txt", "output": "r.txt", "spans": "s.jsonl"},
    "DecoyRequest": {"corpus": "c.txt", "output": "d.txt"},
    "AuditRequest": {"models": ["m"], "manifest": "c.json", "reference": "r", "other_text": "t.txt"},
    "MapRequest": {"models": ["m"], "data": "c.txt", "eval_data": "e.txt"},
    "ReportRequest": {"folder": "m", "audit": "a.json"},
}


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_text_or_a_dataset_in_the_place_of_a_path_is_a_usage_error_that_quotes_nothing(request_: str) -> None:
    from datasets import Dataset, DatasetDict

    build, given = getattr(atdp_cli, request_), REQUESTS[request_]
    build(**given)
    rows = Dataset.from_dict({"text": ["Ada moved"]})
    for name, value in given.items():
        for wrong in (*SENTENCES, rows, DatasetDict({"train": rows}), {"text": ["Ada moved"]}):
            for placed in [[wrong], wrong] if isinstance(value, list) else [wrong]:
                with pytest.raises(UsageError) as caught:
                    build(**given | {name: placed})
                assert "Ada" not in str(caught.value)
                assert name.replace("_", "-") in str(caught.value).replace("_", "-")
                assert isinstance(wrong, str) or "to_json" in str(caught.value)


def test_a_comparison_takes_paths_alone() -> None:
    wrong: list[tuple[Any, Any]] = [(["m"], SENTENCES[0]), (["m"], {"train": []}), ([{"train": []}], "c.txt")]
    for models, data in wrong:
        with pytest.raises(AtdpError) as caught:
            atdp_cli.compare(models, data)
        assert "Ada" not in str(caught.value)


@pytest.mark.ci
def test_the_examples_of_the_page_run(
    checkpoint_folder: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(checkpoint_folder)
    (tmp_path / "corpus.txt").write_text("\n".join(corpus.read_text().splitlines()[:60]) + "\n")
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(example, names)  # noqa: S102 - the page is ours
    assert json.loads((tmp_path / "hardened" / "privacy_report.json").read_text())["recipe"] == "redacted+atdp"
