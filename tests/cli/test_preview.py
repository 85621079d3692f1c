"""`atdp harden --preview`: records before and after replacement, on a terminal and nowhere else."""

import json
import os
import pty
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import FlaggedRecord, Span, Tier
from atdp_cli.training.recipe import TextVariant
from tests.cli.conftest import Atdp, Ended, Harden

Screen = list[str]

STYLES = re.compile(r"\x1b\[[0-9;]*m")


@contextmanager
def terminal() -> Iterator[Screen]:
    """A terminal of 80 columns as standard output. Afterwards the list has what it showed, without styles."""
    master, slave = pty.openpty()
    shown, read = Screen(), bytearray()

    def reading() -> None:
        try:
            while data := os.read(master, 4096):
                read.extend(data)
        except OSError:  # how the end of a terminal is read
            return

    reader = threading.Thread(target=reading)
    reader.start()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(slave, "w", encoding="utf-8") as stdout:
        patch.setattr(sys, "stdout", stdout)
        patch.setenv("COLUMNS", "80")
        yield shown
    reader.join()
    os.close(master)
    shown.extend(STYLES.sub("", read.decode().replace("\r\n", "\n")).split("\n"))


def on_terminal(call: Callable[..., Ended], *arguments: object) -> tuple[Ended, str]:
    """How a command ended, and what it showed, with single spaces."""
    with terminal() as shown:
        ended = call(*arguments)
    return ended, re.sub(r"\s+", " ", "\n".join(shown))


