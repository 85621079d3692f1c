"""Rendered conversations: where their texts stand, and what each message is learnt with.

Where a text stands is proved, not guessed. The conversation is rendered as it is, and with private-use characters
around each text. Without them the second must be the first, and between them must stand the text, maybe as JSON
escapes it.
"""

import bisect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice, pairwise
from typing import NamedTuple

from atdp_cli.corpus.conversation import CALLS, REASONING, Part, TemplateInput
from atdp_cli.corpus.json_text import unescaped
from atdp_cli.corpus.record import Record, record_of
from atdp_cli.corpus.segments import LINES, Segment
from atdp_cli.corpus.spans import FlaggedRecord, Range, Span
from atdp_cli.errors import InputError
from atdp_cli.model.chat import ASSISTANT, ChatTemplate, written_by

Message = tuple[str, str]
"""(role, content)."""


class RenderedTurn(NamedTuple):
    """Where a message stands in a rendered conversation; positions are code points, ends exclusive.

    Attributes:
        turn: Which message, from 0.
        start: Where its content begins, without white space at its ends. Of an assistant that calls or reasons first:
            where that begins, behind what the template writes for a prompt.
        end: The end of its last text.
        stop: Behind what ends the turn: its last special token, or where there is none all that is rendered of it. What
            a template writes behind the last message ends that one.
        next: Where the next message can begin.
    """

    turn: int
    start: int
    end: int
    stop: int
    next: int


class RenderedText(NamedTuple):
    """Where a text stands, or the part of it between two tags.

    Attributes:
        text: Which turn of the record.
        skipped: So many of its characters are before this part.
        places: Where each character stands, and where the last ends.
    """

    text: int
    skipped: int
    places: Sequence[int]


class Rendered(NamedTuple):
    """A rendered conversation.

    Attributes:
        turns: Of the messages that say something, in order; a blank one has no place.
        texts: In the record's order.
    """

    text: str
    turns: tuple[RenderedTurn, ...]
    texts: tuple[RenderedText, ...]


class _Passage(NamedTuple):
    """What is marked: a value of JSON, the name of a function, or what stands between two tags of another text.

    Attributes:
        text: Which turn of the record; -1 for a name.
        message: Of which message; -1 for tools.
        start, end: In the turn, without white space at its ends.
        needed: Whether a template must write it. Reasoning and tools may be left out.
        begins: Whether a content begins with it.
        number: It is a number of JSON.
    """

    text: int
    message: int
    start: int
    end: int
    needed: bool = True
    begins: bool = False
    number: bool = False


class _Marked(NamedTuple):
    """A conversation with private-use characters around its passages.

    Attributes:
        marks: Before the number of a passage, behind it, behind the passage, and around a number of JSON.
    """

    chat: ChatTemplate
    conversation: TemplateInput
    passages: Sequence[_Passage]
    marks: Sequence[str]

    def written(self, messages: int | None = None, *, prompt: bool = False) -> tuple[str, dict[int, Range]]:
        """The first messages as the template writes them, without marks, and where each passage stands first."""
        part = {**self.conversation, "messages": self.conversation["messages"][:messages]}
        first, numbered, last, itself = self.marks
        pattern = rf'(?:\\*"?{itself})?{first}([0-9]+){numbered}([^{first}{last}]*){last}(?:{itself}\\*"?)?'
        pieces = re.split(pattern, written_by(self.chat, part, prompt=prompt))
        found: dict[int, Range] = {}
        end = 0
        for before, number, said in zip(pieces[::3], map(int, pieces[1::3]), pieces[2::3], strict=False):
            start, end = end + len(before), end + len(before) + len(said)
            passage = self.passages[number]
            if found.setdefault(number, (start, end)) != (start, end) and passage.text >= 0:
                raise _refused(passage.message, "leaves {} out, repeats it or moves it, or its call")
        return "".join(piece for at, piece in enumerate(pieces) if at % 3 != 1), found


_EDGES = re.compile(r"[>\]\n](?=.)|(?=[<\[])", re.DOTALL)


def render(chat: ChatTemplate, messages: Sequence[Message]) -> Rendered:
    """A conversation with the place of every content that is not blank.

    Raises:
        InputError: The template refuses the conversation, leaves a message out, or changes what one says beyond the
            white space at its ends.
    """
    said = (Segment("", content, turn=turn, role=role) for turn, (role, content) in enumerate(messages))
    return _render(chat, record_of(tuple(said), LINES))


def render_record(chat: ChatTemplate, record: Record) -> Rendered:
    """A record's one conversation as the template renders it.

    Raises:
        InputError: As for `render`; names the record.
    """
    try:
        return _render(chat, record)
    except InputError as error:
        raise InputError(f"Record {record.id}: {error.problem}", error.remedy) from None


