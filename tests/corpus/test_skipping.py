"""Lines and rows that cannot be read: skipped where the caller says so, and left out of what is written."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atdp_cli.corpus.record import read_records
from atdp_cli.corpus.rewrite import rewrite_corpus
from atdp_cli.corpus.segments import Selection
from atdp_cli.errors import InputError
from tests.corpus.corpora import nothing

CASES: list[tuple[str, str, bytes, bytes, list[str]]] = [
    ("c.txt", "line", b"a\n\xff\n\nb", b"a\n\nb", ["2"]),
    ("c.txt", "paragraph", b"\xff\na\n\xff\nb\n", b"a\nb\n", ["1", "3"]),
    ("c.txt", "document", b"a\n\xff\nb\n", b"a\nb\n", ["2"]),
    (
        "c.jsonl",
        "line",
        b'{"text": "a"}\r\n{"text": \n[1]\n{"text": 1}\n{}\n\xff\n\n{"text": "b"}\n',
        b'{"text": "a"}\r\n\n{"text": "b"}\n',
        ["2", "3", "4", "5", "6"],
    ),
    ("c.jsonl", "u", b'{"text": "a", "u": 1}\n{"text": "b"}\n', b'{"text": "a", "u": 1}\n', ["2"]),
    (
        "c.csv",
        "line",
        b'n,text\r\n1,a\r\n2\r\n"x\r\n\xff",b\r\n"3" x,c\r\n4,d\0\r\n5,"e\r\nf"\r\n6,g,h',
        b'n,text\r\n1,a\r\n5,"e\r\nf"\r\n',
        ["3", "5", "6", "7", "10"],
    ),
    ("c.csv", "n", b"n,text\n1,a\n2\n1,b\n", b"n,text\n1,a\n1,b\n", ["3"]),
]


@pytest.mark.parametrize(("name", "unit", "content", "kept", "numbers"), CASES)
def test_what_is_skipped_is_reported_and_left_out(
    tmp_path: Path, *, name: str, unit: str, content: bytes, kept: bytes, numbers: list[str]
) -> None:
    source, target = tmp_path / name, tmp_path / f"out.{name}"
    source.write_bytes(content)
    errors: list[InputError] = []
    records = list(read_records(source, unit=unit, on_error=errors.append))
    assert [error.problem.partition("line ")[2].strip(".").split()[0].strip(":") for error in errors] == numbers
    again: list[InputError] = []
    rewrite_corpus(source, target, nothing, Selection(unit=unit), on_error=again.append)
    assert list(map(str, again)) == list(map(str, errors))
    assert target.read_bytes() == kept
    assert [record.text for record in read_records(target, unit=unit)] == [record.text for record in records]


@pytest.mark.parametrize("unit", ["line", "n"])
def test_rows_of_parquet(tmp_path: Path, unit: str) -> None:
    table = pa.table({"text": ["a", None, "c", "d"], "n": [1, 2, 1, None], "deep": [[{"x": 1}], None, [], [{"x": 2}]]})
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source, row_group_size=2)
    errors: list[InputError] = []
    rewrite_corpus(source, target, nothing, Selection(unit=unit), on_error=errors.append)
    kept = [0, 2, 3] if unit == "line" else [0, 2]
    assert len(errors) == 4 - len(kept)
    assert pq.read_table(target).equals(table.take(kept))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.csv", b"body\na\n", "no column text"),
        ("c.csv", b"te\xffxt\na\n", "line 1 is not UTF-8"),
        ("c.csv", b'text\na\n"b\nc\n', "never closed"),
        ("c.parquet", b"junk", "not Parquet"),
        ("c.txt.gz", b"junk", "damaged"),
        ("c.txt", b"\xff\n", "holds no records"),
    ],
)
def test_what_concerns_the_whole_file_is_not_skipped(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_records(tmp_path / name, on_error=lambda _: None))
