"""`atdp harden --rounds N`: what a round's result still knows is flagged in the next."""

import json
import random
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Atdp, Ended
from tests.cli.test_audit_corpus import PLACES, trained  # noqa: F401 - a fixture
from tests.small import WORDS, write_corpus

LITTLE = ("--recipe", "fitted-decoys", "--epochs", 1, "--learning-rate", 1e-7)
"""So little training that what the checkpoint knows stays."""


def rounds(atdp: Atdp, folder: Path, output: Path, *options: object) -> Ended:
    data = ("--data", folder / "corpus.txt", "--valid", folder / "held.txt", "--reference", folder / "base")
    return atdp(
        "harden", folder / "model", *data, "-o", output, "--threads", 1, "--insecure-seed", 1, "--no-store", *options
    )


def places(file: Path) -> set[int]:
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {number for number, row in enumerate(rows, start=1) if row["spans"]}


@pytest.mark.ci
def test_what_is_left_is_flagged_in_the_next_round(atdp: Atdp, trained: Path, tmp_path: Path) -> None:  # noqa: F811
    output, maps = tmp_path / "out", tmp_path / "out.maps.private"
    dice = random.Random(8)
    unread = [" ".join(dice.choices(WORDS, k=dice.randint(4, 9))) for _ in range(400)]
    data = ("--data", trained / "corpus.txt", "--valid", write_corpus(tmp_path / "unread.txt", unread))
    given = ("-o", output, "--threads", 1, "--insecure-seed", 1, "--no-store", "--rounds", 2, "--json")
    done = atdp("harden", trained / "model", *data, *LITTLE, *given)
    assert done.code == 0, done.err
    assert [each["round"] for each in done.json["rounds"]] == [1, 2]
    assert [each["held_out"] for each in done.json["rounds"]] == [200, 200]
    assert places(maps / "map-1.jsonl") >= set(PLACES)
    assert stat.S_IMODE(maps.stat().st_mode) == 0o700
    flagged = (tmp_path / "out.private" / "spans.jsonl").read_text(encoding="utf-8")
    assert "MEMORISED" in flagged
    assert "Round 1 of at most 2." in done.err
    report = json.loads((tmp_path / "out.private" / "privacy_report.json").read_text(encoding="utf-8"))
    assert [(each["of"], each["held_out"]) for each in report["maps"]] == [("after", 200)]
    assert report["maps"][0]["memorised"] == done.json["rounds"][1]["memorised"]
    assert not {each["scope"] for each in done.json["guarantees"]} & {"selective"}
    assert "482913" not in done.out + done.err

    (maps / "map-2.jsonl").unlink()
    resumed = atdp("harden", trained / "model", *data, *LITTLE, *given, "--resume")
    assert resumed.code == 0, resumed.err
    assert [each["round"] for each in resumed.json["rounds"]] == [2]
    assert "Round 1" not in resumed.err
    assert (maps / "map-2.jsonl").exists()

    again = atdp("harden", trained / "model", *data, *LITTLE, *given)
    assert again.code == 2
    assert "--force" in again.err

    fewer = atdp("harden", trained / "model", *data, *LITTLE, *given, "--rounds", 1, "--force")
    assert fewer.code == 0, fewer.err
    assert not (maps / "map-2.jsonl").exists(), "a later --resume would take it for its own"


@pytest.mark.ci
def test_rounds_end_where_nothing_is_found(atdp: Atdp, trained: Path, tmp_path: Path) -> None:  # noqa: F811
    """The base never saw the records, and little training teaches it nothing."""
    done = rounds(atdp, trained, tmp_path / "out", "--rounds", 3, "--epochs", 1, "--learning-rate", 1e-7, "--json")
    assert done.code == 0, done.err
    [only] = done.json["rounds"]
    assert (only["round"], only["memorised"], only["map"]) == (1, 0, None)
    assert not (tmp_path / "out.maps.private" / "map-1.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--max-records", 20), "--rounds and --max-records do not go together"),
        (("--data", Path(__file__)), "--rounds goes with one --data file"),
        (("--rounds", 0), "rounds"),
    ],
)
def test_what_cannot_be_mapped_is_refused_before_anything_runs(
    atdp: Atdp,
    trained: Path,  # noqa: F811
    tmp_path: Path,
    options: tuple[object, ...],
    line: str,
) -> None:
    done = rounds(atdp, trained, tmp_path / "out", "--rounds", 2, *options)
    assert done.code == 2
    assert line in done.err
    assert not (tmp_path / "out").exists()


def test_rounds_need_records_that_the_model_never_read(atdp: Atdp, trained: Path, tmp_path: Path) -> None:  # noqa: F811
    done = atdp("harden", trained / "model", "--data", trained / "corpus.txt", "--rounds", 2, "-o", tmp_path / "out")
    assert done.code == 2
    assert "--valid" in done.err
