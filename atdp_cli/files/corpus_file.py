"""Corpus files as bytes: formats by suffix, compression, lines, and writing that is never half done."""

import contextlib
import functools
import io
import os
import re
import secrets
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Literal, Protocol

from atdp_cli.errors import InputError, RunError, UsageError
from atdp_cli.files.fsync import sync_folder

Kind = Literal["text", "jsonl", "csv", "tsv", "parquet"]

NAMES: dict[Kind, str] = {
    "text": "plain text",
    "jsonl": "JSON Lines",
    "csv": "CSV",
    "tsv": "TSV",
    "parquet": "Parquet",
}

STANDARD_INPUT = Path("-")

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character of UTF-16, which JSON can smuggle in and UTF-8 cannot write."""


class Writable(Protocol):
    """What a file is written through."""

    def write(self, data: bytes, /) -> int:
        """Write all of `data`."""


Bad = Callable[[InputError], None]
"""Is told of each line or row that cannot be read; it is skipped where this returns."""

LONGEST_LINE = 1 << 26
"""Bytes of a line; a longer one is refused before all of it is in memory."""

MOST_PACKED, UNPACKED_ANYWAY = 200, 1 << 23
"""How many times its size a compressed file may unpack to, and the bytes up to which nobody counts. Text packs to a
third, seldom to a twentieth; a file that unpacks to far more is made to fill a disk."""

TEMPORARY = ".tmp"
"""How a file ends that is being written; it begins with a dot."""

_COMPRESSIONS = (".gz", ".zst")
_KINDS: dict[str, Kind] = {".jsonl": "jsonl", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}
_BOM = b"\xef\xbb\xbf"
_BLOCK = 512
"""Bytes of a zstd file that are unpacked at once: to 16 MiB at worst."""


def refuse(error: InputError) -> None:
    """The `Bad` that skips nothing."""
    raise error


def display_name(path: Path) -> str:
    """The name of a corpus in messages: the path as the user gave it."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def compression_of(path: Path) -> str:
    """`.gz`, `.zst`, or the empty string."""
    suffix = path.suffix.lower()
    return suffix if suffix in _COMPRESSIONS else ""


def kind_of(path: Path) -> Kind:
    """The format that a path's suffix names, with `.gz` or `.zst` taken off first.

    Raises:
        InputError: Compressed Parquet, which cannot be read from within.
    """
    name = path.with_suffix("") if compression_of(path) else path
    kind = _KINDS.get(name.suffix.lower(), "text")
    if kind == "parquet" and compression_of(path):
        raise InputError(
            f"{display_name(path)}: Parquet is compressed inside, and not once more.",
            "Name the file with .parquet alone.",
        )
    return kind


def check_readable(path: Path) -> None:
    """Raise InputError unless `path` is standard input or an existing file of a format that can be read."""
    if path == STANDARD_INPUT:
        return
    if path.is_dir():
        raise InputError(f"{display_name(path)} is a folder.", "Name one corpus file in it.")
    if not path.exists():
        raise InputError(f"{display_name(path)} does not exist.", "Check the path.")
    kind_of(path)


def read_lines(path: Path, bad: Bad = refuse) -> Iterator[tuple[int, str, str]]:
    """The lines of a file as (1-based number, text, ending), one in memory at a time.

    Only a line feed ends a line; the ending is "\\n", "\\r\\n", or "" on a last line without one. A
    byte order mark at the very start is left on the first text for the caller to set aside.

    Raises:
        InputError: As for `raw_lines`; a line that is not UTF-8, unless `bad` skips it.
    """
    return decoded_lines(raw_lines(path), path, bad)


def decoded_lines(lines: Iterable[tuple[int, bytes]], path: Path, bad: Bad) -> Iterator[tuple[int, str, str]]:
    """Lines of a file as `read_lines` gives them."""
    for number, raw in lines:
        try:
            line, ending = decoded(raw, path, number)
        except InputError as error:
            bad(error)
        else:
            yield number, line, ending


def raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file as (1-based number, bytes with their ending).

    Raises:
        InputError: A missing or unreadable file, damaged compression, a line longer than `LONGEST_LINE`, or a file
            that unpacks to far more than any text does.
    """
    check_readable(path)
    number = unpacked = 0
    counted = UNPACKED_ANYWAY
    try:
        with _opened(path) as (lines, packed):
            for raw in lines:
                number += 1
                if len(raw) > LONGEST_LINE:
                    raise InputError(
                        f"{display_name(path)}: line {number} is longer than {LONGEST_LINE >> 20} MiB.",
                        "Check that it is the right file, and cut its lines.",
                    )
                unpacked += len(raw)
                if packed is not None and unpacked > counted:
                    _refuse_bomb(path, unpacked, packed.tell())
                    counted = unpacked + _BLOCK * MOST_PACKED
                yield number, raw
    except (EOFError, zlib.error) as error:
        raise _damaged(path, number) from error
    except OSError as error:
        if compression_of(path) and error.errno is None:
            raise _damaged(path, number) from error
        raise unreadable(path, error) from error


def _refuse_bomb(path: Path, unpacked: int, packed: int) -> None:
    if unpacked > MOST_PACKED * packed:
        raise InputError(
            f"{display_name(path)} unpacks to more than {MOST_PACKED} times its size, as no text does.",
            "If it is meant, unpack it first.",
        )


def unreadable(path: Path, error: OSError) -> InputError:
    """The error for a file that the system does not give."""
    return InputError(
        f"{display_name(path)} could not be read ({error.strerror}).", "Check the file and its permissions."
    )


def decoded(raw: bytes, path: Path, number: int) -> tuple[str, str]:
    """A line's (text, ending).

    Raises:
        InputError: It is not UTF-8.
    """
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = (
            "Decompress the file, or give it its .gz or .zst suffix."
            if raw.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))
            else "Convert the file, for example with: iconv -f latin1 -t utf-8."
        )
        raise InputError(f"{display_name(path)}: line {number} is not UTF-8.", hint) from error
    return without_ending(line)


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
def _opened(path: Path) -> Iterator[tuple[Iterator[bytes], IO[bytes] | None]]:
    """The lines of a file, one that is too long not to its end, and where they are unpacked from the packed file."""
    if path == STANDARD_INPUT:
        yield _lines_of(sys.stdin.buffer), None
        return
    with path.open("rb") as plain:
        compression = compression_of(path)
        if compression == ".gz":
            import gzip

            with gzip.GzipFile(fileobj=plain, mode="rb") as unpacked:
                yield _lines_of(unpacked), plain
        elif compression == ".zst":
            yield _split_lines(_zstandard_blocks(plain)), plain
        else:
            yield _lines_of(plain), None


def _lines_of(stream: io.BufferedIOBase | IO[bytes]) -> Iterator[bytes]:
    return iter(functools.partial(stream.readline, LONGEST_LINE + 1), b"")


def _zstandard_blocks(plain: IO[bytes]) -> Iterator[bytes]:
    """Unpacked blocks of every frame; the library's own reader takes a cut-off frame for the end."""
    import zstandard

    frame = None
    while block := plain.read(_BLOCK):
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


def _split_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    waiting: list[bytes] = []
    size = 0
    for block in blocks:
        first, found, rest = block.partition(b"\n")
        waiting.append(first + found)
        size += len(first)
        if not found and size <= LONGEST_LINE:
            continue
        yield b"".join(waiting)
        lines = rest.split(b"\n")
        waiting = [lines.pop()]
        size = len(waiting[0])
        for line in lines:
            yield line + b"\n"
    if last := b"".join(waiting):
        yield last


@contextlib.contextmanager
def atomic_write(target: Path, *, mode: int = 0o666) -> Iterator[Writable]:
    """A binary stream that becomes `target` when the block ends without an error, and nothing otherwise.

    The bytes go to a temporary file beside `target`, are flushed to disk and renamed into place.
    Compressed as the suffix of `target` says; the same bytes in give the same file.

    Args:
        mode: Permissions of a new file, before the process's mask.

    Raises:
        InputError: The target's folder is missing, or the target is a folder or a device.
        RunError: The disk is full or does not allow writing.
    """
    _check_replaceable(target)
    temporary = target.with_name(f".{secrets.token_hex(8)}{TEMPORARY}")
    try:
        with open(temporary, "xb", opener=functools.partial(os.open, mode=mode)) as plain:
            with _packed(plain, compression_of(target)) as stream:
                yield stream
            plain.flush()
            os.fsync(plain.fileno())
        temporary.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise RunError(
            f"{target} could not be written ({error.strerror}).", "Check free space and permissions."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _packed(plain: IO[bytes], compression: str) -> Iterator[Writable]:
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


def atomic_rewrite(target: Path, data: bytes) -> None:
    """Replace a file's content, wholly or not at all; one that is new is its owner's alone.

    Permissions stay, and a symbolic link goes on leading to the file.

    Raises:
        InputError: The target's folder is missing, or the target is a folder.
        RunError: The disk is full or does not allow writing.
    """
    target = real_path(target)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
    with atomic_write(target, mode=mode) as stream:
        stream.write(data)
    # The process's mask may have taken away what the file allowed before.
    target.chmod(mode)


def check_new(path: Path, *, force: bool) -> None:
    """Refuse to overwrite a file without `force`, or to write into a folder that is not there.

    Raises:
        UsageError: The file exists.
        InputError: Its folder does not, or it is a folder or a device.
    """
    _check_replaceable(path)
    if os.path.lexists(path) and not force:
        raise UsageError(f"{path} exists.", "Use --force to replace it, or choose another name.")


def _check_replaceable(path: Path) -> None:
    """Refuse what a rename must not replace, and a name that no file can have."""
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a folder.", "Create it first.")
    if path.is_dir():
        raise InputError(f"{path} is a folder.", "Name the file to write.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no ordinary file, so it is not replaced.", "Name the file to write.")


def real_path(path: Path) -> Path:
    """The absolute path without symbolic links; those that lead in a circle stay."""
    return Path(os.path.realpath(path))


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one place."""
    return real_path(one) == real_path(other)


def check_same_kind(source: Path, target: Path) -> None:
    """Raise UsageError where a rewritten `source` would not have the format that `target` names."""
    if kind_of(source) != kind_of(target):
        raise UsageError(
            f"{display_name(source)} is {NAMES[kind_of(source)]} but {target} would be {NAMES[kind_of(target)]}.",
            "Give the target the source's suffix; .gz and .zst may be added or left off.",
        )


def without_mark(number: int, text: str) -> tuple[str, str]:
    """Set a byte order mark at the start of line 1 aside: (mark or "", rest)."""
    mark = _BOM.decode("utf-8")
    return (mark, text[1:]) if number == 1 and text.startswith(mark) else ("", text)
