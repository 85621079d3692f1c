"""Conversations in JSON Lines and Parquet: read, refused, and rewritten where something is said and nowhere else."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.edits import Edit, apply_edits
from atdp_cli.corpus.record import Record, Turn, read_records
from atdp_cli.corpus.rewrite import rewrite_corpus
from atdp_cli.corpus.segments import Selection
from atdp_cli.errors import AtdpError, InputError
from tests.chats import CONVERSATIONS
from tests.corpus.corpora import nothing

MESSAGES = Selection(text_field="messages")


def read(path: Path, content: bytes | str) -> list[Record]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_records(path, text_field="messages"))


def test_a_conversation_is_a_record_with_its_turns(tmp_path: Path) -> None:
    line = (
        '{"id": 7, "messages": [{"role": "system", "content": ""}, {"content": "H\\u0069\\n", "role": "user"}, '
        '{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"text": "b", "type": "text"}]}, '
        '{"role": "tool", "content": []}]}'
    )
    [record] = read(tmp_path / "c.jsonl", line)
    assert record.text == "\nHi\n\na\nb\n"
    assert record.turns == (Turn("system", 0, 0), Turn("user", 1, 4), Turn("assistant", 5, 8), Turn("tool", 9, 9))
    assert [record.text[turn.start : turn.end] for turn in record.turns] == ["", "Hi\n", "a\nb", ""]


def test_who_says_it_makes_another_record() -> None:
    mine, yours = (Record("1", "a\nb", (Turn(role, 0, 1), Turn("user", 2, 3))) for role in ("user", "assistant"))
    joined = Record("1", "a\nb", (Turn("user", 0, 3),))
    two = Record("1", "a\nb", (Turn("user", 0, 1), Turn("user", 2, 3, 1)))
    assert len({mine.canonical, yours.canonical, joined.canonical, two.canonical, Record("1", "a\nb").canonical}) == 5


GOOD = '{"messages": [{"role": "user", "content": "Quillfeather"}]}\n'
MALFORMED = {
    "an object": ('{"messages": {"role": "user"}}', "line 2: the field messages is neither a string nor a list"),
    "no message": ('{"messages": []}', "line 2: the field messages holds no message"),
    "a string for a message": ('{"messages": ["Quillfeather"]}', "message 1 is not an object"),
    "no role": ('{"messages": [{"content": "Quillfeather"}]}', "message 1 has no role"),
    "a role that is no word": ('{"messages": [{"role": 3, "content": "x"}]}', "message 1 has no role"),
    "no content": ('{"messages": [{"role": "user", "content": "x"}, {"role": "user"}]}', "message 2 has no content"),
    "null": ('{"messages": [{"role": "user", "content": null}]}', "message 1 has no content"),
    "a number": ('{"messages": [{"role": "user", "content": 5}]}', "neither text nor a list of parts"),
    "a picture": (
        '{"messages": [{"role": "user", "content": [{"type": "image", "text": "Quillfeather"}]}]}',
        "message 1 has a part that is no text",
    ),
    "a tool call without a function": (
        '{"messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": "Quillfeather"}]}]}',
        "message 1 has tool_calls or function_call without the name of a function",
    ),
    "a key twice": ('{"messages": [{"role": "user", "role": "user", "content": "x"}]}', "has a key more than once"),
    "cut off": ('{"messages": [{"role": "user", "content": "Quillf', "line 2 is not valid JSON"),
    "a text among conversations": ('{"messages": "Quillfeather"}', "holds a text, and a conversation in the lines"),
    "another field": ('{"text": "Quillfeather"}', "line 2 has no field messages"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_conversation_is_one_line_without_its_text(tmp_path: Path, case: str) -> None:
    line, said = MALFORMED[case]
    with pytest.raises(InputError) as refused:
        read(tmp_path / "c.jsonl", GOOD + line + "\n")
    message = str(refused.value)
    assert said in message
    assert message.count("\n") == 0
    assert "Quillf" not in message
    kept: list[Exception] = []
    assert len(list(read_records(tmp_path / "c.jsonl", text_field="messages", on_error=kept.append))) == 1
    assert len(kept) == 1


def test_conversations_are_not_read_where_texts_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"user": "a", "messages": [{"role": "user", "content": "x"}]}\n')
    with pytest.raises(AtdpError, match="--text-field messages"):
        list(read_records(path))


def written(conversation: Sequence[tuple[str, str]], draw: st.DataObject) -> str:
    """A line with these messages, each spelled in one of the ways that JSON and the format allow."""
    messages = []
    for role, content in conversation:
        string = json.dumps(content, ensure_ascii=draw.draw(st.booleans()))
        halves = json.dumps([{"type": "text", "text": half} for half in (content[:2], content[2:])])
        said = draw.draw(st.sampled_from([string, f'[{{"type":"text" ,  "text":{string}}}]', halves]))
        members = [f'"role": {json.dumps(role)}', f'"content":{said}', '"n" : 1.50']
        messages.append("{" + ", ".join(draw.draw(st.permutations(members))) + " }")
    return '{"a": "content", "messages" :[ ' + ",  ".join(messages) + ' ], "z": [1, {"content": "x"}]}'


@pytest.mark.ci
@given(st.lists(CONVERSATIONS, min_size=1, max_size=3), st.data())
def test_only_what_is_said_is_rewritten(
    tmp_path_factory: pytest.TempPathFactory, conversations: list[list[tuple[str, str]]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("chat")
    source, same, other = folder / "in.jsonl", folder / "same.jsonl", folder / "other.jsonl"
    source.write_text("\r\n".join(written(each, data) for each in conversations), encoding="utf-8")
    before = list(read_records(source, text_field="messages"))
    assert [[turn.role for turn in record.turns] for record in before] == [
        [role for role, _ in c] for c in conversations
    ]

    rewrite_corpus(source, same, nothing, MESSAGES)
    assert same.read_bytes() == source.read_bytes()
    changes = [
        # What stands between two parts of a message is no character of the file.
        [
            Edit(turn.start, turn.start + 1, '[X"]')
            for turn in record.turns
            if record.text[turn.start : turn.end].lstrip("\n") == record.text[turn.start : turn.end] != ""
        ]
        for record in before
    ]

    def some(records: Iterator[Record]) -> Iterator[Sequence[Edit]]:
        return (change for _, change in zip(records, changes, strict=True))

    rewrite_corpus(source, other, some, MESSAGES)
    after = list(read_records(other, text_field="messages"))
    assert [record.text for record in after] == [
        apply_edits(record.text, change).text for record, change in zip(before, changes, strict=True)
    ]
    assert [[turn.role for turn in record.turns] for record in after] == [[t.role for t in r.turns] for r in before]
    pairs = zip(*(path.read_bytes().decode().split("\r\n") for path in (source, other)), strict=True)
    for old, new in (map(without_contents, pair) for pair in pairs):
        assert old == new


def without_contents(line: str) -> Any:
    value = json.loads(line)
    for message in value["messages"]:
        message["content"] = len(message["content"]) if isinstance(message["content"], list) else ""
    return value


TURNS = "(?P<assistant>SYS|ACT): ?|(?P<user>USR): ?"
CHAT = b"\n\nSYS: Hello.\r\nHow may I help?\nUSR:\nACT:Emma: pulled up\n \nUSR: bye: SYS: x\n"


def test_paragraphs_with_speakers_are_conversations(tmp_path: Path) -> None:
    path, target = tmp_path / "c.txt", tmp_path / "out.txt"
    path.write_bytes(CHAT)
    first, second = read_records(path, unit="paragraph", turns=TURNS)
    assert (first.id, second.id) == ("3", "8")
    assert first.text == "Hello.\nHow may I help?\n\nEmma: pulled up"
    assert first.turns == (Turn("assistant", 0, 22), Turn("user", 23, 23), Turn("assistant", 24, 39))
    assert (second.text, second.turns) == ("bye: SYS: x", (Turn("user", 0, 11),))
    selection = Selection(unit="paragraph", turns=TURNS)
    rewrite_corpus(path, target, lambda actual: (() for _ in actual), selection)
    assert target.read_bytes() == CHAT
    name = Edit(24, 28, "[PERSON]")
    over_two_lines = Edit(3, 10, "[X]")
    rewrite_corpus(
        path, target, lambda actual: ([over_two_lines, name] if r.id == "3" else [] for r in actual), selection
    )
    assert target.read_bytes() == CHAT.replace(b"lo.\r\nHow", b"[X]").replace(b"Emma", b"[PERSON]")


def test_what_has_no_speaker_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_bytes(b"Quillfeather\nUSR: a\n\nUSR: b\n")
    with pytest.raises(InputError, match="line 1 begins a paragraph, and no speaker") as refused:
        list(read_records(path, unit="paragraph", turns=TURNS))
    assert "Quill" not in str(refused.value)
    kept: list[Exception] = []
    actual = list(read_records(path, unit="paragraph", turns=TURNS, on_error=kept.append))
    assert ([record.text for record in actual], len(kept)) == (["a", "b"], 1)
    for unit, turns, said in (
        ("line", TURNS, "run.turns reads paragraphs of plain text"),
        ("paragraph", "(SYS):", "run.turns names no role"),
        ("paragraph", "(?P<user>", "run.turns is no regular expression"),
    ):
        with pytest.raises(AtdpError, match=said):
            list(read_records(path, unit=unit, turns=turns))


def test_parquet_has_the_same_conversations_and_gets_them_back(tmp_path: Path) -> None:
    rows = [
        [{"role": "user", "content": "Emma"}, {"role": "assistant", "content": "Hi"}],
        [{"role": "system", "content": ""}, {"role": "user", "content": "two\nlines"}],
    ]
    kind = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string()), ("name", pa.string())]))
    table = pa.table({"n": [1, 2], "messages": pa.array(rows, kind)})
    source, target = tmp_path / "c.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source)
    records = list(read_records(source, text_field="messages"))
    assert [record.text for record in records] == ["Emma\nHi", "\ntwo\nlines"]
    assert records[1].turns == (Turn("system", 0, 0), Turn("user", 1, 10))
    rewrite_corpus(
        source, target, lambda actual: ([Edit(0, 1, "[X]")] if r.id == "1" else [] for r in actual), MESSAGES
    )
    changed = pq.read_table(target)
    assert changed.schema == table.schema
    assert changed["n"].to_pylist() == [1, 2]
    expected = table["messages"].to_pylist()
    expected[0][0]["content"] = "[X]mma"
    assert changed["messages"].to_pylist() == expected


def test_a_malformed_row_of_parquet_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    rows = [[{"role": "user", "content": "a"}], [{"role": "user", "content": None}]]
    pq.write_table(pa.table({"messages": rows, "n": [[1], [2]]}), path)
    with pytest.raises(InputError, match="row 2: the column messages: message 1 has no content"):
        list(read_records(path, text_field="messages"))
    with pytest.raises(InputError, match="message 1 is not an object"):
        list(read_records(path, text_field="n"))
