"""What comes from files, their names or users reaches no terminal, no CI log and no side file raw."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from atdp_cli.cli.app import run
from atdp_cli.cli.console import PlainConsole, progress
from atdp_cli.cli.json_lines import ProgressOption, event_line
from atdp_cli.events import ChoiceWarning, Event, NodesScored, RecordsRead, ReviewQueued, StageStarted
from atdp_cli.privacy.ledger import LEDGER_FILE, write_ledger
from tests.cli.conftest import Atdp, atdp
from tests.privacy.ledgers import ledger, steps

__all__ = ["atdp"]

PAYLOADS = {
    "escape": "\x1b[31mPASS\x1b[0m",
    "clear": "\x1b[2J\x1b[H",
    "link": "\x1b]8;;https://evil.example\x1b\\PASS\x1b]8;;\x1b\\",
    "title": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;cm0=\x07",
    "return": "FAIL\rPASS",
    "bell": "a\x07b",
    "backspace": "FAIL\b\b\b\bPASS",
    "c1": "\x9b31mPASS",
    "c1 string": "\x9d0;owned\x9c",
    "delete": "a\x7fb",
    "override": "\u202eSSAP",
    "isolate": "\u2066a\u2069",
    "mark": "\u200fa",
    "separator": "a\u2028::error::b",
    "next line": "a\x85::error::b",
    "github": "a\n::error::owned",
    "indented": "a\n   ::error file=x::owned",
    "mask": "a\n::add-mask::PASS",
    "wrapped": "a" * 79 + " ::error::owned",
    "folded": "a" * 80 + "::error::owned",
    "old github": "##[error]owned",
    "azure": "##vso[task.complete result=Succeeded;]",
    "markup": "[red]PASS[/red]",
    "closing": "[/]",
    "emoji": ":skull:",
    "tab": "a\tb",
    "surrogate": "a\udcffb",
}
"""Texts that would do something, were they written as they are."""

NAMES = {name: text for name, text in PAYLOADS.items() if len(text.encode("utf-8", "surrogateescape")) < 200}

OURS = re.compile(r"\x1b\[[0-9;]*m")
"""Colour, which Rich writes; the payloads' own is searched for before it is taken off."""


def harmless(written: str, payload: str = "", *, coloured: bool = False) -> bool:
    """Whether nothing in `written` moves a cursor, turns the text's direction or commands a CI."""
    if payload and not payload.isprintable() and payload in written:
        return False
    plain = OURS.sub("", written) if coloured else written
    commands = re.search(r"##vso\[|##\[|^\s*::[a-z]", plain, re.MULTILINE)
    return not commands and all(mark.isprintable() or mark == "\n" for mark in plain)


