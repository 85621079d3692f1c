"""Conversations as a model reads them: rendered by its chat template, with the place of every content.

A template is a program of the checkpoint. transformers runs it in jinja2's immutable sandbox; before that it is tried
in a process of its own with limits of time and memory, as a tokenizer's patterns are.

Where a content stands is proved, not guessed: the conversation is rendered once with a mark for each content and once
as it is, and the second must be the first with the contents in the place of the marks.
"""

import bisect
import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import FlaggedRecord, Range, Span
from atdp_cli.corpus.split import Split
from atdp_cli.errors import InputError, UsageError
from atdp_cli.model.sandbox import ends_in_time

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


Message = tuple[str, str]
"""(role, content)."""

ASSISTANT = "assistant"

_MARK = "\ue000{}\ue001"

_MARKS = re.compile("\ue000([0-9]+)\ue001")

_DAYS = {"%d %b %Y": "26 Jul 2024", "%Y-%m-%d": "2024-07-26"}

_SAME_DAY = (
    f"{{% macro strftime_now(format) %}}{{{{ {_DAYS}.get(format, '26 July 2024') }}}}{{% endmacro %}}{{{{ '' }}}}"
)
"""A prefix of a template that asks for the date: it is told the same on every day, or no two runs would read alike."""


@dataclass(frozen=True, slots=True)
class RenderedTurn:
    """Where a message stands in a rendered conversation; positions are code points, ends exclusive.

    Attributes:
        turn: Which message, from 0.
        start, end: Its content, without white space that the template takes off.
        skipped: So many characters the template took off the content's beginning.
        stop: Behind what ends the turn: its last special token, or where there is none all that is rendered of it. What
            a template writes behind the last message ends that one.
        next: Where the next message can begin.
    """

    turn: int
    start: int
    end: int
    skipped: int
    stop: int
    next: int


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered conversation.

    Attributes:
        turns: Of the messages that say something, in order; a blank one has no place.
    """

    text: str
    turns: tuple[RenderedTurn, ...]


@dataclass(frozen=True, slots=True)
class _Skeleton:
    """What a template writes around the contents of conversations of one form.

    Attributes:
        turns: The messages that say something.
        pieces: Before, between and behind their contents: one more than there are.
        closings: How many characters of the piece behind a content end its turn.
        stops: How many of these are learnt.
    """

    turns: tuple[int, ...]
    pieces: tuple[str, ...]
    closings: tuple[int, ...]
    stops: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChatTemplate:
    """A tokenizer's chat template.

    Attributes:
        tokenizer: The tokenizer without a start and an end token of its own: a template writes what it wants.
        name: Of the template, where the tokenizer has several.
        source: The tokenizer as it is.
        template: In Jinja's language.
        specials: Matches a special token of the tokenizer.
        skeletons: What is known of each form.
    """

    tokenizer: "PreTrainedTokenizerFast"
    name: str | None
    source: "PreTrainedTokenizerFast"
    template: str
    specials: re.Pattern[str]
    skeletons: dict[tuple[Message, ...], _Skeleton] = field(default_factory=dict)


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
    longest_first = sorted(special, key=len, reverse=True)
    return ChatTemplate(
        tokenizer=without_ends(tokenizer),
        name=name,
        source=tokenizer,
        template=(_SAME_DAY if "strftime_now" in template else "") + template,
        specials=re.compile("|".join(map(re.escape, longest_first)) or "(?!)"),
    )


@cache
def _is_quick(template: str) -> bool:
    return ends_in_time("template", template)


def without_ends(tokenizer: "PreTrainedTokenizerFast") -> "PreTrainedTokenizerFast":
    """A copy that puts no start or end token around a text; those that are written in it stay what they are."""
    bare = copy.deepcopy(tokenizer)
    bare.bos_token = bare.eos_token = None
    return bare


def render(chat: ChatTemplate, messages: Sequence[Message]) -> Rendered:
    """A conversation with the place of every content that is not blank.

    Raises:
        InputError: The template refuses the conversation, leaves a message out, or changes what one says beyond the
            white space at its ends.
    """
    form = tuple(
        (role, _MARK.format(turn) if content.strip() else content) for turn, (role, content) in enumerate(messages)
    )
    if form not in chat.skeletons:
        chat.skeletons[form] = _skeleton(chat, form)
    skeleton, text = chat.skeletons[form], _rendered(chat, messages)
    turns: list[RenderedTurn] = []
    place = len(skeleton.pieces[0])
    behind = zip(skeleton.turns, skeleton.pieces[1:], skeleton.closings, skeleton.stops, strict=True)
    for turn, piece, closing, stop in behind:
        content = messages[turn][1]
        content_range = _standing(text, place, content, piece)
        if content_range is None:
            raise InputError(
                f"the chat template changes what message {turn + 1} says.",
                "Leave the conversation out, or use another template.",
            )
        skipped, end = content_range
        turns.append(RenderedTurn(turn, place, end, skipped, end + stop, end + closing))
        place = end + len(piece)
    if not text.startswith(skeleton.pieces[0]) or place != len(text):
        raise InputError(
            "the chat template writes something else around these messages than around others.",
            "Leave the conversation out, or use another template.",
        )
    return Rendered(text, tuple(turns))


def in_rendered(rendered: Rendered, starts: Sequence[int], ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Where characters of the contents stand in the rendered text; those that the template takes off nowhere.

    Args:
        starts: Where each message's content begins in the text that the ranges are of.
        ranges: Each within one message, sorted or not.
    """
    begins = [starts[turn.turn] + turn.skipped for turn in rendered.turns]
    places: list[Range] = []
    for start, end in ranges:
        # A range may begin in white space that is taken off.
        number = max(bisect.bisect_right(begins, start) - 1, 0)
        for turn, begin in zip(rendered.turns[number : number + 2], begins[number : number + 2], strict=True):
            first, last = max(start, begin), min(end, begin + turn.end - turn.start)
            if first < last:
                places.append((turn.start + first - begin, turn.start + last - begin))
    return tuple(places)


