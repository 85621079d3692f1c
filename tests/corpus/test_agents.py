"""Conversations of agents: what is said, called and answered is read, and rewritten where it stands alone."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.edits import Edit
from atdp_cli.corpus.record import Record, read_records, read_segments
from atdp_cli.corpus.rewrite import rewrite_corpus
from atdp_cli.corpus.segments import Selection
from atdp_cli.corpus.spans import Span, Tier, merge
from atdp_cli.errors import InputError
from atdp_cli.replacement.decoys import uniformly
from atdp_cli.replacement.draw import decoy_record
from atdp_cli.replacement.edits import edits_by_line
from tests.agents import agent_rows

MESSAGES = Selection(text_field="messages")


def read(path: Path, row: object, field: str = "messages") -> Record:
    path.write_text(json.dumps(row), encoding="utf-8")
    [record] = read_records(path, text_field=field)
    return record


def texts(record: Record) -> list[tuple[str, str]]:
    return [(turn.role, record.text[turn.start : turn.end]) for turn in record.turns]


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def called(**call: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None} | call


KINDS: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "arguments in a string": (
        [
            called(
                tool_calls=[{"id": "1", "function": {"name": "f", "arguments": '{"to": "Emma", "n": 12, "on": true}'}}]
            )
        ],
        [("assistant", "Emma"), ("assistant", "12")],
    ),
    "arguments that are an object": (
        [called(tool_calls=[{"function": {"name": "f", "arguments": {"to": ["Emma", None], "in": {"at": "Rome"}}}}])],
        [("assistant", "Emma"), ("assistant", "Rome")],
    ),
    "arguments that are no JSON": (
        [called(tool_calls=[{"function": {"name": "f", "arguments": "to Emma"}}])],
        [("assistant", "to Emma")],
    ),
    "a function_call": (
        [called(function_call={"name": "f", "arguments": '{"to": "Emma"}'})],
        [("assistant", "Emma")],
    ),
    "an answer in JSON": (
        [{"role": "tool", "tool_call_id": "1", "content": '{"name": "Ren\\u00e9e", "n": [1.5]}'}],
        [("tool", "Renée"), ("tool", "1.5")],
    ),
    "an answer of a function": ([{"role": "function", "name": "f", "content": "Emma"}], [("tool", "Emma")]),
    "reasoning": (
        [{"role": "assistant", "reasoning_content": "Emma?", "content": "Yes."}],
        [("assistant", "Emma?"), ("assistant", "Yes.")],
    ),
    "other words for roles": (
        [{"role": "human", "content": "Emma"}, {"role": "gpt", "content": "Yes"}],
        [("user", "Emma"), ("assistant", "Yes")],
    ),
    "from and value": (
        [{"from": "human", "value": "Emma"}, {"from": "gpt", "value": "Yes"}],
        [("user", "Emma"), ("assistant", "Yes")],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_read(tmp_path: Path, kind: str) -> None:
    messages, expected = KINDS[kind]
    record = read(tmp_path / "c.jsonl", {"messages": [said("Hi"), *messages]})
    assert texts(record) == [("user", "Hi"), *expected]


def test_a_value_is_read_behind_its_key(tmp_path: Path) -> None:
    call = {"function": {"name": "f", "arguments": {"ship_to": "Emma Clarke"}}}
    record = read(tmp_path / "c.jsonl", {"messages": [said("Hi"), called(tool_calls=[call])]})
    assert record.text == "Hi\nship_to: Emma Clarke"


def test_the_descriptions_of_functions_are_read(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string", "enum": ["Emma"]}}, "required": ["to"]}
    tools = [{"type": "function", "function": {"name": "f", "description": "Ask Omar.", "parameters": schema}}]
    for given_tools in (tools, json.dumps(tools)):
        record = read(tmp_path / "c.jsonl", {"messages": [said("Hi")], "tools": given_tools})
        assert texts(record) == [("user", "Hi"), ("tools", "Ask Omar."), ("tools", "Emma")]
        assert record.conversation()["tools"] == tools


def test_rows_of_prompt_and_completion_are_conversations(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    record = read(path, {"completion": "Yes.", "prompt": "Emma?"}, "prompt+completion")
    assert texts(record) == [("assistant", "Yes."), ("user", "Emma?")]
    assert [each["role"] for each in record.conversation()["messages"]] == ["user", "assistant"]
    row = {"prompt": [said("Emma?")], "completion": [{"role": "assistant", "content": "Yes."}]}
    assert texts(read(path, row, "prompt+completion")) == [("user", "Emma?"), ("assistant", "Yes.")]
    with pytest.raises(InputError, match="--text-field prompt\\+completion"):
        read(path, row)
    with pytest.raises(InputError, match="--text-field conversations"):
        read(path, {"conversations": [said("Emma?")]})


REFUSED = {
    "a call without a name": (called(tool_calls=[{"function": {"arguments": "{}"}}]), "without the name of a function"),
    "a weight": (said("Quill") | {"weight": 0.5}, "message 2 has a weight other than 0 and 1"),
    "reasoning that is no text": (said("Quill") | {"reasoning_content": ["Quill"]}, "reasoning that is no text"),
    "null without a call": (called(tool_calls=[]), "message 2 has no content"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, case: str) -> None:
    message, problem = REFUSED[case]
    with pytest.raises(InputError, match=problem) as refused:
        read(tmp_path / "c.jsonl", {"messages": [said("Hi"), message]})
    assert "Quill" not in str(refused.value)


def decoyed(flagged: Sequence[Sequence[Span]], seed: int = 0) -> Callable[[Iterator[Record]], Iterator[list[Edit]]]:
    choose = uniformly(random.Random(seed).randrange)

    def edits(records: Iterator[Record]) -> Iterator[list[Edit]]:
        for record, spans in zip(records, flagged, strict=True):
            edited = decoy_record([(record.text, spans)], choose, "record")[0]
            pairs = zip(merge(spans), edited.places, strict=True)
            changes = [Edit(span.start, span.end, edited.text[slice(*place)]) for span, place in pairs]
            yield list(edits_by_line(record.text, changes))

    return edits


def types(value: Any) -> Any:
    """The keys and types of a JSON value, and of JSON in its strings."""
    if isinstance(value, dict):
        return {key: types(each) for key, each in value.items()}
    if isinstance(value, list):
        return [types(each) for each in value]
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return "JSON", types(json.loads(value))
        except ValueError:
            pass
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


@pytest.mark.ci
@given(st.lists(agent_rows(), min_size=1, max_size=2), st.booleans(), st.data())
def test_decoys_change_the_flagged_characters_alone(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], escaped: bool, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("agents")
    source, same, target = (folder / f"{name}.jsonl" for name in ("in", "same", "out"))
    source.write_bytes("\r\n".join(json.dumps(row, ensure_ascii=escaped) for row in rows).encode())
    before = list(read_records(source, text_field="messages"))
    rewrite_corpus(source, same, lambda records: (() for _ in records), MESSAGES)
    assert same.read_bytes() == source.read_bytes()
    flagged = []
    for record in before:
        chosen = [turn for turn in record.turns if turn.start < turn.end and data.draw(st.booleans())]
        flagged.append([Span(turn.start, turn.end, "CODE", "deny", Tier.LOW_ENTITY) for turn in chosen])
    rewrite_corpus(source, target, decoyed(flagged), MESSAGES)
    after = list(read_records(target, text_field="messages"))
    lines = target.read_bytes().decode().split("\r\n")
    assert [types(json.loads(line)) for line in lines] == list(map(types, rows))
    # What stands between the texts is the same, character by character.
    pairs = zip(*(read_segments(path, MESSAGES) for path in (source, target)), strict=True)
    assert all((old.before, old.label) == (new.before, new.label) for old, new in pairs)
    for old, new, spans in zip(before, after, flagged, strict=True):
        assert [turn.role for turn in old.turns] == [turn.role for turn in new.turns]
        places = {span.start for span in spans}
        decoys: dict[str, str] = {}
        for turn, changed in zip(old.turns, new.turns, strict=True):
            ours, theirs = old.text[turn.start : turn.end], new.text[changed.start : changed.end]
            if turn.start not in places:
                assert ours == theirs
            elif ours.isdecimal() and len(ours) > 3 and ours.isascii():
                assert decoys.setdefault(ours, theirs.lstrip("0")) == theirs.lstrip("0"), "equal values are equal"


@pytest.mark.ci
@given(st.lists(st.tuples(st.sampled_from("ab"), agent_rows()), min_size=2, max_size=4), st.data())
def test_a_users_conversations_are_those_of_the_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    """Read alike, and with the same edits rewritten alike, byte for byte."""
    folder = tmp_path_factory.mktemp("users")
    source, by_row, by_user = (folder / f"{name}.jsonl" for name in ("in", "rows", "users"))
    source.write_bytes("\r\n".join(json.dumps({"who": who, **row}) for who, row in rows).encode())
    users = Selection(unit="who", text_field="messages")
    alone = list(read_records(source, text_field="messages"))
    edits = [
        [Edit(t.start, t.end, "7") for t in record.turns if t.start < t.end and data.draw(st.booleans())]
        for record in alone
    ]
    of_users = []
    for user in read_records(source, unit="who", text_field="messages"):
        own = [place for place, (who, _) in enumerate(rows) if who == user.id]
        assert user.text == "\n".join(alone[place].text for place in own)
        assert [one.conversation() for one in user.conversations] == [alone[place].conversation() for place in own]
        assert [one.texts for one in user.conversations] == [alone[place].texts for place in own]
        moved, start = list[Edit](), 0
        for place in own:
            moved += (Edit(start + edit.start, start + edit.end, edit.text) for edit in edits[place])
            start += len(alone[place].text) + 1
        of_users.append(moved)
    rewrite_corpus(source, by_row, lambda records: (each for _, each in zip(records, edits, strict=True)), MESSAGES)
    rewrite_corpus(source, by_user, lambda records: (each for _, each in zip(records, of_users, strict=True)), users)
    assert by_user.read_bytes() == by_row.read_bytes()


def test_a_number_stays_one_and_equals_its_string(tmp_path: Path) -> None:
    row = {"messages": [said("Order 483920"), {"role": "tool", "content": '{"order": 483920, "n": -48.5, "k": 7}'}]}
    record = read(tmp_path / "c.jsonl", row)
    spans = [Span(6, 12, "CODE", "deny", Tier.LOW_ENTITY)]
    spans += [Span(turn.start, turn.end, "CODE", "deny", Tier.LOW_ENTITY) for turn in record.turns[1:]]
    firsts = set()
    for seed in range(60):
        rewrite_corpus(tmp_path / "c.jsonl", tmp_path / "o.jsonl", decoyed([spans], seed), MESSAGES)
        user, tool = json.loads((tmp_path / "o.jsonl").read_text())["messages"]
        answer = json.loads(tool["content"])
        assert int(user["content"].removeprefix("Order ")) == answer["order"], "a number has no zeros before it"
        assert [type(each) for each in answer.values()] == [int, float, int]
        firsts.add(user["content"][6])
    assert firsts == set("0123456789")
    redacted = lambda records: ([Edit(s.start, s.end, "[CODE]") for s in spans] for _ in records)  # noqa: E731
    rewrite_corpus(tmp_path / "c.jsonl", tmp_path / "r.jsonl", redacted, MESSAGES)
    tool = json.loads((tmp_path / "r.jsonl").read_text())["messages"][1]
    assert tool["content"] == '{"order": 0, "n": 0, "k": 0}'


def test_parquet_of_agents_gets_its_columns_back(tmp_path: Path) -> None:
    call = [{"id": "1", "function": {"name": "f", "arguments": '{"to": "Emma"}'}}]
    rows = [
        [
            {"role": "user", "content": "Emma", "tool_calls": None},
            {"role": "assistant", "content": None, "tool_calls": call},
        ],
        [{"role": "user", "content": "Hi", "tool_calls": None}],
    ]
    tools = [{"type": "function", "function": {"name": "f", "description": "Ask Emma."}}]
    table = pa.table({"n": [1, 2], "messages": rows, "tools": [json.dumps(tools), None]})
    source, target = tmp_path / "c.parquet", tmp_path / "o.parquet"
    pq.write_table(table, source)
    first, second = read_records(source, text_field="messages")
    assert (texts(first), texts(second)) == (
        [("user", "Emma"), ("assistant", "Emma"), ("tools", "Ask Emma.")],
        [("user", "Hi")],
    )
    rewrite_corpus(
        source,
        target,
        lambda records: (
            [Edit(at, at + 4, "Nina") for at in range(len(r.text)) if r.text.startswith("Emma", at)] for r in records
        ),
        MESSAGES,
    )
    changed = pq.read_table(target)
    assert changed.schema == table.schema
    assert json.dumps(changed.to_pylist()) == json.dumps(table.to_pylist()).replace("Emma", "Nina")
