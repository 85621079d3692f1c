"""What the commands print for people is what tests/golden holds, and every screen keeps the same few laws."""

import re
from functools import cache
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.transcripts import GOLDEN, SCREENS, WIDTH, Said, as_text, golden_path, make_place, transcript

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
UNWRAPPED = re.compile(
    r"atdp: |Auditing |\{|(PASS|FAIL|INCONCLUSIVE|ERROR) |Output: |Report: "
    r"|Keep private: |Records redacted into |Canaries: |Sentences to review: |  atdp "
)
"""How lines begin that a program reads, or that hold a path or a command to copy: no width breaks them."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the command lines name."""
    folder = tmp_path_factory.mktemp("place")
    make_place(folder)
    return folder


@cache
def seen(place: Path, name: str) -> tuple[Said, ...]:
    """A screen as it goes into a pipe."""
    return transcript(name, place)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_as_its_golden_file_and_keeps_the_laws(place: Path, name: str) -> None:
    said = seen(place, name)
    assert as_text(said) == golden_path(name).read_text(encoding="utf-8"), "run `make generated`, and look at it"
    assert "\x1b" not in as_text(said)
    lines = [line for answer in said for text in (answer.out, answer.err) for line in text.splitlines()]
    assert not [line for line in lines if cell_len(line) > WIDTH and not UNWRAPPED.match(line)], "too wide"
    assert not [line for line in lines if re.search(r"\w…", line) and not re.search(r"\d…", line)], "cut off"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", SCREENS)
def test_colour_adds_escape_codes_and_nothing_else(place: Path, name: str) -> None:
    coloured = as_text(transcript(name, place, FORCE_COLOR="1"))
    assert ESCAPE.sub("", coloured) == as_text(seen(place, name))


def test_there_is_colour_where_it_is_forced_and_none_in_a_pipe(place: Path) -> None:
    assert ESCAPE.search(as_text(transcript("recipes", place, FORCE_COLOR="1")))
    assert transcript("recipes", place, NO_COLOR="1") == seen(place, "recipes")


def test_there_is_no_golden_file_too_many() -> None:
    assert set(GOLDEN.iterdir()) == set(map(golden_path, SCREENS))
