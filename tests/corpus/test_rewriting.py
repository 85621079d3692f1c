"""Rewriting corpora: texts change, everything else stays."""

import gzip
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.edits import Edit, apply_edits
from atdp_cli.corpus.record import Record, read_records
from atdp_cli.corpus.rewrite import Edits, rewrite_corpus
from atdp_cli.corpus.segments import Selection
from atdp_cli.errors import InputError, UsageError
from tests.corpus.corpora import nothing


def each(*changes: Edit) -> Edits:
    return lambda records: ([change for change in changes if change.end <= len(r.text)] for r in records)


def rewritten(folder: Path, name: str, content: bytes, edits: Edits, **options: Any) -> bytes:
    (folder / f"in.{name}").write_bytes(content)
    rewrite_corpus(folder / f"in.{name}", folder / f"out.{name}", edits, Selection(**options))
    return (folder / f"out.{name}").read_bytes()


TEXTS = [
    b"a\nb\n",
    b"a\nb",
    b"\n\n a \r\n\t\n\r\nb\r\n\n",
    b"\xef\xbb\xbfa\xe2\x80\xa8b\x0c\r\r\nc",
    "x\0y\x85\nééé 😀\n".encode(),
]


@pytest.mark.parametrize("unit", ["line", "paragraph", "document"])
@pytest.mark.parametrize("content", TEXTS)
def test_without_edits_every_byte_stays(tmp_path: Path, content: bytes, unit: str) -> None:
    assert rewritten(tmp_path, "txt", content, nothing, unit=unit) == content


