"""What the commands print for people is what tests/golden holds, and every screen keeps the same few laws."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.transcripts import GOLDEN, SCREENS, WIDTHS, Said, as_text, golden_path, make_place, surroundings, transcript

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
UNWRAPPED = re.compile(
    r"atdp: |Auditing |\{|(PASS|FAIL|INCONCLUSIVE|ERROR) |Output: |Report: "
    r"|Keep private: |Records redacted into |Canaries: |Sentences to review: |  atdp "
)
"""How lines begin that a program reads, or that hold a path or a command to copy: no width breaks them."""
CODES = {0, 1, 2, 3, 4, 130}
Screen = tuple[str, int]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the command lines name."""
    folder = tmp_path_factory.mktemp("place")
    make_place(folder)
    return folder


@cache
def seen(place: Path, name: str, width: int) -> tuple[Said, ...]:
    """A screen as it goes into a pipe."""
    return transcript(name, place, COLUMNS=str(width))


def lines(said: tuple[Said, ...]) -> list[str]:
    return [line for answer in said for text in (answer.out, answer.err) for line in text.splitlines()]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_as_its_golden_file_and_keeps_the_laws(place: Path, name: str, width: int) -> None:
    said = seen(place, name, width)
    assert as_text(said) == golden_path(name, width).read_text(encoding="utf-8"), "run `make generated`, and look at it"
    assert "\x1b" not in as_text(said)
    too_wide = [line for line in lines(said) if cell_len(line) > width and not UNWRAPPED.match(line)]
    assert not too_wide
    assert not [line for line in lines(said) if re.search(r"\w…", line) and not re.search(r"\d…", line)], "cut off"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", SCREENS)
def test_spaces_at_a_line_s_end_are_where_text_was_wrapped_or_a_block_was_filled_up(place: Path, name: str) -> None:
    for answer in seen(place, name, 80):
        for text in (answer.out, answer.err):
            rows = ["", *text.splitlines(), ""]
            for before, row, after in zip(rows, rows[1:], rows[2:], strict=False):
                if row != row.rstrip() and row != "> ":
                    wrapped = row.rstrip() + " " == row and after.strip() and cell_len(row + after.split()[0]) > 80
                    filled = cell_len(row) in (cell_len(before), cell_len(after), 80)
                    assert wrapped or filled, row


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", SCREENS)
def test_colour_adds_escape_codes_and_nothing_else(place: Path, name: str) -> None:
    coloured = as_text(transcript(name, place, COLUMNS="80", FORCE_COLOR="1"))
    assert ESCAPE.sub("", coloured) == as_text(seen(place, name, 80))


def test_some_screens_have_colour_where_it_is_forced(place: Path) -> None:
    assert ESCAPE.search(as_text(transcript("help", place, COLUMNS="80", FORCE_COLOR="1")))


@pytest.mark.parametrize("name", ["help", "recipes", "audit-canary"])
def test_no_color_changes_nothing_in_a_pipe(place: Path, name: str) -> None:
    assert transcript(name, place, COLUMNS="80", NO_COLOR="1") == seen(place, name, 80)


def test_every_exit_code_is_shown(place: Path) -> None:
    assert {answer.code for name in ("errors", "help") for answer in seen(place, name, 80)} == CODES


def test_a_golden_file_is_what_a_real_pipe_gets() -> None:
    code = "import sys; from atdp_cli.cli.app import run; sys.exit(run(sys.argv[1:]))"
    with surroundings(COLUMNS="80"):
        ran = subprocess.run([sys.executable, "-c", code, "harden", "--list-recipes"], capture_output=True, check=True)
    assert f"$ atdp harden --list-recipes\n{ran.stdout.decode()}" == golden_path("recipes", 80).read_text("utf-8")
    assert ran.stderr == b""


def test_there_is_no_golden_file_too_many() -> None:
    assert set(GOLDEN.iterdir()) == {golden_path(name, width) for name in SCREENS for width in WIDTHS}
