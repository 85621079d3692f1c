"""Corpus files: formats by suffix, and lines of text with bounds on what a file may do to the memory."""

import codecs
import contextlib
import functools
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Literal, Protocol

from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.documents import open_regular

_COMPRESSIONS = (".gz", ".zst")

BLOCK_BYTES = 512
"""Bytes of a Zstandard file that are unpacked at once: to 16 MiB at worst."""


class Writable(Protocol):
    """A stream that a file is written through."""

    def write(self, data: bytes, /) -> int:
        """Write all of `data`."""


def compression_of(path: Path) -> str:
    """`.gz`, `.zst`, or the empty string."""
    suffix = path.suffix.lower()
    return suffix if suffix in _COMPRESSIONS else ""


@contextlib.contextmanager
def unpacked(plain: IO[bytes], compression: str) -> Iterator[io.BufferedIOBase | IO[bytes]]:
    """The content of an open file.

    Raises:
        OSError, EOFError, zlib.error: While reading, where it is damaged or cut short.
    """
    if compression == ".gz":
        import gzip

        with gzip.GzipFile(fileobj=plain, mode="rb") as stream:
            yield stream
    elif compression == ".zst":
        yield io.BufferedReader(_Zstandard(plain))
    else:
        yield plain


class _Zstandard(io.RawIOBase):
    """The content of every frame; the library's own reader takes a cut-off frame for the end."""

    def __init__(self, plain: IO[bytes]) -> None:
        self._blocks = _zstandard_blocks(plain)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            if (block := next(self._blocks, None)) is None:
                return 0
            self._rest = memoryview(block)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _zstandard_blocks(plain: IO[bytes]) -> Iterator[bytes]:
    import zstandard

    frame = None
    while block := plain.read(BLOCK_BYTES):
        while block:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                yield frame.decompress(block)
            except zstandard.ZstdError as error:
                raise EOFError from error
            block = b""
            if frame.eof:
                block, frame = frame.unused_data, None
    if frame is not None:
        raise EOFError


@contextlib.contextmanager
def compressed(plain: IO[bytes], compression: str) -> Iterator[Writable]:
    """A stream that compresses into an open file; the same bytes give the same file."""
    if compression == ".gz":
        import gzip

        # No name and no time in the header: neither belongs to the corpus.
        with gzip.GzipFile(filename="", fileobj=plain, mode="wb", mtime=0) as packed:
            yield packed
    elif compression == ".zst":
        import zstandard

        with zstandard.ZstdCompressor().stream_writer(plain, closefd=False) as packed:
            yield packed
    else:
        yield plain


Kind = Literal["text", "jsonl", "csv", "tsv", "parquet"]

KIND_NAMES: dict[Kind, str] = {
    "text": "plain text",
    "jsonl": "JSON Lines",
    "csv": "CSV",
    "tsv": "TSV",
    "parquet": "Parquet",
}

STANDARD_INPUT = STANDARD_OUTPUT = Path("-")
"""The name of the standard streams; never a file, however it is spelled."""

_REGULAR = "Name a regular file; only a corpus may come from a stream."

_STREAM = re.compile(r"/dev/stdin|/(?:dev|proc/self)/fd/([0-9]{1,9})", re.ASCII)

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character of UTF-16, which JSON can smuggle in and UTF-8 cannot write."""

OnError = Callable[[InputError], None]
"""Called with the error of each line or row that cannot be read; it is skipped where this returns."""

MAX_LINE = 1 << 26
"""The most bytes of a line; a longer one is refused before all of it is in memory."""

MAX_PACKED, UNPACKED_ANYWAY = 200, 1 << 23
"""The most times its size that a compressed file may unpack to, and the bytes that it may unpack to in any case. Text
packs to a third, seldom to a twentieth; a file that unpacks to far more is made to fill a disk."""

_KINDS: dict[str, Kind] = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}

_BOM = b"\xef\xbb\xbf"


def raise_error(error: InputError) -> None:
    """The `OnError` that skips nothing."""
    raise error


def display_name(path: Path) -> str:
    """The name of a corpus in messages: the path as the user gave it."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def kind_of(path: Path) -> Kind:
    """The format that a path's suffix names, with `.gz` or `.zst` taken off first.

    Raises:
        InputError: Compressed Parquet, which cannot be read from within.
    """
    name = path.with_suffix("") if compression_of(path) else path
    kind = _KINDS.get(name.suffix.lower(), "text")
    if kind == "parquet" and compression_of(path):
        raise InputError(
            f"{display_name(path)}: Parquet is compressed inside, and cannot be compressed again.",
            "Name the file with .parquet alone.",
        )
    return kind


def is_stream(path: Path) -> bool:
    """Whether a corpus is a stream that the process was started with: `-`, /dev/stdin or /dev/fd/N."""
    return path == STANDARD_INPUT or _STREAM.fullmatch(str(path)) is not None


def is_rereadable(path: Path) -> bool:
    """Whether a corpus can be read twice, and has a size."""
    return path != STANDARD_INPUT and path.is_file()


def check_readable(path: Path) -> None:
    """Raise InputError unless `path` is a stream or an existing regular file of a format that can be read."""
    if path == STANDARD_INPUT:
        return
    if path.is_dir():
        raise InputError(f"{display_name(path)} is a folder.", "Name one corpus file in it.")
    if not path.exists():
        raise InputError(f"{display_name(path)} does not exist.", "Check the path.")
    if not (is_stream(path) or path.is_file()):
        raise InputError(f"{display_name(path)} is not a regular file.", _REGULAR)
    kind_of(path)


