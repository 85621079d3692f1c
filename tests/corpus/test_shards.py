"""Shards: each record in exactly one, and the parts of a rewritten file make the file of the whole."""

import gzip
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from atdp_cli.corpus.edits import Edit
from atdp_cli.corpus.record import Record, read_records
from atdp_cli.corpus.rewrite import rewrite_corpus
from atdp_cli.corpus.segments import Selection, Shard, parse_shard
from atdp_cli.errors import InputError, UsageError
from tests.corpus.corpora import written

LINES = [
    b"Maria met Tom.\n",
    b"\n",
    b" \t\r\n",
    "\N{NO-BREAK SPACE}\n".encode(),
    b"\xff\n",
    b"x\r\n",
    b"y " * 50 + b"\n",
]
OBJECTS = [
    b'{"text": "Maria", "id": 1}\n',
    b'{"id": 7, "text": "a\\nb"}\r\n',
    b"\n",
    b"no JSON\n",
    b'{"text": 3}\n',
    b'{"text": "' + b"z" * 60 + b'"}\n',
    b"\xff\n",
]
ROWS = [b"1,Maria\n", b'2,"two\n\nlines, ""quoted"""\r\n', b"\n", b"3\n", b'4,"\xff\n"\n', b"5," + b"w" * 60 + b"\n"]


def _unzstd(data: bytes) -> bytes:
    """Every frame, one after another."""
    return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}
UNPACKED: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.decompress, ".zst": _unzstd}

shards_of = st.integers(1, 7)
few = settings(max_examples=30)  # every part is a file that is flushed to disk


@dataclass(frozen=True)
class Read:
    """What came out of a corpus or a part: its file, its records' ids and texts, and what was skipped."""

    content: bytes
    records: list[tuple[str, str]]
    skipped: list[str]
    counted: int


def read(path: Path, shard: Shard | None, **options: Any) -> Read:
    target = path.with_name(f"out-{path.name}")
    skipped: list[str] = []
    seen: list[tuple[str, str]] = []

    def marked(records: Iterator[Record]) -> Iterator[list[Edit]]:
        for record in records:
            seen.append((record.id, record.text))
            yield [Edit(0, 1, f"[{record.id}]")]

    rewrite_corpus(path, target, marked, Selection(shard=shard, **options), lambda error: skipped.append(error.problem))
    listed = [(r.id, r.text) for r in read_records(path, on_error=lambda _: None, shard=shard, **options)]
    assert listed == seen
    return Read(target.read_bytes(), seen, skipped, len(seen))


def check_parts(content: bytes, name: str, parts: int, **options: Any) -> None:
    suffix = Path(name).suffix
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(PACKED.get(suffix, bytes)(content))
        try:
            whole = read(path, None, **options)
        except InputError:  # without any record the whole is refused, and no part is
            assume(False)
        actual = [read(path, Shard(number, parts), **options) for number in range(1, parts + 1)]
        joined = b"".join(part.content for part in actual)
        unpacked = UNPACKED.get(suffix, bytes)
        assert unpacked(joined) == unpacked(whole.content)
        assert suffix in (".gz", ".zst") or joined == whole.content
        assert [record for part in actual for record in part.records] == whole.records
        assert [problem for part in actual for problem in part.skipped] == whole.skipped
        assert sum(part.counted for part in actual) == whole.counted


def contents(pieces: list[bytes]) -> st.SearchStrategy[bytes]:
    """Lines in any order, the last perhaps without its ending, perhaps behind a byte order mark."""
    joined = st.lists(st.sampled_from(pieces), max_size=12).map(b"".join)
    whole = st.tuples(joined, st.sampled_from([b"", b"end"])).map(b"".join)
    return st.tuples(st.sampled_from([b"", b"\xef\xbb\xbf"]), whole).map(b"".join)


@pytest.mark.ci
@few
@given(
    content=contents(LINES),
    parts=shards_of,
    unit=st.sampled_from(["line", "paragraph"]),
    packed=st.sampled_from(sorted(PACKED)),
)
def test_parts_of_plain_text_make_the_whole(content: bytes, parts: int, unit: str, packed: str) -> None:
    check_parts(content, f"c.txt{packed}", parts, unit=unit)


