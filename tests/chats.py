"""Conversations for tests, three chat templates, and a small checkpoint with one of them."""

import json
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from atdp_cli.corpus.spans import Span, Tier
from tests.small import WORDS, write_checkpoint

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA = (
    "{{ bos_token }}{% for m in messages %}{{ '<|header|>' + m['role'] + '<|/header|>\n\n' + m['content'] | trim "
    "+ '<|eot|>' }}{% endfor %}"
)
OWN = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}{{ 'A> ' + m['content'].strip() + ' (over)\n' }}"
    "{% else %}{{ m['role'] | upper + '> ' + m['content'] + '\n' }}{% endif %}{% endfor %}{{ '---' }}"
)
TEMPLATES = {"ChatML": CHATML, "Llama": LLAMA, "own": OWN}
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|header|>", "<|/header|>", "<|eot|>"]
ENDS = {"ChatML": "<|im_end|>", "Llama": "<|eot|>"}
"""What ends a turn and is learnt; in our own template that depends on the role."""


def end_of(template: str, role: str) -> str:
    """What ends a turn of a role and is learnt."""
    return ENDS.get(template, " (over)\n" if role == "assistant" else "\n")


def write_chat_checkpoint(
    folder: Path, lines: list[str], template: str | Mapping[str, str] = CHATML, context: int = 64
) -> Path:
    """The small checkpoint with a chat template, or several by name, whose tokens are added to the vocabulary."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    write_checkpoint(folder, lines, context=context)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
    tokenizer.chat_template = template if isinstance(template, str) else dict(template)
    model = AutoModelForCausalLM.from_pretrained(folder)
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def small_conversations(count: int = 60) -> list[list[dict[str, Any]]]:
    """Conversations of one to six messages with names and numbers in them."""
    draw = random.Random(9)
    names = ("Emma Clarke", "Omar Haddad", "Lena Fischer")

    def content() -> str:
        words = " ".join(draw.choices(WORDS, k=draw.randint(3, 8)))
        return f"{draw.choice(names)} said {words} {draw.randrange(10**6):06d}."

    def conversation() -> list[dict[str, Any]]:
        roles = ["user", "assistant"] * draw.randint(1, 3)
        return [{"role": role, "content": content()} for role in roles]

    return [conversation() for _ in range(count)]


_FLAGGED = re.compile("<([A-Z_]+):([^>]*)>")


def flagged_conversations(count: int = 60) -> list[tuple[str, tuple[Span, ...]]]:
    """What is said in conversations, a line a message, with its spans.

    The values of one message come again in others: whole, in part, in another form, or in what is made of them.
    """
    draw = random.Random(9)
    return [_flagged(_said_again(draw)) for _ in range(count)]


def _said_again(draw: random.Random) -> str:
    """Messages with their values marked: the first, and one to five others in any order, some more than once."""
    given, family = draw.choice(("Emma Clarke", "Omar Haddad", "Lena Fischer", "Joseph Banter")).split()
    number, card = f"{draw.randrange(10**6):06d}", f"{draw.randrange(10**12, 10**13)}"
    month, day, year = draw.randrange(3, 6), draw.randrange(13, 29), draw.randrange(1990, 2020)
    others = (
        f"hello <PERSON:{given}>, is <EMAIL:{given.lower()}.{family.lower()}@mail.org> still yours?",
        f"that is <NUMBER:{number[:3]}-{number[3:]}>, for <PERSON:{given[0]}. {family}> of <GPE:Berlin>.",
        f"paid by <CREDIT_CARD:{card}> on <DATE:{('March', 'April', 'May')[month - 3]} {day}, {year}>.",
        f"the card ending in <NUMBER:{card[-4:]}>, the day was <DATE:{year}-{month:02d}-{day:02d}>.",
        f"<PERSON:{family.upper()}> said {' '.join(draw.choices(WORDS, k=draw.randint(3, 8)))} <NUMBER:{number}>.",
    )
    first = f"my name is <PERSON:{given} {family}> and my order is <NUMBER:{number}>."
    return "\n".join((first, *draw.choices(others, k=draw.randint(1, 5))))


def _flagged(marked: str) -> tuple[str, tuple[Span, ...]]:
    text, spans = "", []
    before, *parts = _FLAGGED.split(marked)
    for label, value, behind in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        text += before
        spans.append(Span(len(text), len(text) + len(value), label, "ner", Tier.LOW_ENTITY))
        text, before = text + value, behind
    return text + before, tuple(spans)


def write_conversations(path: Path, conversations: Sequence[object]) -> Path:
    """JSON Lines with a conversation in `messages`."""
    lines = (json.dumps({"messages": each}, ensure_ascii=False) for each in conversations)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


ROLES = st.sampled_from(["user", "assistant", "system", "tool"])
CONTENTS = st.one_of(
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\ue000\ue001"), max_size=30),
    st.sampled_from(["", " ", "\n", " Hello \n", "A> over", "Emma Clarke, 483920.", "é\u0301🎉", '"\\\t{{ x }}']),
)
CONVERSATIONS = st.lists(st.tuples(ROLES, CONTENTS), min_size=1, max_size=8)
"""Messages as (role, content), with blank ones among them."""
