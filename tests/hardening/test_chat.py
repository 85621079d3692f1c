"""Conversations from records to gradients: decoys and placeholders in contents alone, a record clipped as one."""

import copy
import functools
import itertools
import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.corpus.record import Record, Turn, read_records
from atdp_cli.corpus.spans import FlaggedRecord, Span, Tier
from atdp_cli.detection.detect import correct
from atdp_cli.detection.scan import Finding
from atdp_cli.hardening.encode import Encoding, LossOn, Windows, encode
from atdp_cli.model.chat import ChatTemplate, load_chat_template
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from atdp_cli.model.windows import Window
from atdp_cli.replacement.decoys import uniformly
from atdp_cli.training.clip.engine import trainable
from atdp_cli.training.clip.ghost import clipped_sum
from atdp_cli.training.clip.per_record import record_gradient
from atdp_cli.training.examples import Example, make_example
from atdp_cli.training.objectives import Weighted
from atdp_cli.training.recipe import TextVariant
from tests.agents import AGENT, agent_conversations, write_rows
from tests.chats import TEMPLATES, end_of, small_conversations, write_chat_checkpoint
from tests.small import small_lines
from tests.training.clipping.models import norm_error, oracle, relative
from tests.training.test_clipping import norm

TOLERANCE = 1e-5
CONTEXT = 48
_FLAGGED = re.compile(r"Emma Clarke|Omar Haddad|Lena Fischer|[0-9]{6}")


def record_of(messages: Sequence[tuple[str, str]]) -> Record:
    turns: list[Turn] = []
    for role, content in messages:
        start = turns[-1].end + 1 if turns else 0
        turns.append(Turn(role, start, start + len(content)))
    borders = tuple(turn.start - 1 for turn in turns[1:])
    return Record("1", "\n".join(content for _, content in messages), tuple(turns), borders)


def flagged(messages: Sequence[tuple[str, str]]) -> FlaggedRecord:
    record = record_of(messages)
    actual = [Span(*match.span(), "PERSON", "ner", Tier.LOW_ENTITY) for match in _FLAGGED.finditer(record.text)]
    return FlaggedRecord(record, tuple(actual))


def corpus() -> list[FlaggedRecord]:
    """Short and long conversations, some of which the assistant says nothing in."""
    chats = [[(each["role"], each["content"]) for each in chat] for chat in small_conversations(8)]
    long = [("user", "Emma Clarke?"), ("assistant", " ".join(["Omar Haddad said the order was shipped"] * 12))]
    return [flagged(chat) for chat in (*chats, long, [("user", "Emma Clarke 483920")], [("assistant", " ")])]


@pytest.fixture(scope="module", params=sorted(TEMPLATES))
def named(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Checkpoint]:
    folder = tmp_path_factory.mktemp("chat") / "model"
    return request.param, load_checkpoint(write_chat_checkpoint(folder, small_lines(), TEMPLATES[request.param]))


@functools.cache
def chat_of(checkpoint: Checkpoint) -> ChatTemplate:
    return load_chat_template(checkpoint.tokenizer)


def encoding_of(checkpoint: Checkpoint, loss_on: LossOn = "assistant", context: int = CONTEXT) -> Encoding:
    chat = chat_of(checkpoint)
    return Encoding(tokenizer=checkpoint.tokenizer, context=context, windows=8, chat=chat, loss_on=loss_on)


def windows_of(
    checkpoint: Checkpoint, text: TextVariant, records: Sequence[FlaggedRecord], context: int = CONTEXT
) -> tuple[Windows, ...]:
    return encode(records, text, encoding_of(checkpoint, context=context), uniformly(random.Random(4).randrange))


