"""Conversations for tests, three chat templates, and a small checkpoint with one of them."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

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


def write_chat_checkpoint(folder: Path, lines: list[str], template: str = CHATML) -> Path:
    """The small checkpoint with a chat template, whose tokens are added to the vocabulary."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    write_checkpoint(folder, lines)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
    tokenizer.chat_template = template
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
