"""Answers of a cross-check, kept so that a run that was interrupted asks only what is left."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from atdp_cli.errors import RunError
from atdp_cli.files.sqlite_cache import CacheFormat, SqliteCache

ANSWERS = CacheFormat(
    name="crosscheck",
    table="answers",
    columns=("question", "sensitive"),
    value_type="INTEGER",
)


class Answers:
    """Answers by the text that was asked about; used from several threads.

    Args:
        cache: Where they are kept; None to keep them for this run only.
    """

    def __init__(self, cache: SqliteCache | None = None) -> None:
        self._cache = cache
        self._answers: dict[bytes, bool] = {}

    def get(self, text: str) -> bool | None:
        """The answer, or None where there is none yet.

        Raises:
            RunError: The file cannot be read.
        """
        content = text.encode()
        if self._cache is None:
            return self._answers.get(hashlib.sha256(content).digest())
        answer = self._cache.get(content)
        return None if answer is None else bool(answer)

    def put(self, text: str, answer: bool) -> None:
        """Keep an answer, for good before this returns; one that comes after the end of the run is dropped.

        Raises:
            RunError: The file cannot be written.
        """
        content = text.encode()
        if self._cache is None:
            self._answers[hashlib.sha256(content).digest()] = answer
        else:
            self._cache.put(content, answer)


@contextmanager
def opened_answers(folder: Path | None, *scope: object) -> Iterator[Answers]:
    """The answers kept in a private folder, which is made where it is missing; without one, for this run only.

    Args:
        folder: A folder that only its owner may read.
        scope: Who is asked and how: values that JSON can write. Answers of another scope are not found.

    Raises:
        RunError: The folder or a file in it cannot be used.
    """
    if folder is None:
        yield Answers()
        return
    encoded = json.dumps(scope).encode()

    def digest(key: bytes, text: bytes) -> bytes:
        return hmac.digest(hmac.digest(key, encoded, "sha256"), text, "sha256")

    with closing(SqliteCache(folder, ANSWERS, digest, on_trouble=_refuse)) as cache:
        yield Answers(cache)


def _refuse(file: Path, reason: str) -> None:
    raise RunError(
        f"{file} could not be used ({reason}).",
        "Check free space and permissions; deleting it loses only answers, which are asked for again.",
    )