def examples_of(checkpoint: Checkpoint, text: TextVariant, records: Sequence[FlaggedRecord]) -> list[Example]:
    return [make_example(windows, Weighted(unflagged_weight=0.2)) for windows in windows_of(checkpoint, text, records)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", TextVariant)
def test_masked_conversations_are_clipped_as_by_the_loop(named: tuple[str, Checkpoint], text: TextVariant) -> None:
    _, checkpoint = named
    examples = examples_of(checkpoint, text, corpus())
    assert max(len(example.windows) for example in examples) > 2
    assert [len(example.windows) for example in examples[-2:]] == [0, 0]
    norms = oracle(checkpoint.model, examples, 1.0).norms
    clip = float(norms.median()) / 2  # most of them are clipped
    expected = oracle(checkpoint.model, examples, clip)
    actual = clipped_sum(checkpoint.model, examples, clip, tokens=200, positions=True)
    assert relative(actual.gradient, expected.gradient) < TOLERANCE
    assert norm_error(actual, expected) < TOLERANCE
    assert actual.norms[-2:].tolist() == expected.norms[-2:].tolist() == [0, 0]


def test_a_record_has_the_same_windows_and_gradient_beside_any_others(named: tuple[str, Checkpoint]) -> None:
    _, checkpoint = named
    records, model = corpus(), checkpoint.model
    together = windows_of(checkpoint, TextVariant.RAW, records)
    for place in (0, 5, 8):
        [alone] = windows_of(checkpoint, TextVariant.RAW, records[place : place + 1])
        assert [w.token_ids.tolist() for w in alone] == [w.token_ids.tolist() for w in together[place]]
        both = [make_example(windows, Weighted(unflagged_weight=0.2)) for windows in (alone, together[place])]
        first, second = (record_gradient(model, each, trainable(model)) for each in both)
        assert all(torch.equal(gradient, other) for gradient, other in zip(first, second, strict=True))


def test_the_gradient_is_that_of_the_whole_turns(named: tuple[str, Checkpoint]) -> None:
    """Of a conversation that fits: the targets are what the assistant says, with what ends its turns."""
    name, checkpoint = named
    chat = chat_of(checkpoint)
    messages = [("user", "Emma?"), ("assistant", "She said no."), ("user", "Why"), ("assistant", "Berlin.")]
    cases: tuple[tuple[LossOn, tuple[int, ...]], ...] = (("assistant", (1, 3)), ("all", (0, 1, 2, 3)))
    for loss_on, spoken in cases:
        [[window]] = encode([flagged(messages)], TextVariant.RAW, encoding_of(checkpoint, loss_on, 200))
        said = [messages[turn][1] + end_of(name, messages[turn][0]) for turn in spoken]
        learnt = "".join(chat.tokenizer.decode(token) for token in window.token_ids[window.targets].tolist())
        for each in said:
            assert each in learnt
        assert len(learnt) <= sum(map(len, said)) + len(messages) + len("---")


def test_what_gives_way_is_in_the_contents(named: tuple[str, Checkpoint]) -> None:
    name, checkpoint = named
    chat = chat_of(checkpoint)
    messages = [("user", "Emma Clarke, 483920"), ("assistant", "Hello Emma Clarke.")]
    shown = {}
    for text in TextVariant:
        [[window]] = windows_of(checkpoint, text, [flagged(messages)], 200)
        shown[text] = chat.tokenizer.decode(window.token_ids)
        flags = chat.tokenizer.decode(window.token_ids[window.sensitive])
        assert ("Emma Clarke" in flags) == (text is TextVariant.RAW), name
    expected = shown[TextVariant.RAW].replace("Emma Clarke", "[PERSON]").replace("483920", "[PERSON]")
    assert shown[TextVariant.REDACTED] == expected
    pattern = re.escape(shown[TextVariant.RAW]).replace(re.escape("Emma Clarke"), r"[A-Z][\w']+ [A-Z][\w']+")
    assert re.fullmatch(pattern.replace("483920", ".+"), shown[TextVariant.DECOY])


USERS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(small_conversations(20))), min_size=2, max_size=6
).filter(lambda rows: len({user for user, _ in rows}) < len(rows))
"""Conversations of one to three users, at least one of whom has several."""


@pytest.mark.ci
@given(
    rows=USERS,
    unflagged=st.sampled_from([0.2, "record"]),
    text=st.sampled_from([TextVariant.RAW, TextVariant.REDACTED]),
)
@settings(max_examples=70)  # by each of three templates
def test_a_users_gradient_is_the_sum_over_the_conversations(
    named: tuple[str, Checkpoint],
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, list[dict[str, str]]]],
    unflagged: float | Literal["record"],
    text: TextVariant,
) -> None:
    """Each rendered on its own; by the user's own weight w where that is of the record."""
    _, checkpoint = named
    path = tmp_path_factory.mktemp("users") / "chats.jsonl"
    path.write_text("".join(json.dumps({"who": user, "messages": chat}) + "\n" for user, chat in rows))
    users, chats = (list(read_records(path, unit=unit, text_field="messages")) for unit in ("who", "line"))
    assert [user.id for user in users] == list(dict.fromkeys(user for user, _ in rows))
    objective, model = Weighted(unflagged_weight=unflagged), checkpoint.model
    encoding = replace(encoding_of(checkpoint), windows=1000)
    for user, windows in zip(users, encode(map(with_spans, users), text, encoding), strict=True):
        own = [with_spans(chat) for chat, (who, _) in zip(chats, rows, strict=True) if who == user.id]
        parts = encode(own, text, encoding)
        whole = make_example(windows, objective)
        assert [w.token_ids.tolist() for w in windows] == [w.token_ids.tolist() for part in parts for w in part]
        weights = iter(whole.weights)
        alone = [Example(part, tuple(itertools.islice(weights, len(part)))) for part in parts]
        actual, *parts_of_it = (
            record_gradient(model, each, trainable(model)) for each in (whole, *alone) if each.windows
        )
        assert relative(actual, [sum(of, torch.zeros(())) for of in zip(*parts_of_it, strict=True)]) < TOLERANCE


