"""Conversations: lists of messages, each with a role and a content, and texts with their contents replaced."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from atdp_cli.corpus.segments import Selection
from atdp_cli.errors import InputError, UsageError

UNREAD = ("tool_calls", "function_call", "reasoning_content")
"""Members of a message that a chat template renders, and that are no content."""


@dataclass(frozen=True, slots=True)
class Part:
    """A string of a message's content.

    Attributes:
        turn: Which message, from 0.
        role: Of the message.
        text: The whole content, or one text part of it.
    """

    turn: int
    role: str
    text: str


def check_alike(before: bool | None, conversation: bool, where: str, selection: Selection) -> bool:
    """Refuse a mix of texts and conversations, and units that join several of them into one record.

    Args:
        before: What the records before are; None for the first.

    Raises:
        InputError: They differ.
        UsageError: The unit is a field.
    """
    if conversation and selection.unit != "line":
        raise UsageError(
            f"--privacy-unit {selection.unit} joins texts, and {where} holds a conversation.",
            "Use --privacy-unit line: each conversation is a record.",
        )
    if before not in (None, conversation):
        kinds = ("a conversation", "a text") if conversation else ("a text", "a conversation")
        raise InputError(
            f"{where}: the field {selection.text_field} holds {kinds[0]}, and {kinds[1]} in the lines before.",
            "Keep texts and conversations in files of their own.",
        )
    return conversation


def content_parts(messages: object, where: str) -> list[Part]:
    """Return the strings of a conversation's contents, in order; at least one for each message.

    A content is a string, or a list of text parts; an empty list says "".

    Args:
        messages: As JSON or Arrow decode them; members that are null count as missing.
        where: For messages.

    Raises:
        InputError: They are no conversation, or hold something that is no text.
    """
    if not isinstance(messages, list) or not messages:
        problem = "is no list of messages" if not isinstance(messages, list) else "holds no message"
        raise InputError(f"{where} {problem}.", 'Write [{"role": "user", "content": "…"}, …].')
    return [part for turn, message in enumerate(messages) for part in _parts(message, turn, where)]


def _parts(message: object, turn: int, where: str) -> Iterator[Part]:
    place = f"{where}: message {turn + 1}"
    if not isinstance(message, dict):
        raise InputError(f"{place} is not an object.", 'Write {"role": "user", "content": "…"}.')
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not role.strip():
        raise InputError(f"{place} has no role.", "Say who speaks, such as user or assistant.")
    for name in UNREAD:
        if message.get(name):
            raise InputError(
                f"{place} has {name}, which no detector reads.",
                "Put what is to be learnt into the content, or leave the conversation out.",
            )
    if isinstance(content, str):
        yield Part(turn, role, content)
    elif isinstance(content, list):
        texts = [_text_of(part, place) for part in content] or [""]
        yield from (Part(turn, role, text) for text in texts)
    else:
        problem = "has no content" if content is None else "has a content that is neither text nor a list of parts"
        raise InputError(f"{place} {problem}.", 'Write it as a string; "" where nothing is said.')


def _text_of(part: object, place: str) -> str:
    if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
        raise InputError(
            f"{place} has a part that is no text.", 'Leave the conversation out, or keep {"type": "text", "text": "…"}.'
        )
    text: str = part["text"]
    return text


def with_contents(messages: Sequence[dict[str, Any]], texts: Sequence[str]) -> list[dict[str, Any]]:
    """Replace the texts of `content_parts` in the messages, in order."""
    remaining = iter(texts)
    return [message | {"content": _with_texts(message["content"], remaining)} for message in messages]


def _with_texts(content: str | list[dict[str, Any]], texts: Iterator[str]) -> object:
    if isinstance(content, str):
        return next(texts)
    if not content:
        next(texts)
    return [part | {"text": next(texts)} for part in content]
