"""JSON documents: a parser that rejects duplicate keys, bounded reading, checked models, and writing."""

import contextlib
import errno
import hashlib
import importlib.metadata
import io
import json
import math
import os
import platform
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError, model_validator

from atdp_cli.errors import InputError

MAX_FILE = 1 << 26
"""The most bytes of a file of settings or figures; those that atdp writes have a hundredth of it at most."""


NAME_BYTES, PATH_BYTES = 255, 4095
"""The most bytes of a file's name, and of its whole path."""


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file, or a symbolic link to one, for reading.

    A pipe without a writer would block when it is opened, and a device never ends.

    Raises:
        OSError: It cannot be opened, or is a folder, a pipe, a socket or a device.
    """
    return open(path, "rb", opener=_regular_handle)


NOT_REGULAR = "Not a regular file"


def _regular_handle(path: str, flags: int) -> int:
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, NOT_REGULAR, path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def read_whole(path: Path) -> bytes:
    """Read a whole file.

    Raises:
        OSError: It cannot be read, is no regular file, or is larger than `MAX_FILE`.
    """
    with open_regular(path) as stream:
        content = stream.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content


class RepeatedKeyError(ValueError):
    """An object has a key more than once, however it is spelled."""


def unique_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object, for `object_pairs_hook`.

    Raises:
        RepeatedKeyError: A key is there more than once.
    """
    parsed = dict(members)
    if len(parsed) != len(members):
        raise RepeatedKeyError
    return parsed


def parse_json(text: str) -> Any:
    """Parse a JSON document.

    Raises:
        RepeatedKeyError: An object has a key more than once.
        ValueError, RecursionError: It is no JSON, or nested too deep.
    """
    return json.loads(text, object_pairs_hook=unique_members)


Document = TypeVar("Document", bound=BaseModel)


def read_document(path: Path, kind: type[Document], *, name: str, remedy: str) -> Document:
    """Read a JSON file into a model.

    Args:
        name: What it is, for errors: `The baseline`.

    Raises:
        InputError: Missing, unreadable, not UTF-8 JSON, with a key twice, or no such document. Never quotes a value.
    """
    try:
        content = read_whole(path)
        _check_keys(content)
        return kind.model_validate_json(content, strict=True)
    except OSError as error:
        raise InputError(f"{name} {path} cannot be read: {error.strerror}.", remedy) from None
    except RepeatedKeyError:
        raise InputError(f"{name} {path} is malformed: a key stands more than once.", remedy) from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        # The name of an unknown field is the file's own text, as is the value that tells kinds of a model apart.
        where = first["loc"][:-1] if first["type"] == "extra_forbidden" else first["loc"]
        place = ".".join(str(part) for part in where) or "the file"
        problem = "unknown kind" if first["type"] in ("union_tag_invalid", "union_tag_not_found") else first["msg"]
        problem = problem.removeprefix("Value error, ").rstrip(".")
        raise InputError(f"{name} {path} is malformed at {place}: {problem}.", remedy) from None


def _check_keys(content: bytes) -> None:
    # What is no JSON for another reason is said by pydantic, in its own words.
    with contextlib.suppress(UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        try:
            parse_json(content.decode("utf-8"))
        except RepeatedKeyError:
            raise
        except ValueError as error:  # a number with more digits than Python reads
            raise json.JSONDecodeError("", "", 0) from error


def copy_fields(kind: type[Document], *sources: object, **values: Any) -> Document:
    """Make a document of these values and, for its other fields, of what sources have under the same names.

    Args:
        sources: Objects; the first that has a field gives it.
    """
    for source in sources:
        values = {name: getattr(source, name) for name in kind.model_fields if hasattr(source, name)} | values
    return kind(**values)


def document_text(value: Any) -> str:
    """A document as the tool writes it to files."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def timestamp() -> str:
    """Now, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def software() -> dict[str, str]:
    """The versions of Python, of atdp and of the libraries that figures depend on."""
    packages = ("atdp", "torch", "transformers", "dp-accounting", "spacy")
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in packages}


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


LARGEST = 1 << 63
"""The largest whole number that is read; JSON's may have thousands of digits, and charts and tables need floats."""


def json_number(value: float) -> float | Literal["inf"]:
    """JSON has no infinity: it is spelt "inf"."""
    return "inf" if math.isinf(value) else value


Number = Annotated[
    float,
    # A strict reader of JSON takes no text for a number.
    BeforeValidator(lambda value: math.inf if value == "inf" else value),
    PlainSerializer(json_number, return_type=float | Literal["inf"], when_used="json"),
]
"""A number that may be infinite, as an ε that holds nowhere; in JSON that is "inf"."""


class Frozen(BaseModel):
    """A part of a report: it never changes, and a field that nobody knows is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="after")
    def _fits_into_floats(self) -> Self:
        if any(isinstance(value, int) and abs(value) > LARGEST for value in self.__dict__.values()):
            raise ValueError("A whole number is too large.")
        return self
