"""The cross-check as options ask for it: checks, key and client."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from atdp_cli.corpus.spans import Tier
from atdp_cli.detection.crosscheck.check import crosscheck, opened_answers
from atdp_cli.detection.crosscheck.client import PROMPT_VERSION, Server, opened_server, require_client
from atdp_cli.detection.detect import Detection
from atdp_cli.detection.results import CrosscheckCounts
from atdp_cli.detection.settings import CrosscheckSettings
from atdp_cli.errors import InputError, UsageError
from atdp_cli.events import CrossChecked, Notify
from atdp_cli.files.documents import read_whole
from atdp_cli.files.regexes import Pattern

DEFAULT_URL = "https://api.openai.com/v1"

NO_KEY = "none"
"""Sent where nobody gave a key: servers of one's own mostly need none, but the client sends one."""


def cross_checked(
    detections: Iterable[Detection],
    check: CrosscheckSettings,
    counts: CrosscheckCounts,
    notify: Notify,
    *,
    tier: Tier,
    allow: Sequence[Pattern] = (),
    folder: Path | None = None,
) -> Iterator[Detection]:
    """Cross-check the detections. Options, key and client are checked before the first one.

    Args:
        detections: What the detector found.
        check: Whom to ask.
        counts: Counted up.
        notify: Called with the counts at the end.
        tier: What counts as found.
        allow: What people found not to be sensitive.
        folder: A private folder to keep answers in; None to keep them for this run only.

    Raises:
        UsageError: No key for a server that needs one, a bad URL, or the client is not installed.
        InputError: The key file cannot be used.
        RunError: While iterating: the model cannot be asked, or answers cannot be kept.
    """
    server = server_of(check)

    def checked() -> Iterator[Detection]:
        masked = not check.send_unmasked
        scope = (PROMPT_VERSION, server.url, server.model, masked)
        with opened_answers(folder, *scope) as answers, opened_server(server, masked=masked) as ask:
            yield from crosscheck(
                detections,
                ask,
                answers,
                counts,
                tier=tier,
                masked=masked,
                allow=allow,
                dispute=check.on_disagreement == "review",
            )
        notify(CrossChecked(**asdict(counts)))

    return checked()


def check_crosscheck(check: CrosscheckSettings | None, *, queue: bool = False, spans: bool = False) -> None:
    """Check the cross-check's options before anything is read.

    Args:
        check: Whom to ask, if anybody.
        queue: Whether a review queue is written.
        spans: Whether spans are read from a file, in place of the detector.

    Raises:
        UsageError: Options contradict each other, or as for `server_of`.
        InputError: As for `server_of`.
    """
    if check is None:
        return
    if check.on_disagreement == "review" and not queue:
        raise UsageError(
            "on_disagreement = review needs the queue that atdp detect --review writes.",
            "Add --review FILE to atdp detect; elsewhere leave it out.",
        )
    if spans:
        raise UsageError(
            "The cross-check checks the detector, and --spans replaces the detector.", "Leave one of them out."
        )
    server_of(check)


def public_name(check: CrosscheckSettings) -> str:
    """Return the model's name as it is published: only the last part of a path."""
    is_path = check.model.startswith(("/", ".", "~")) or "\\" in check.model
    return re.split(r"[\\/]", check.model.rstrip("\\/"))[-1] if is_path else check.model


def server_of(check: CrosscheckSettings) -> Server:
    """Return the server with its key.

    Raises:
        UsageError: No key for a server that needs one, a bad URL, or the client is not installed.
        InputError: The key file cannot be used.
    """
    require_client()
    url = check.url or os.environ.get("OPENAI_BASE_URL")
    if url is not None:
        _check_url(url)
    key = _read_key(check.key_file) if check.key_file else os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and url is None:
        raise UsageError(
            "The cross-check has neither a server nor a key.",
            "Give url in [crosscheck], or a key for OpenAI by key_file or OPENAI_API_KEY.",
        )
    if not _sendable(key or NO_KEY):
        raise UsageError("OPENAI_API_KEY is not a valid key.", "A key has ASCII characters only, and no white space.")
    return Server(model=check.model, url=(url or DEFAULT_URL).rstrip("/"), key=key or NO_KEY)


def _check_url(url: str) -> None:
    remedy = "Give a URL such as http://127.0.0.1:8000/v1, and the key in key_file."
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or any(character.isspace() for character in url):
        raise UsageError("url in [crosscheck] is not an http or https URL.", remedy)
    # The URL is shown in messages.
    if parts.username is not None or parts.query or parts.fragment:
        raise UsageError("url in [crosscheck] has credentials, a query or a fragment.", remedy)


def _read_key(path: Path) -> str:
    try:
        lines = read_whole(path).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"{path} could not be read ({error.strerror}).", "Check key_file.") from error
    except UnicodeDecodeError:
        lines = []
    key = lines[0].strip() if lines else ""
    if not _sendable(key):
        raise InputError(f"{path} holds no key.", "Write the key into its first line, and nothing else.")
    return key


def _sendable(key: str) -> bool:
    return bool(key) and key.isascii() and key.isprintable() and " " not in key
