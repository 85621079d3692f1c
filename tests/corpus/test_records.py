"""Reading corpora: what is a record, and what is refused."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.corpus.record import Record, read_records
from atdp_cli.errors import InputError, UsageError
from tests.corpus.corpora import pairs, written


@pytest.mark.parametrize("name", ["c.txt", "c", "c.md", "C.TXT", "c.txt.gz", "c.txt.zst", "c.log.ZST".lower()])
def test_a_line_is_a_record_whatever_the_compression(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, "first\n\n  second \r\n \t\nthird")
    assert pairs(path) == [("1", "first"), ("3", "  second "), ("5", "third")]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\r", "\0"])
def test_only_a_line_feed_ends_a_line(tmp_path: Path, mark: str) -> None:
    path = written(tmp_path, "c.txt", f"a{mark}b\nc")
    assert pairs(path) == [("1", f"a{mark}b"), ("2", "c")]


def test_one_carriage_return_belongs_to_the_ending(tmp_path: Path) -> None:
    assert pairs(written(tmp_path, "c.txt", "a\r\r\nb\r")) == [("1", "a\r"), ("2", "b\r")]


def test_a_byte_order_mark_belongs_to_no_record(tmp_path: Path) -> None:
    assert pairs(written(tmp_path, "c.txt", "\ufeffa\n\ufeffb")) == [("1", "a"), ("2", "\ufeffb")]
    assert pairs(written(tmp_path, "c.jsonl", '\ufeff{"text": "a"}')) == [("1", "a")]
    assert pairs(written(tmp_path, "d.txt", "\ufeffa\n"), unit="document") == [("1", "a")]


def test_paragraphs_are_runs_of_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "c.txt", "\na\r\n b\n\n \t\nc\n\nd\ne\n")
    assert pairs(path, unit="paragraph") == [("2", "a\n b"), ("6", "c"), ("8", "d\ne")]


def test_a_document_is_the_file_less_its_last_ending(tmp_path: Path) -> None:
    assert pairs(written(tmp_path, "c.txt", "\na\r\n\nb\r\n"), unit="document") == [("1", "\na\r\n\nb")]


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="[{")))
def test_lines_agree_with_splitting_by_hand(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("corpus") / "c.txt"
    path.write_bytes(text.encode())
    body = text.removeprefix("\ufeff")
    lines = body.split("\n")
    expected = [
        (str(number), line.removesuffix("\r") if number < len(lines) else line)
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    if expected:
        assert pairs(path) == expected
    else:
        with pytest.raises(InputError, match="holds no records"):
            pairs(path)


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz", "c.jsonl.zst", "c.JSONL", "c.json", "c.ndjson", "c.json.gz"])
def test_json_lines(tmp_path: Path, name: str) -> None:
    content = '{"text": "a\\nb", "n": 1}\r\n\n  {"user": {"text": "x"}, "text":"\\ud83d\\ude00é"}  \n{"text":""}'
    path = written(tmp_path, name, content)
    assert pairs(path) == [("1", "a\nb"), ("3", "😀é"), ("4", "")]


def test_json_fields_and_ids(tmp_path: Path) -> None:
    path = written(tmp_path, "c.jsonl", '{"body": "a", "key": 7}\n{"key": "x", "body": "b", "text": 1}\n')
    assert pairs(path, text_field="body", id_field="key") == [("7", "a"), ("x", "b")]


def test_a_lone_surrogate_is_read(tmp_path: Path) -> None:
    assert pairs(written(tmp_path, "c.jsonl", '{"text": "a\\ud800b"}')) == [("1", "a\ud800b")]


def test_objects_that_share_a_field_are_one_record(tmp_path: Path) -> None:
    content = "".join(
        json.dumps({"user": user, "text": text}) + "\n"
        for user, text in [("ann", "1"), (5, "2"), ("ann", "3"), ("5", "4"), ("bob", "5")]
    )
    path = written(tmp_path, "c.jsonl", content)
    assert pairs(path, unit="user") == [("ann", "1\n3"), ("5", "2\n4"), ("bob", "5")]


@pytest.mark.ci
@given(
    st.lists(
        st.dictionaries(st.text(max_size=4), st.recursive(st.none() | st.floats() | st.text(), st.lists), max_size=4),
        min_size=1,
        max_size=5,
    ),
    st.text(max_size=10),
    st.booleans(),
)
@settings(max_examples=50)
def test_json_lines_agree_with_the_json_module(
    tmp_path_factory: pytest.TempPathFactory, objects: list[dict[str, object]], text: str, escaped: bool
) -> None:
    path = tmp_path_factory.mktemp("corpus") / "c.jsonl"
    full = [{**members, "the text": text + str(at)} for at, members in enumerate(objects)]
    path.write_text("\n".join(json.dumps(each, ensure_ascii=escaped) for each in full), "utf-8")
    expected = [(str(at), text + str(at - 1)) for at in range(1, len(full) + 1)]
    assert pairs(path, text_field="the text") == expected


def test_standard_input_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("é\n\nb".encode())))
    assert pairs(Path("-")) == [("1", "é"), ("3", "b")]


def test_compressed_frames_may_follow_each_other(tmp_path: Path) -> None:
    frames = [zstandard.ZstdCompressor().compress(part) for part in (b"a\nb", b"c\n\nd\n")]
    (tmp_path / "c.zst").write_bytes(b"".join(frames))
    assert pairs(tmp_path / "c.zst") == [("1", "a"), ("2", "bc"), ("4", "d")]


def test_large_files_survive_compression(tmp_path: Path) -> None:
    lines = [f"line {number} " + "x" * (number % 700) for number in range(3000)]
    for name in ("c.gz", "c.zst"):
        assert [text for _, text in pairs(written(tmp_path, name, "\n".join(lines)))] == lines


JSON = [
    '{"text": "\\u0042oz called"}\n{"text": "b"}\n',
    '\ufeff{"text": "one object"}',
    '\r\n \r\n { "messages": []}',
    '\ufeff\n{"text": "a"}',
    '[\n  {"text": "a"},\n  {"text": "b"}\n]\n',
    '[{"text": "a"}, {"text": "b"}]',
    '[ {\n"text": "a"}]',
    '{\n  "text": "a"\n}\n',
]


@pytest.mark.parametrize("content", JSON)
@pytest.mark.parametrize("name", ["c.txt", "c", "c.log", "c.js", "c.txt.gz"])
@pytest.mark.parametrize("unit", ["line", "paragraph", "document"])
def test_json_is_not_read_as_plain_text(tmp_path: Path, name: str, content: str, unit: str) -> None:
    """Redacting its lines would cut through escapes."""
    with pytest.raises(InputError, match=r"holds JSON, and is read as plain text. Name it with .jsonl, one object"):
        pairs(written(tmp_path, name, content), unit=unit)


def test_json_on_standard_input_is_not_read_as_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "a"}')))
    with pytest.raises(InputError, match="standard input holds JSON"):
        pairs(Path("-"))


@pytest.mark.parametrize("text", ["[12:03] a: b", "[a]", "{a} b", "{}", "[1, 2]", '"a": {"b"}', "a\n[\n{", "[[a]]"])
def test_plain_text_may_begin_with_a_bracket(tmp_path: Path, text: str) -> None:
    assert "\n".join(each for _, each in pairs(written(tmp_path, "c.txt", text))) == text


@pytest.mark.parametrize("name", ["c.json", "c.jsonl", "c.ndjson.gz"])
@pytest.mark.parametrize("content", JSON[4:])
def test_json_that_is_not_an_object_a_line_is_told_how_to_become_so(tmp_path: Path, name: str, content: str) -> None:
    with pytest.raises(InputError, match=r"line 1 is not .*Each line must be one JSON object: jq -c '\.\[\]' makes"):
        pairs(written(tmp_path, name, content))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16le", "utf-16be", "utf-32"])
@pytest.mark.parametrize("name", ["c.txt", "c.jsonl", "c.csv"])
def test_wide_characters_are_told_how_to_become_utf_8(tmp_path: Path, name: str, encoding: str) -> None:
    """Without a byte order mark, ASCII in them is valid UTF-8 in which nothing would be found."""
    path = written(tmp_path, name, '{"text": "a"}\n{"text": "Boz"}\n'.encode(encoding))
    with pytest.raises(InputError, match=rf"line 1 is not UTF-8. .*iconv -f {encoding} -t utf-8"):
        pairs(path)


MALFORMED = [
    ("c.txt", b"a\n\xff\n", {}, r"c.txt: line 2 is not UTF-8. Convert the file"),
    ("c.txt", b"\xed\xa0\x80", {}, r"line 1 is not UTF-8"),
    ("c.txt", b"\x1f\x8b\x08\xff", {}, r"line 1 is not UTF-8. Decompress the file"),
    ("c.txt", b"", {}, r"c.txt holds no records"),
    ("c.txt", b" \n\r\n", {"unit": "paragraph"}, r"holds no records"),
    ("c.txt", b"\n", {"unit": "document"}, r"holds no records"),
    ("c.jsonl", b"\n", {}, r"holds no records: no text in the field text"),
    ("c.jsonl", b'{"text": "a"}\n{"text": "secret', {}, r"line 2 is not valid JSON"),
    ("c.jsonl", b'{"text": "a"} {"text": "b"}', {}, r"line 1 is not valid JSON"),
    ("c.jsonl", b'{"text": "a",}', {}, r"line 1 is not valid JSON"),
    ("c.jsonl", b'{"text": }', {}, r"line 1 is not valid JSON"),
    ("c.jsonl", b'{"text": "a', {}, r"line 1 is not valid JSON"),
    ("c.jsonl", b"{'text': 'a'}", {}, r"line 1 is not valid JSON"),
    ("c.jsonl", b'{"text" "a"}', {}, r"line 1 is not valid JSON"),
    ("c.jsonl", b'{"text": "a", "deep": ' + b"[" * 100_000, {}, r"line 1 is not valid JSON"),
    ("c.jsonl", b'{"text": "a", "n": ' + b"1" * 5_000 + b"}", {}, r"line 1 is not valid JSON"),
    ("c.jsonl", b'["text"]', {}, r"line 1 is not a JSON object"),
    ("c.jsonl", b'"text"', {}, r"line 1 is not a JSON object"),
    ("c.jsonl", b'{"body": "a"}', {}, r"line 1 has no field text. .*--text-field"),
    ("c.jsonl", b'{"text": ["a"]}', {}, r"the field text: message 1 is not an object"),
    ("c.jsonl", b'{"text": null}', {}, r"the field text is neither a string nor a list"),
    ("c.jsonl", b'{"text": "a", "text": "b"}', {}, r"has a key more than once"),
    ("c.jsonl", b'{"text": "a"}', {"id_field": "key"}, r"line 1 has no field key"),
    ("c.jsonl", b'{"text": "a", "key": true}', {"id_field": "key"}, r"key is neither a string nor a whole"),
    ("c.jsonl", b'{"text": "a", "key": 1.5}', {"unit": "key"}, r"key is neither a string nor a whole"),
    ("c.parquet.gz", b"a", {}, r"c.parquet.gz: Parquet is compressed inside"),
]


@pytest.mark.parametrize(("name", "content", "options", "message"), MALFORMED)
def test_malformed_corpora_give_one_line_without_text(
    tmp_path: Path, name: str, content: bytes, options: dict[str, str], message: str
) -> None:
    path = written(tmp_path, name, content)
    with pytest.raises(InputError, match=message) as caught:
        pairs(path, **options)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_records_before_a_bad_line_are_given(tmp_path: Path) -> None:
    records = read_records(written(tmp_path, "c.txt", b"good\n\xff\n"))
    assert next(records) == Record("1", "good")
    with pytest.raises(InputError, match="line 2"):
        next(records)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_damaged_compression(tmp_path: Path, suffix: str) -> None:
    whole = written(tmp_path, f"c.txt{suffix}", "one line\n" * 5000).read_bytes()
    for damaged in (whole[:-9], whole[: len(whole) // 2], b"plain", whole + b"junk after the end"):
        path = tmp_path / f"bad.txt{suffix}"
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="the compressed data is damaged or cut short"):
            pairs(path)


def test_missing_files_and_folders_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(f"{tmp_path / 'no.txt'} does not exist")):
        read_records(tmp_path / "no.txt")
    with pytest.raises(InputError, match="is a folder"):
        read_records(tmp_path)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("c.txt", {"unit": "user"}, "names a field, and .* is plain text"),
        ("c.jsonl", {"unit": "paragraph"}, "is for plain text, and .* is JSON Lines"),
        ("c.jsonl", {"unit": "document"}, "is for plain text"),
        ("c.jsonl", {"unit": "user", "id_field": "key"}, "run.id-field does not go with"),
    ],
)
def test_units_that_do_not_go_with_the_format(tmp_path: Path, name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_records(written(tmp_path, name, "{}"), **options)


def test_reading_streams(tmp_path: Path) -> None:
    """A later bad line does not keep the first records back, so nothing reads to the end first."""
    path = written(tmp_path, "c.jsonl", '{"text": "a"}\n{"text": "b"}\nbroken')
    records = read_records(path)
    assert [next(records).text, next(records).text] == ["a", "b"]
