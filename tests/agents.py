"""Conversations of agents for tests: functions, calls with arguments and answers in JSON, and a template for them."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

AGENT = (
    "{% if tools %}{{ '<|im_start|>system\n' }}{% for t in tools %}{{ t | tojson + '\n' }}{% endfor %}"
    "{{ '<|im_end|>\n' }}{% endif %}{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}"
    "{% if m['reasoning_content'] %}{{ '<think>\n' + m['reasoning_content'] + '\n</think>\n' }}{% endif %}"
    "{{ m['content'] or '' }}"
    "{% for c in m['tool_calls'] or [] %}"
    "{{ '<tool_call>\n{\"name\": \"' + c['function']['name'] + '\", \"arguments\": ' }}"
    "{{ c['function']['arguments'] | tojson }}{{ '}\n</tool_call>' }}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""In the manner of Qwen3's."""

ALTERNATING = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] | trim + '<|im_end|>\n' }}{% endfor %}"
)
"""In the manner of Gemma's."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find_order",
            "description": "Find an order by its number.",
            "parameters": {
                "type": "object",
                "properties": {"order": {"type": "string"}, "customer": {"type": "string"}},
                "required": ["order"],
            },
        },
    }
]

GIVEN = ("Emma", "Oliver", "Sophia", "James", "Grace", "Daniel", "Laura", "Peter", "Alice", "Thomas")
FAMILY = ("Clarke", "Johnson", "Miller", "Fischer", "Anderson", "Thompson", "Roberts", "Murphy", "Wilson", "Baker")
STREETS = ("Baker Street", "Station Road", "Church Lane", "Mill Street", "Park Avenue")


def agent_conversations(count: int) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Rows of conversations in which an order is looked up, each with its true values."""
    draw = random.Random(5)
    for number in range(count):
        name = f"{draw.choice(GIVEN)} {draw.choice(FAMILY)}"
        order, phone = f"{draw.randrange(10**7, 10**8)}", draw.randrange(2 * 10**9, 10**10)
        address = f"{draw.randrange(10, 200)} {draw.choice(STREETS)}"
        arguments: Any = {"order": order, "customer": name}
        answer = {"order_number": order, "name": name, "phone": phone, "address": address, "open": True, "notes": None}
        call = {"name": "find_order", "arguments": arguments if number % 2 else json.dumps(arguments)}
        messages = [
            {"role": "user", "content": f"Hello, my name is {name}. Where is my order {order}?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call_{number}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"call_{number}", "content": json.dumps(answer)},
            {"role": "assistant", "content": f"Thank you, {name}. The order {order} was sent to {address}."},
        ]
        yield {"id": number, "tools": TOOLS, "messages": messages}, [name, order, str(phone), address]


def write_rows(path: Path, rows: Iterator[dict[str, Any]]) -> Path:
    """JSON Lines of rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


WORDS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\ue000\ue001"), max_size=12)
STRINGS = st.one_of(
    WORDS, st.sampled_from(["", "Emma Clarke", "483920", '"\\\t', "é\u0301🎉", "<think>a</think>b", "a\nb"])
)
NUMBERS = st.one_of(st.integers(-(10**9), 10**9), st.sampled_from([0.5, 12.75, 483920, -7, 10]))
VALUES = st.recursive(
    st.one_of(STRINGS, NUMBERS, st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=6,
)
OBJECTS = st.dictionaries(WORDS, VALUES, max_size=4)


@st.composite
def agent_rows(draw: st.DrawFn) -> dict[str, Any]:
    """A row with messages of every kind."""

    def spelled(value: Any) -> Any:
        """A JSON value as it is, or in a string."""
        escaped = draw(st.booleans())
        return draw(st.sampled_from([value, json.dumps(value, ensure_ascii=escaped)]))

    def call() -> dict[str, Any]:
        function = {"name": draw(st.sampled_from(["find", "now"])), "arguments": spelled(draw(OBJECTS))}
        return draw(st.sampled_from([{"type": "function", "function": function}, function]))

    messages: list[dict[str, Any]] = [{"role": "user", "content": draw(STRINGS)}]
    for kind in draw(st.lists(st.sampled_from(["said", "calls", "function_call", "thought", "answer"]), max_size=5)):
        match kind:
            case "calls":
                calls = [call() for _ in range(draw(st.integers(1, 2)))]
                messages.append(
                    {"role": "assistant", "content": draw(st.sampled_from([None, "", "So"])), "tool_calls": calls}
                )
            case "function_call":
                messages.append(
                    {"role": "assistant", "function_call": {"name": "f", "arguments": json.dumps(draw(OBJECTS))}}
                )
            case "thought":
                messages.append(
                    {"role": "gpt", "reasoning_content": draw(STRINGS), "content": draw(STRINGS), "weight": 0}
                )
            case "answer":
                content = json.dumps(draw(OBJECTS), ensure_ascii=draw(st.booleans()))
                messages.append({"role": "tool", "tool_call_id": "1", "content": content})
            case _:
                messages.append({"role": draw(st.sampled_from(["user", "assistant"])), "content": draw(STRINGS)})
    tools = draw(st.sampled_from([None, TOOLS, json.dumps(TOOLS)]))
    return {"n": 1.50, "messages": messages} | ({} if tools is None else {"tools": tools})