def _render(chat: ChatTemplate, record: Record) -> Rendered:
    text = written_by(chat, record.conversation())
    marked = _with_marks(chat, record, text)
    unmarked, found = marked.written()
    messages = [message for number in found if (message := marked.passages[number].message) >= 0]
    missing = [each.message for number, each in enumerate(marked.passages) if each.needed and number not in found]
    if wrong := [*missing, *(after for before, after in pairwise(messages) if before > after)]:
        raise _refused(min(wrong), "leaves {} out, repeats it or moves it, or its call")
    if unmarked != text:
        differs = _common(unmarked, text)
        later = (marked.passages[number].message for number, (_, end) in found.items() if end > differs)
        raise _refused(next(later, 0), "changes what {} says, or writes something else around it")
    texts = record.texts
    stands = ((marked.passages[number], place) for number, place in sorted(found.items()))
    placed = tuple(_text(passage, texts, text, place) for passage, place in stands if passage.text >= 0)
    return Rendered(text, tuple(_turns(marked, text, found)), placed)


def _refused(message: int, problem: str) -> InputError:
    said = "the tools" if message < 0 else f"message {message + 1}"
    remedy = "Check that it knows the role, and calls if there are some, or leave the conversation out."
    return InputError(f"the chat template {problem.format(said)}.", remedy)


def _with_marks(chat: ChatTemplate, record: Record, text: str) -> _Marked:
    """The conversation with marks that are nowhere in its texts, nor in what is rendered."""
    private = map(chr, range(0xE000, 0x110000))
    marks = list(islice((mark for mark in private if mark not in text and mark not in record.text), 4))
    passages: list[_Passage] = []
    written: list[str] = []
    parts = [Part(at, "", "", 0, 0) for at in range(len(record.turns))] if record.chat is None else record.chat.whole()
    for turn, (part, said) in enumerate(zip(parts, record.texts, strict=True)):
        own = list(_passages(chat, turn, part, said))
        pieces, place = list[str](), 0
        for number, each in enumerate(own, start=len(passages)):
            pieces += (said[place : each.start], _wrapped(marks, number, said[each.start : each.end]))
            place = each.end
        content = "".join(pieces) + said[place:]
        if record.chat is not None:
            value = _marked_value(marks, part, len(passages), part.written(record.chat.line, said))
            content = value if own and part.key is not None else part.spelled(content)
        written.append(content)
        passages += own
    conversation = record.conversation(written)
    for message, each in enumerate(conversation["messages"]):
        for call in each.get("tool_calls", ()):
            passages.append(_Passage(-1, message, 0, 0))
            call["function"]["name"] = _wrapped(marks, len(passages) - 1, call["function"]["name"])
    return _Marked(chat, conversation, passages, marks)


def _wrapped(marks: Sequence[str], number: int, text: str) -> str:
    return f"{marks[0]}{number}{marks[1]}{text}{marks[2]}"


def _marked_value(marks: Sequence[str], part: Part, number: int, written: str) -> str:
    """The JSON of a value with marks. A number becomes a string, whose quotes its marks take along."""
    if part.number:
        # In arguments templates write a number as they read it, and in strings as it is.
        written = written if part.nested and part.name not in CALLS else json.dumps(json.loads(written))
        quote = '\\"' if part.nested else '"'
        return f"{quote}{marks[3]}{_wrapped(marks, number, written)}{marks[3]}{quote}"
    return _wrapped(marks, number, written) if part.nested else f'"{_wrapped(marks, number, written[1:-1])}"'


def _passages(chat: ChatTemplate, turn: int, part: Part, text: str) -> Iterator[_Passage]:
    needed, value = part.message >= 0 and part.name not in REASONING, part.key is not None
    tags = [] if value else [match.span() for match in chat.tags.finditer(text)]
    between = zip([0, *(end for _, end in tags)], [*(start for start, _ in tags), len(text)], strict=True)
    said = [(start, piece) for start, end in between if (piece := text[start:end]).strip() or (value and piece)]
    for start, piece in said:
        last = needed and start == said[-1][0]
        core = piece if value else piece.strip()
        begin = start + piece.index(core)
        begins = not value and part.name not in REASONING and not text[:begin].strip()
        yield _Passage(turn, part.message, begin, begin + len(core), last, begins, part.number)


def _text(passage: _Passage, texts: Sequence[str], text: str, place: Range) -> RenderedText:
    """Where a passage stands, as it is or as JSON escapes it."""
    said, written = texts[passage.text][passage.start : passage.end], text[slice(*place)]
    places: Sequence[int] = range(place[0], place[1] + 1)
    if passage.number:  # which a template may write otherwise
        places, written = [*(places[min(at, len(written))] for at in range(len(said))), place[1]], said
    for _ in range(3):  # a text, a string of JSON, and one in JSON that is itself a string
        if written == said:
            return RenderedText(passage.text, passage.start, places)
        try:
            written, inner = unescaped(written)
        except ValueError:
            break
        places = [places[at] for at in inner]
    raise _refused(passage.message, "changes what {} says, or writes something else around it")


