"""`--progress json`: what happens, a line of JSON each, on standard error."""

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
from atdp_cli.events import ChoiceWarning, EpochDone, Event, RecordsRead, StageStarted, StepDone
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
    "gone_on",
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


def test_the_names_of_events() -> None:
    assert len(Event.__subclasses__()) == len(NAMES)
    assert {kind.name for kind in Event.__subclasses__()} == NAMES


@pytest.mark.ci
def test_harden_tells_every_step_in_its_order(harden: Harden) -> None:
    asked = ("--recipe", "atdp", "--epochs", 2, "--json", *LOW)
    plain = harden(*asked, out="plain")
    reported = harden(*asked, "--progress", "json")
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


def test_detect_and_redact_tell_how_many_records(atdp: Atdp, corpus: Path, tmp_path: Path) -> None:
    plain = atdp("detect", corpus, *LOW)
    reported = atdp("detect", corpus, *LOW, "--progress", "json")
    assert reported.out == plain.out
    assert events(reported)[-1] == {
        "event": "records_read",
        "schema_version": 1,
        "task": "detect",
        "done": 200,
        "total": 200,
    }
    done = [event["done"] for event in events(reported)]
    assert done == sorted(set(done))
    redacted = atdp("redact", corpus, *LOW, "-o", tmp_path / "out.txt", "--progress", "json")
    assert (redacted.code, redacted.out) == (0, "")
    assert events(redacted)[-1]["done"] == 200


def test_an_audit_tells_how_many_nodes(atdp: Atdp, leaky: Leaky) -> None:
    plain = atdp("audit-canary", leaky.model, "--manifest", leaky.manifest)
    reported = atdp("audit-canary", leaky.model, "--manifest", leaky.manifest, "--progress", "json")
    assert (reported.code, reported.out) == (plain.code, plain.out) == (1, plain.out)
    scored = [event for event in events(reported) if event["event"] == "nodes_scored"]
    assert 0 < scored[-1]["done"] <= scored[-1]["total"]
    assert {event["model"] for event in scored} == {str(leaky.model)}
    as_json = atdp("audit-canary", leaky.model, "--manifest", leaky.manifest, "--progress", "json", "--json")
    assert as_json.json["models"][0]["verdict"] == "FAIL"
    assert events(as_json)


def test_errors_stay_in_plain_words(atdp: Atdp, corpus: Path, tmp_path: Path) -> None:
    ended = atdp("detect", tmp_path / "absent.txt", "--progress", "json")
    assert ended.code == 2
    *before, error = ended.err.splitlines()
    assert error.startswith("atdp: ")
    assert rows(before) == []
    contradiction = atdp("detect", corpus, "--progress", "json", "--quiet")
    assert contradiction.code == 2
    assert contradiction.err == "atdp: --quiet silences what --progress json writes. Leave one of them out.\n"
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


def test_what_waits_is_reported_before_what_follows_it() -> None:
    lines: list[str] = []
    reported = EventLines(lines.append, Clock())
    step = StepDone(stage="a", step=1, steps=9, noise_multiplier=math.inf, tokens=4)
    for event in (
        read(1),
        read(2),
        StageStarted(stage="a", steps=9),
        step,
        read(3),
        read(4),
        read(1),
        EpochDone(stage="a", epoch=1, epochs=1, all_tokens=math.nan, sensitive=None, other=2.5),
        ChoiceWarning(what="engine", reason="loop"),
    ):
        reported.tell(event)
    names = [(row["event"], row.get("done")) for row in rows(lines)]
    assert names == [
        ("records_read", 1),
        ("records_read", 2),
        ("stage_started", None),
        ("step_done", None),
        ("records_read", 4),
        ("records_read", 1),
        ("epoch_done", None),
        ("choice_warning", None),
    ]
    assert rows(lines)[3]["noise_multiplier"] == "inf"
    assert [rows(lines)[6][name] for name in ("all_tokens", "sensitive", "other")] == [None, None, 2.5]


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


def test_off_a_terminal_a_long_task_says_every_ten_seconds_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [100.0]
    monkeypatch.setattr("atdp_cli.cli.console.time.monotonic", lambda: clock[0])
    file = io.StringIO()
    bars = Bars(Console(file=file, width=80))
    for done in range(50, 101):
        bars.advance("scoring", done, 100)
        clock[0] += 0.5 if done < 60 else 2.0
    bars.advance("reading", 7, None)
    clock[0] += 11
    bars.advance("reading", 9, None)
    bars.stop()
    lines = file.getvalue().splitlines()
    assert lines[-1] == "reading: 9."
    assert lines[0] == "scoring: 63 of 100."
    assert [line.split()[1] for line in lines[:-1]] == [str(done) for done in range(63, 100, 5)]


def test_events_go_nowhere_where_standard_error_is_closed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    write_line("{}")
    assert capsys.readouterr().out == ""
