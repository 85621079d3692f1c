"""`--extra-spans`: places of a map are flagged beside what the detector finds, and no guarantee is made of them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import Harden
from tests.small import write_corpus

Places = dict[int, tuple[int, int]]


def write_map(path: Path, lines: Sequence[str], places: Places) -> Path:
    """A spans file with a place in some of the lines, numbered from 1."""
    rows = []
    for number in range(1, len(lines) + 1):
        spans = [
            {"start": start, "end": end, "label": "MEMORISED", "source": "map", "gain": 9.0}
            for line, (start, end) in places.items()
            if line == number
        ]
        rows.append(json.dumps({"id": str(number), "spans": spans}))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def mapped(lines: list[str], tmp_path: Path) -> Path:
    """A map with the word `said` of the second line."""
    start = lines[1].index("said")
    return write_map(tmp_path / "map.jsonl", lines, {2: (start, start + 4)})


def flagged(private: Path) -> list[list[tuple[int, int, str]]]:
    """By line, what the run flagged."""
    rows = map(json.loads, (private / "spans.jsonl").read_text(encoding="utf-8").splitlines())
    return [[(span["start"], span["end"], span["label"]) for span in row["spans"]] for row in rows]


@pytest.mark.ci
def test_the_places_are_flagged_and_nothing_else_changes(
    harden: Harden, mapped: Path, lines: list[str], tmp_path: Path
) -> None:
    options = ("--recipe", "decoys", "--epochs", 1, "--set", "run.store=none")
    assert harden(*options, out="without").code == 0
    done = harden(*options, "--extra-spans", mapped, out="with")
    assert done.code == 0, done.err
    before, after = (flagged(tmp_path / f"{name}.private") for name in ("without", "with"))
    start = lines[1].index("said")
    assert (start, start + 4, "MEMORISED") in after[1]
    assert [row for place, row in enumerate(before) if place != 1] == [
        row for place, row in enumerate(after) if place != 1
    ]
    assert set(before[1]) == set(after[1]) - {(start, start + 4, "MEMORISED")}


@pytest.mark.ci
def test_a_place_is_one_that_the_model_remembers_whatever_a_detector_calls_it(
    harden: Harden, mapped: Path, tmp_path: Path
) -> None:
    mapped.write_text(mapped.read_text(encoding="utf-8").replace("MEMORISED", "PERSON"), encoding="utf-8")
    done = harden("--recipe", "decoys", "--epochs", 1, "--set", "run.store=none", "--extra-spans", mapped)
    assert done.code == 0, done.err
    assert "MEMORISED" in {label for _, _, label in flagged(tmp_path / "out.private")[1]}


@pytest.mark.ci
def test_the_report_says_that_no_guarantee_for_flagged_characters_is_left(harden: Harden, mapped: Path) -> None:
    def scopes(*options: object) -> set[str]:
        done = harden("--recipe", "decoys", "--checkpoint-history", "public", "--dry-run", "--json", *options)
        assert done.code == 0, done.err
        return {each["scope"] for each in done.json["guarantees"]}

    assert "selective" in scopes()
    assert "selective" not in scopes("--extra-spans", mapped)


@pytest.mark.ci
def test_records_of_a_validation_file_stay_as_they_are(
    harden: Harden, mapped: Path, lines: list[str], tmp_path: Path
) -> None:
    valid = write_corpus(tmp_path / "valid.txt", lines[:9])
    done = harden(
        "--recipe", "decoys", "--epochs", 1, "--extra-spans", mapped, "--eval-data", valid, "--set", "run.store=none"
    )
    assert done.code == 0, done.err


@pytest.mark.parametrize("name", ["absent.jsonl", "short.jsonl"])
def test_files_of_another_corpus_are_refused(harden: Harden, mapped: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "short.jsonl").write_bytes(b"".join(mapped.read_bytes().splitlines(keepends=True)[:9]))
    done = harden("--set", "run.store=none", "--extra-spans", tmp_path / name)
    assert done.code == 2
    assert name in done.err
    assert not (tmp_path / "out").exists()


def test_a_map_of_one_file_does_not_go_with_two(harden: Harden, mapped: Path, tmp_path: Path) -> None:
    more = write_corpus(tmp_path / "more.txt", ["one more line", "and another"])
    done = harden("--data", more, "--extra-spans", mapped)
    assert done.code == 2
    assert "--extra-spans goes with one --data file" in done.err
