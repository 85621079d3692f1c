"""`atdp detect` and `atdp redact`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Atdp

TEXT = "Mail emma.clarke@example.org today.\n\nThe account is 48213377.\nNothing here.\n"


@pytest.fixture
def corpus_file(tmp_path: Path) -> Path:
    path = tmp_path / "mail.txt"
    path.write_text(TEXT)
    return path


def test_detect_writes_one_line_a_record(atdp: Atdp, corpus_file: Path) -> None:
    ended = atdp("detect", corpus_file, "--tier", "low-entity")
    assert ended.code == 0
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert [row["id"] for row in rows] == ["1", "3", "4"]
    lines = {str(number): line for number, line in enumerate(TEXT.splitlines(), start=1)}
    found = {(lines[row["id"]][s["start"] : s["end"]], s["label"]) for row in rows for s in row["spans"]}
    assert ("emma.clarke@example.org", "EMAIL") in found
    assert any(text == "48213377" for text, _ in found)
    assert all(set(span) == {"start", "end", "label", "source"} for row in rows for span in row["spans"])


def test_with_json_the_summary_goes_out_and_spans_to_their_file(atdp: Atdp, corpus_file: Path, tmp_path: Path) -> None:
    spans = tmp_path / "spans.jsonl"
    ended = atdp("detect", corpus_file, "--json", "-o", spans)
    summary = ended.json
    assert summary["records"] == 3
    assert summary["sensitive_share"] == summary["sensitive_tokens"] / summary["tokens"]
    assert sum(summary["by_label"].values()) == sum(
        len(json.loads(line)["spans"]) for line in spans.read_text().splitlines()
    )
    assert atdp("detect", corpus_file, "--json").json == summary


def test_redact_masks_and_keeps_the_rest(atdp: Atdp, corpus_file: Path, tmp_path: Path) -> None:
    out, spans = tmp_path / "out.txt", tmp_path / "spans.jsonl"
    assert atdp("redact", corpus_file, "-o", out, "--tier", "low-entity").code == 0
    redacted = out.read_text()
    assert "emma" not in redacted
    assert "48213377" not in redacted
    assert redacted.startswith("Mail [EMAIL] ")
    assert redacted.endswith("\nNothing here.\n")
    atdp("detect", corpus_file, "-o", spans, "--tier", "low-entity")
    assert atdp("redact", corpus_file, "-o", tmp_path / "b.txt", "--spans", spans).code == 0
    assert (tmp_path / "b.txt").read_text() == redacted


def test_lists_correct_the_detector(atdp: Atdp, corpus_file: Path, tmp_path: Path) -> None:
    allow, deny = tmp_path / "allow.txt", tmp_path / "deny.txt"
    allow.write_text("48213377\n")
    deny.write_text("nothing\n")
    out = tmp_path / "out.txt"
    options = ["--tier", "low-entity", "--allow", allow, "--deny", deny]
    assert atdp("redact", corpus_file, "-o", out, *options).code == 0
    assert "48213377" in out.read_text()
    assert out.read_text().endswith("\n[DENY] here.\n")


def test_nothing_is_overwritten_without_force(atdp: Atdp, corpus_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    out.write_text("kept")
    for command in (["redact", corpus_file, "-o", out], ["detect", corpus_file, "-o", out]):
        ended = atdp(*command)
        assert ended.code == 2
        assert "--force" in ended.err
        assert out.read_text() == "kept"
    assert atdp("redact", corpus_file, "-o", out, "--force").code == 0


CHATS = 'id,text,n\r\na,"Mail emma.clarke@example.org, today.",1\r\nbad\r\nb,Nothing here.,2\r\n'


def test_detect_then_redact_with_its_spans_on_csv(atdp: Atdp, tmp_path: Path) -> None:
    corpus, spans, out = tmp_path / "chats.csv", tmp_path / "spans.jsonl", tmp_path / "out.csv"
    corpus.write_bytes(CHATS.replace("bad\r\n", "").encode())
    options = ["--id-field", "id", "--tier", "low-entity"]
    assert atdp("detect", corpus, "-o", spans, *options).code == 0
    assert [json.loads(line)["id"] for line in spans.read_text().splitlines()] == ["a", "b"]
    assert atdp("redact", corpus, "-o", out, "--spans", spans, *options).code == 0
    redacted = out.read_bytes().decode()
    assert "emma" not in redacted
    assert redacted.startswith('id,text,n\r\na,"Mail [EMAIL], ')
    assert redacted.endswith('",1\r\nb,Nothing here.,2\r\n')


def test_skip_bad_counts_what_it_leaves_out(atdp: Atdp, tmp_path: Path) -> None:
    corpus, spans, out = tmp_path / "chats.csv", tmp_path / "spans.jsonl", tmp_path / "out.csv"
    corpus.write_bytes(CHATS.encode())
    for command in (["detect", corpus, "-o", spans], ["redact", corpus, "-o", out]):
        refused = atdp(*command)
        assert refused.code == 2
        assert "line 3" in refused.err
        assert not out.exists()
        skipped = atdp(*command, "--skip-bad", "--json")
        assert (skipped.json["records"], skipped.json["skipped"]) == (2, 1)
        assert "Lines or rows skipped as unreadable: 1." in skipped.err
    assert "bad" not in out.read_text()
    assert atdp("redact", corpus, "-o", out, "--force", "--spans", spans, "--skip-bad", "--json").json["skipped"] == 1
    assert [line.split(",")[0] for line in out.read_text().splitlines()] == ["id", "a", "b"]
