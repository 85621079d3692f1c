"""Decoys that keep which words and numbers of a record are equal.

A **value** is a word or a whole number in a flagged span, or the domain of an e-mail address. Values are equal where
they are after case folding. Equal values are drawn once, and each is written in the case of its own place. What is
drawn depends on the shapes of a record and on which of its values are equal: its equality pattern.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

from atdp_cli.corpus.edits import Edit, EditedText, apply_edits
from atdp_cli.corpus.spans import Span, merge
from atdp_cli.replacement.decoys import DIGITS, DOMAINS, LOWER, UPPER, Choose, DecoySlot, places
from atdp_cli.replacement.frequencies import spelled_at

Flagged = tuple[str, Iterable[Span]]
"""A text with its spans, as `decoy` takes them."""

MIN_CHOICES = len(DOMAINS)
"""No place is drawn from fewer choices."""


class Value(NamedTuple):
    """A word, a whole number, a domain, or a character that stays as it is.

    Attributes:
        slots: Its places: one for a word of a list, one a character for others.
        folded: What stands there, after case folding.
    """

    slots: tuple[DecoySlot, ...]
    folded: str

    @property
    def drawn(self) -> bool:
        """Whether a decoy replaces it."""
        return len(self.slots[0].choices) > 1


def equal_decoys(texts: Sequence[Flagged], choose: Choose) -> tuple[EditedText, ...]:
    """Replace every span of a record's texts by a decoy; equal values get equal decoys, in all of its texts.

    Equal values whose lists share fewer than `MIN_CHOICES` common words, as a given name and a month, and those of
    another number of places are drawn apart. That depends on the shapes and the pattern alone, as does where
    `choose` is asked.

    Args:
        texts: Those of one record, each with its spans in any order.
        choose: The source of all randomness.
    """
    spans = [merge(record_spans) for _, record_spans in texts]
    values = [
        [tuple(_values(span.label, text[span.start : span.end])) for span in merged]
        for (text, _), merged in zip(texts, spans, strict=True)
    ]
    groups = _groups([value for of_text in values for of_span in of_text for value in of_span if value.drawn])
    drawn: dict[int, tuple[str, ...]] = {}

    def fill(value: Value) -> str:
        if not value.drawn:
            return value.folded
        group, shared = next(groups)
        if group not in drawn:
            drawn[group] = tuple(map(choose, shared))
        return "".join(_spelled(choice, slot) for slot, choice in zip(value.slots, drawn[group], strict=True))

    edited = []
    for (text, _), merged, of_text in zip(texts, spans, values, strict=True):
        fakes = ["".join(map(fill, of_span)) for of_span in of_text]
        edits = [Edit(span.start, span.end, fake) for span, fake in zip(merged, fakes, strict=True)]
        edited.append(apply_edits(text, edits))
    return tuple(edited)


def equality_pattern(texts: Sequence[Flagged]) -> tuple[int, ...]:
    """For each value of a record's texts, in their order, the place of the first that it equals."""
    folded = [
        value.folded
        for text, spans in texts
        for span in merge(spans)
        for value in _values(span.label, text[span.start : span.end])
        if value.drawn
    ]
    first: dict[str, int] = {}
    return tuple(first.setdefault(value, place) for place, value in enumerate(folded))


def _values(label: str, surface: str) -> Iterator[Value]:
    numbered = enumerate(places(label, surface))
    for _, group in groupby(numbered, key=lambda numbered_place: _kind(numbered_place[1][0]) or numbered_place[0]):
        grouped = [place for _, place in group]
        drawn_text = "".join(part for _, part in grouped)
        slots = tuple(slot for slot, _ in grouped)
        yield Value(slots, drawn_text.casefold() if len(slots[0].choices) > 1 else drawn_text)


def _kind(slot: DecoySlot) -> str | None:
    """What neighbouring places have in common that are one value; None for a place that is one by itself."""
    if slot.choices is DIGITS:
        return "digits"
    return "letters" if not slot.table and slot.choices in (LOWER, UPPER) else None


def _groups(values: Sequence[Value]) -> Iterator[tuple[int, tuple[DecoySlot, ...]]]:
    """For each value, the number of the group that is drawn with it, and what the group's places are drawn from."""
    members: list[list[Value]] = []
    by_value: dict[str, list[int]] = {}
    numbers = []
    for value in values:
        equal = by_value.setdefault(value.folded, [])
        for number in equal:
            if _shared_slots([*members[number], value]) is not None:
                members[number].append(value)
                break
        else:
            number = len(members)
            equal.append(number)
            members.append([value])
        numbers.append(number)
    shared = [_shared_slots(group) or () for group in members]
    return iter([(number, shared[number]) for number in numbers])


def _shared_slots(values: Sequence[Value]) -> tuple[DecoySlot, ...] | None:
    """What the places of equal values are drawn from together; None where they cannot be."""
    if len({len(value.slots) for value in values}) > 1:
        return None
    by_place = zip(*(value.slots for value in values), strict=True)
    shared = [_shared(tuple(dict.fromkeys(slots))) for slots in by_place]
    return None if any(slot is None for slot in shared) else tuple(slot for slot in shared if slot is not None)


@cache
def _shared(slots: tuple[DecoySlot, ...]) -> DecoySlot | None:
    """What places of several kinds are drawn from together: the choices of the first that all have, in its case.

    They are drawn by the table of the first, or uniformly where one of the places must be uniform. None where fewer
    than `MIN_CHOICES` of them are common in any list.
    """
    first, *others = slots
    spellings = [_spellings(slot) for slot in slots]
    kept = [at for at, choice in enumerate(first.choices) if all(choice.casefold() in other for other in spellings)]
    usual = {choice.casefold() for slot in slots for choice in slot.choices[: slot.common]}
    common = [at for at in kept if first.choices[at].casefold() in usual]
    if len(common) < MIN_CHOICES:
        return None
    table = first.table if all(slot.table for slot in others) else ""
    if len(kept) == len(first.choices):
        return first._replace(table=table)
    ordered = (*common, *(at for at in kept if at not in set(common)))
    return DecoySlot(tuple(first.choices[at] for at in ordered), len(common), table, ordered if table else ())


def _spelled(choice: str, slot: DecoySlot) -> str:
    """What was drawn, in the case of a place."""
    return _spellings(slot).get(choice.casefold()) or spelled_at(slot, choice)


@cache
def _spellings(slot: DecoySlot) -> Mapping[str, str]:
    """The choices of a place by what they are after case folding."""
    return {choice.casefold(): choice for choice in slot.choices}
