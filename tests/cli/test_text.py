"""`atdp detect` and `atdp redact`."""

import base64
import csv
import json
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tests.cli.conftest import Atdp, Ended, detector

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


LETTERS = ["They wrote to jo@x.com or al@y.org.", "JO@x.com wrote, then jo@x.com again."]


def written(path: Path) -> list[str]:
    """The letters of a corpus; every other field must be as it was."""
    match path.suffix:
        case ".jsonl":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
        case ".csv":
            rows = list(csv.DictReader(path.read_text().splitlines()))
        case ".parquet":
            rows = pyarrow.parquet.read_table(path).to_pylist()
        case _:
            return path.read_text().splitlines()
    assert [{name: str(row[name]) for name in row if name != "text"} for row in rows] == [
        {"id": "a", "n": "1"},
        {"id": "b", "n": "2"},
    ]
    return [row["text"] for row in rows]


def letters(folder: Path, kind: str) -> Path:
    """A corpus of two records in one of the formats."""
    path = folder / f"letters.{kind}"
    rows = [{"id": "a", "text": LETTERS[0], "n": 1}, {"id": "b", "text": LETTERS[1], "n": 2}]
    match kind:
        case "txt":
            path.write_text("".join(text + "\n" for text in LETTERS))
        case "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case "csv":
            path.write_text("id,text,n\n" + "".join(f'{row["id"]},"{row["text"]}",{row["n"]}\n' for row in rows))
        case "parquet":
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    assert written(path) == LETTERS
    return path


def check_styles(redacted: Callable[..., list[str]]) -> None:
    """What `redacted(options)` gives for LETTERS in the four styles."""
    for style, mark in ((), "[EMAIL]"), (("--style", "angle"), "<EMAIL>"):
        assert redacted(*style) == [f"They wrote to {mark} or {mark}.", f"{mark} wrote, then {mark} again."]
    assert redacted("--style", "numbered") == [
        "They wrote to [EMAIL_1] or [EMAIL_2].",
        "[EMAIL_1] wrote, then [EMAIL_1] again.",
    ]
    named = [re.findall(r"\[EMAIL_[a-z2-7]{8}\]", text) for text in redacted("--style", "pseudonym")]
    assert named[0][0] == named[1][0] == named[1][1] != named[0][1]


@pytest.mark.parametrize("kind", ["txt", "jsonl", "csv", "parquet"])
def test_the_four_styles_with_spans_in_every_format(atdp: Atdp, tmp_path: Path, kind: str) -> None:
    corpus, out, spans = letters(tmp_path, kind), tmp_path / f"out.{kind}", tmp_path / "spans.jsonl"
    assert atdp("detect", corpus, "-o", spans, "--tier", "low-entity").code == 0

    def redacted(*style: object) -> list[str]:
        ended = atdp("redact", corpus, "-o", out, "--force", "--spans", spans, *style)
        assert ended.code == 0, ended.err
        return written(out)

    check_styles(redacted)


@pytest.mark.ci
def test_the_four_styles_with_the_detector_which_finds_nothing_more(atdp: Atdp, tmp_path: Path) -> None:
    def redacted(*style: object) -> list[str]:
        source = letters(tmp_path, "txt")
        for target in (tmp_path / "once.txt", tmp_path / "twice.txt"):
            ended = atdp("redact", source, "-o", target, "--force", "--tier", "low-entity", *style)
            assert ended.code == 0, ended.err
            source = target
        assert written(tmp_path / "twice.txt") == written(tmp_path / "once.txt")
        return written(source)

    check_styles(redacted)


def test_pseudonyms_match_under_one_key_and_under_no_other(atdp: Atdp, tmp_path: Path) -> None:
    corpus, key = letters(tmp_path, "txt"), tmp_path / "key"

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


def labels_of(ended: Ended) -> set[str]:
    return {span["label"] for line in ended.out.splitlines() for span in json.loads(line)["spans"]}


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """A line with an address, a name and a place."""
    path = tmp_path / "note.txt"
    path.write_text("Emma Clarke lives in Vexmoor; write to emma.clarke@example.org please.\n")
    return path


def test_only_labels_that_are_wanted_are_flagged(atdp: Atdp, note: Path, tmp_path: Path) -> None:
    everything = labels_of(atdp("detect", note, "--store", "none"))
    assert {"EMAIL", "PERSON"} < everything
    assert labels_of(atdp("detect", note, "--entities", "email,PERSON")) == {"EMAIL", "PERSON"}
    assert labels_of(atdp("detect", note, "--exclude", "EMAIL")) == everything - {"EMAIL"}
    assert labels_of(atdp("detect", note, *detector(tmp_path, min_confidence=0.92))) == {"EMAIL"}
    refused = atdp("detect", note, "--entities", "EMAIL", "--exclude", "EMAIL")
    assert (refused.code, refused.out) == (2, "")
    assert "both name EMAIL" in refused.err
    unknown = atdp("redact", note, "-o", tmp_path / "r.txt", "--entities", "EMIAL")
    expected = "atdp: --entities has 'EMIAL', which is no label. Did you mean EMAIL?\n"
    assert (unknown.code, unknown.err) == (2, expected)
    assert not (tmp_path / "r.txt").exists()


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


def test_a_text_that_is_everywhere_is_named_by_its_shape(atdp: Atdp, tmp_path: Path) -> None:
    corpus = tmp_path / "c.txt"
    corpus.write_text("".join(f"Zworpel{'x' if number % 2 else ''} saw 0{number}7755 there.\n" for number in range(30)))
    ended = atdp("detect", corpus, "--deny", deny_list(tmp_path))
    said = " ".join(ended.err.split())
    assert "One text of the form aaaaaaa is 15 of the" in said
    assert "speaker_labels in --detector" in said
    assert "Zworpel" not in said


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


def deny_list(folder: Path) -> Path:
    path = folder / "deny.txt"
    path.write_text("Zworpel\n")
    return path
