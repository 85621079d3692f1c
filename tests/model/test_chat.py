"""Rendered conversations: what is marked is what was said, what is learnt is whole turns, and each target once."""

import copy
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.errors import InputError, UsageError
from atdp_cli.model.chat import ChatTemplate, load_chat_template
from atdp_cli.model.checkpoint import load_tokenizer
from atdp_cli.model.rendered import Rendered, in_rendered, render
from atdp_cli.model.windows import Marks, align_record, encode_rendered
from tests.chats import CHATML, CONVERSATIONS, OWN, SPECIAL, TEMPLATES, end_of

Messages = Sequence[tuple[str, str]]
MULTI = st.sampled_from(sorted(TEMPLATES))


@pytest.fixture(scope="module")
def chats(checkpoint_folder: Path) -> dict[str, ChatTemplate]:
    return {name: load_chat_template(with_template(checkpoint_folder, each)) for name, each in TEMPLATES.items()}


@cache
def with_template(folder: Path, template: str) -> Any:
    tokenizer = copy.deepcopy(load_tokenizer(folder))
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
    tokenizer.chat_template = template
    return tokenizer


@given(MULTI, CONVERSATIONS)
def test_the_places_are_those_of_the_contents(chats: dict[str, ChatTemplate], name: str, messages: Messages) -> None:
    rendered = render(chats[name], messages)
    said = [number for number, (_, content) in enumerate(messages) if content.strip()]
    assert [turn.turn for turn in rendered.turns] == said
    for turn, text in zip(rendered.turns, rendered.texts, strict=True):
        role, content = messages[turn.turn]
        assert (text.text, text.places) == (turn.turn, range(turn.start, turn.end + 1))
        assert rendered.text[turn.start : turn.end] == content.strip()
        assert content[text.skipped :].startswith(content.strip())
        last = "---" if name == "own" and turn.turn == len(messages) - 1 else ""
        behind = rendered.text[turn.end : turn.stop]
        assert behind in {space + end_of(name, role) + last for space in ("", content[len(content.rstrip()) :])}
    # What is left is the template's own: the same for any other contents.
    others = [(role, content.replace(content.strip() or "other", "other")) for role, content in messages]
    assert without_contents(rendered) == without_contents(render(chats[name], others))


def without_contents(rendered: Rendered) -> list[str]:
    ends = [0, *(turn.end for turn in rendered.turns)]
    starts = [*(turn.start for turn in rendered.turns), len(rendered.text)]
    return [rendered.text[end:start] for end, start in zip(ends, starts, strict=True)]


@given(MULTI, CONVERSATIONS, st.data())
def test_marked_characters_are_the_same_in_both_texts(
    chats: dict[str, ChatTemplate], name: str, messages: Messages, data: st.DataObject
) -> None:
    rendered = render(chats[name], messages)
    text = "\n".join(content for _, content in messages)
    starts = list(accumulate((len(content) + 1 for _, content in messages[:-1]), initial=0))
    for number, (_, content) in enumerate(messages):
        if not content:
            continue
        begin = data.draw(st.integers(0, len(content) - 1))
        end = data.draw(st.integers(begin + 1, len(content)))
        places = in_rendered(rendered, starts, [(starts[number] + begin, starts[number] + end)])
        shown = "".join(rendered.text[slice(*place)] for place in places)
        skipped = len(content) - len(content.lstrip())
        assert shown == content.strip()[max(begin - skipped, 0) : max(end - skipped, 0)]
        assert text[starts[number] + begin : starts[number] + end] == content[begin:end]


@settings(max_examples=60)
@given(MULTI, CONVERSATIONS, st.integers(2, 40), st.sampled_from(["assistant", "all"]))
def test_windows_hold_each_target_once(
    chats: dict[str, ChatTemplate], name: str, messages: Messages, context: int, loss_on: str
) -> None:
    chat, rendered = chats[name], render(chats[name], messages)
    learnt = [number for number, (role, _) in enumerate(messages) if loss_on in ("all", role)]
    windows = encode_rendered(chat, 3, rendered, Marks(), learnt=learnt, context=context, max_windows=10**6)
    ids, offsets = align_record(chat.tokenizer, rendered.text, with_end=False)
    characters = {place for turn in rendered.turns if turn.turn in learnt for place in range(turn.start, turn.stop)}
    targets = [at for at, (start, end) in enumerate(offsets) if at and characters & set(range(start, end))]
    assert [ids[at] for at in targets] == [
        token for window in windows for token in window.token_ids[window.targets].tolist()
    ]
    assert all(2 <= len(window.token_ids) <= context and window.targets.any() for window in windows)
    # A window is a stretch of the conversation, and its targets have the tokens before them in it.
    place = 0
    for window in windows:
        own = window.token_ids.tolist()
        place = next(at for at in range(place, len(ids)) if ids[at : at + len(own)] == own)
    few = encode_rendered(chat, 3, rendered, Marks(), learnt=learnt, context=context, max_windows=2)
    assert [w.token_ids.tolist() for w in few] == [w.token_ids.tolist() for w in windows[:2]]


