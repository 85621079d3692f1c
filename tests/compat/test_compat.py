"""What earlier commits wrote is read, and their interrupted runs are resumed, to the same figures.

Only command lines are used, so that no module's name matters. A folder for each commit that wrote; see README.md.
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.cli.app import run
from tests.compat import figures
from tests.compat.commands import (
    AGAIN,
    AUDIT,
    FIRST_STAGE,
    HARDEN,
    KILLED,
    LEDGERS,
    STOPPED,
    account,
    halved,
    words,
)

WRITTEN = sorted(path.parent for path in Path(__file__).parent.glob("*/expected.json"))

HERE = Path()

EXACT = 1e-9
"""Of ε and of what it is made of, absolute."""

ABOUT = 1e-3
"""Of perplexities, relative: another processor rounds otherwise."""

RELEASES_ANEW = {STOPPED}
"""Runs whose second stage begins with a release after the interruption. A seed's noise is another one since releases
draw it exactly, and so are the released share, the weight and what the stage trains; the first stage is the same."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document."""
        assert self.code == 0, self.err
        return json.loads(self.out)


Atdp = Callable[[Sequence[object]], Ended]


@pytest.fixture
def atdp(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Atdp:
    """Run one command line."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)

    def call(arguments: Sequence[object]) -> Ended:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Ended(code=code, out=captured.out, err=captured.err)

    return call


@pytest.fixture(params=WRITTEN, ids=lambda folder: folder.name)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of what a commit wrote, in a folder where it was not written."""
    return Path(shutil.copytree(request.param, tmp_path / "elsewhere"))


@pytest.fixture
def expected(place: Path) -> Any:
    """What the commit said of its files."""
    return json.loads((place / "expected.json").read_text(encoding="utf-8"))


def test_there_are_files_to_read() -> None:
    assert WRITTEN


@pytest.mark.parametrize("ledger", LEDGERS)
def test_a_ledger_is_read_and_has_the_same_epsilon(atdp: Atdp, place: Path, expected: Any, ledger: str) -> None:
    actual = figures.accounted(atdp(account(place, ledger)).json)
    assert not figures.differences(expected["account"][ledger], actual, absolute=EXACT)


def test_ledgers_are_put_together(atdp: Atdp, place: Path, expected: Any) -> None:
    actual = figures.accounted(atdp(account(place, *LEDGERS)).json)
    assert not figures.differences(expected["together"], actual, absolute=EXACT)


def test_a_changed_ledger_is_noticed(atdp: Atdp, place: Path) -> None:
    """Or the digest would not be looked at, and the tests above prove less."""
    ledger = place / LEDGERS[0]
    ledger.write_text(ledger.read_text(encoding="utf-8").replace('"steps": ', '"steps": 1', 1), encoding="utf-8")
    refused = atdp(account(place, LEDGERS[0]))
    assert refused.code == 2
    assert "digest" in refused.err


@pytest.mark.ci
def test_a_recipe_file_plans_the_same_run(atdp: Atdp, place: Path, expected: Any) -> None:
    actual = figures.planned(atdp(words(AGAIN, place)).json)
    assert not figures.differences(expected["plan"], actual, absolute=EXACT)


def test_manifest_and_baseline_are_read(
    atdp: Atdp, place: Path, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    audit = words(AUDIT, HERE)
    failed = atdp(audit)
    assert failed.code == 1, failed.err
    then = figures.audited(json.loads((place / "audit.json").read_text(encoding="utf-8")))
    assert not figures.differences(then, figures.audited(json.loads(failed.out)), absolute=EXACT)
    excused = figures.audited(atdp([*audit, "--baseline", "baseline.json"]).json)
    assert not figures.differences(expected["audit"], excused, absolute=EXACT)
    assert excused[0]["baseline"]["state"] == "known"


@pytest.mark.parametrize("folder", ["out", "out.private"])
def test_a_report_is_read(atdp: Atdp, place: Path, folder: str) -> None:
    written = json.loads((place / folder / "privacy_report.json").read_text(encoding="utf-8"))
    assert not figures.differences(written, atdp(["report", place / folder, "--json"]).json)
    public = written.get("public", written)
    assert len(public["audits"]) == 2
    for option in ("--html", "--markdown"):
        ended = atdp(["report", place / folder, option])
        assert ended.code == 0, ended.err
        assert all(" ".join(sentence.split()) in " ".join(ended.out.split()) for sentence in public["summary"].values())
    assert atdp(["report", place / folder, "--compare", place / "out"]).code == 0


def test_an_audit_is_put_into_the_reports(atdp: Atdp, place: Path) -> None:
    folders = (place / "out", place / "out.private")
    before = [atdp(["report", folder, "--json"]).json for folder in folders]
    assert atdp(["report", folders[0], "--audit", place / "audits.json"]).code == 0
    after = [atdp(["report", folder, "--json"]).json for folder in folders]
    for report in (*before, *after):
        public = report.get("public", report)
        assert public["summary"].pop("audit"), "a sentence, whose wording may improve"
        del public["release"], public["annex"]  # later versions have them, and fill them in with the audit
    assert not figures.differences(before, after, absolute=EXACT)


def test_a_run_that_is_over_is_known_to_be(atdp: Atdp, place: Path, expected: Any) -> None:
    files = {path: path.read_bytes() for path in place.glob("out*/*")}
    reported = atdp([*words(HARDEN, place), "--resume"]).json
    report = json.loads((place / "out.private" / "privacy_report.json").read_text(encoding="utf-8"))
    assert reported["steps"] == expected["plan"]["steps"]
    assert not figures.differences(report["perplexity"], reported["perplexity"])
    assert {path: path.read_bytes() for path in place.glob("out*/*")} == files


@pytest.mark.ci
@pytest.mark.parametrize("name", [pytest.param(STOPPED, marks=pytest.mark.deep), KILLED])
def test_an_interrupted_run_is_resumed(atdp: Atdp, place: Path, expected: Any, name: str) -> None:
    then = expected["resumed"][name]
    partial, out = place / f"{name}.partial", place / name
    run_before = json.loads((partial / "run.json").read_text(encoding="utf-8"))
    ended = atdp([*halved(place, name), "--resume"])
    assert ended.code == 0, ended.err
    assert not partial.exists()

    [gone_on] = figures.events(ended.err, "gone_on")
    first = figures.events(ended.err, "step_done")[0]
    assert gone_on == then["gone on"]
    assert gone_on["step"] > 0
    assert first["step"] == gone_on["step"] + 1, "it went on from its saved state"
    assert (first["stage"] == FIRST_STAGE) == (name == STOPPED)

    actual = figures.finished(out)
    if name in RELEASES_ANEW:
        released = actual.pop("released")
        assert [share is None for share, _ in released] == [share is None for share, _ in then["finished"]["released"]]
        assert all(share is None or 0 <= share <= 1 for share, _ in released)
        del then["finished"]["released"]
    assert not figures.differences(then["finished"], actual, absolute=EXACT)
    assert ended.json["steps"] == then["steps"] == sum(actual["steps in the plan"])
    spent = actual["steps in the plan"][-1] + gone_on["again"]
    assert actual["steps in the ledger"] == actual["steps in the journal"] == spent
    assert actual["repeated steps"] == gone_on["again"]
    assert (gone_on["again"] > 0) == (name == KILLED)
    assert actual["interruptions"] == run_before["sessions"]
    measured = [then["measured"], figures.measured(out)]
    if name in RELEASES_ANEW:
        measured = [
            {"before": measures["perplexity"]["before"], "first stage": measures["epochs"][0]} for measures in measured
        ]
    assert not figures.differences(*measured, relative=ABOUT)

    now = figures.accounted(atdp(account(place, name)).json)
    assert not figures.differences(then["finished"]["epsilon"], now["epsilon"], absolute=EXACT)


def test_another_run_is_not_resumed(atdp: Atdp, place: Path) -> None:
    """Or what a run was begun with would not be looked at."""
    refused = atdp([*halved(place, STOPPED), "--resume", "--learning-rate", "1e-3"])
    assert refused.code == 2
    assert "is from another run: its recipe has" in refused.err
