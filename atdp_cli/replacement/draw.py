"""Decoys of a record: what is drawn for its values, once for each group of linked places."""

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import NamedTuple

from atdp_cli.corpus.edits import Edit, EditedText, apply_edits
from atdp_cli.corpus.spans import Span, merge
from atdp_cli.replacement.decoys import Choose, DecoySlot, places
from atdp_cli.replacement.equality import (
    DecoyEquality,
    Flagged,
    Links,
    Value,
    links_of,
    shared_slots,
    spellings,
    values_of,
)
from atdp_cli.replacement.frequencies import spelled_at
from atdp_cli.replacement.plausible import RULED, Date, date_readings, is_plausible, with_endings, written_date

TRIES = 1000
"""How often a value that cannot be is drawn again; then it stays."""


def decoy_record(texts: Sequence[Flagged], choose: Choose, equality: DecoyEquality) -> tuple[EditedText, ...]:
    """Replace every span of a record's texts by a decoy; overlapping spans are merged first.

    A name that is a month too is drawn apart from that. All this depends on the shapes and the pattern alone, as does
    where `choose` is asked, given what it answered.

    Args:
        texts: Those of one record, each with its spans in any order.
        choose: The source of all randomness.
    """
    spans = [merge(record_spans) for _, record_spans in texts]
    flagged = [
        (span.label, text[span.start : span.end])
        for (text, _), merged in zip(texts, spans, strict=True)
        for span in merged
    ]
    decoys = iter(_decoys(flagged, choose, equality))
    return tuple(
        apply_edits(text, [Edit(span.start, span.end, next(decoys)) for span in merged])
        for (text, _), merged in zip(texts, spans, strict=True)
    )


def decoy_law(label: str, surface: str) -> Hashable:
    """All that the decoy of a flagged text by itself depends on: equal for two texts whose decoys have one law."""
    return tuple(slot for slot, _ in places(label, surface)), label if label in RULED else ""


def decoy_value(label: str, surface: str, choose: Choose) -> str:
    """A decoy of a flagged text by itself."""
    return _decoys([(label, surface)], choose, "none")[0]


def decoy_text(text: str, spans: Iterable[Span], choose: Choose) -> EditedText:
    """Replace every span of a text by a decoy of its own."""
    return decoy_record([(text, spans)], choose, "none")[0]


def _decoys(flagged: Sequence[tuple[str, str]], choose: Choose, equality: DecoyEquality) -> list[str]:
    """A decoy for each label and surface of a record."""
    values = [values_of(*each) for each in flagged]
    slots = [slot for of_span in values for value in of_span for slot in value.slots]
    links = links_of(flagged, values) if equality == "record" else Links(tuple(range(len(slots))), {}, {})
    draws = _Draws(links, shared_slots(links.groups, slots), choose, {})
    decoys: list[str] = []
    first = 0
    for number, (label, _) in enumerate(flagged):
        form = links.dates.get(number)
        day = None if form is None else _in_form(decoys[form.span], form.read)
        decoy = None if form is None or day is None else written_date(form.form, day)
        if decoy is None:
            read = {another.read for another in links.dates.values() if another.span == number}
            decoy = _draw(label, values[number], first, draws, read)
        decoys.append(decoy)
        first += sum(len(value.slots) for value in values[number])
    return decoys


class _Draws(NamedTuple):
    """What is drawn for a record so far, by group."""

    links: Links
    shared: Mapping[int, DecoySlot]
    choose: Choose
    drawn: dict[int, str]


def _draw(label: str, values: Sequence[Value], first: int, draws: _Draws, read: Set[str]) -> str:
    """A decoy for a span whose first place has this number, drawn until it could be a value of its label.

    Args:
        read: The forms in which other spans read its date.
    """
    before = frozenset(draws.drawn)
    for _ in range(TRIES):
        for group in draws.drawn.keys() - before:
            del draws.drawn[group]
        decoy = _written(values, first, draws)
        if is_plausible(label, decoy) and all(map(partial(_in_form, decoy), read)):
            break
    return with_endings(label, decoy)


def _written(values: Sequence[Value], first: int, draws: _Draws) -> str:
    written, place = [], first
    for value in values:
        if pieces := draws.links.pieces.get(place):
            written += [_cased(_at(piece.place, draws)[: 1 if piece.initial else None], piece.case) for piece in pieces]
        elif value.drawn:
            written += [_spelled(_at(place + at, draws), slot) for at, slot in enumerate(value.slots)]
        else:
            written.append(value.slots[0].choices[0])
        place += len(value.slots)
    return "".join(written)


def _at(place: int, draws: _Draws) -> str:
    group = draws.links.groups[place]
    if group not in draws.drawn:
        draws.drawn[group] = draws.choose(draws.shared[group])
    return draws.drawn[group]


def _in_form(decoy: str, read: str) -> Date | None:
    """The date that a decoy is in a form; None where it is none. A month's name may be a long or a short one."""
    days = (day for day, form in date_readings(decoy).items() if form == read or "{month" not in form)
    return next(days, None)


def _spelled(choice: str, slot: DecoySlot) -> str:
    """What was drawn, in the case of a place."""
    return spellings(slot).get(choice.casefold()) or spelled_at(slot, choice)


def _cased(text: str, case: str) -> str:
    return text.lower() if case == "lower" else text.upper() if case == "upper" else text.capitalize()
