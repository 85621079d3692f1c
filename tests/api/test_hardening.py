"""`harden` and `plan` of the API: the command's weights, ledger, report and JSON, from folders and from memory."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from atdp_cli.api import DPSGD, Constant, Text, Train, Uniform, UsageError, errors, events, harden, plan
from atdp_cli.api.inputs import in_memory
from atdp_cli.privacy.ledger import read_ledger
from tests.cli.conftest import Atdp

STAGE = Train(
    name="mine",
    text=Text.RAW,
    objective=Uniform(),
    mechanism=DPSGD(schedule=Constant(noise_multiplier=1.5), expected_batch=30),
    epochs=1,
)
SAME: dict[str, Any] = {"insecure_seed": 1, "prior": "public", "threads": 1, "tier": "low-entity"}
FLAGS = ["--insecure-seed", 1, "--prior", "public", "--threads", 1, "--tier", "low-entity"]


def written(folder: Path) -> dict[str, Any]:
    """The report of a run without what differs between two of the same: times, paths and the command line."""
    report = json.loads((folder / "privacy_report.json").read_text(encoding="utf-8"))
    return {name: value for name, value in report.items() if name not in ("command", "created", "seconds", "version")}


@pytest.mark.ci
def test_weights_ledger_and_report_are_those_of_the_command(  # noqa: PLR0917 - fixtures
    checkpoint_folder: Path, corpus: Path, lines: list[str], loaded: Any, atdp: Atdp, tmp_path: Path, temporary: Path
) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'name = "custom"\n[[stage]]\nkind = "train"\nname = "mine"\ntext = "raw"\nepochs = 1\n'
        'objective = {kind = "uniform"}\n[stage.mechanism]\nkind = "dp-sgd"\nexpected_batch = 30\n'
        'schedule = {kind = "constant", noise_multiplier = 1.5}\n'
    )
    reported = atdp("harden", checkpoint_folder, "--data", corpus, "-o", theirs, "--recipe", recipe, "--json", *FLAGS)
    assert reported.code == 0
    model, tokenizer = loaded
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    heard: list[events.Event] = []
    made = harden(model, lines, tokenizer=tokenizer, recipe=[STAGE], output=ours, notify=heard.append, **SAME)

    assert (ours / "model.safetensors").read_bytes() == (theirs / "model.safetensors").read_bytes()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    changed = {"output": reported.json["output"], "seconds": reported.json["seconds"]}
    assert made.model_dump(mode="json") | changed == reported.json
    assert made.guarantees[0].scope == "end_to_end"
    assert made.guarantees[0].epsilon not in (None, "inf")
    first, second = (read_ledger(folder / "privacy_ledger.json") for folder in (theirs, ours))
    assert [event.model_copy(update={"run": None}) for event in first.events] == [
        event.model_copy(update={"run": None}) for event in second.events
    ]
    public, again = written(theirs), written(ours)
    assert {name for name in public if public[name] != again.get(name)} <= {"weights", "start", "stage_seconds"}
    assert {event.stage for event in heard if isinstance(event, events.StepDone)} == {"mine"}
    named = [path for path in tmp_path.rglob("*") if path.is_file() and str(temporary).encode() in path.read_bytes()]
    assert not named, "nothing that is written names the temporary folder"


@pytest.mark.ci
def test_a_plan_is_what_a_dry_run_prints(  # noqa: PLR0917 - fixtures
    checkpoint_folder: Path, corpus: Path, lines: list[str], loaded: Any, atdp: Atdp, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    data = ["--data", corpus, "-o", output, "--dry-run", "--json", "--recipe", "redacted+atdp", "--epochs", 2]
    reported = atdp("harden", checkpoint_folder, *data, *FLAGS).json
    asked: dict[str, Any] = {"recipe": "redacted+atdp", "epochs": 2, "output": output, **SAME}
    estimates = {name: reported[name] for name in ("estimated_seconds", "estimated_bytes")}
    planned = plan(checkpoint_folder, corpus, estimate=True, **asked)
    assert planned.estimated_seconds is not None
    assert planned.estimated_seconds > 0
    assert planned.model_dump(mode="json") | estimates == reported
    without = plan(checkpoint_folder, corpus, **asked)
    loaded_alone = {name: reported[name] for name in ("engine", "flagged", "advice")}
    assert without.model_dump(mode="json") | estimates | loaded_alone == reported
    assert without.engine is None
    assert without.estimated_seconds is None
    model, tokenizer = loaded
    assert plan(model, lines, tokenizer=tokenizer, **asked) == without
    notice = plan(model, lines, tokenizer=tokenizer, output=output).notice
    assert "trains model itself on decoys" in notice
    assert not output.exists()


def test_the_default_is_planned_as_the_command_plans_it(
    checkpoint_folder: Path, corpus: Path, atdp: Atdp, tmp_path: Path
) -> None:
    """The recipe that is chosen, its budget and its rate; every keyword that is None is one that is not given."""
    data = ["--data", corpus, "-o", tmp_path / "out", "--dry-run", "--json"]
    reported = atdp("harden", checkpoint_folder, *data).json
    planned = plan(checkpoint_folder, [corpus], output=tmp_path / "out", tier=None, recipe=None, epochs=None)
    assert (planned.recipe, planned.notice) == (reported["recipe"], reported["notice"])
    assert [stage.model_dump(mode="json") for stage in planned.stages] == reported["stages"]


PLANNING = """
import sys
from atdp_cli.api import plan
print(plan(sys.argv[1], sys.argv[2], recipe="atdp").steps > 0, "torch" in sys.modules, "spacy" in sys.modules)
"""


@pytest.mark.ci
def test_planning_loads_no_torch(checkpoint_folder: Path, corpus: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PLANNING, checkpoint_folder, corpus], capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["True", "False", "False"]


def test_number_or_word(checkpoint_folder: Path, corpus: Path) -> None:
    """An option with numbers and words takes both."""
    asked: dict[str, Any] = {"recipe": "atdp", "prior": "public"}
    given = plan(checkpoint_folder, corpus, weight=0.25, jitter="1,1", **asked)
    same = plan(checkpoint_folder, corpus, set=["atdp.weight=0.25", "atdp.jitter=1,1"], **asked)
    assert given == same
    assert "0.25" in given.stages[0].objective


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"output": None}, "A model in memory has no folder to write beside. Give output."),
        ({"tokenizer": None}, "A model in memory needs its tokenizer. Give tokenizer."),
        ({"lora_rank": 2}, "An adapter needs the folder of its base, and this model is in memory."),
        ({"recipe": "nope"}, "recipe 'nope' is not known."),
        ({"epochs": 0}, "epochs"),
        ({"reference": object()}, "reference cannot be saved"),
        ({"epoch": 3}, "harden has no keyword 'epoch'. Did you mean epochs?"),
        ({"dry_run": True}, "harden has no keyword 'dry_run'."),
    ],
)
def test_a_wrong_call_writes_nothing(  # noqa: PLR0917 - fixtures
    options: dict[str, Any], problem: str, loaded: Any, lines: list[str], tmp_path: Path, temporary: Path
) -> None:
    model, tokenizer = loaded
    asked: dict[str, Any] = {"tokenizer": tokenizer, "output": tmp_path / "out", "recipe": "no-dp"}
    with pytest.raises(errors.AtdpError) as raised:
        harden(model, lines, **asked | options)
    assert problem in str(raised.value)
    assert [path for path in tmp_path.iterdir() if path != temporary] == []


def test_an_adapter_in_memory_is_refused(loaded: Any, lines: list[str], tmp_path: Path) -> None:
    import copy

    from atdp_cli.model.adapter import add_adapter

    adapted = add_adapter(copy.deepcopy(loaded[0]), 2)
    with pytest.raises(UsageError, match="An adapter in memory has no folder of its base"):
        harden(adapted, lines, tokenizer=loaded[1], output=tmp_path / "out")


def test_a_merged_adapter_of_a_model_in_memory(loaded: Any, lines: list[str], tmp_path: Path) -> None:
    asked: dict[str, Any] = {"recipe": "no-dp", "epochs": 1, "lora_rank": 2, "max_records": 60, **SAME}
    made = harden(loaded[0], lines, tokenizer=loaded[1], output=tmp_path / "out", merge_adapter=True, **asked)
    assert (Path(made.output) / "model.safetensors").exists()


@pytest.mark.ci
def test_a_run_that_fails_halfway_leaves_no_temporary_file(loaded: Any, lines: list[str], tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(event: events.Event) -> None:
        if isinstance(event, events.StepDone):
            raise StopError

    threads = torch.get_num_threads()
    with pytest.raises(StopError):
        harden(loaded[0], lines, tokenizer=loaded[1], recipe=[STAGE], output=tmp_path / "out", notify=stop, **SAME)
    assert torch.get_num_threads() == threads
    made = harden(loaded[0], lines, tokenizer=loaded[1], recipe=[STAGE], output=tmp_path / "out", resume=True, **SAME)
    assert made.steps == 7, "and it can be resumed: what is in memory is known by its content"


def test_nothing_is_printed(loaded: Any, lines: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    capfd.readouterr()
    harden(loaded[0], lines[:60], tokenizer=loaded[1], recipe=[STAGE], output=tmp_path / "out", **SAME)
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_what_is_in_memory() -> None:
    assert not any(map(in_memory, (None, "path", Path("path"))))
    assert all(map(in_memory, ([], ("text",), object())))
