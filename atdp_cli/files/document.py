"""JSON documents of one pydantic model each: read with an error that quotes nothing, and written readably."""

import contextlib
import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from atdp_cli.errors import InputError
from atdp_cli.files.bounded_read import read_whole
from atdp_cli.files.json_text import RepeatedKeyError, parse_json

Document = TypeVar("Document", bound=BaseModel)


def read_document(path: Path, kind: type[Document], *, name: str, remedy: str) -> Document:
    """The document in a JSON file.

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


def document_text(value: Any) -> str:
    """A document as the tool writes it to files."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
