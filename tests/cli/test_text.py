"""`atdp detect` and `atdp redact`."""

import base64
import json
import stat
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
    actual = {(lines[row["id"]][s["start"] : s["end"]], s["label"]) for row in rows for s in row["spans"]}
    assert ("emma.clarke@example.org", "EMAIL") in actual
    assert any(text == "48213377" for text, _ in actual)
    assert all(set(span) == {"start", "end", "label", "source", "confidence"} for row in rows for span in row["spans"])


def test_with_json_the_summary_goes_out_and_spans_to_their_file(atdp: Atdp, corpus_file: Path, tmp_path: Path) -> None:
    spans = tmp_path / "spans.jsonl"
    ended = atdp("detect", corpus_file, "--json", "-o", spans)
    summary = ended.json
    assert summary["records"] == 3
    assert summary["sensitive_share"] == summary["sensitive_tokens"] / summary["tokens"]
    assert sum(summary["flagged"]["by_label"].values()) == sum(
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


CHATS = 'id,text,n\r\na,"Mail emma.clarke@example.org, today.",1\r\nbad\r\nb,Nothing here.,2\r\n'


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


def test_pseudonyms_match_under_one_key_and_under_no_other(atdp: Atdp, tmp_path: Path) -> None:
    corpus, key = tmp_path / "letters.txt", tmp_path / "key"
    corpus.write_text("They wrote to jo@x.com or al@y.org.\nJO@x.com wrote, then jo@x.com again.\n")

    def named(*options: object) -> str:
        ended = atdp("redact", corpus, "-o", tmp_path / "out.txt", "--force", "--style", "pseudonym", *options)
        assert ended.code == 0, ended.err
        return (tmp_path / "out.txt").read_text()

    first = named("--pseudonym-key", key)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert named("--pseudonym-key", key) == first
    assert len({first, named(), named(), named("--pseudonym-key", tmp_path / "other")}) == 4
    secret = key.read_bytes()
    for path in tmp_path.rglob("*"):
        for shape in (secret, secret.hex().encode(), base64.b64encode(secret)):
            assert path == key or path.is_dir() or shape not in path.read_bytes()


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """A line with an address, a name and a place."""
    path = tmp_path / "note.txt"
    path.write_text("Emma Clarke lives in Vexmoor; write to emma.clarke@example.org please.\n")
    return path


def test_a_redaction_masks_the_labels_that_are_wanted(atdp: Atdp, note: Path, tmp_path: Path) -> None:
    spans = tmp_path / "spans.jsonl"
    assert atdp("detect", note, "-o", spans).code == 0
    for options in (["--entities", "EMAIL"], ["--entities", "EMAIL", "--spans", spans]):
        ended = atdp("redact", note, "-o", "-", *options)
        assert ended.code == 0
        assert ended.out == "Emma Clarke lives in Vexmoor; write to [EMAIL] please.\n"


def test_the_summary_counts_labels_and_shows_shapes_without_text(atdp: Atdp, corpus_file: Path) -> None:
    ended = atdp("detect", corpus_file)
    assert ended.err.startswith("Records: 3. Tokens: ")
    assert "sensitive (low-entity)." in " ".join(ended.err.split())
    assert "aaaa.aaaaaa@aaaaaaa.aaa" in ended.err
    assert "emma" not in ended.err.lower()
    assert atdp("detect", corpus_file, "-q").err == ""


def test_a_corpus_in_another_language_is_noticed_and_a_pipeline_named(atdp: Atdp, tmp_path: Path) -> None:
    corpus, output = tmp_path / "post.txt", tmp_path / "redacted.txt"
    corpus.write_text(
        "Guten Tag, ich habe vor drei Wochen ein Paket bestellt.\nEs ist noch immer nicht bei mir angekommen.\n"
        "Können Sie mir bitte sagen, wo es ist und wann ich damit rechnen kann?\n"
        "Wenn es nicht mehr kommt, dann möchte ich mein Geld zurück haben, denn so kann das nicht weiter gehen.\n"
    )
    for command in (("detect", corpus), ("redact", corpus, "-o", output)):
        said = " ".join(atdp(*command).err.split())
        assert "language: The text looks like German, and the pipeline reads English: most names are missed." in said
        assert 'spacy_pipeline = "de_core_news_sm" in --detector' in said