def test_calls_of_a_user_have_the_windows_of_each_conversation(named: tuple[str, Checkpoint], tmp_path: Path) -> None:
    """With the same marks, over raw and redacted text."""
    _, checkpoint = named
    tokenizer = copy.deepcopy(checkpoint.tokenizer)
    tokenizer.chat_template = AGENT
    encoding = replace(encoding_of(checkpoint, context=200), chat=load_chat_template(tokenizer), windows=100)
    rows = (row | {"who": "ab"[place % 2]} for place, (row, _) in enumerate(agent_conversations(6)))
    path = write_rows(tmp_path / "agents.jsonl", rows)
    users, chats = (
        [
            FlaggedRecord(record, tuple(Span(t.start, t.end, "CODE", "deny", Tier.LOW_ENTITY) for t in record.turns))
            for record in read_records(path, unit=unit, text_field="messages")
        ]
        for unit in ("who", "line")
    )
    for text in (TextVariant.RAW, TextVariant.REDACTED):
        by_chat, by_user = encode(chats, text, encoding), encode(users, text, encoding)
        expected = [[window for windows in by_chat[user::2] for window in windows] for user in (0, 1)]
        assert [list(map(marks_of, windows)) for windows in by_user] == [list(map(marks_of, e)) for e in expected]


def marks_of(window: Window) -> tuple[list[Any], ...]:
    return tuple(each.tolist() for each in (window.token_ids, window.sensitive, window.function, window.ignored))


def with_spans(record: Record) -> FlaggedRecord:
    found = (Span(*match.span(), "PERSON", "ner", Tier.LOW_ENTITY) for match in _FLAGGED.finditer(record.text))
    return FlaggedRecord(record, tuple(found))


def test_a_user_has_the_windows_that_are_asked_for_and_equal_decoys(
    named: tuple[str, Checkpoint], tmp_path: Path
) -> None:
    _, checkpoint = named
    path, said = tmp_path / "chats.jsonl", [{"role": "assistant", "content": "Emma Clarke has 483920."}]
    rows = [{"who": 7, "messages": said}, {"who": "b", "messages": said}, {"who": "7", "messages": said * 2}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    users = [with_spans(user) for user in read_records(path, unit="who", text_field="messages")]
    assert [len(user.record.conversations) for user in users] == [2, 1]
    encoding = encoding_of(checkpoint, context=200)
    drawn = encode(users, TextVariant.DECOY, encoding, uniformly(random.Random(4).randrange))
    decode = checkpoint.tokenizer.decode
    [first, second], [other] = ([decode(window.token_ids) for window in windows] for windows in drawn)
    name, number = re.findall(r"([A-Z][\w']+ [A-Z][\w']+) has (\S+)\.", first)[0]
    assert second.count(f"{name} has {number}.") == 2
    assert f"{name} has {number}." not in other
    assert "Emma Clarke" not in first + second + other
    examples = examples_of(checkpoint, TextVariant.RAW, users[:1])
    clip = float(oracle(checkpoint.model, examples, 1.0).norms[0]) / 2
    assert norm(clipped_sum(checkpoint.model, examples, clip, tokens=200, positions=True).gradient) == pytest.approx(
        clip, rel=1e-3
    )
    few = encode(users, TextVariant.RAW, replace(encoding, windows=1))
    assert [len(windows) for windows in few] == [1, 1]


def test_no_span_reaches_into_another_message() -> None:
    record = record_of([("user", "Ask for Emma "), ("assistant", "\n Clarke is out"), ("user", "")])
    over = Span(8, 23, "PERSON", "ner", Tier.LOW_ENTITY)
    actual = correct(Finding(record, (over,), (), ((0, 10), (10, len(record.text)))), (), ())
    assert [record.text[span.start : span.end] for span in actual.spans] == ["Emma", "Clarke"]
    assert "".join(record.text[slice(*sentence)] for sentence in actual.sentences) == record.text
    assert [turn.start for turn in record.turns if 0 < turn.start < len(record.text)] == [
        start for start, _ in actual.sentences if start not in (0, 10)
    ]
    begun = replace(record, text=record.text[:12])  # of which the share that is flagged is measured
    assert correct(Finding(begun, (), (), ((0, 12),)), (), ()).sentences == ((0, 12),)


def test_tokens_of_the_template_are_never_learnt(named: tuple[str, Checkpoint]) -> None:
    """Nor are they flagged, whatever is."""
    _, checkpoint = named
    record = record_of([("user", "user"), ("assistant", "assistant")])
    everything = FlaggedRecord(
        record, (Span(0, 4, "X", "deny", Tier.LOW_ENTITY), Span(5, 14, "X", "deny", Tier.LOW_ENTITY))
    )
    [[window]] = windows_of(checkpoint, TextVariant.RAW, [everything])
    decode = chat_of(checkpoint).tokenizer.decode
    assert decode(window.token_ids[window.sensitive]).split() in (["userassistant"], ["user", "assistant"])
    assert decode(window.token_ids[window.sensitive & window.targets]).strip() == "assistant"
