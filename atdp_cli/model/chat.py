"""Conversations as a model reads them: rendered by its chat template.

A template is a program of the checkpoint. transformers runs it in jinja2's immutable sandbox; before that it is tried
in a process of its own with limits of time and memory, as a tokenizer's patterns are. Where the texts stand is found by
`model.rendered`.
"""

import copy
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from atdp_cli.corpus.conversation import TOOLS, TemplateInput
from atdp_cli.corpus.record import Record
from atdp_cli.corpus.split import Split
from atdp_cli.errors import InputError, UsageError
from atdp_cli.model.sandbox import ends_in_time

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


ASSISTANT = "assistant"

_ROLES = frozenset(
    {"system", "developer", "user", "assistant", "tool", "agent", "bot", "model", "customer", "client", "caller"}
)
"""Roles that errors name: other words may be somebody's name."""

_TAGS = re.compile(r"</?[A-Za-z_|][^<>\s'\"{}]*>|\[/?[A-Z_]+\]")

_DAYS = {"%d %b %Y": "26 Jul 2024", "%Y-%m-%d": "2024-07-26"}

_SAME_DAY = (
    f"{{% macro strftime_now(format) %}}{{{{ {_DAYS}.get(format, '26 July 2024') }}}}{{% endmacro %}}{{{{ '' }}}}"
)
"""A prefix of a template that asks for the date: it is told the same on every day, or no two runs would read alike."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChatTemplate:
    """A tokenizer's chat template.

    Attributes:
        tokenizer: The tokenizer without a start and an end token of its own: a template writes what it wants.
        name: Of the template, where the tokenizer has several.
        source: The tokenizer as it is.
        template: In Jinja's language.
        specials: Matches a special token of the tokenizer.
        tags: Matches a tag that the template names, at which it may cut a content.
        boundaries: What is known of the boundaries between messages.
    """

    tokenizer: "PreTrainedTokenizerFast"
    name: str | None
    source: "PreTrainedTokenizerFast"
    template: str
    specials: re.Pattern[str]
    tags: re.Pattern[str]
    boundaries: dict[tuple[str | bool, ...], int | None] = field(default_factory=dict)


def load_chat_template(tokenizer: "PreTrainedTokenizerFast", name: str | None = None) -> ChatTemplate:
    """The chat template of a tokenizer, after its check.

    Args:
        name: Of one of several; None for the only one, or that named default.

    Raises:
        UsageError: There is no template of that name.
        InputError: There is none, or it takes too long or too much memory on a small conversation.
    """
    stored = tokenizer.chat_template
    templates = stored if isinstance(stored, dict) else {} if stored is None else {"default": stored}
    if not templates:
        raise InputError(
            "The model's tokenizer has no chat template, and the corpus holds conversations.",
            "Save the tokenizer of a chat model into the folder, or a file chat_template.jinja.",
        )
    if (name or "default") not in templates:
        problem = "has several chat templates" if name is None else f"has no chat template {name}"
        raise UsageError(
            f"The model's tokenizer {problem}.",
            f"Name one by --set run.chat-template=NAME: {', '.join(sorted(templates))}.",
        )
    template = templates[name or "default"]
    if not _is_quick(template):
        raise InputError(
            "The tokenizer's chat template takes too long, or too much memory, on a small conversation.",
            "Give the template that belongs to the model.",
        )
    special = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
    return ChatTemplate(
        tokenizer=without_ends(tokenizer),
        name=name,
        source=tokenizer,
        template=(_SAME_DAY if "strftime_now" in template else "") + template,
        specials=_any_of(special),
        tags=_any_of(set(_TAGS.findall(template)) - special),
    )


def _any_of(words: Collection[str]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")


@cache
def _is_quick(template: str) -> bool:
    return ends_in_time("template", template)


def without_ends(tokenizer: "PreTrainedTokenizerFast") -> "PreTrainedTokenizerFast":
    """A copy that puts no start or end token around a text; those that are written in it stay what they are."""
    bare = copy.deepcopy(tokenizer)
    bare.bos_token = bare.eos_token = None
    return bare


def written_by(chat: ChatTemplate, conversation: TemplateInput, *, prompt: bool = False) -> str:
    """What the template writes.

    Args:
        prompt: With what it writes where the assistant is to speak.

    Raises:
        InputError: It refuses the conversation; names the first message that it does not go on with.
    """
    text, kind = _applied(chat, conversation, prompt=prompt)
    if text is not None:
        return text
    messages = conversation["messages"]
    refused = max(len(messages) - 1, 0)
    while refused and _applied(chat, {**conversation, "messages": messages[:refused]}, prompt=False)[0] is None:
        refused -= 1
    raise InputError(
        f"the chat template refuses the conversation at message {refused + 1}: {kind}.",
        "Check which roles it takes, and in which order.",
    )


def _applied(chat: ChatTemplate, conversation: TemplateInput, *, prompt: bool) -> tuple[str | None, str]:
    """What the template writes, and the kind of its error where it takes the conversation in no way."""
    kind = ""
    for taken in (dict, _with_strings):
        try:
            text: str = chat.source.apply_chat_template(
                list(map(taken, conversation["messages"])),
                tools=conversation.get(TOOLS),
                chat_template=chat.template,
                tokenize=False,
                add_generation_prompt=prompt,
            )
            return text, ""
        except Exception as error:  # a template can raise anything, and what it says may quote the text
            kind = type(error).__name__
    return None, kind


def _with_strings(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message whose arguments are strings of JSON, and which says "" if it only calls: some templates want that."""
    calls = [
        call | {"function": {**function, "arguments": json.dumps(function["arguments"], ensure_ascii=False)}}
        for call in message.get("tool_calls", ())
        for function in [call["function"]]
    ]
    return dict(message) | ({"content": message["content"] or "", "tool_calls": calls} if calls else {})


def chat_template_for(split: Split, tokenizer: "PreTrainedTokenizerFast", name: str | None) -> ChatTemplate | None:
    """The chat template for the conversations of a corpus; None if it has none.

    Args:
        name: As for `load_chat_template`, which says what it raises.
    """
    if not any(record.turns for record in (*split.records, *(split.sources or ()))):
        return None
    return load_chat_template(tokenizer, name)


def learnt_messages(record: Record, *, everybody: bool) -> frozenset[int]:
    """The messages of a conversation that are learnt: those of the assistant, or all; none with weight 0."""
    messages = enumerate(record.conversation()["messages"])
    return frozenset(at for at, each in messages if (everybody or each["role"] == ASSISTANT) and "weight" not in each)


def check_learnt(records: Iterable[Record], *, everybody: bool) -> None:
    """Refuse conversations of which no message is learnt.

    Raises:
        InputError: Names their roles.
    """
    roles: set[str] = set()
    for record in records:
        if not record.turns or any(learnt_messages(one, everybody=everybody) for one in record.conversations):
            return
        said = [each["role"] for one in record.conversations for each in one.conversation()["messages"]]
        roles |= {role if role in _ROLES else "others" for role in said}
    raise InputError(
        f"No message is learnt: none is the assistant's of weight 1. Found are the roles {', '.join(sorted(roles))}.",
        "Name the role that is to be learnt assistant, or learn all by --set run.loss-on=all.",
    )