@pytest.mark.ci
@few
@given(content=contents(OBJECTS), parts=shards_of, packed=st.sampled_from(sorted(PACKED)))
def test_parts_of_json_lines_make_the_whole(content: bytes, parts: int, packed: str) -> None:
    check_parts(content, f"c.jsonl{packed}", parts)


@pytest.mark.ci
@few
@given(content=contents(ROWS), parts=shards_of, packed=st.sampled_from(sorted(PACKED)), key=st.booleans())
def test_parts_of_csv_make_the_whole_with_one_header(content: bytes, parts: int, packed: str, key: bool) -> None:
    mark = content.startswith(b"\xef\xbb\xbf")
    whole = b"\xef\xbb\xbf" * mark + b"\nn,text\n" + content[3 * mark :]
    check_parts(whole, f"c.csv{packed}", parts, id_field="n" if key else None)


@pytest.mark.ci
@few
@given(
    texts=st.lists(st.text("ab\n", min_size=1, max_size=3), min_size=1, max_size=12), parts=shards_of, data=st.data()
)
def test_parts_of_parquet_are_files_with_the_rows_of_the_whole(
    texts: list[str], parts: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.parquet"
        columns = {"n": list(range(len(texts))), "text": texts}
        pq.write_table(pa.table(columns), path, row_group_size=data.draw(st.integers(1, len(texts))))
        whole = read(path, None)
        tables, records = [], []
        for number in range(1, parts + 1):
            part = read(path, Shard(number, parts))
            tables.append(pq.read_table(pa.BufferReader(part.content)))
            records += part.records
            assert part.counted == tables[-1].num_rows in (len(texts) // parts, -(-len(texts) // parts))
        assert pa.concat_tables(tables).equals(pq.read_table(pa.BufferReader(whole.content)))
        assert records == whole.records


@given(size=st.integers(0, 10_000), parts=st.integers(1, 200))
def test_stretches_follow_one_another_and_differ_by_one_at_most(size: int, parts: int) -> None:
    stretches = [Shard(number, parts).stretch(size) for number in range(1, parts + 1)]
    assert [place for stretch in stretches for place in stretch] == list(range(size))
    assert {len(stretch) for stretch in stretches} <= {size // parts, -(-size // parts)}
    assert size == 0 or 0 in stretches[0]


def test_a_part_is_as_large_as_its_share_but_for_the_line_at_its_end(tmp_path: Path) -> None:
    path = written(tmp_path, "c.txt", "".join(f"line {'x' * (number % 37)}\n" for number in range(1000)))
    sizes = [len(read(path, Shard(number, 7)).content) for number in range(1, 8)]
    marks = [sum(len(f"[{id_}]") - 1 for id_, _ in read(path, Shard(number, 7)).records) for number in range(1, 8)]
    share = path.stat().st_size / 7
    assert all(abs(size - mark - share) <= 43 for size, mark in zip(sizes, marks, strict=True))


def test_what_another_part_cannot_read_is_not_this_ones_matter(tmp_path: Path) -> None:
    path = written(tmp_path, "c.txt", b"a\nb\n" + b"\xff\n\n")
    assert [r.text for r in read_records(path, shard=Shard(1, 2))] == ["a", "b"]
    with pytest.raises(InputError, match="line 3 is not UTF-8"):
        list(read_records(path, shard=Shard(2, 2)))


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b", " 1/2", "1.0/2", "1/2\n"])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"Give I/N with 1 ≤ I ≤ N, such as 3/64\."):
        parse_shard(text)


def test_parts_as_they_are_written() -> None:
    assert parse_shard("3/64") == Shard(3, 64)
    assert str(Shard(3, 64)) == "3/64"


@pytest.mark.parametrize(
    ("name", "unit", "message"),
    [
        ("c.txt", "document", "splits a corpus between records, and --privacy-unit document makes it one record"),
        ("c.jsonl", "who", "records that stand together, and --privacy-unit who gathers them from the whole file"),
    ],
)
def test_units_that_cannot_be_parted_are_refused(tmp_path: Path, name: str, unit: str, message: str) -> None:
    path = written(tmp_path, name, '{"text": "a", "who": 1}\n')
    with pytest.raises(UsageError, match=message):
        read_records(path, unit=unit, shard=Shard(1, 2))


def test_standard_input_has_no_size() -> None:
    with pytest.raises(UsageError, match="standard input has none"):
        read_records(Path("-"), shard=Shard(1, 1))