@pytest.mark.parametrize("coloured", [False, True])
@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize("shape", ["line", "soft", "cell", "title", "head", "styled"])
def test_a_console_writes_nothing_raw(
    shape: str, payload: str, coloured: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.table import Table

    console = PlainConsole.on(force_terminal=coloured, width=80)
    match shape:
        case "cell":
            table = Table("a", width=78)
            table.add_row(payload)
            console.print(table)
        case "title":
            console.print(Table("a", title=payload, width=78))
        case "head":
            console.print(Table(payload, width=78))
        case "styled":
            console.print(f"{payload} is here", style="bold")
        case _:
            console.print(payload, soft_wrap=shape == "soft")
    written = capsys.readouterr().out
    assert harmless(written, payload, coloured=coloured), ascii(written)
    if "[red]" in payload:
        assert "[red]PASS[/red]" in written


EVENTS: dict[str, Callable[[str], Event]] = {
    "record": lambda text: RecordsRead(task=text, done=1, total=2),
    "stage": lambda text: StageStarted(stage=text, steps=3),
    "nodes": lambda text: NodesScored(model=text, done=1, total=2),
    "queue": lambda text: ReviewQueued(queue=text, sentences=1),
    "fallback": lambda text: ChoiceWarning(what=text, reason=text),
}


class _Screen:
    """A terminal that remembers."""

    def __init__(self) -> None:
        self.written = ""

    def write(self, text: str) -> int:
        self.written += text
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize("kind", EVENTS)
def test_progress_writes_nothing_raw(kind: str, payload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = _Screen()
    console = PlainConsole.on(file=screen, force_terminal=True, width=200)
    event: Event = EVENTS[kind](payload)
    with progress(console, ProgressOption.AUTO) as notify:
        notify(event)
    drawn = re.sub(r"\x1b\[\?25[lh]|\x1b\[[0-9]*[AK]|\x1b\[2K|\r", "", screen.written) if "\r" not in payload else ""
    assert harmless(drawn, payload, coloured=True), ascii(screen.written)
    if not payload.isprintable():
        assert payload not in screen.written


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_an_event_as_json_is_harmless_and_the_same(payload: str) -> None:
    line = event_line(ChoiceWarning(what=payload, reason=payload))
    assert harmless(line, payload)
    assert json.loads(line)["what"] == payload


@pytest.mark.parametrize("form", ["plain", "json", "error"])
@pytest.mark.parametrize("payload", [text for text in PAYLOADS.values() if "\udcff" not in text])
def test_a_ledgers_unit_is_escaped(payload: str, form: str, tmp_path: Path, atdp: Atdp) -> None:
    spent = ledger(steps(0.1, 1.0, 9)).model_copy(update={"unit": payload})
    write_ledger(tmp_path / LEDGER_FILE, spent)
    if form == "error":
        text = (tmp_path / LEDGER_FILE).read_text().replace('"zero-out"', json.dumps(payload), 1)
        (tmp_path / LEDGER_FILE).write_text(text)
    ended = atdp("account", tmp_path / LEDGER_FILE, *(("--json",) if form == "json" else ()))
    assert ended.code == (2 if form == "error" else 0)
    assert harmless(ended.out, payload), ascii(ended.out)
    assert harmless(ended.err, payload), ascii(ended.err)


def in_folder(place: Path, payload: str) -> Path:
    """A folder whose name is the payload, as far as one can be."""
    folder = place / payload.replace("/", "∕").replace("\0", "")
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("form", ["plain", "json"])
@pytest.mark.parametrize("payload", NAMES.values(), ids=NAMES)
def test_an_outputs_name_is_escaped(payload: str, form: str, tmp_path: Path, atdp: Atdp) -> None:
    folder = in_folder(tmp_path, payload)
    (folder / "c.txt").write_text("a\nb\n")
    (folder / "s.jsonl").write_text('{"id": "1", "spans": []}\n{"id": "2", "spans": []}\n')
    command = [
        "redact",
        folder / "c.txt",
        "--spans",
        folder / "s.jsonl",
        "-o",
        folder / "out.txt",
        "--set",
        "run.store=none",
    ]
    ended = atdp(*command, *(("--json",) if form == "json" else ()))
    assert ended.code == 0, ended.err
    assert harmless(ended.out, payload), ascii(ended.out)
    assert harmless(ended.err, payload), ascii(ended.err)
    if form == "json":
        assert ended.json["output"] == str(folder / "out.txt")


@pytest.mark.parametrize("payload", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("command", ["detect", "account", "audit-canary", "report", "review", "harden", "unknown"])
def test_a_name_in_an_error_is_escaped(command: str, payload: str, tmp_path: Path, atdp: Atdp) -> None:
    path = tmp_path / payload
    match command:
        case "audit-canary":
            ended = atdp(command, path, "--manifest", path)
        case "harden":
            ended = atdp(command, path, "--data", path, "-o", path)
        case "unknown":
            ended = atdp("detect", "a", f"--{payload}")
        case _:
            ended = atdp(command, path)
    assert ended.code == 2
    assert harmless(ended.err, payload), ascii(ended.err)
    assert ended.err.count("\n") == 1


@pytest.fixture
def manifest(tmp_path: Path, checkpoint_folder: Path, corpus: Path) -> Path:
    """A manifest of three canaries for the small checkpoint."""
    arguments = ["-o", tmp_path / "p.txt", "--manifest", tmp_path / "m.json", "--tokenizer", checkpoint_folder]
    options = ["--count", "3", "--repeats", "1", "--template", "ID{digits:2}", "-q"]
    assert run([*map(str, ["plant-canary", corpus, *arguments]), *options]) == 0
    return tmp_path / "m.json"


AUDITED = ("escape", "title", "c1", "override", "github", "azure", "markup")


@pytest.mark.parametrize("name", AUDITED)
def test_a_models_name_is_escaped_in_all_that_an_audit_writes(  # noqa: PLR0917 - fixtures
    name: str, tmp_path: Path, checkpoint_folder: Path, manifest: Path, atdp: Atdp, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = PAYLOADS[name]
    model = tmp_path / payload.replace("/", "∕")
    shutil.copytree(checkpoint_folder, model)
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    files = [tmp_path / "j.xml", tmp_path / "s.sarif", tmp_path / "b.json"]
    reports = ["--junit", files[0], "--sarif", files[1], "--write-baseline", files[2]]
    ended = atdp("audit-canary", model, "--manifest", manifest, "--json", *reports)
    assert ended.code in {0, 1, 4}, ended.err
    assert ended.json["models"][0]["model"] == str(model)
    assert harmless(ended.out, payload), ascii(ended.out)
    ours = "\n".join(line for line in ended.err.splitlines() if not line.startswith(("::error ", "::warning ")))
    assert harmless(ours, payload), ascii(ended.err)
    assert all(mark.isprintable() or mark == "\n" for mark in ended.err), ascii(ended.err)
    for file in (summary, *files):
        assert harmless(file.read_text(encoding="utf-8"), payload), file
    assert str(model) in json.loads(files[2].read_text())["models"]


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_traceback_is_escaped(
    payload: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from atdp_cli.cli.exit import unexpected_error

    monkeypatch.setenv("ATDP_TRACEBACK", "1")
    with pytest.raises(RuntimeError) as raised:
        raise RuntimeError(payload)
    assert unexpected_error(raised.value) == 3
    assert harmless(capsys.readouterr().err, payload)


@pytest.mark.ci
def test_data_goes_to_a_pipe_as_it_is_and_to_a_terminal_escaped(tmp_path: Path) -> None:
    """A redacted corpus is the user's own text: a pipe gets its bytes, a screen what can be shown of them."""
    import subprocess
    import sys

    line = "a\x1b[31mb\u202e\t[red]\n"
    (tmp_path / "c.txt").write_text(line)
    (tmp_path / "s.jsonl").write_text('{"id": "1", "spans": []}\n')
    command = [
        sys.executable,
        "-m",
        "atdp_cli",
        "redact",
        "c.txt",
        "--spans",
        "s.jsonl",
        "-o",
        "-",
        "-q",
        "--set",
        "run.store=none",
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    piped = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=60, check=False)
    assert (piped.returncode, piped.stdout) == (0, line.encode()), piped.stderr
    ours, theirs = os.openpty()
    subprocess.run(command, cwd=tmp_path, env=environment, stdout=theirs, timeout=60, check=True)
    os.close(theirs)
    shown = os.read(ours, 4096).decode().replace("\r\n", "\n")
    os.close(ours)
    assert harmless(shown), ascii(shown)
    assert "[red]" in shown


def test_a_librarys_warning_is_escaped() -> None:
    code = (
        "import sys, warnings\n"
        "from atdp_cli.cli.app import main\n"
        "sys.argv = ['atdp', '--version']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "warnings.warn('\\x1b[2J\\n::error::owned', UserWarning)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr == "UserWarning: \\x1b[2J\\n:\\x3aerror:\\x3aowned\n"
