"""Corpora of every format and compression, spans files and review queues that were damaged or never whole."""

import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import zstandard

from atdp_cli.corpus.record import read_records
from atdp_cli.corpus.rewrite import rewrite_corpus
from atdp_cli.corpus.segments import Selection
from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.review.queue import Header, Masked, QueueEntry, read_queue
from atdp_cli.detection.span_file import read_spans, spans_line
from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import raise_error
from tests.fuzz.damage import BYTES, VALUES, altered, damaged, node_of, noise, soup, text_of
from tests.fuzz.survival import INPUTS, SECRET, Choices, Make, survive

FIELDS = (
    Selection(),
    Selection(id_field="id"),
    Selection(unit="id"),
    Selection(unit="a"),
    Selection(text_field="a"),
    Selection(text_field="id"),
)
"""Ways to read a corpus that has fields; plain text has its own."""

UNITS = (Selection(), Selection(unit="paragraph"), Selection(unit="document"))

Case = tuple[bytes, Selection, bool]
"""A file, how it is read, and whether what cannot be read is skipped."""

WORD = SECRET.encode()
JSONL = b'{"id": 7, "text": "%s one", "a": [1]}\n\n{"text": "\\u00e9 %s", "id": "b", "a": null}\r\n' % (WORD, WORD)
CSV = b'id,text,a\n7,"%s, ""one""\nand on",x\r\n\n8,%s,\n' % (WORD, WORD)
TEXT = b"\xef\xbb\xbfMy %s is one\r\n\n  \nand \xc3\xa9 two\nthree" % WORD

SPECIAL = (b'"', b'""', b",", b"\t", b"\n", b"\r\n", b"\r", b"\0", b"\xef\xbb\xbf", b"\xff", b"text", b"id", WORD, b" ")
LINES = {
    "txt": (TEXT, SPECIAL),
    "jsonl": (
        JSONL,
        (*BYTES, WORD, b'{"text": ', b'"id": ', b'"a"', b"\n", b", ", b": ", *(value.encode() for value in VALUES)),
    ),
    "csv": (CSV, (b"id,text,a\n", *SPECIAL)),
    "tsv": (CSV.replace(b",", b"\t"), (b"id\ttext\ta\n", *SPECIAL)),
}


def as_cases(make: Make[bytes], ways: Sequence[Selection]) -> Make[Case]:
    """Files read in one of these ways."""
    return lambda choices: (make(choices), choices.of(ways), choices.below(2) == 1)


def skip(error: InputError) -> None:
    """What cannot be read is left out."""


def reading(path: Path) -> Callable[[Case], None]:
    """Reads a case at this path."""

    def read(case: Case) -> None:
        content, how, skips = case
        path.write_bytes(content)
        on_error = skip if skips else raise_error
        for _ in read_records(path, unit=how.unit, text_field=how.text_field, id_field=how.id_field, on_error=on_error):
            pass

    return read


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("kind", LINES)
def test_lines(kind: str, inputs: int, tmp_path: Path) -> None:
    whole, pieces = LINES[kind]
    ways = UNITS if kind == "txt" else FIELDS
    makes = [as_cases(make, ways) for make in (damaged(whole), soup(*pieces), noise)]
    survive(inputs, makes, reading(tmp_path / f"corpus.{kind}"), valid=[(whole, Selection(), False)])


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda content: gzip.compress(content, 1, mtime=0),
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("compression", PACK)
def test_compressed(compression: str, inputs: int, tmp_path: Path) -> None:
    pack = PACK[compression]
    whole = (pack(TEXT), pack(TEXT) * 2, pack(b""), pack(TEXT * 40), pack(b"a" * (1 << 20)))
    within = soup(*SPECIAL)
    makes = [as_cases(make, UNITS) for make in (damaged(*whole), lambda choices: pack(within(choices)), noise)]
    survive(
        inputs,
        makes,
        reading(tmp_path / f"corpus.txt.{compression}"),
        valid=[(packed, Selection(), True) for packed in whole[:2]],
    )


def parquet_files() -> list[bytes]:
    """A few rows as programs write them: plain and dictionary encoded, compressed or not, with checksums."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "text": [f"{SECRET} one", "", "three"],
            "a": pa.array([{"b": [1]}, None, {"b": []}]),
        }
    )
    files = []
    for options in (
        {"compression": "NONE", "use_dictionary": False},
        {"compression": "ZSTD"},
        {"compression": "SNAPPY", "data_page_version": "2.0", "store_schema": False},
        {"compression": "GZIP", "row_group_size": 1, "write_page_checksum": True},
    ):
        stream = io.BytesIO()
        pq.write_table(table, stream, **options)
        files.append(stream.getvalue())
    return files


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_parquet(inputs: int, tmp_path: Path) -> None:
    path, target = tmp_path / "corpus.parquet", tmp_path / "out.parquet"
    files = parquet_files()
    read = reading(path)

    def read_and_rewrite(case: Case) -> None:
        read(case)
        rewrite_corpus(path, target, lambda records: (() for _ in records), case[1])

    makes = [as_cases(make, FIELDS) for make in (damaged(*files), noise)]
    survive(inputs, [makes[0], *makes], read_and_rewrite, valid=[(file, Selection(), False) for file in files])


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_spans_files(inputs: int, tmp_path: Path) -> None:
    corpus, path = tmp_path / "corpus.txt", tmp_path / "spans.jsonl"
    corpus.write_text(f"{SECRET} one\ntwo\nthree\n")
    lines = [
        spans_line("1", [Span(0, 5, "PERSON", "ner", Tier.LOW_ENTITY), Span(6, 12, "ID", "deny", Tier.LOW_ENTITY)]),
        spans_line("2", []),
        spans_line("3", [Span(0, 3, "ORG", "ner", Tier.LOW_ENTITY)]),
    ]
    whole = "\n".join(lines).encode()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        for _ in read_spans(path, read_records(corpus)):
            pass

    survive(inputs, [one_altered(lines), one_altered(lines), damaged(whole), noise], read, valid=[whole])


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_review_queues(inputs: int, tmp_path: Path) -> None:
    path = tmp_path / "queue.jsonl"
    flagged = QueueEntry(
        id="1",
        record=0,
        start=0,
        end=16,
        stratum="flagged",
        stands_for=10.0,
        masked="[1:PERSON] and [2:ORG]",
        spans=(
            Masked(start=0, end=5, label="PERSON", source="ner"),
            Masked(start=10, end=16, label="ORG", source="ner"),
        ),
    )
    plain = QueueEntry(id="2", record=1, start=0, end=12, stratum="unflagged", stands_for=1.5, masked=SECRET, spans=())
    header = Header(corpora=("/a/corpus.txt",), tier=Tier.LOW_ENTITY, review_share=0.5)
    lines = [line.model_dump_json() for line in (header, flagged, plain)]
    whole = "\n".join(lines).encode()

    def read(content: bytes) -> None:
        path.write_bytes(content)
        for entry in read_queue(path).entries:
            entry.pieces()

    survive(inputs, [one_altered(lines), one_altered(lines), damaged(whole), noise], read, valid=[whole])


def one_altered(lines: list[str]) -> Make[bytes]:
    """JSON Lines, one of them with up to two places changed."""
    nodes = [node_of(json.loads(line)) for line in lines]

    def build(choices: Choices) -> bytes:
        at = choices.below(len(lines))
        node = altered(choices, nodes[at])
        if choices.below(2):
            node = altered(choices, node)
        return "\n".join([*lines[:at], text_of(node), *lines[at + 1 :]]).encode("utf-8", "surrogatepass")

    return build
