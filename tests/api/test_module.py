"""The API as a module: what it exports, what it loads, and what its keywords are."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import atdp_cli
from atdp_cli import api
from atdp_cli.api import detect, errors, harden
from atdp_cli.api.options import NUMBERS_AS_TEXT, keywords_of
from atdp_cli.cli.commands import load_command
from atdp_cli.training.settings import stage_options
from tests.cli.conftest import Atdp
from tests.keywords import FUNCTIONS

PACKAGE = Path(atdp_cli.__file__).parent
LOADED = "import atdp_cli.api, sys, json; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
HEAVY = {"torch", "transformers", "spacy", "pydantic", "numpy", "scipy", "rich", "typer", "jinja2", "opacus"}


def test_importing_it_loads_nothing_heavy() -> None:
    ended = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert not HEAVY & set(json.loads(ended.stdout))


def test_every_name_is_there_for_a_type_checker_and_at_run_time() -> None:
    """What a type checker reads as imported is what is looked up, and all of it is exported."""
    tree = ast.parse((PACKAGE / "api" / "__init__.py").read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    homes = {name.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for name in node.names}
    assert homes == api._LATE
    assert sorted(api.__all__) == dir(api)
    assert set(homes) < set(api.__all__)
    assert all(getattr(api, name) is not None for name in api.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'gone'"):
        api.gone  # noqa: B018


def test_the_package_has_its_types() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_every_error_of_the_api_is_exported() -> None:
    kinds = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and kind.__module__ == errors.__name__
    }
    rare = {"DivergedError", "ConformanceError", "LostRankError"}
    assert kinds - set(api.__all__) == rare
    assert all(issubclass(getattr(errors, name), api.RunError) for name in rare)


def test_options_that_are_read_as_text_take_numbers() -> None:
    pairs = {"jitter"}
    assert {name for name, option in stage_options().items() if option.type is str} == NUMBERS_AS_TEXT | pairs


@pytest.mark.parametrize("command", FUNCTIONS)
def test_a_keyword_is_called_as_its_option(command: str) -> None:
    """So `--max-windows-per-unit` is `max_windows_per_unit`, whatever its field is called."""
    keywords = [keyword for keyword, _, _ in keywords_of(load_command(command))]
    assert len(set(keywords)) == len(keywords)
    assert all(keyword.isidentifier() for keyword in keywords)


@pytest.mark.parametrize(
    ("call", "command"),
    [
        (lambda: detect("gone.txt"), "detect gone.txt"),
        (lambda: detect("gone.txt", entities="PERSN"), "detect gone.txt --entities PERSN"),
        (lambda: detect("gone.txt", min_confidence=2.5), "detect gone.txt --min-confidence 2.5"),
        (lambda: detect("gone.txt", shard="3/2"), "detect gone.txt --shard 3/2"),
        (lambda: detect("x" * 5000), "detect " + "x" * 5000),
        (lambda: harden("gone", "gone.txt"), "harden gone --data gone.txt"),
        (
            lambda: harden("gone", "gone.txt", auto=True, recipe="atdp"),
            "harden gone --data gone.txt --auto --recipe atdp",
        ),
        (lambda: harden("gone", "gone.txt", epochs=0), "harden gone --data gone.txt --epochs 0"),
        (
            lambda: harden("gone", "gone.txt", max_perplexity_increase="x"),
            "harden gone --data gone.txt --max-perplexity-increase x",
        ),
        (lambda: api.audit_canary("gone"), "audit-canary gone"),
        (lambda: api.audit_canary("gone", canary="My ID is 1234."), "audit-canary gone --canary My+ID+is+1234."),
        (lambda: api.audit_corpus("gone", "gone.txt"), "audit-corpus gone --data gone.txt"),
        (lambda: api.redact("gone.txt", output="o", spans="gone.jsonl"), "redact gone.txt -o o --spans gone.jsonl"),
    ],
)
def test_an_error_has_the_line_of_the_command(
    call: Any, command: str, atdp: Atdp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reported = atdp(*(word.replace("+", " ") if "My" in word else word for word in command.split()))
    with pytest.raises(errors.AtdpError) as raised:
        call()
    assert (f"atdp: {raised.value}\n", raised.value.exit_code) == (reported.err, reported.code)