def test_lines_keep_what_is_around_them(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbfabc\r\n\n  \nabd\nx"
    assert rewritten(tmp_path, "txt", content, each(Edit(0, 2, "[A]"))) == b"\xef\xbb\xbf[A]c\r\n\n  \n[A]d\nx"


def test_an_edit_over_two_lines_of_a_paragraph_takes_the_ending_along(tmp_path: Path) -> None:
    content = b"ab\r\ncd\nef\n\ngh\n"
    assert rewritten(tmp_path, "txt", content, each(Edit(1, 4, "[A]")), unit="paragraph") == b"a[A]d\nef\n\ngh\n"
    assert rewritten(tmp_path, "txt", content, each(Edit(2, 6, "[A]")), unit="paragraph") == b"ab[A]ef\n\ngh\n"
    assert rewritten(tmp_path, "txt", content, each(Edit(0, 8, "[A]")), unit="paragraph") == b"[A]\n\ngh\n"


@st.composite
def text_and_cuts(draw: st.DrawFn) -> tuple[str, list[int]]:
    alphabet = st.sampled_from("ab \r\n\n\té😀\u2028")
    return draw(st.text(alphabet, min_size=1, max_size=30)), draw(st.lists(st.integers(0, 30), max_size=8, unique=True))


def edits_at(cuts: list[int]) -> Edits:
    """Edits between every other pair of the sorted cuts, in each record where they fit."""

    def edits(records: Iterator[Record]) -> Iterator[list[Edit]]:
        for record in records:
            ends = sorted(min(cut, len(record.text)) for cut in cuts)
            pairs = zip(ends[::2], ends[1::2], strict=False)
            yield [Edit(start, end, "[X]") for start, end in pairs if start < end]

    return edits


@pytest.mark.parametrize("unit", ["line", "paragraph", "document"])
@given(text_and_cuts())
def test_reading_after_rewriting_gives_the_edited_records(
    tmp_path_factory: pytest.TempPathFactory, unit: str, case: tuple[str, list[int]]
) -> None:
    text, cuts = case
    folder = tmp_path_factory.mktemp("corpus")
    source = folder / "c.txt"
    source.write_bytes(f"first\n\n{text}".encode())
    records = list(read_records(source, unit=unit))
    changes = list(edits_at(cuts)(iter(records)))
    rewrite_corpus(source, folder / "d.txt", edits_at(cuts), Selection(unit=unit))
    expected = [apply_edits(r.text, c).text for r, c in zip(records, changes, strict=True)]
    result = [record.text for record in read_records(folder / "d.txt", unit=unit)]
    assert result == expected


def test_json_lines_keep_every_other_byte(tmp_path: Path) -> None:
    content = (
        b'\xef\xbb\xbf {"n" : 1.0,"text":"\\u0041bc", "z":1e400, "a": [ 1 ] }  \r\n'
        b'\n{"text": "\xc3\xa9\\u00e9\\ud83d\\ude00\\n", "id": "\\u00e9"}'
    )
    assert rewritten(tmp_path, "jsonl", content, nothing) == content
    assert rewritten(tmp_path, "jsonl", content, each(Edit(1, 2, "[É]"))) == (
        '\ufeff {"n" : 1.0,"text":"A[É]c", "z":1e400, "a": [ 1 ] }  \r\n'
        '\n{"text": "é[É]😀\\n", "id": "\\u00e9"}'.encode()
    )


@given(st.text(st.characters(), max_size=12), st.lists(st.integers(0, 12), max_size=4, unique=True))
def test_json_texts_of_any_characters(tmp_path_factory: pytest.TempPathFactory, text: str, cuts: list[int]) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    source = folder / "c.jsonl"
    source.write_text(json.dumps({"a": 1, "text": text, "b": [text]}), "utf-8")
    [record] = read_records(source)
    [changes] = edits_at(cuts)(iter([record]))
    rewrite_corpus(source, folder / "d.jsonl", edits_at(cuts))
    result = json.loads((folder / "d.jsonl").read_text("utf-8"))
    assert list(result.items()) == [("a", 1), ("text", apply_edits(text, changes).text), ("b", [text])]


def test_lone_surrogates_are_written_as_escapes(tmp_path: Path) -> None:
    content = b'{"text": "ab\\ud800"}'
    assert rewritten(tmp_path, "jsonl", content, each(Edit(0, 1, "[A]"))) == b'{"text": "[A]b\\ud800"}'


def test_grouped_objects_keep_their_places(tmp_path: Path) -> None:
    rows = [("ann", "abc"), ("bob", "xyz"), ("ann", "def"), ("ann", "ghi")]
    content = "\n".join(json.dumps({"user": user, "text": text}) for user, text in rows).encode()
    # ann's record is abc\ndef\nghi; the edit runs from c to g.
    result = rewritten(tmp_path, "jsonl", content, each(Edit(2, 9, "[A]")), unit="user")
    assert [json.loads(line) for line in result.splitlines()] == [
        {"user": "ann", "text": "ab[A]"},
        {"user": "bob", "text": "xyz"},
        {"user": "ann", "text": ""},
        {"user": "ann", "text": "hi"},
    ]


def pack(data: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(data)
    return zstandard.ZstdCompressor().compress(data) if suffix == ".zst" else data


def unpack(data: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.decompress(data)
    return zstandard.ZstdDecompressor().decompressobj().decompress(data) if suffix == ".zst" else data


@pytest.mark.parametrize(("source", "target"), [("", ".gz"), (".gz", ".zst"), (".zst", "")])
def test_the_target_is_compressed_as_its_suffix_says(tmp_path: Path, source: str, target: str) -> None:
    content = b"abc\r\n\nabd\n" * 50
    (tmp_path / f"in.txt{source}").write_bytes(pack(content, source))
    rewrite_corpus(tmp_path / f"in.txt{source}", tmp_path / f"out.txt{target}", each(Edit(0, 1, "[A]")))
    assert unpack((tmp_path / f"out.txt{target}").read_bytes(), target) == content.replace(b"a", b"[A]")


def test_compressed_targets_do_not_name_or_date_themselves(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"abc")
    for name in ("one.txt.gz", "two.txt.gz"):
        rewrite_corpus(tmp_path / "in.txt", tmp_path / name, nothing)
    assert (tmp_path / "one.txt.gz").read_bytes() == (tmp_path / "two.txt.gz").read_bytes()


def test_the_target_may_be_the_source(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_bytes(b"abc\nabd")
    rewrite_corpus(path, path, each(Edit(0, 1, "[A]")))
    assert path.read_bytes() == b"[A]bc\n[A]bd"


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"abc\r\n\nb")))
    rewrite_corpus(Path("-"), tmp_path / "out.txt", each(Edit(0, 1, "[A]")))
    assert (tmp_path / "out.txt").read_bytes() == b"[A]bc\r\n\n[A]"


def test_edits_may_look_ahead(tmp_path: Path) -> None:
    def in_one_go(records: Iterator[Record]) -> Iterator[list[Edit]]:
        held = list(records)
        return iter([[Edit(0, 1, str(len(held)))] for _ in held])

    assert rewritten(tmp_path, "txt", b"abc\n\nabd\n", in_one_go) == b"2bc\n\n2bd\n"


def test_a_failure_leaves_the_old_target_and_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"good\n\xff\n")
    (tmp_path / "out.txt").write_bytes(b"old")
    with pytest.raises(InputError, match="line 2 is not UTF-8"):
        rewrite_corpus(tmp_path / "in.txt", tmp_path / "out.txt", nothing)
    assert (tmp_path / "out.txt").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_too_few_edits_are_a_programming_error_and_write_nothing(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"a\nb\nc\n")
    with pytest.raises(ValueError, match="one sequence for every record"):
        rewrite_corpus(tmp_path / "in.txt", tmp_path / "out.txt", lambda records: [() for _ in [next(records)]])
    assert not (tmp_path / "out.txt").exists()


def test_targets_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"a")
    with pytest.raises(InputError, match="is not a folder"):
        rewrite_corpus(tmp_path / "in.txt", tmp_path / "no" / "out.txt", nothing)
    with pytest.raises(InputError, match="is a folder"):
        rewrite_corpus(tmp_path / "in.txt", tmp_path, nothing)
    with pytest.raises(UsageError, match=r"in.txt is plain text but .*out.jsonl would be JSON Lines"):
        rewrite_corpus(tmp_path / "in.txt", tmp_path / "out.jsonl", nothing)