SECRET = "Zaphodine Beeblebrox"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A corpus in which a name stands in every record."""
    path = tmp_path / "secrets.txt"
    path.write_text("".join(f"Mr. {SECRET} paid order {number} on time.\n" for number in range(40)))
    return path


def test_it_shows_records_before_and_after(atdp: Atdp, checkpoint_folder: Path, secrets: Path, tmp_path: Path) -> None:
    """And writes none of them: no file, and nothing on standard error."""
    harden = ["harden", checkpoint_folder, "--data", secrets, "-o", tmp_path / "out", "--dry-run", "--deny"]
    deny = tmp_path / "deny.txt"
    deny.write_text(f"{SECRET}\n")
    files = {path: path.read_bytes() for path in tmp_path.rglob("*")}
    ended, shown = on_terminal(atdp, *harden, deny, "--preview", "3")
    assert ended.code == 0, ended.err
    assert "The run draws decoys of its own" in shown
    assert re.findall(r"Record (\d+)", shown) == ["1", "14", "27"]
    assert shown.count(f"before Mr. «{SECRET}» paid order") == 3
    after = re.findall(r"after Mr. «([A-Z][a-z]+ [A-Z][a-z]+)» paid order", shown)
    assert len(after) == 3
    assert SECRET not in after
    assert SECRET not in ended.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*")} == files


@pytest.mark.ci
def test_each_text_is_shown_as_its_last_stage_reads_it(harden: Harden) -> None:
    """One that reads raw text replaces nothing, and a recipe without the corpus has nothing to show."""
    for recipe, pattern in {
        "redacted": r"stage redacted reads redacted text.*after [^«]*«\[[A-Z_]+\]»",
        "redacted+dp-sgd": r"stage dp-sgd reads raw text.*before ([^»]*»).* after \1",
    }.items():
        ended, shown = on_terminal(harden, "--recipe", recipe, "--preview", "1", "--dry-run", "--tier", "low-entity")
        assert ended.code == 0, ended.err
        assert re.search(pattern, shown), shown
        assert "decoys of its own" not in shown
    ended, shown = on_terminal(harden, "--recipe", "noise", "--preview", "1", "--dry-run")
    assert (ended.code, shown) == (2, "")
    assert "No stage reads the corpus" in ended.err


@pytest.mark.parametrize("where", ["pipe", "--json", "--quiet"])
def test_anything_but_a_terminal_is_refused_before_any_work(atdp: Atdp, tmp_path: Path, where: str) -> None:
    """There is no model, and nobody gets to know."""
    command = ["harden", tmp_path / "none", "--data", tmp_path / "none.txt", "--preview", "2"]
    ended, shown = (atdp(*command), "") if where == "pipe" else on_terminal(atdp, *command, where)
    assert (ended.code, ended.out, shown) == (2, "", "")
    assert ended.err.count("\n") == 1 or where == "pipe"
    assert "--preview shows text of the corpus" in ended.err
    assert not list(tmp_path.iterdir())


@pytest.mark.ci
@pytest.mark.parametrize("recipe", ["decoys", "fitted-decoys", "redacted+atdp"])
def test_a_run_is_the_same_with_a_preview(harden: Harden, tmp_path: Path, recipe: str) -> None:
    """Its decoys, samples and noise come from streams that a preview does not move; and its files hold none of it."""
    options = ["--recipe", recipe, "--epochs", "1", "--tier", "low-entity"]
    assert harden(*options, out="without").code == 0
    ended, shown = on_terminal(harden, *options, "--preview", "5")
    assert ended.code == 0, ended.err
    assert shown.count("Record ") == 5
    weights = [(tmp_path / out / "model.safetensors").read_bytes() for out in ("without", "out")]
    assert weights[0] == weights[1]
    decoys = [value for value in re.findall(r"after .*?«([^»]*)»", shown) if len(value) > 8 and "[" not in value]
    for file in filter(Path.is_file, (*(tmp_path / "out").rglob("*"), *(tmp_path / "out.private").rglob("*"))):
        text = file.read_bytes()
        assert not any(value.encode() in text for value in decoys), file.name


@pytest.mark.ci
def test_two_previews_have_other_decoys(harden: Harden) -> None:
    """An insecure seed fixes the run, and not what is drawn for people to look at."""
    first, second = (on_terminal(harden, "--preview", "9", "--dry-run")[1] for _ in range(2))
    assert re.findall(r"Record \d+", first) == re.findall(r"Record \d+", second) != []
    assert first != second


def test_controls_in_records_do_nothing(atdp: Atdp, checkpoint_folder: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    controls = "\x1b]0;owned\x07\x1b[2J\u202e::error::"
    corpus.write_text("".join(f"Mail {controls} a{at}@b{controls}c.example {controls}.\n" for at in range(40)))
    deny = tmp_path / "deny.txt"
    deny.write_text(f"b{controls}c\n")
    command = ["harden", checkpoint_folder, "--data", corpus, "-o", tmp_path / "out", "--dry-run", "--preview", "2"]
    ended, shown = on_terminal(atdp, *command, "--deny", deny)
    assert ended.code == 0, ended.err
    assert "Record 1" in shown
    assert not re.search("[\x00-\x1f\x7f\u202e]|::error", shown)
    assert "\\x1b]0;owned\\x07" in shown


@pytest.mark.ci
def test_long_records_are_cut_around_their_first_flagged_values(
    atdp: Atdp, checkpoint_folder: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus.txt"
    lines = [f"{'so it goes on ' * 90}{SECRET}{' and on it goes' * 50} {SECRET} end" for _ in range(40)]
    corpus.write_text("\n".join(lines) + "\n")
    deny = tmp_path / "deny.txt"
    deny.write_text(f"{SECRET}\n")
    command = ["harden", checkpoint_folder, "--data", corpus, "-o", tmp_path / "out", "--dry-run", "--preview", "1"]
    _, shown = on_terminal(atdp, *command, "--deny", deny)
    assert re.search(rf"before ….{{40,60}}«{SECRET}».{{40,60}}… after", shown), shown


def test_the_plan_has_the_counts_of_detect(atdp: Atdp, harden: Harden, corpus: Path, tmp_path: Path) -> None:
    """Of a corpus that is looked at whole, from the detector or from its file of spans."""
    spans = tmp_path / "spans.jsonl"
    found = atdp("detect", corpus, "-o", spans, "--json", "--set", "run.store=none").json
    records = found["records"]
    assert records <= 200
    for source in ([], ["--spans", spans]):
        planned = harden("--dry-run", "--json", *source)
        assert planned.json["flagged"]["found"] == found["flagged"]
        assert planned.json["flagged"]["records"] == records
        label, count = next(iter(found["flagged"]["by_label"].items()))
        assert re.search(rf"│ {label} +│ +{count} │", planned.err)
        assert f"of the characters of {records} of {records} records" in planned.err.replace("\n", "")


@pytest.mark.ci
def test_files_of_spans_are_previewed_too(harden: Harden, corpus: Path, tmp_path: Path) -> None:
    """Those that take the detector's place, and those that come on top."""
    records = corpus.read_text().splitlines()
    spans = tmp_path / "spans.jsonl"
    span = {"start": 0, "end": 3, "label": "CODE", "source": "file"}
    spans.write_text("".join(json.dumps({"id": str(at + 1), "spans": [span]}) + "\n" for at in range(len(records))))
    _, alone = on_terminal(harden, "--dry-run", "--preview", "2", "--spans", spans)
    assert len(re.findall(r"before «.{3}»[^«]* after «.{3}»", alone)) == 2
    _, on_top = on_terminal(harden, "--dry-run", "--preview", "2", "--extra-spans", spans)
    assert len(re.findall(r"before «", on_top)) == 2
    bad = tmp_path / "bad.jsonl"
    bad.write_text(spans.read_text().replace('"end": 3', '"end": 3000'))
    assert harden("--dry-run", "--spans", bad).code == 2


def test_what_an_encoder_reads_is_previewed_too() -> None:
    """With the same decoy for the same value, as the run has it."""
    from atdp_cli.hardening.encode import _replaced
    from atdp_cli.replacement.decoys import uniformly
    from atdp_cli.training.objectives import Uniform
    from atdp_cli.training.recipe import NonPrivate, Train

    def flagged(text: str) -> FlaggedRecord:
        at = text.index("Emma")
        return FlaggedRecord(Record("7", text), (Span(at, at + 4, "PERSON", "ner", Tier.LOW_ENTITY),))

    source = flagged("Summarise: Emma paid.")
    record = FlaggedRecord(flagged("Paid by Emma").record, flagged("Paid by Emma").spans, source)
    stage = Train(name="decoys", text=TextVariant.DECOY, objective=Uniform(), mechanism=NonPrivate())
    target, read = _replaced(record, stage, uniformly(lambda count: count - 1))
    assert (target.record, read.record) == ("7", "7, source")
    assert target.after.text.removeprefix("Paid by ") == read.after.text.split()[1] != "Emma"
