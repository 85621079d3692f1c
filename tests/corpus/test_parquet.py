"""Parquet: what is a row, what stays when it is rewritten, and what is refused."""

import errno
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.corpus import parquet
from atdp_cli.corpus.edits import Edit
from atdp_cli.corpus.record import Record
from atdp_cli.corpus.rewrite import Edits, rewrite_corpus
from atdp_cli.corpus.segments import Selection
from atdp_cli.errors import InputError, RunError, UsageError
from tests.corpus.corpora import nothing, pairs


def written(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = folder / "in.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


def marked(records: Iterator[Record]) -> Iterator[list[Edit]]:
    return ([Edit(0, 1, f"[{record.id}]")] if record.text else [] for record in records)


def rewritten(source: Path, edits: Edits, **options: Any) -> pq.ParquetFile:
    target = source.with_name("out.parquet")
    rewrite_corpus(source, target, edits, Selection(**options))
    return pq.ParquetFile(target)


def test_rows_are_records(tmp_path: Path) -> None:
    path = written(tmp_path, {"n": [1.5, 2.5], "text": ["a\nb", ""], "key": [7, 8]}, row_group_size=1)
    assert pairs(path) == [("1", "a\nb"), ("2", "")]
    assert pairs(path, id_field="key") == [("7", "a\nb"), ("8", "")]


def test_rows_that_share_a_column_are_one_record(tmp_path: Path) -> None:
    users = pa.array(["ann", "bob", "ann"]).dictionary_encode()
    path = written(tmp_path, {"text": ["1", "2", "3"], "user": users})
    assert pairs(path, unit="user") == [("ann", "1\n3"), ("bob", "2")]
    result = rewritten(path, marked, unit="user").read()
    assert result["text"].to_pylist() == ["[ann]", "[bob]", "3"]
    assert result["user"].type == users.type


@pytest.mark.parametrize("strings", [pa.string(), pa.large_string()])
def test_a_dictionary_of_texts_may_grow(tmp_path: Path, strings: Any) -> None:
    """Indices of 8 bits, as of a category of pandas, number 128 texts."""
    texts = pa.array(["a", "b"] * 200).cast(strings).dictionary_encode().cast(pa.dictionary(pa.int8(), strings))
    path = written(tmp_path, {"n": range(400), "text": texts}, row_group_size=150)
    result = rewritten(path, marked).read()
    assert result["text"].to_pylist() == [f"[{row + 1}]" for row in range(400)]
    assert pa.types.is_dictionary(result["text"].type)
    assert result["n"].to_pylist() == list(range(400))


def test_texts_as_views(tmp_path: Path) -> None:
    path = written(tmp_path, {"text": pa.array(["a", "b"], pa.string_view())})
    result = rewritten(path, marked).read()
    assert (result["text"].to_pylist(), result["text"].type) == (["[1]", "[2]"], pa.string_view())


VALUES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "int": (pa.int16(), st.integers(-5, 5)),
    "float": (pa.float64(), st.floats(allow_nan=False)),
    "decimal": (pa.decimal128(9, 2), st.just(Decimal("1.25"))),
    "day": (pa.date32(), st.just(date(2020, 2, 29))),
    "time": (pa.timestamp("us", "UTC"), st.just(datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC))),
    "bytes": (pa.binary(), st.binary(max_size=4)),
    "list": (pa.list_(pa.string()), st.lists(st.just("é"), max_size=3)),
    "struct": (pa.struct([("a", pa.int8()), ("text", pa.string())]), st.just({"a": 1, "text": "x"})),
}


@pytest.mark.ci
@given(
    data=st.data(),
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), min_size=1, max_size=20),
    wide=st.booleans(),
    group=st.integers(1, 7),
)
@settings(max_examples=60)
def test_everything_but_the_texts_stays(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, texts: list[str], wide: bool, group: int
) -> None:
    columns = {
        name: pa.array([data.draw(st.none() | values) for _ in texts], kind) for name, (kind, values) in VALUES.items()
    }
    columns["text"] = pa.array(texts, pa.large_string() if wide else pa.string())
    table = pa.table(columns).replace_schema_metadata({"owner": "é", "pandas": "{}"})
    folder = tmp_path_factory.mktemp("corpus")
    path = folder / "in.parquet"
    pq.write_table(table, path, row_group_size=group, compression="ZSTD")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parquet, "_ROWS", 3)
        table = pq.ParquetFile(path).read()
        assert rewritten(path, nothing).read().equals(table, check_metadata=True)
        result = rewritten(path, marked)
    expected = [f"[{at}]{text[1:]}" if text else "" for at, text in enumerate(texts, start=1)]
    assert result.read()["text"].to_pylist() == expected
    assert result.schema_arrow.equals(table.schema, check_metadata=True)
    assert result.read().drop(["text"]).equals(table.drop(["text"]))


