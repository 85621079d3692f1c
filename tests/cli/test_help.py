"""Help that fits a screen, what a shell completes, what was perhaps meant, and no words of a library's in between."""

import contextlib
import io
import re
from collections.abc import Iterator

import pytest

from atdp_cli.cli.app import COMMANDS, load_command, make_command, run
from atdp_cli.cli.generate import command_groups
from atdp_cli.cli.help import MOST, has_short_help
from atdp_cli.corpus.spans import Tier
from atdp_cli.settings import declared, flags
from atdp_cli.training.recipe import RECIPES
from tests.transcripts import surroundings

SHORT = [name for name in COMMANDS if has_short_help(load_command(name))]


def said(*arguments: str, **settings: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    with surroundings(COLUMNS="80", **settings), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(arguments))
    return code, out.getvalue(), err.getvalue()


def shown(text: str) -> set[str]:
    """The long options that help has rows for."""
    return set(re.findall(r"^│[ *]{1,4}(--[a-z-]+)", text, flags=re.MULTILINE))


def declared_flags(name: str) -> set[str]:
    options = [each for group in command_groups(load_command(name)) for each in declared(group)]
    return {flags(field, option)[0] for field, _, option in options if option.flag and not option.argument}


@pytest.mark.parametrize("name", SHORT)
def test_the_short_help_has_the_main_options_and_counts_the_others(name: str) -> None:
    _, short, _ = said(name, "--help")
    _, whole, _ = said(name, "--help-all")
    everything = declared_flags(name) | {"--help", "--help-all"}
    assert shown(whole) == everything
    assert 5 <= len(shown(short)) <= MOST + 1
    more = len(everything - shown(short))
    assert short.rstrip().splitlines()[-1].strip() == f"{more} more options: atdp {name} --help-all"
    assert "more options" not in whole
    assert len(short.splitlines()) < 100


@pytest.mark.parametrize("name", COMMANDS)
def test_no_bracket_of_a_help_text_is_taken_for_markup(name: str) -> None:
    _, whole, _ = said(name, "--help-all" if name in SHORT else "--help")
    options = [each for group in command_groups(load_command(name)) for each in declared(group)]
    brackets = {
        mark
        for _, field, option in options
        if option.flag
        for mark in re.findall(r"\[[\w:.-]+\]", field.description or "")
    }
    assert {mark for mark in brackets if mark not in whole} == set()
    assert "\\[" not in whole
    if name == "redact":
        assert "[PERSON]" in brackets


def completed(line: str) -> set[str]:
    """What bash is offered at the end of a command line."""
    words = line.split(" ")
    protocol = {"_ATDP_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return set(said(**protocol)[1].split())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("atdp harden m --recipe ", set(RECIPES)),
        ("atdp harden m --recipe redacted+at", {"redacted+atdp"}),
        ("atdp account --recipe no", {"no-dp", "noise"}),
        ("atdp harden m --tier ", set(Tier)),
        ("atdp detect c --tier high-e", {"high-entity"}),
        ("atdp detect c --entities PERS", {"PERSON"}),
        ("atdp redact c --entities PERSON,PHO", {"PERSON,PHONE"}),
        ("atdp audit-canary m --fail-on ranks,ex", {"ranks,extraction"}),
        ("atdp harden m --max-eps", {"--max-epsilon"}),
        ("atdp aud", {"audit-canary", "audit-corpus"}),
    ],
)
def test_a_shell_completes_names_and_all_options(line: str, expected: set[str]) -> None:
    assert completed(line) == expected


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("hardn m", "Did you mean 'harden'?"),
        ("audit m", "Did you mean audit-canary or audit-corpus?"),
        ("plant c", "Did you mean plant-canary?"),
        (
            "harden HuggingFaceTB/SmolLM2-135M --data c",
            "hf download HuggingFaceTB/SmolLM2-135M --local-dir Smol",
        ),
        ("harden m --teir low-entity", "Did you mean --tier or"),
        ("harden m --data c --set run.max-window=3", "Did you mean max-windows"),
        ("account --recipe redacted --records 9 --set no-dp.epochs=2", "Its only stage is redacted."),
        ("account --recipe base --records 9 --set no-dp.epochs=2", "The recipe has no stage."),
    ],
)
def test_what_was_perhaps_meant_is_named(line: str, hint: str) -> None:
    code, _, error = said(*line.split())
    assert code == 2
    assert hint in error


def options_with_values() -> Iterator[tuple[str, str]]:
    for name in COMMANDS:
        for parameter in make_command(name).params:
            if parameter.param_type_name == "option" and not getattr(parameter, "is_flag", False):
                yield name, max(parameter.opts, key=len)


@pytest.mark.parametrize("value", ["x!", pytest.param("-1", marks=pytest.mark.ci)])
def test_a_bad_value_of_any_option_is_one_line_without_a_library_s_words(value: str) -> None:
    wrong = {}
    for name, option in options_with_values():
        code, _, error = said(name, "absent", option, value)
        foreign = any(words in error for words in ("Value error", "Input should be", "pydantic", "ValidationError"))
        if code != 2 or len(error.splitlines()) != 1 or foreign:
            wrong[f"{name} {option}"] = (code, error)
    assert not wrong