def in_contents(rendered: Rendered, starts: Sequence[int], place: Range) -> Range | None:
    """The inverse of `in_rendered` for one range: the longest part of it that is somebody's words, if any is."""
    parts = [
        (max(place[0], turn.start), min(place[1], turn.end), starts[turn.turn] + turn.skipped - turn.start)
        for turn in rendered.turns
    ]
    start, end, moved = max(parts, key=lambda part: part[1] - part[0], default=(0, 0, 0))
    return (start + moved, end + moved) if start < end else None


def _standing(text: str, place: int, content: str, piece: str) -> tuple[int, int] | None:
    """The number of characters that are taken off a content's beginning, and where the rest ends, before the piece."""
    skipped = len(content) - len(content.lstrip())
    for start, kept in ((0, content), (skipped, content.strip()), (0, content.rstrip()), (skipped, content.lstrip())):
        end = place + len(kept)
        if text.startswith(kept, place) and text.startswith(piece, end):
            return start, end
    return None


def _rendered(chat: ChatTemplate, messages: Sequence[Message]) -> str:
    conversation = [{"role": role, "content": content} for role, content in messages]
    try:
        text: str = chat.source.apply_chat_template(conversation, chat_template=chat.template, tokenize=False)
    except Exception as error:  # a template can raise anything, and what it says may quote the text
        raise InputError(
            f"the chat template refuses the conversation ({type(error).__name__}).",
            "Check which roles it takes, and in which order.",
        ) from None
    return text


def _skeleton(chat: ChatTemplate, form: tuple[Message, ...]) -> _Skeleton:
    wanted = tuple(turn for turn, (_, content) in enumerate(form) if content.strip())
    parts = _MARKS.split(_rendered(chat, form))
    rendered_turns = tuple(map(int, parts[1::2]))
    if rendered_turns != wanted:
        wrong = next((turn for turn in wanted if rendered_turns.count(turn) != 1), wanted[0])
        raise InputError(
            f"the chat template leaves message {wrong + 1} out, repeats it or moves it.",
            "Check that it knows the role, or use another template.",
        )
    pieces = tuple(parts[::2])
    closings = tuple(_closing(chat, form, turn, piece) for turn, piece in zip(wanted, pieces[1:], strict=True))
    stops = tuple(
        max((match.end() for match in chat.specials.finditer(closing)), default=len(closing)) for closing in closings
    )
    return _Skeleton(wanted, pieces, tuple(map(len, closings)), stops)


def _closing(chat: ChatTemplate, form: tuple[Message, ...], turn: int, piece: str) -> str:
    """The text that ends a turn: the beginning of the piece behind it that is there without the later messages too."""
    try:
        alone = _rendered(chat, form[: turn + 1])
    except InputError:
        special = chat.specials.search(piece)
        return piece[: special.end()] if special else ""
    behind = alone.rpartition(_MARK.format(turn))[2]
    differs = (at for at, pair in enumerate(zip(behind, piece, strict=False)) if pair[0] != pair[1])
    return piece[: next(differs, min(len(behind), len(piece)))]


def chat_template_for(split: Split, tokenizer: "PreTrainedTokenizerFast", name: str | None) -> ChatTemplate | None:
    """The chat template for the conversations of a corpus; None if it has none.

    Args:
        name: As for `load_chat_template`, which says what it raises.
    """
    if not any(record.turns for record in (*split.records, *(split.sources or ()))):
        return None
    return load_chat_template(tokenizer, name)


def render_record(chat: ChatTemplate, record: Record) -> Rendered:
    """A conversation as the template renders it.

    Raises:
        InputError: Names the record whose contents the template does not render as they are.
    """
    try:
        return render(chat, [(turn.role, record.text[turn.start : turn.end]) for turn in record.turns])
    except InputError as error:
        raise InputError(f"Record {record.id}: {error.problem}", error.remedy) from None


def as_read(flagged: FlaggedRecord, chat: ChatTemplate | None) -> tuple[str, Sequence[Span]]:
    """The text that a model reads, rendered if it is a conversation, with the spans at their places there."""
    if chat is None or not flagged.record.turns:
        return flagged.record.text, flagged.spans
    rendered, starts = render_record(chat, flagged.record), [turn.start for turn in flagged.record.turns]
    spans = [
        replace(span, start=start, end=end)
        for span in flagged.spans
        for start, end in in_rendered(rendered, starts, [(span.start, span.end)])
    ]
    return rendered.text, spans
