"""Negative, zero, endless and no numbers for every option of every command that takes one."""

import inspect
import shutil
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.models import OptionInfo

from atdp_cli.cli.app import COMMANDS, load_command
from atdp_cli.cli.generate import generate_options, option_groups
from atdp_cli.settings import declared, flags
from atdp_cli.training.stage_options import SETTINGS
from tests.cli.badinput.case import SECRET, line
from tests.cli.conftest import Atdp

BARE = line("harden model --data corpus.txt -o out --dry-run --spans spans.jsonl -q")
HARDEN = (*BARE, "--recipe", "atdp")
UNREAD = line("harden model --data corpus.txt -o out --dry-run --set run.store=none")
RECIPE = line("account --recipe atdp --records 900")

BASES = {
    "harden": HARDEN,
    "detect": line("detect corpus.txt --set run.store=none --review queue.jsonl --force"),
    "redact": line("redact corpus.txt --set run.store=none -o redacted.txt --force"),
    "decoy": line("decoy corpus.txt --spans spans.jsonl -o decoyed --force"),
    "plant-canary": line("plant-canary corpus.txt -o planted.txt --manifest canaries.json --tokenizer model --force"),
    "audit-canary": ("audit-canary", "model", "--canary", "My ID is 49"),
    "audit-corpus": line("audit-corpus model --data corpus.txt --eval-data held-out.txt --set run.store=none"),
    "account": line("account --sampling-probability 0.1 --noise-multiplier 1 --steps 9"),
}
"""A command line that is right, and whose numbers are then replaced."""

ITS_OWN = {
    ("account", "epochs"): RECIPE,
    ("account", "batch_size"): RECIPE,
    ("account", "records"): RECIPE,
    ("account", "target_epsilon"): line(
        "account --sampling-probability 0.1 --steps 9 --solve noise --target-epsilon 2"
    ),
    ("harden", "review_share"): (
        *line("harden model --data corpus.txt -o out --dry-run --set run.store=none"),
        "--review-each-epoch",
    ),
    ("harden", "workers"): UNREAD,
    ("harden", "target_share"): (*HARDEN, "--set", "run.unflagged-weight=record"),
}
"""Those for options that go with others."""

BOTH = ("epochs", "batch_size", "learning_rate", "target_epsilon")
"""Those of harden that stages with and without noise have, tried on the default recipe too."""

NUMBERS_AS_TEXT = {"unflagged_weight", "jitter", "max_batch_tokens", "max_memorised"}
SIGNED = {"jitter_seed", "insecure_seed"}
"""Seeds: every whole number is one."""

HUGE = "9" * 400
VALUES = ("-1", "nan", "inf", "-inf", "1e308", HUGE, "0", "1e-320")
ENDED = {command: {0, 1, 2, 4} for command in ("audit-canary", "audit-corpus")}
"""Exit codes of a command that finished, or refused the number; 0 and 2 for the others."""

SECONDS = 10.0


def numeric(annotation: Any) -> bool:
    """Whether an option takes a whole number or a float, alone or one of several types."""
    return annotation in (int, float) or any(numeric(part) for part in get_args(annotation) if part is not bool)


def options() -> Iterator[tuple[str, str, str]]:
    """Each option that takes a number: its command, its name in the code and on the command line."""
    for command in COMMANDS:
        for parameter in inspect.signature(generate_options(load_command(command))).parameters.values():
            kind, *about = get_args(parameter.annotation) or (parameter.annotation,)
            if numeric(kind) or parameter.name in NUMBERS_AS_TEXT:
                named = [
                    name for option in about if isinstance(option, OptionInfo) for name in option.param_decls or ()
                ]
                yield command, parameter.name, next(iter(named), "--" + parameter.name.replace("_", "-"))
        for group in option_groups(load_command(command)).values():
            for name, field, option in declared(group):
                if not option.flag and (numeric(field.annotation) or name in NUMBERS_AS_TEXT):
                    yield command, name, f"--set={flags(name, option)[0]}"


OPTIONS = tuple(options())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, checkpoint_folder: Path, lines: list[str]) -> Path:
    """A folder with a model, a corpus that holds the secret, and its spans."""
    folder = tmp_path_factory.mktemp("numbers")
    shutil.copytree(checkpoint_folder, folder / "model")
    (folder / "corpus.txt").write_text("".join(f"{SECRET} {line}\n" for line in lines[:40]))
    (folder / "held-out.txt").write_text("".join(f"{line}\n" for line in lines[40:80]))
    (folder / "spans.jsonl").write_text("".join(f'{{"id": "{at}", "spans": []}}\n' for at in range(1, 41)))
    return folder


def reported(atdp: Atdp, command: tuple[str, ...], value: str) -> int:
    """How the command ended, having ended as a command should."""
    began = time.process_time()
    ended = atdp(*command)
    assert time.process_time() - began < SECONDS, (command, value)
    assert ended.code in ENDED.get(command[0], {0, 2}), (command, value, ended.err)
    assert "Traceback" not in ended.err
    if ended.code == 2:
        assert ended.out == ""
        *first, last = ended.err.splitlines()
        assert last.startswith("atdp: ")
        # What an audit says it will do comes before torch is loaded, and the number of threads is torch's matter.
        assert all(line.startswith(("Auditing ", "Mapping ")) for line in first), ended.err
        assert len(first) < 2, ended.err
        assert SECRET not in ended.err
    return ended.code


def test_every_command_with_numbers_is_swept() -> None:
    assert {command for command, *_ in OPTIONS} == set(BASES)
    assert {name for _, name, _ in OPTIONS} >= {
        "epochs",
        "delta",
        "alpha",
        "count",
        "workers",
        "steps",
        *NUMBERS_AS_TEXT,
    }


@pytest.mark.parametrize("command", [*BASES.values(), *ITS_OWN.values(), BARE], ids=" ".join)
def test_without_a_number_the_command_line_is_right(
    command: tuple[str, ...], place: Path, atdp: Atdp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the sweep would test nothing: whatever the number, the line would be refused."""
    monkeypatch.chdir(place)
    ended = atdp(*command)
    assert ended.code in ENDED.get(command[0], {0}) - {2}, ended.err


@pytest.mark.one_in(14)
@pytest.mark.parametrize("option", OPTIONS, ids=" ".join)
def test_an_option_takes_or_refuses_every_number(
    option: tuple[str, str, str], place: Path, atdp: Atdp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    command, name, said = option
    bases = [ITS_OWN.get((command, name), BASES[command])]
    if command == "harden" and name in BOTH:
        bases.append(BARE)
    for base, value in product(bases, VALUES):
        code = reported(atdp, (*base, f"{said}={value}"), value)
        if value in ("-1", "nan", "inf", "-inf") and name not in SIGNED:
            assert code == 2, value
    assert not list(place.glob("out*"))


@pytest.mark.one_in(6)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_of_a_stage_takes_or_refuses_every_number(
    setting: str, place: Path, atdp: Atdp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    for value in VALUES:
        reported(atdp, (*HARDEN, "--set", f"atdp.{setting}={value}"), value)
    assert not list(place.glob("out*"))