@pytest.mark.parametrize("codec", ["NONE", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4", {"text": "GZIP", "n": "ZSTD"}])
def test_the_codecs_stay(tmp_path: Path, codec: str | dict[str, str]) -> None:
    path = written(tmp_path, {"text": ["a"] * 9, "n": [1] * 9}, compression=codec)
    groups = [pq.ParquetFile(path).metadata.row_group(0), rewritten(path, nothing).metadata.row_group(0)]
    kept, actual = ([group.column(at).compression for at in range(2)] for group in groups)
    assert actual == kept


def test_no_statistics_of_the_old_text_are_left(tmp_path: Path) -> None:
    path = written(tmp_path, {"text": ["secret"]})
    result = rewritten(path, lambda records: ([Edit(0, 6, "[X]")] for _ in records))
    assert result.metadata.row_group(0).column(0).statistics.min == "[X]"
    assert b"secret" not in path.with_name("out.parquet").read_bytes()


def test_many_row_groups_and_the_target_as_source(tmp_path: Path) -> None:
    path = written(tmp_path, {"text": [f"text {n}" for n in range(20_000)]}, row_group_size=3_000)
    rewrite_corpus(path, path, marked)
    texts = pq.read_table(path)["text"].to_pylist()
    assert texts == [f"[{n + 1}]ext {n}" for n in range(20_000)]


@pytest.mark.ci
def test_memory_does_not_grow_with_the_row_groups(tmp_path: Path) -> None:
    def peak(groups: int) -> int:
        texts = [f"{n * 7919 % 10007:0200}" for n in range(groups * 500)]
        path = written(tmp_path, {"text": texts}, row_group_size=500, compression="NONE", use_dictionary=False)
        tracemalloc.start()
        rewritten(path, nothing)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(1)  # what is imported on the way
    assert peak(40) < peak(4) + 500_000


MALFORMED: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({"body": ["secret"]}, {}, r"in.parquet has no column text among its 1"),
    ({"text": [1]}, {}, r"the column text holds neither strings nor lists of messages"),
    ({"text": [b"secret"]}, {}, r"the column text holds neither strings nor lists of messages"),
    ({"text": ["secret", None]}, {}, r"row 2 has no value in the column text"),
    ({"text": ["secret"], "key": [1.5]}, {"id_field": "key"}, r"the column key holds neither strings nor whole"),
    ({"text": ["secret"], "key": [True]}, {"unit": "key"}, r"the column key holds neither strings nor whole"),
    ({"text": ["secret"] * 3, "key": [1, 2, None]}, {"unit": "key"}, r"row 3 has no value in the column key"),
    ({"text": ["secret"]}, {"id_field": "key"}, r"has no column key among its 1"),
    ({"text": pa.array([], pa.string())}, {}, r"holds no records"),
    (
        {"text": pa.StringArray.from_buffers(1, pa.array([0, 3], pa.int32()).buffers()[1], pa.py_buffer(b"se\xff"))},
        {},
        r"row 1: the column text is not UTF-8",
    ),
]


@pytest.mark.parametrize(("columns", "options", "message"), MALFORMED)
def test_malformed_files_give_one_line_without_text(
    tmp_path: Path, columns: dict[str, Any], options: dict[str, str], message: str
) -> None:
    path = written(tmp_path, columns)
    for read in (lambda: pairs(path, **options), lambda: rewritten(path, nothing, **options)):
        with pytest.raises(InputError, match=message) as caught:
            read()
        assert "\n" not in str(caught.value)
        assert "secret" not in str(caught.value)
    assert [each.name for each in tmp_path.iterdir()] == ["in.parquet"]


def test_a_full_disk_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = written(tmp_path, {"text": ["a"]})
    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    with pytest.raises(RunError, match=r"out.parquet could not be written \(No space left"):
        rewritten(path, nothing)
    assert [each.name for each in tmp_path.iterdir()] == ["in.parquet"]


def test_a_column_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 2, ["text", "text"]), path)
    with pytest.raises(InputError, match="has the column text more than once"):
        pairs(path)


def test_damaged_files(tmp_path: Path) -> None:
    texts = [f"secret {n * 7919 % 5003}" for n in range(5_000)]
    path = written(tmp_path, {"text": texts}, row_group_size=1_000, use_dictionary=False, compression="ZSTD")
    whole = path.read_bytes()
    half = len(whole) // 2
    for damaged in (b"", b"text", whole[:half], whole[half:], whole[:half] + b"\0" * 99 + whole[half + 99 :]):
        path.write_bytes(damaged)
        for read in (pairs, lambda path: rewritten(path, nothing)):
            with pytest.raises(InputError, match=r"is not Parquet, or damaged") as caught:
                read(path)
            assert "\n" not in str(caught.value)
    assert [each.name for each in tmp_path.iterdir()] == ["in.parquet"]


def test_other_formats_and_units_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {"text": ["a"]})
    with pytest.raises(UsageError, match=r"is Parquet but .* would be CSV"):
        rewrite_corpus(path, tmp_path / "out.csv", nothing)
    with pytest.raises(InputError, match="Parquet is compressed inside"):
        rewrite_corpus(path, tmp_path / "out.parquet.gz", nothing)
    with pytest.raises(UsageError, match=r"is for plain text, and .* is Parquet"):
        pairs(path, unit="document")
