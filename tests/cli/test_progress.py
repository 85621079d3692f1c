"""`--set run.progress=json`: what happens, a line of JSON each, on standard error."""

import io
import json
import math
import sys
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from atdp_cli.cli.console import Bars
from atdp_cli.cli.json_lines import EventLines, event_line, write_line
from atdp_cli.events import Event, RecordsRead
from tests.cli.conftest import Atdp, Ended, Harden, Leaky

LOW = ["--tier", "low-entity"]
NAMES = {
    "records_read",
    "stage_started",
    "step_done",
    "epoch_done",
    "epoch_restored",
    "trial_done",
    "learning_rate_chosen",
    "nodes_scored",
    "cross_checked",
    "choice_warning",
    "review_queued",
    "state_saved",
    "resumed",
    "already_finished",
}


def events(ended: Ended) -> list[dict[str, Any]]:
    """Every line of standard error, which must all be events."""
    return [json.loads(line) for line in ended.err.splitlines()]


def rows(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


@pytest.mark.ci
@given(st.one_of(*(st.builds(kind) for kind in Event.__subclasses__())))
def test_every_event_is_one_line_of_valid_json(event: Event) -> None:
    def never(constant: str) -> None:
        pytest.fail(f"{constant} is no JSON")

    line = event_line(event)
    assert line.isascii()
    assert len(line.splitlines()) == 1
    actual = json.loads(line, parse_constant=never)
    assert actual.pop("event") in NAMES
    assert actual.pop("schema_version") == 1
    assert set(actual) == {field.name for field in fields(event)}
    for name, value in actual.items():
        was = getattr(event, name)
        if isinstance(was, float) and not math.isfinite(was):
            assert value == (None if math.isnan(was) else "inf")
        else:
            assert value == was


@pytest.mark.ci
def test_harden_tells_every_step_in_its_order(harden: Harden) -> None:
    asked = ("--recipe", "atdp", "--epochs", 2, "--json", *LOW)
    plain = harden(*asked, out="plain")
    reported = harden(*asked, "--set", "run.progress=json")
    assert (plain.code, reported.code) == (0, 0)
    for answer in (plain.json, reported.json):
        assert set(answer) == set(plain.json)
        assert answer["guarantees"] == plain.json["guarantees"]
        assert answer["perplexity"] == plain.json["perplexity"]
    actual = [event for event in events(reported) if event["event"] != "records_read"]
    started, steps = actual[0], [event for event in actual if event["event"] == "step_done"]
    ends = [at for at, event in enumerate(actual) if event["event"] == "epoch_done"]
    assert started == {"event": "stage_started", "schema_version": 1, "stage": "atdp", "steps": 8}
    assert all(earlier["step"] < later["step"] for earlier, later in pairwise(steps))
    assert {step["steps"] for step in steps} == {reported.json["steps"]} == {8}
    assert [(actual[at]["epoch"], actual[at - 1]["step"]) for at in ends] == [(1, 4), (2, 8)]
    assert actual[ends[-1]]["all_tokens"] == pytest.approx(reported.json["perplexity"]["after"]["all"], rel=1e-3)


def test_an_audit_tells_how_many_nodes(atdp: Atdp, leaky: Leaky) -> None:
    plain = atdp("audit-canary", leaky.model, "--manifest", leaky.manifest)
    reported = atdp("audit-canary", leaky.model, "--manifest", leaky.manifest, "--set", "run.progress=json")
    assert (reported.code, reported.out) == (plain.code, plain.out) == (1, plain.out)
    scored = [event for event in events(reported) if event["event"] == "nodes_scored"]
    assert 0 < scored[-1]["done"] <= scored[-1]["total"]
    assert {event["model"] for event in scored} == {str(leaky.model)}
    as_json = atdp("audit-canary", leaky.model, "--manifest", leaky.manifest, "--set", "run.progress=json", "--json")
    assert as_json.json["models"][0]["verdict"] == "FAIL"
    assert events(as_json)


def test_errors_stay_in_plain_words(atdp: Atdp, corpus: Path, tmp_path: Path) -> None:
    ended = atdp("detect", tmp_path / "absent.txt", "--set", "run.progress=json")
    assert ended.code == 2
    *before, error = ended.err.splitlines()
    assert error.startswith("atdp: ")
    assert rows(before) == []
    contradiction = atdp("detect", corpus, "--set", "run.progress=json", "--quiet")
    assert contradiction.code == 2
    assert contradiction.err == "atdp: --quiet silences what run.progress=json writes. Leave one of them out.\n"
    assert contradiction.out == ""


def read(done: int, total: int | None = None) -> RecordsRead:
    return RecordsRead(task="detect", done=done, total=total)


class Clock:
    """A clock that stands at `now`."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_count_is_reported_ten_times_a_second_and_its_last_always() -> None:
    lines: list[str] = []
    clock = Clock()
    reported = EventLines(lines.append, clock)
    for done in range(1, 1001):
        clock.now = done / 1000
        reported.tell(read(done, 1000))
    assert 10 <= len(lines) <= 12
    assert [rows(lines)[at]["done"] for at in (0, -1)] == [1, 1000]
    reported.flush()
    assert rows(lines)[-1]["done"] == 1000


def test_bars_are_drawn_on_a_terminal_and_on_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def drawn(file: io.StringIO) -> str:
        bars = Bars(Console(file=file))
        bars.advance("detect", 3, 3)
        bars.stop()
        return file.getvalue()

    assert drawn(io.StringIO()) == ""
    assert "3/3" in drawn(Terminal())


def test_events_go_nowhere_where_standard_error_is_closed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    write_line("{}")
    assert capsys.readouterr().out == ""
