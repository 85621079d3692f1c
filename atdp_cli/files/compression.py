"""gzip and Zstandard, by the suffix of a file."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

_COMPRESSIONS = (".gz", ".zst")

BLOCK_BYTES = 512
"""Bytes of a Zstandard file that are unpacked at once: to 16 MiB at worst."""


class Writable(Protocol):
    """What a file is written through."""

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
    """What compresses into an open file; the same bytes in give the same file."""
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
