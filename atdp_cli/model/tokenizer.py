"""Checks of a checkpoint's tokenizer: names in its files, patterns, and failures of its library."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atdp_cli.errors import InputError
from atdp_cli.files.checkpoint_names import TEMPLATES, TOKENIZER, TOKENIZER_CONFIG
from atdp_cli.files.documents import parse_json, read_whole
from atdp_cli.model.config_checks import check_numbers, objects
from atdp_cli.model.sandbox import ends_in_time

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
"""A name that becomes a file's."""

_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")
"""How Rust writes the number of a system's error."""

_SPLIT = r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

KNOWN = frozenset(
    {
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",  # GPT-2
        rf"(?i:'s|'t|'re|'ve|'m|'ll|'d){_SPLIT}",  # Llama 3
        f"(?i:'s|'t|'re|'ve|'m|'ll|'d){_SPLIT}".replace("{1,3}", ""),  # Qwen 2
        " {2,}",  # T5
        "[0-9][0-9][0-9]",  # Falcon
    }
)
"""Published patterns that need no check: a search with each is linear in the text."""


def check_tokenizer_files(folder: Path) -> frozenset[str]:
    """Refuse a tokenizer whose files name other files, or that makes too much of a text; before anything is loaded.

    Too much is a pattern that takes too long, a text that grows, or padding to any length.

    Returns:
        Its patterns, which are quick.

    Raises:
        InputError: As described.
    """
    _check_names(folder)
    try:
        tokenizer = parse_json(read_whole(folder / TOKENIZER).decode("utf-8"))
    except (ValueError, OSError, RecursionError):
        return frozenset()  # whoever loads it says what is wrong
    if not isinstance(tokenizer, dict):
        return frozenset()
    check_numbers(folder / TOKENIZER, {name: tokenizer.get(name) for name in ("padding", "truncation")})
    return _tried(folder, {name: tokenizer.get(name) for name in _PARTS}, _added(tokenizer))


def check_loaded_tokenizer(folder: Path, backend: Any, tried: frozenset[str]) -> None:
    """Refuse a loaded tokenizer that has slow patterns besides those that were tried in its files.

    Args:
        backend: The tokenizers library's.
    """
    parts = {name: _state(getattr(backend, name)) for name in _PARTS}
    if not _patterns(parts) <= tried:
        _tried(folder, parts, [])


_PARTS = ("normalizer", "pre_tokenizer", "decoder")
"""The parts that have patterns, and work on text."""


def _state(part: Any) -> Any:
    return None if part is None else json.loads(part.__getstate__())


def _tried(folder: Path, parts: dict[str, Any], texts: list[str]) -> frozenset[str]:
    patterns = _patterns(parts)
    unknown, growing = patterns - KNOWN, _growing(parts)
    given = {"parts": parts, "patterns": sorted(unknown | growing), "texts": texts}
    if (unknown or growing) and not ends_in_time("tokenizer", given):
        raise InputError(
            f"{folder}: the tokenizer fails on an ordinary text, or takes too much time or memory.",
            "Give the tokenizer that belongs to the model; a repeat inside a repeat, as in (a+)+, is no part of one.",
        )
    return patterns


def _growing(parts: Any) -> frozenset[str]:
    """What parts of a tokenizer add to a text, and put in place of something shorter, with what they put it for."""
    texts: set[str] = set()
    for part in objects(parts):
        match part:
            case {"pattern": {"String": str(old)}, "content": str(new)} if len(new) > len(old):
                texts |= {old, new}
            case {"content": str(new)} | {"prepend": str(new)} | {"replacement": str(new)} if len(new) > 1:
                texts.add(new)
    return frozenset(texts)


def _patterns(part: Any) -> frozenset[str]:
    """The regular expressions in a part of a tokenizer."""
    patterns = (each.get("Regex") for each in objects(part))
    return frozenset(pattern for pattern in patterns if isinstance(pattern, str))


def _added(tokenizer: Any) -> list[str]:
    """The contents of the added tokens: the normaliser sees them when the tokenizer is loaded."""
    tokens = tokenizer.get("added_tokens") if isinstance(tokenizer, dict) else None
    contents = (token.get("content") for token in tokens or () if isinstance(token, dict))
    return [content for content in contents if isinstance(content, str)]


def _check_names(folder: Path) -> None:
    """Refuse names that become names of files, where they are anything but plain."""
    try:
        settings = (
            parse_json(read_whole(folder / TOKENIZER_CONFIG).decode("utf-8"))
            if (folder / TOKENIZER_CONFIG).is_file()
            else {}
        )
    except (ValueError, OSError, RecursionError) as error:
        raise InputError(f"{folder / TOKENIZER_CONFIG} is not valid JSON.", "Copy or save it again.") from error
    if not isinstance(settings, dict):
        raise InputError(f"{folder / TOKENIZER_CONFIG} holds no JSON object.", "Copy or save it again.")
    if settings.get("fast_tokenizer_files"):
        raise InputError(
            f"{folder / TOKENIZER_CONFIG} names other files (fast_tokenizer_files).",
            f"Take it out, and keep {TOKENIZER} alone.",
        )
    names = [*_template_names(settings.get("chat_template"))]
    if (folder / TEMPLATES).is_dir():
        names += (file.name.removesuffix(".jinja") for file in (folder / TEMPLATES).iterdir())
    for name in names:
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{folder} has a chat template named {name}, which is no plain name of a file.",
                "Name it by letters, digits, dots, hyphens and underscores.",
            )


def _template_names(templates: Any) -> Iterator[str]:
    if isinstance(templates, list):
        yield from (str(template.get("name")) for template in templates if isinstance(template, dict))
    elif isinstance(templates, dict):
        yield from map(str, templates)


def save_tokenizer(tokenizer: "PreTrainedTokenizerFast", folder: Path) -> None:
    """Write a tokenizer's files.

    Raises:
        OSError: The disk failed, which the Rust library says in a plain `Exception`.
    """
    try:
        tokenizer.save_pretrained(folder)
    except Exception as error:
        if type(error) is Exception and (number := _SYSTEM_ERROR.search(str(error))):
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(folder)) from error
        raise


def unreadable_tokenizer(tokenizer: object) -> InputError:
    """The error for a tokenizer, or its folder, that the library fails on."""
    return InputError(f"{tokenizer}: the tokenizer cannot be read.", "Save the model's fast tokenizer again.")


@contextmanager
def without_panic(name: object) -> Iterator[None]:
    """Turn a failure of the Rust library into an `InputError`, and keep its words off standard error.

    It writes a panic's backtrace there before it raises in Python; while this lasts nobody else's words get there.

    Args:
        name: What the message calls the tokenizer.
    """
    with _silent():
        try:
            yield
        except BaseException as error:  # a panic is no Exception, and its other errors are of no other kind
            if type(error) is not Exception and type(error).__name__ != "PanicException":
                raise
            raise unreadable_tokenizer(name) from None


@contextmanager
def _silent() -> Iterator[None]:
    try:
        stderr = os.dup(2)
    except OSError:  # closed already
        yield
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