def _turns(marked: _Marked, text: str, found: Mapping[int, Range]) -> Iterator[RenderedTurn]:
    said = [(marked.passages[number], place) for number, place in found.items() if marked.passages[number].message >= 0]
    groups = [(message, list(group)) for message, group in groupby(said, key=lambda each: each[0].message)]
    nexts = [*(own[0][1][0] for _, own in groups[1:]), len(text)]
    before, end, specials = -1, 0, marked.chat.specials
    for (message, own), following in zip(groups, nexts, strict=False):
        passage, (start, _) = own[0]
        if not passage.begins and marked.conversation["messages"][message]["role"] == ASSISTANT:
            # Behind the prompt it is the assistant who writes.
            prompted = _still_there(marked, before, message, text[end:start], prompt=True)
            start = start if prompted is None else end + prompted
        before, end = message, own[-1][1][1]
        behind = text[end:following]
        # What ends a turn is there without the later messages too.
        alone = _still_there(marked, message, message + 1, behind)
        ends = [special.end() for special in specials.finditer(behind)]
        closing = [*ends, 0][0] if alone is None else alone
        stop = max((stop for stop in ends if stop <= closing), default=closing)
        yield RenderedTurn(message, start, end, end + stop, end + closing)


def _still_there(marked: _Marked, message: int, messages: int, behind: str, *, prompt: bool = False) -> int | None:
    """How much of what stands behind a message is there too where only the first messages are rendered; None where they
    cannot be.
    """
    key = (*(each["role"] for each in marked.conversation["messages"][:messages]), behind, prompt)
    if key not in marked.chat.boundaries:
        try:
            text, found = marked.written(messages, prompt=prompt)
            ends = [end for number, (_, end) in found.items() if marked.passages[number].message == message >= 0]
            text = text[max(ends, default=0) :]
            shared = _common(text, behind)
            if prompt and shared < len(text):  # a prompt may begin what this message lacks, as <think>
                shared = max((edge.end() for edge in _EDGES.finditer(behind[: shared + 1])), default=0)
            marked.chat.boundaries[key] = shared
        except InputError:
            marked.chat.boundaries[key] = None
    return marked.chat.boundaries[key]


def _common(first: str, second: str) -> int:
    """The length of the beginning that two texts share."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))


def in_rendered(rendered: Rendered, starts: Sequence[int], ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Where characters of a record stand in the rendered text; those that the template takes off nowhere.

    Args:
        starts: Where each turn begins in the text that the ranges are of.
        ranges: Each within one turn, sorted or not.
    """
    begins = [starts[each.text] + each.skipped for each in rendered.texts]
    places: list[Range] = []
    for start, end in ranges:
        # A range may begin in white space that is taken off, or reach over tags.
        for at in range(max(bisect.bisect_right(begins, start) - 1, 0), bisect.bisect_left(begins, end)):
            first, last = max(start - begins[at], 0), min(end - begins[at], len(rendered.texts[at].places) - 1)
            if first < last:
                places.append((rendered.texts[at].places[first], rendered.texts[at].places[last]))
    return tuple(places)


def in_contents(rendered: Rendered, starts: Sequence[int], place: Range) -> Range | None:
    """The inverse of `in_rendered` for one range: the longest part of it that is somebody's words, if any is."""
    parts = [(max(place[0], each.places[0]), min(place[1], each.places[-1]), each) for each in rendered.texts]
    start, end, text = max(parts, key=lambda part: part[1] - part[0], default=(0, 0, None))
    if text is None or start >= end:
        return None
    first, last = (bisect.bisect_right(text.places, at) for at in (start, end - 1))
    return starts[text.text] + text.skipped + first - 1, starts[text.text] + text.skipped + last


def as_read(flagged: FlaggedRecord, chat: ChatTemplate | None) -> Iterator[tuple[str, Sequence[Span]]]:
    """The texts of a record that a model reads, each conversation rendered, with the spans at their places there."""
    if chat is None or not flagged.record.turns:
        yield flagged.record.text, flagged.spans
        return
    for one in flagged.record.conversations:
        rendered, starts = render_record(chat, one), [turn.start for turn in one.turns]
        spans = [
            replace(span, start=start, end=end)
            for span in flagged.spans
            for start, end in in_rendered(rendered, starts, [(span.start, span.end)])
        ]
        yield rendered.text, spans
