"""Conversations: lists of messages in OpenAI's chat format or ShareGPT's, and the texts in them.

A content, what an assistant reasons, and each string and number in the JSON of arguments, tool messages and tools is a
text of its own, at its place in a line of JSON.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple

from atdp_cli.corpus.json_text import NUMBER, Leaf, Value, from_json, leaves, quoted, unescaped
from atdp_cli.corpus.segments import Segment
from atdp_cli.errors import InputError

REASONING = ("reasoning_content", "reasoning", "thinking")
"""Members of a message that hold what an assistant reasons."""

CALLS = ("tool_calls", "function_call")

TOOLS = "tools"
"""The member of a row that describes functions, and the role of its texts."""

TemplateInput = Mapping[str, Any]
"""`messages`, and `tools` if there are some, as chat templates take them."""

_ROLES = {"human": "user", "gpt": "assistant", "observation": "tool", "function": "tool", "ipython": "tool"}
"""Other words for the roles that chat templates know."""

_SCHEMA = frozenset({"type", "name", "required", "format", "pattern", "$ref", "$schema", "$id"})
"""Members of a tool that are code, which no detector reads."""


class Part(NamedTuple):
    """A string or a number of a record, or a part of a content, at its place in a line.

    Attributes:
        message: Of which message, from 0; -1 for tools, and for a record that is no conversation.
        role: Who says it.
        text: What it says.
        start, end: The JSON string or number in the line; where `nested`, without quotes.
        name: The member of the message that holds it; "text" for a part of a content.
        key: Of a value of JSON, which a detector reads before it; None for another text.
        nested: It stands in JSON that is itself a string.
        number: It is a number.
    """

    message: int
    role: str
    text: str
    start: int
    end: int
    name: str = ""
    key: str | None = None
    nested: bool = False
    number: bool = False

    def spelled(self, text: str) -> str:
        """Another text as it stands here; a number without zeros before it, and 0 if it is none."""
        if self.number:
            text = re.sub("^(-?)0+(?=[0-9])", r"\1", text)
            return text if NUMBER.fullmatch(text) else "0"
        return quoted(quoted(text)[1:-1])[1:-1] if self.nested else quoted(text)

    def written(self, line: str, text: str) -> str:
        """The JSON of a text here: that of the line if it says the same."""
        return line[self.start : self.end] if text == self.text else self.spelled(text)


def with_texts(line: str, parts: Sequence[Part], written: Sequence[str]) -> str:
    """A line with other JSON in the place of its parts."""
    pieces, place = list[str](), 0
    for part, other in zip(parts, written, strict=True):
        pieces += (line[place : part.start], other)
        place = part.end
    return "".join(pieces) + line[place:]


class Chat(NamedTuple):
    """The texts of a record in their line.

    Attributes:
        line: JSON; "" where it is no line of a file.
        parts: In the line's order.
        turns: The text that each part belongs to, from 0; -1 for a record that is no conversation.
        fields: Those of the messages.
        plain: All that a chat template is given are the texts with their roles.
    """

    line: str
    parts: tuple[Part, ...]
    turns: tuple[int, ...] = (-1,)
    fields: tuple[str, ...] = ()
    plain: bool = True

    def segments(self, record: int, id_: str, before: str = "", row: int = -1) -> Iterator[Segment]:
        """The segments of the record; see `segments.Segment`."""
        place, chat = 0, None if self.plain else self
        for part, turn in zip(self.parts, self.turns, strict=True):
            before, written = before + self.line[place : part.start], self.line[part.start : part.end]
            of_turn = turn, part.role, part is not self.parts[-1], f"{part.key}: " if part.key else "", chat
            yield Segment(before, part.text, record, id_, written, part.spelled, row, *of_turn)
            before, place = "", part.end

    def whole(self) -> list[Part]:
        """A part for each turn: those of one content as one."""
        groups = groupby(zip(self.turns, self.parts, strict=True), key=lambda pair: pair[0])
        contents = ([part for _, part in group] for _, group in groups)
        return [own[0]._replace(text="\n".join(each.text for each in own), end=own[-1].end) for own in contents]

    def conversation(self, written: Sequence[str]) -> TemplateInput:
        """The messages and tools with this JSON in the place of the turns, as a chat template is given them."""
        return chat_format(json.loads(with_texts(self.line, self.whole(), written)), self.fields, "")


def chat_format(row: Mapping[str, Any], fields: Sequence[str], where: str) -> TemplateInput:
    """The messages of a row and its tools, as chat templates take them.

    Contents are strings, roles those that templates know, calls are `tool_calls` with arguments that are objects.
    What templates do not read is left out, but for a weight of 0.

    Args:
        row: As JSON decodes it.
        where: For messages.

    Raises:
        InputError: They are no conversation, or hold something that is no text.
    """
    messages: list[object] = []
    for name, role in zip(fields, ("user", "assistant"), strict=False):
        given = row[name]
        if isinstance(given, str) and len(fields) > 1:
            given = [{"role": role, "content": given}]
        if not isinstance(given, list) or not given:
            problem = "holds no message" if given == [] else "is no list of messages"
            raise InputError(f"{where} {problem}.", 'Write [{"role": "user", "content": "…"}, …].')
        messages += given
    tools = from_json(row.get(TOOLS))
    if not isinstance(tools or [], list) or not all(isinstance(tool, dict) for tool in tools or ()):
        raise InputError(f"{where}: {TOOLS} is no list of functions.", "Write their JSON schemas, or leave it out.")
    made = [_message(message, f"{where}: message {number}") for number, message in enumerate(messages, start=1)]
    return {"messages": made} | ({TOOLS: tools} if tools else {})


def _message(message: object, place: str) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise InputError(f"{place} is not an object.", 'Write {"role": "user", "content": "…"}.')
    role = message.get("role") or message.get("from")
    if not isinstance(role, str) or not role.strip():
        raise InputError(f"{place} has no role.", "Say who speaks, such as user or assistant.")
    role = _ROLES.get(role, role)
    reasoning = {name: message[name] for name in REASONING if message.get(name)}
    if not all(isinstance(text, str) for text in reasoning.values()):
        raise InputError(f"{place} has reasoning that is no text.", "Write it as a string, or leave it out.")
    if message.get("weight") not in (None, 0, 1):
        raise InputError(f"{place} has a weight other than 0 and 1.", "Write 0 for a message that is not learnt.")
    calls = list(_tool_calls(message, place))
    content = _content(message, place, needed=not (reasoning or calls))
    more = reasoning | ({"tool_calls": calls} if calls else {}) | ({"weight": 0} if message.get("weight") == 0 else {})
    names = ("tool_call_id", "name") if role == "tool" else ()
    return {"role": role, "content": content} | more | {name: message[name] for name in names if message.get(name)}


def _content(message: Mapping[str, Any], place: str, *, needed: bool) -> str | None:
    content = message.get(_content_name(message))
    if isinstance(content, list):
        texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        if len(texts) < len(content) or not all(part.get("type") == "text" for part in content):
            raise InputError(
                f"{place} has a part that is no text.",
                'Leave the conversation out, or keep {"type": "text", "text": "…"}.',
            )
        return "\n".join(texts)
    if isinstance(content, str) or (content is None and not needed):
        return content
    problem = "no content" if content is None else "a content that is neither text nor a list of parts"
    raise InputError(f"{place} has {problem}.", 'Write it as a string; "" where nothing is said.')


def _content_name(message: Mapping[str, Any]) -> str:
    return "value" if "from" in message and "content" not in message else "content"


def _tool_calls(message: Mapping[str, Any], place: str) -> Iterator[dict[str, Any]]:
    calls = message.get("tool_calls") or []
    for call in [*(calls if isinstance(calls, list) else [calls]), *filter(None, [message.get("function_call")])]:
        function = call.get("function", call) if isinstance(call, dict) else {}
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise InputError(
                f"{place} has {' or '.join(CALLS)} without the name of a function.",
                'Write [{"type": "function", "function": {"name": "…", "arguments": {…}}}].',
            )
        arguments = from_json(function.get("arguments"))
        called = {"name": function["name"], "arguments": {} if arguments is None else arguments}
        yield ({"id": call["id"]} if call.get("id") else {}) | {"type": "function", "function": called}


def read_conversation(line: str, members: Mapping[str, Value], fields: Sequence[str], where: str) -> Chat:
    """The texts of a conversation.

    Args:
        line: A JSON object.
        members: Those of the object.
        fields: Those of the messages.
        where: For messages.

    Raises:
        InputError: As for `chat_format`.
    """
    conversation = chat_format({name: value for name, (value, _, _) in members.items()}, fields, where)
    messages, parts, base = conversation["messages"], list[Part](), 0
    for name in fields:
        given, start, end = members[name]
        raw = given if isinstance(given, list) else [{"content": given}]
        for leaf in leaves(line, start, end):
            index, *path = leaf.path or (0, "content")
            message = base + int(index)
            part = Part(message, messages[message]["role"], *leaf[1:4], name=str(path[0]))
            parts += _parts(line, leaf, path, raw[int(index)], part)
        base += len(raw)
    if TOOLS in conversation:
        _, start, end = members[TOOLS]
        parts += (part for leaf in leaves(line, start, end) for part in _tool_parts(line, leaf))
    parts.sort(key=lambda part: part.start)
    if not parts:
        raise InputError(f"{where} holds no text.", "Leave the conversation out.")
    joined = [a.name == b.name == "text" and a.message == b.message for a, b in pairwise(parts)]
    turns = accumulate((not same for same in joined), initial=0)
    said = [part.message for part, same in zip(parts, (False, *joined), strict=True) if not same]
    only_texts = all(part.key is None for part in parts) and all(len(message) == 2 for message in messages)
    plain = only_texts and said == list(range(len(messages)))
    return Chat(line, tuple(parts), tuple(turns), tuple(fields), plain)


def _parts(line: str, leaf: Leaf, path: Sequence[str | int], raw: Mapping[str, Any], part: Part) -> Iterator[Part]:
    """The texts in a string or number of a message.

    Args:
        path: What leads to it in the message.
        raw: The message.
        part: It, as if it were a text.
    """
    said, rest = part.name == _content_name(raw), path[1:]
    argument = part.name in CALLS and "arguments" in rest
    whole = not leaf.number and ((said and part.role == "tool" and not rest) or (argument and rest[-1] == "arguments"))
    if whole and not isinstance(from_json(leaf.text), str):
        yield from _nested(line, part)
    elif argument:
        yield from _values(part, leaf, rest)
    elif not rest and (said or part.name in REASONING):
        yield part
    elif said and rest[1:] == ["text"]:
        yield part._replace(name="text")


def _values(part: Part, leaf: Leaf, path: Sequence[str | int]) -> Iterator[Part]:
    """A value of JSON, behind its key; nothing for an empty list."""
    if leaf.start < leaf.end:
        key = next((key for key in reversed(path) if isinstance(key, str)), "")
        yield part._replace(key=key, number=leaf.number)


def _nested(line: str, part: Part) -> Iterator[Part]:
    """The values of a string that is itself JSON."""
    _, places = unescaped(line[part.start + 1 : part.end - 1])
    for leaf in leaves(part.text, 0, len(part.text)):
        quote = not leaf.number
        start, end = (part.start + 1 + places[at] for at in (leaf.start + quote, max(leaf.end - quote, leaf.start)))
        inner = part._replace(text=leaf.text, start=start, end=end, nested=True)
        yield from _values(inner, leaf, (part.name, *leaf.path))


def _tool_parts(line: str, leaf: Leaf) -> Iterator[Part]:
    """The texts in a string of the tools: no code, and no numbers."""
    part = Part(-1, TOOLS, leaf.text, leaf.start, leaf.end, TOOLS)
    found = _values(part, leaf, leaf.path) if leaf.path else _nested(line, part)
    yield from (each for each in found if not each.number and each.key not in _SCHEMA)
