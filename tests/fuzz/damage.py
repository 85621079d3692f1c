"""Inputs that were valid until something happened to them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fuzz.survival import Choices

HUGE = ("1" + "0" * 400, "9" * 5000, "-" + "9" * 5000, "0x" + "f" * 5000, "1e999", "-1e999", "1e308", "5e-324")

VALUES = (
    *("null", "true", "false", "0", "-0", "1", "-1", "1.5", "-2.5", "1e-7", "3", "2147483648", "18446744073709551616"),
    *HUGE,
    *("NaN", "Infinity", "-Infinity", "nan", "inf", "-inf"),
    *('""', '" "', '"a"', '"\\ud800"', '"\\u0000"', '"two\\nlines"', '"\\u001b[2J"', '"\\u2028"', '"/"', '"../x"'),
    *('"é\U0001f600"', json.dumps("x" * 5000), '"{digits:6}"', '"2026-11-22"', '"(?i)[[a]"'),
    *("[]", "{}", "[[]]", "[null]", "[1, 2]", '["a", "a"]', '[{"a": 1}]', '{"a": {"a": []}}', '{"\\ud800": 1}'),
    *("[" * 3000 + "]" * 3000, '{"a":' * 3000 + "1" + "}" * 3000, "[" * 20_000, "2026-11-22", "'''", '"'),
)
"""What may stand for a value in JSON, and what may not, also in TOML."""

KEYS = ('"a"', '""', '"kind"', '"two\\nlines"', '"\\ud800"', json.dumps("y" * 3000), '"\\u001b[2J"')

BYTES = (
    *(
        b"",
        b"\0",
        b"\xff",
        b"\xc3",
        b"\n",
        b"\r",
        b"\r\n",
        b'"',
        b"\\",
        b",",
        b"\t",
        b"{",
        b"}",
        b"[",
        b"]",
        b"(",
        b":",
    ),
    *(b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\x85", b"9" * 30, b"\x1b[2J", b"\x7f\xff\xff\xff", b"-"),
)


@dataclass(frozen=True)
class Object:
    """A JSON object whose keys, as JSON, may come twice."""

    members: "tuple[tuple[str, Node], ...]"


Node = Object | tuple["Node", ...] | str
"""A JSON value; what is neither an object nor an array is its text."""


def node_of(value: Any) -> Node:
    """A value as `json.loads` gives it."""
    if isinstance(value, dict):
        return Object(tuple((json.dumps(key), node_of(part)) for key, part in value.items()))
    return tuple(map(node_of, value)) if isinstance(value, list) else json.dumps(value)


def text_of(node: Node) -> str:
    """Its JSON."""
    if isinstance(node, Object):
        return "{" + ", ".join(f"{key}: {text_of(part)}" for key, part in node.members) + "}"
    return node if isinstance(node, str) else "[" + ", ".join(map(text_of, node)) + "]"


def altered(choices: Choices, node: Node) -> Node:
    """One place of a document changed: another value, or a member that is gone, there twice, new or renamed."""
    parts: tuple[Any, ...] = node.members if isinstance(node, Object) else () if isinstance(node, str) else node
    if not parts:
        return choices.of(VALUES)
    how, at = choices.below(12), choices.below(len(parts))
    before, part, after = parts[:at], parts[at], parts[at + 1 :]
    if how == 0:
        return choices.of(VALUES)
    if how == 1:
        changed = (*before, *after)
    elif how == 2:
        changed = (*before, part, part, *after)
    elif isinstance(node, Object):
        key, value = part
        new = (choices.of(KEYS), value) if how == 3 else (key, altered(choices, value))
        changed = (*parts, (choices.of(KEYS), choices.of(VALUES))) if how == 4 else (*before, new, *after)
    else:
        changed = (*before, altered(choices, part), *after)
    return Object(changed) if isinstance(node, Object) else changed


def json_of(*valid: str) -> Callable[[Choices], bytes]:
    """Valid documents with up to three places changed."""
    nodes = [node_of(json.loads(text)) for text in valid]

    def build(choices: Choices) -> bytes:
        node = choices.of(nodes)
        for _ in range(1 + choices.below(3)):
            node = altered(choices, node)
        return text_of(node).encode("utf-8", "surrogatepass")

    return build


def damaged(*valid: bytes) -> Callable[[Choices], bytes]:
    """Valid bytes of which up to three stretches are cut out, replaced, flipped or doubled."""

    def build(choices: Choices) -> bytes:
        content = choices.of(valid)
        for _ in range(1 + choices.below(3)):
            start = choices.below(len(content) + 1)
            stretch = content[start : start + choices.below(9)]
            match choices.below(4):
                case 0:
                    put = choices.of(BYTES)
                case 1:
                    put = bytes(choices.below(256) for _ in range(choices.below(5)))
                case 2:
                    put = bytes(byte ^ 1 << choices.below(8) for byte in stretch)
                case _:
                    put = stretch * 2
            content = content[:start] + put + content[start + len(stretch) :]
        return content

    return build


def soup(*pieces: bytes) -> Callable[[Choices], bytes]:
    """The pieces of a language in any order."""

    def build(choices: Choices) -> bytes:
        return b"".join(choices.of(pieces) for _ in range(choices.below(24)))

    return build


def noise(choices: Choices) -> bytes:
    """Random bytes."""
    return bytes(choices.below(256) for _ in range(choices.below(32)))