def test_the_tokens_are_those_of_the_chat_model(chats: dict[str, ChatTemplate]) -> None:
    messages = [("system", "Be brief."), ("user", "Emma?"), ("assistant", "She said no."), ("user", "")]
    conversation = [{"role": role, "content": content} for role, content in messages]
    for chat in chats.values():
        expected = chat.source.apply_chat_template(conversation, tokenize=True, return_dict=False)
        assert align_record(chat.tokenizer, render(chat, messages).text, with_end=False)[0] == expected


def test_a_turn_is_not_cut_that_fits(chats: dict[str, ChatTemplate]) -> None:
    messages = [("user", "Emma Clarke said the order"), ("assistant", "was shipped"), ("assistant", "to Berlin.")] * 4
    chat = chats["ChatML"]
    rendered = render(chat, messages)
    ids, _ = align_record(chat.tokenizer, rendered.text, with_end=False)
    longest = 64
    windows = encode_rendered(chat, 0, rendered, Marks(), learnt=range(12), context=longest, max_windows=99)
    begin = chat.tokenizer.convert_tokens_to_ids("<|im_start|>")
    assert len(windows) > 2
    assert sum(len(window.token_ids) for window in windows) == len(ids)
    assert all(window.token_ids[0] == begin for window in windows)


REFUSED = {
    "leaves message 2 out": (
        CHATML.replace("{% for m in messages %}", "{% for m in messages[:1] %}"),
        "leaves message 2",
    ),
    "moves": ("{% for m in messages | reverse %}{{ m['content'] }}{% endfor %}", "leaves message 1 out, repeats"),
    "changes": (CHATML.replace("m['content']", "m['content'] | upper"), "changes what message 1 says"),
    "by content": (
        CHATML + "{% if messages[0]['content'].startswith('Quill') %}!{% endif %}",
        "writes something else around",
    ),
    "raises": ("{{ raise_exception(messages[0]['content']) }}", "refuses the conversation"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", REFUSED)
def test_a_template_that_hides_where_contents_stand_is_refused(checkpoint_folder: Path, case: str) -> None:
    template, said = REFUSED[case]
    chat = load_chat_template(with_template(checkpoint_folder, template))
    with pytest.raises(InputError) as refused:
        render(chat, [("user", "Quillfeather"), ("assistant", "yes")])
    assert said in str(refused.value)
    assert "Quill" not in str(refused.value)


SLOW = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize("template", ["{{ 'a' * 2**21 }}", pytest.param(SLOW, marks=pytest.mark.ci)])
def test_a_template_that_never_ends_is_refused(checkpoint_folder: Path, template: str) -> None:
    with pytest.raises(InputError, match="takes too long, or too much memory"):
        load_chat_template(with_template(checkpoint_folder, template))


def test_one_of_several_templates_is_named(checkpoint_folder: Path) -> None:
    tokenizer = copy.deepcopy(with_template(checkpoint_folder, CHATML))
    tokenizer.chat_template = {"chatml": CHATML, "plain": OWN}
    messages = [("user", "Emma")]
    assert render(load_chat_template(tokenizer, "plain"), messages).text == "USER> Emma\n---"
    with pytest.raises(UsageError, match="has several chat templates"):
        load_chat_template(tokenizer)
    with pytest.raises(UsageError, match="no chat template other"):
        load_chat_template(tokenizer, "other")
    tokenizer.chat_template = None
    with pytest.raises(InputError, match="no chat template"):
        load_chat_template(tokenizer)


def test_every_day_renders_alike(checkpoint_folder: Path) -> None:
    dated = "{{ strftime_now('%d %B %Y') }}: " + CHATML
    chat = load_chat_template(with_template(checkpoint_folder, dated))
    assert render(chat, [("user", "Emma")]).text.startswith("26 July 2024: <|im_start|>user")


def test_a_template_sees_no_python(checkpoint_folder: Path) -> None:
    """It comes with the checkpoint: what it could reach from a string is out of its reach."""
    reaching = "{{ ''.__class__.__mro__[1].__subclasses__() }}" + CHATML
    chat = load_chat_template(with_template(checkpoint_folder, reaching))
    with pytest.raises(InputError, match="refuses the conversation"):
        render(chat, [("user", "Emma")])


def test_no_assistant_no_window(chats: dict[str, ChatTemplate]) -> None:
    rendered = render(chats["ChatML"], [("user", "Emma"), ("assistant", " ")])
    assert encode_rendered(chats["ChatML"], 0, rendered, Marks(), learnt=[1], context=64, max_windows=8) == ()


def test_marks_fall_on_the_tokens_of_contents(chats: dict[str, ChatTemplate]) -> None:
    messages = [("user", "Emma"), ("assistant", " Emma ")]
    for name, chat in chats.items():
        rendered = render(chat, messages)
        sensitive = in_rendered(rendered, [0, 5], [(0, 4), (6, 10)])
        assert [rendered.text[slice(*place)] for place in sensitive] == ["Emma", "Emma"], name
        [window] = encode_rendered(chat, 0, rendered, Marks(sensitive=sensitive), learnt=[1], context=64, max_windows=1)
        text = chat.tokenizer.decode(window.token_ids[window.sensitive & window.targets])
        assert text.strip() == "Emma"
        assert np.count_nonzero(window.sensitive) > np.count_nonzero(window.sensitive & window.targets) > 0
