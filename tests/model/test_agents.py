"""Calls, answers and thoughts as chat templates write them: at their places, and learnt where the assistant speaks."""

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from atdp_cli.corpus.record import Record, read_records
from atdp_cli.errors import InputError
from atdp_cli.model.chat import ChatTemplate, check_learnt, learnt_messages, load_chat_template
from atdp_cli.model.checkpoint import load_tokenizer
from atdp_cli.model.rendered import Rendered, in_contents, in_rendered, render_record
from tests.agents import AGENT, ALTERNATING, TOOLS, agent_rows
from tests.chats import CHATML, SPECIAL

THINKING = (
    "{% for m in messages %}{% set said = m['content'] %}{% if m['role'] == 'assistant' %}"
    "{% set thought = '' %}{% if '</think>' in said %}"
    "{% set thought = said.split('</think>')[0].split('<think>')[-1].strip('\n') %}"
    "{% set said = said.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "{{ '<|im_start|>assistant\n' }}{% if loop.last %}{{ '<think>\n' + thought + '\n</think>\n\n' }}{% endif %}"
    "{{ said + '<|im_end|>\n' }}{% else %}{{ '<|im_start|>' + m['role'] + '\n' + said + '<|im_end|>\n' }}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""In the manner of Qwen3's: what was thought before the last turn is dropped."""


@pytest.fixture(scope="module")
def chats(checkpoint_folder: Path) -> dict[str, ChatTemplate]:
    named = {"agent": AGENT, "alternating": ALTERNATING, "thinking": THINKING, "ChatML": CHATML}
    return {name: chat_of(checkpoint_folder, each) for name, each in named.items()}


def chat_of(folder: Path, template: str) -> ChatTemplate:
    tokenizer = copy.deepcopy(load_tokenizer(folder))
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
    tokenizer.chat_template = template
    return load_chat_template(tokenizer)


def record_of(folder: Path, messages: Sequence[Any], tools: object = None) -> Record:
    path = folder / "c.jsonl"
    path.write_text(json.dumps({"messages": messages} | ({} if tools is None else {"tools": tools})))
    [record] = read_records(path, text_field="messages")
    return record


def learnt(record: Record, rendered: Rendered) -> str:
    """What is learnt, each turn's stretches as they stand side by side."""
    wanted = learnt_messages(record, everybody=False)
    characters = {at for turn in rendered.turns if turn.turn in wanted for at in range(turn.start, turn.stop)}
    return "".join(each for at, each in enumerate(rendered.text) if at in characters)


def said(role: str, content: str | None, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content} | more


CALL = {"id": "1", "type": "function", "function": {"name": "find_order", "arguments": {"order": 'no "12"', "n": 12}}}
CALLING = [
    said("user", "Where is no 12?"),
    said("assistant", None, tool_calls=[CALL, {"function": {"name": "now", "arguments": "{}"}}]),
    said("tool", '{"city": "Rome"}', tool_call_id="1"),
    said("assistant", "In Rome."),
]


def test_calls_are_learnt_as_they_are_written(chats: dict[str, ChatTemplate], tmp_path: Path) -> None:
    record = record_of(tmp_path, CALLING, TOOLS)
    rendered = render_record(chats["agent"], record)
    expected = chats["agent"].source.apply_chat_template(
        [CALLING[0], CALLING[1] | {"tool_calls": [CALL, {"function": {"name": "now", "arguments": {}}}]}, *CALLING[2:]],
        tools=TOOLS,
        tokenize=False,
    )
    assert rendered.text == expected
    assert learnt(record, rendered) == (
        '<tool_call>\n{"name": "find_order", "arguments": {"order": "no \\"12\\"", "n": 12}}\n</tool_call>'
        '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call><|im_end|>In Rome.<|im_end|>'
    )


def test_a_message_of_weight_0_is_not_learnt(chats: dict[str, ChatTemplate], tmp_path: Path) -> None:
    messages = [said("user", "Hi"), said("assistant", "No.", weight=0), said("assistant", "Yes.", weight=1)]
    record = record_of(tmp_path, messages)
    assert learnt(record, render_record(chats["ChatML"], record)) == "Yes.<|im_end|>"
    assert learnt_messages(record, everybody=True) == {0, 2}


@pytest.mark.ci
@settings(max_examples=100)
@given(agent_rows())
def test_each_text_stands_where_it_is_said_to(
    chats: dict[str, ChatTemplate], tmp_path_factory: pytest.TempPathFactory, row: dict[str, Any]
) -> None:
    record = record_of(tmp_path_factory.mktemp("agents"), row["messages"], row.get("tools"))
    rendered = render_record(chats["agent"], record)
    contents = [record.text[turn.start : turn.end] for turn in record.turns]
    given = record.conversation()
    assert rendered.text == chats["agent"].source.apply_chat_template(
        given["messages"], tools=given.get("tools"), tokenize=False
    )
    starts = [turn.start for turn in record.turns]
    for turn, text in zip(record.turns, contents, strict=True):
        for at, character in enumerate(text):
            for place in in_rendered(rendered, starts, [(turn.start + at, turn.start + at + 1)]):
                written = rendered.text[slice(*place)]
                spellings = {json.dumps(character, ensure_ascii=each)[1:-1] for each in (True, False)}
                assert written in {character, *spellings}
                assert in_contents(rendered, starts, place) == (turn.start + at, turn.start + at + 1)


KNOWN = {
    "qwen3": '<tool_call>\n{"name": "find_order", "arguments": {"order": "no \\"12\\"", "n": 12}}\n</tool_call>',
    "llama3_1": '{"name": "find_order", "parameters": {"order": "no \\"12\\"", "n": 12}}',
    "deepseekv3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find_order\n```json\n"
    '{"order": "no \\"12\\"", "n": 12}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "gptoss": ' to=functions.find_order<|channel|>commentary json<|message|>{"order": "no \\"12\\"", "n": 12}',
}
"""What models of these templates say to call the function."""


@pytest.mark.ci
@pytest.mark.parametrize("name", KNOWN)
def test_calls_of_known_templates_are_learnt(checkpoint_folder: Path, tmp_path: Path, name: str) -> None:
    folder = Path(pytest.importorskip("trl").__file__).parent / "chat_templates"
    chat = chat_of(checkpoint_folder, (folder / f"{name}.jinja").read_text(encoding="utf-8"))
    calling = [CALLING[0], CALLING[1] | {"tool_calls": [CALL]}, *CALLING[2:]]
    record = record_of(tmp_path, calling, TOOLS)
    said_by_assistant = learnt(record, render_record(chat, record))
    assert said_by_assistant.startswith(KNOWN[name])
    assert "In Rome." in said_by_assistant
    assert "city" not in said_by_assistant


THOUGHT = "<think>\nShe asks.\n</think>\n\nHello."


def test_what_is_thought_in_a_content_is_not_refused(chats: dict[str, ChatTemplate], tmp_path: Path) -> None:
    record = record_of(tmp_path, [said("user", "Hi"), said("assistant", THOUGHT)])
    rendered = render_record(chats["thinking"], record)
    assert rendered.text.endswith(f"assistant\n{THOUGHT}<|im_end|>\n")
    assert learnt(record, rendered) == f"{THOUGHT}<|im_end|>"


def test_what_was_thought_before_may_be_left_out(chats: dict[str, ChatTemplate], tmp_path: Path) -> None:
    turns = [said("user", "Hi"), said("assistant", THOUGHT), said("user", "Bye"), said("assistant", "Bye.")]
    record = record_of(tmp_path, turns)
    rendered = render_record(chats["thinking"], record)
    assert "She asks" not in rendered.text
    assert learnt(record, rendered) == "Hello.<|im_end|>Bye.<|im_end|>"
    places = in_rendered(rendered, [turn.start for turn in record.turns], [(0, len(record.text))])
    assert [rendered.text[slice(*place)] for place in places] == ["Hi", "Hello.", "Bye", "Bye."]


REFUSED = {
    "a system's turn": ([said("system", "Quill"), said("user", "Hi")], "at message 1: TemplateError"),
    "two users": ([said("user", "Hi"), said("user", "Quill"), said("assistant", "x")], "at message 2"),
    "three assistants": ([said("user", "Hi"), *[said("assistant", "Quill")] * 2], "at message 3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_turn_that_is_refused_is_named(chats: dict[str, ChatTemplate], tmp_path: Path, case: str) -> None:
    messages, problem = REFUSED[case]
    with pytest.raises(InputError, match=problem) as refused:
        render_record(chats["alternating"], record_of(tmp_path, messages))
    assert "Quill" not in str(refused.value)


def test_the_turn_that_is_changed_is_named(checkpoint_folder: Path, tmp_path: Path) -> None:
    shouting = chat_of(checkpoint_folder, CHATML.replace("m['content']", "m['content'] | replace('?', '!')"))
    messages = [said("user", "Hi."), said("assistant", "Hi."), said("user", "Why?"), said("assistant", "So.")]
    with pytest.raises(InputError, match="changes what message 3 says"):
        render_record(shouting, record_of(tmp_path, messages))


def test_a_call_that_a_template_leaves_out_is_refused(chats: dict[str, ChatTemplate], tmp_path: Path) -> None:
    silent = [*CALLING[:1], CALLING[1] | {"content": "Let me see."}, *CALLING[2:]]
    record = record_of(tmp_path, silent)
    with pytest.raises(InputError, match="leaves message 2 out, repeats it or moves it, or its call"):
        render_record(chats["ChatML"], record)


def test_conversations_without_an_assistant_say_who_speaks(tmp_path: Path) -> None:
    record = record_of(tmp_path, [said("customer", "Hi"), said("agent", "Hi"), said("Quillfeather", "Hi")])
    with pytest.raises(InputError, match="the roles agent, customer, others") as refused:
        check_learnt([record], everybody=False)
    assert "run.loss-on=all" in str(refused.value)
    assert "Quill" not in str(refused.value)
    check_learnt([record], everybody=True)
