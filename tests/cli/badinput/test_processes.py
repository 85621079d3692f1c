"""Inputs that would fill the memory or never end, and rows of the table, in processes of their own."""

import gzip
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from tests.cli.badinput.case import SECRET, Case, Make, assert_one_line, line
from tests.cli.badinput.test_table import CASES, listing
from tests.forked import run_forked

MEMORY = 2 << 30
"""Bytes of address space that a command may take beyond its libraries, its threads' stacks included."""

SECONDS = 10.0
"""Of processor time, without what starting takes, which the server has done."""

PATIENCE = 120
"""Seconds by the clock after which a command hangs, on a machine that does other things as well."""

MEBIBYTE = b"x" * (1 << 20)


def blocks(block: bytes, size: int) -> Iterator[bytes]:
    """So many bytes."""
    return (block for _ in range(size // len(block)))


def plain(name: str, block: bytes, size: int, head: bytes = b"") -> Make:
    """A large file."""

    def make(place: Path) -> None:
        with (place / name).open("wb") as stream:
            stream.write(head)
            stream.writelines(blocks(block, size))

    return make


def gzipped(name: str, block: bytes, size: int) -> Make:
    """A small file that unpacks to a large one."""

    def make(place: Path) -> None:
        with gzip.open(place / name, "wb", compresslevel=9) as stream:
            for chunk in blocks(block, size):
                stream.write(chunk)

    return make


def packed(name: str, block: bytes, size: int) -> Make:
    """The same by zstd, which packs far more."""

    def make(place: Path) -> None:
        with (place / name).open("wb") as stream, zstandard.ZstdCompressor(level=3).stream_writer(stream) as packing:
            for chunk in blocks(block, size):
                packing.write(chunk)

    return make


def sparse(name: str, size: int) -> Make:
    """A file of zeros that takes no room."""

    def make(place: Path) -> None:
        with (place / name).open("wb") as stream:
            stream.truncate(size)

    return make


REDACT = line("redact -o o.txt --spans spans.jsonl")
HARDEN = line("harden model -o out --set run.store=none --data")
SHORT_LINES = (SECRET.encode() + b" is so.\n") * 1000

LARGE = (
    Case(
        "a line of 200 MB",
        (*REDACT, "c.txt"),
        "c.txt: line 1 is longer than 64 MiB",
        plain("c.txt", MEBIBYTE, 200 << 20),
    ),
    Case(
        "a line of 200 MB in JSON Lines",
        line("redact c.jsonl -o o.jsonl --spans spans.jsonl"),
        "c.jsonl: line 1 is longer than 64 MiB",
        plain("c.jsonl", MEBIBYTE, 200 << 20),
    ),
    Case(
        "a row of 200 MB whose quote stays open",
        line("redact c.csv -o o.csv --spans spans.jsonl"),
        "c.csv: the row that begins on line 2 is longer than 64 MiB",
        plain("c.csv", MEBIBYTE[:-1] + b"\n", 200 << 20, head=b'text\n"'),
    ),
    Case(
        "a row of many short lines whose quote stays open",
        line("redact c.csv -o o.csv --spans spans.jsonl"),
        "c.csv: the row that begins on line 2 is longer than 1,000,000 lines",
        plain("c.csv", b"x\n" * (1 << 19), 200 << 20, head=b'text\n"'),
    ),
    Case(
        "gzip of a gigabyte in a line",
        (*REDACT, "c.txt.gz"),
        "c.txt.gz: line 1 is longer than 64 MiB",
        gzipped("c.txt.gz", b"\0" * (1 << 24), 1 << 30),
    ),
    Case(
        "gzip of many short lines",
        (*HARDEN, "c.txt.gz"),
        "c.txt.gz unpacks to more than 200 times its size",
        gzipped("c.txt.gz", SHORT_LINES * 500, 1 << 28),
    ),
    Case(
        "zstd of two gigabytes in a line",
        (*REDACT, "c.txt.zst"),
        "c.txt.zst: line 1 is longer than 64 MiB",
        packed("c.txt.zst", b"\0" * (1 << 24), 2 << 30),
    ),
    Case(
        "zstd of many short lines",
        line("plant-canary c.txt.zst -o o.txt.zst --manifest m.json --tokenizer model"),
        "c.txt.zst unpacks to more than 200 times its size",
        packed("c.txt.zst", SHORT_LINES * 500, 1 << 28),
    ),
    Case(
        "a configuration of ten gigabytes",
        (*HARDEN, "corpus.txt"),
        "model/config.json is not valid JSON",
        sparse("model/config.json", 10 << 30),
    ),
    Case(
        "a ledger of ten gigabytes",
        line("account l.json"),
        "l.json cannot be read as a ledger",
        sparse("l.json", 10 << 30),
    ),
)

SOME = {
    "header of 2⁶³ bytes",
    "layers by the million",
    "pickle pytorch_model.bin",
    "index names a file above",
    "width of a billion",
    "a link to itself for a model",
    "spans beyond the record",
    "key of pseudonyms without end",
    "recipe file cut",
    "ledger of 10³⁰⁰ steps",
    "report without end",
    "recipe file nested deep",
}


@pytest.fixture
def place(tmp_path: Path, checkpoint_folder: Path, lines: list[str]) -> Path:
    """A folder with a model, and a corpus that holds the secret."""
    shutil.copytree(checkpoint_folder, tmp_path / "model")
    (tmp_path / "corpus.txt").write_text("".join(f"{SECRET} {line}\n" for line in lines[:40]))
    (tmp_path / "spans.jsonl").write_text('{"id": "1", "spans": []}\n')
    return tmp_path


def names_and_sizes(place: Path) -> dict[Path, int]:
    """All that lies in a folder."""
    return {file: file.stat().st_size for file in place.rglob("*") if file.is_file()}


@pytest.fixture
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a command's output goes."""
    return tmp_path_factory.mktemp("printed")


def check(case: Case, place: Path, files: Path, look: Callable[[Path], object]) -> None:
    """Run the case, and hold it to its row."""
    case.make(place)
    before = look(place)
    actual = run_forked(case.command, place, files, memory=MEMORY, patience=PATIENCE)
    assert_one_line(actual.err, case)
    assert actual.code == case.code
    assert actual.out == ""
    assert actual.seconds < SECONDS
    assert look(place) == before


@pytest.mark.ci
def test_a_good_command_has_memory_enough(place: Path, files: Path) -> None:
    good = ["harden", "model", "--data", "corpus.txt", "--dry-run", "--set", "run.store=none"]
    assert run_forked(good, place, files, memory=MEMORY, patience=PATIENCE).code == 0


@pytest.mark.ci
@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.name)
def test_what_would_fill_the_memory_is_refused(case: Case, place: Path, files: Path) -> None:
    check(case, place, files, names_and_sizes)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("case", [case for case in CASES if case.name in SOME], ids=lambda case: case.name)
def test_a_row_of_the_table_in_a_process_of_its_own(case: Case, place: Path, files: Path) -> None:
    check(case, place, files, listing)