def check_regular(path: Path) -> None:
    """Raise InputError unless `path` is an existing regular file: what is no corpus comes from no stream."""
    if is_stream(path):
        raise InputError(f"{path} is not a regular file.", _REGULAR)
    check_readable(path)


def read_lines(path: Path, on_error: OnError = raise_error) -> Iterator[tuple[int, str, str]]:
    """The lines of a file as (1-based number, text, ending), one in memory at a time.

    Only a line feed ends a line; the ending is "\\n", "\\r\\n", or "" on a last line without one. A
    byte order mark at the very start is left on the first text for the caller to set aside.

    Raises:
        InputError: As for `raw_lines`; a line that is not UTF-8, unless `on_error` skips it.
    """
    for number, raw in raw_lines(path):
        try:
            line, ending = decoded(raw, path, number)
        except InputError as error:
            on_error(error)
        else:
            yield number, line, ending


def raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file as (1-based number, bytes with their ending).

    Raises:
        InputError: A missing or unreadable file, damaged compression, a line longer than `MAX_LINE`, or a file
            that unpacks to far more than any text does.
    """
    check_readable(path)
    number = size = 0
    checked = UNPACKED_ANYWAY
    try:
        with _opened(path) as (stream, packed):
            # A line that is too long is not read to its end.
            for raw in iter(functools.partial(stream.readline, MAX_LINE + 1), b""):
                number += 1
                if len(raw) > MAX_LINE:
                    raise InputError(
                        f"{display_name(path)}: line {number} is longer than {MAX_LINE >> 20} MiB.",
                        "Check that it is the right file, or split its lines.",
                    )
                size += len(raw)
                if packed is not None and size > checked:
                    _refuse_bomb(path, size, packed.tell())
                    checked = size + BLOCK_BYTES * MAX_PACKED
                yield number, raw
    except (EOFError, zlib.error) as error:
        raise _damaged(path, number) from error
    except OSError as error:
        if compression_of(path) and error.errno is None:
            raise _damaged(path, number) from error
        raise unreadable(path, error) from error


def _refuse_bomb(path: Path, size: int, packed: int) -> None:
    if size > MAX_PACKED * packed:
        raise InputError(
            f"{display_name(path)} unpacks to more than {MAX_PACKED} times its size, which text does not.",
            "If that is intended, unpack it first.",
        )


def unreadable(path: Path, error: OSError) -> InputError:
    """The error for a file that the system cannot read."""
    return InputError(
        f"{display_name(path)} could not be read ({error.strerror}).", "Check the file and its permissions."
    )


def decoded(raw: bytes, path: Path, number: int) -> tuple[str, str]:
    """A line's (text, ending).

    Raises:
        InputError: It is not UTF-8.
    """
    encoding = _wide_encoding(raw) if number == 1 else ""
    try:
        if not encoding:
            return without_ending(raw.decode("utf-8"))
    except UnicodeDecodeError:
        encoding = "latin1"
    hint = (
        "Decompress the file, or give it its .gz or .zst suffix."
        if raw.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))
        else f"Convert the file, for example with: iconv -f {encoding} -t utf-8."
    )
    raise InputError(f"{display_name(path)}: line {number} is not UTF-8.", hint)


def _wide_encoding(raw: bytes) -> str:
    """The encoding of two or four bytes a character in which a file begins so; empty for others.

    Without a byte order mark, ASCII in UTF-16 is valid UTF-8 in which every other character is NUL.
    """
    if raw.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for name, at in (("utf-16le", 1), ("utf-16be", 0)):
        if len(raw) > 3 and not any(raw[at::2]) and all(raw[1 - at :: 2]):
            return name
    return ""


def without_ending(line: str) -> tuple[str, str]:
    """A line as (text, "\\r\\n", "\\n" or "")."""
    if line.endswith("\r\n"):
        return line[:-2], "\r\n"
    return (line[:-1], "\n") if line.endswith("\n") else (line, "")


def _damaged(path: Path, number: int) -> InputError:
    return InputError(
        f"{display_name(path)}: the compressed data is damaged or cut short after line {number}.",
        "Compress or copy the file again.",
    )


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[io.BufferedIOBase | IO[bytes], IO[bytes] | None]]:
    """The content of a file, and the file where that is compressed."""
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer, None
        return
    if is_stream(path) and not path.is_file():
        # To open its name again would wait for a second writer where it is a named pipe.
        named = _STREAM.fullmatch(str(path))
        with os.fdopen(os.dup(int((named and named[1]) or 0)), "rb") as stream:
            yield stream, None
        return
    compression = compression_of(path)
    with open_regular(path) as plain, unpacked(plain, compression) as stream:
        yield stream, plain if compression else None


def check_same_kind(source: Path, target: Path) -> None:
    """Raise UsageError where a rewritten `source` would not have the format that `target` names."""
    ours, theirs = KIND_NAMES[kind_of(source)], KIND_NAMES[kind_of(target)]
    if ours != theirs:
        raise UsageError(
            f"{display_name(source)} is {ours} but {target} would be {theirs}.",
            "Give the target the source's suffix; .gz and .zst may be added or left off.",
        )


def without_mark(number: int, text: str) -> tuple[str, str]:
    """Set a byte order mark at the start of line 1 aside: (mark or "", rest)."""
    mark = _BOM.decode("utf-8")
    return (mark, text[1:]) if number == 1 and text.startswith(mark) else ("", text)
