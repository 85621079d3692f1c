"""The equality pattern of a record: which of its values are equal, or made of one another.

A **value** is a word, a whole number or a run of letters in a flagged span, or the domain of an e-mail address. Its
places are drawn together with those of other values where the record shows that they hold the same characters:

- values are equal after case folding; what is written in a name's place keeps its case;
- numbers are equal without their separators, or one ends in the other's digits (`ending in 0132`);
- a user name, an address or initials are made of a person's names (`josephb7`, `j.banter@`);
- two dates are one day in two forms.

What is drawn depends on the shapes of a record and on these links alone: its **equality pattern**.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Literal, NamedTuple

from atdp_cli.corpus.spans import Span, merge
from atdp_cli.replacement.decoys import DOMAINS, MAX_CAPITALS, DecoySlot, places
from atdp_cli.replacement.plausible import AMOUNTS, CALENDAR, Date, date_readings

DecoyEquality = Literal["record", "none"]
"""`record` links values within a record; `none` draws each place by itself."""

Flagged = tuple[str, Iterable[Span]]
"""A text with its spans."""

MIN_CHOICES = len(DOMAINS)
"""Places that are drawn together have at least so many choices, or as many as one of them alone."""

MIN_NAME, MIN_ENDING, MIN_NUMBER = 2, 4, 8
"""Letters of a name that others are made of; digits of an ending, and of a number that it ends."""

MAX_PIECES = 3
"""Names and initials that a value is made of."""

_PEOPLE = frozenset({"PERSON", "PER"})

_MADE_OF_NAMES = frozenset({"EMAIL", "USERNAME"})

_NAME_LISTS = ("given", "family", "names", "organisations", "places", "peoples")
"""The lists of words that others are made of. Equal words of two lists are drawn by the first of them."""


class Value(NamedTuple):
    """A word, a number, a domain, or a character that stays as it is.

    Attributes:
        label: Of its span.
        slots: Its places: one for a word of a list, one a character for others.
        stands: What stands at each.
    """

    label: str
    slots: tuple[DecoySlot, ...]
    stands: tuple[str, ...]

    @property
    def drawn(self) -> bool:
        """Whether a decoy replaces it."""
        return len(self.slots[0].choices) > 1

    @property
    def folded(self) -> str:
        """What stands there, after case folding."""
        return "".join(self.stands).casefold()


class Piece(NamedTuple):
    """A part of a value that is made of names: a name, or its first letter.

    Attributes:
        place: The place of the name.
    """

    place: int
    initial: bool
    case: str


class AnotherForm(NamedTuple):
    """A span with the date of an earlier one in another form.

    Attributes:
        span: The earlier one.
        read: The form in which that is read.
        form: The form of this one.
    """

    span: int
    read: str
    form: str


class Links(NamedTuple):
    """What decoys of a record depend on, beside its shapes.

    Attributes:
        groups: For each place, the first place that is drawn together with it.
        pieces: What values are made of, by the place at which they begin.
        dates: The spans that are another's date, by their number.
    """

    groups: tuple[int, ...]
    pieces: Mapping[int, tuple[Piece, ...]]
    dates: Mapping[int, AnotherForm]


def equality_pattern(texts: Sequence[Flagged]) -> Hashable:
    """Which values of a record's texts are linked, and how: all that their decoys depend on beside the shapes."""
    flagged = [(span.label, text[span.start : span.end]) for text, spans in texts for span in merge(spans)]
    links = links_of(flagged, [values_of(*each) for each in flagged])
    return links.groups, tuple(sorted(links.pieces.items())), tuple(sorted(links.dates.items()))


def values_of(label: str, surface: str) -> list[Value]:
    """The values of a flagged text."""
    numbered = enumerate(places(label, surface))
    values = []
    for _, group in groupby(numbered, key=lambda numbered_place: _kind(numbered_place[1][0]) or numbered_place[0]):
        slots, stands = zip(*(place for _, place in group), strict=True)
        values.append(Value(label, slots, stands))
    return values


def _kind(slot: DecoySlot) -> str | None:
    """The kind shared by neighbouring places of one value; None for a place that is a value by itself."""
    first = slot.choices[0]
    if len(slot.choices) == 1 or any(len(choice) > 1 for choice in (first, slot.choices[-1])):
        return None
    if first.isdigit():
        return "digits"
    return None if slot.table else "letters"


def links_of(flagged: Sequence[tuple[str, str]], values: Sequence[Sequence[Value]]) -> Links:
    """The links of a record's flagged texts, given as labels and surfaces, with the values of each."""
    slots: list[DecoySlot] = []
    placed: list[list[tuple[int, Value]]] = []
    for of_span in values:
        placed.append([])
        for value in of_span:
            placed[-1].append((len(slots), value))
            slots += value.slots
    groups = _Groups(list(range(len(slots))), {place: [place] for place in range(len(slots))}, slots)
    same: dict[tuple[str, str], list[range]] = {}
    for place, value in (each for of_span in placed for each in of_span):
        if value.drawn:
            own, others = range(place, place + len(value.slots)), same.setdefault(_key(value), [])
            if not any(_join(groups, other, own) for other in others):
                others.append(own)
    _join_numbers(placed, groups)
    return Links(tuple(groups.of), _made_of_names(placed, groups), _dates(flagged))


def _key(value: Value) -> tuple[str, str]:
    """What values that may be equal share: a month is no name, and a day no number."""
    group = "calendar" if value.label in CALENDAR else "amount" if value.label in AMOUNTS and _is_word(value) else ""
    return group, value.folded


def _is_word(value: Value) -> bool:
    return len(value.slots) == 1 and value.drawn and _kind(value.slots[0]) is None


class _Groups(NamedTuple):
    """The group of each place, the places of each group, and what places are drawn from."""

    of: list[int]
    places: dict[int, list[int]]
    slots: Sequence[DecoySlot]


def _join(groups: _Groups, first: Sequence[int], second: Sequence[int]) -> bool:
    """Let places be drawn together, pair by pair; nothing happens where a pair has too little in common."""
    if len(first) != len(second):
        return False
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if groups.of[a] != groups.of[b]]
    for a, b in pairs:
        together = sorted((*groups.places[groups.of[a]], *groups.places[groups.of[b]]))
        if _shared(tuple(dict.fromkeys(groups.slots[place] for place in together))) is None:
            return False
    for a, b in pairs:
        kept, gone = sorted((groups.of[a], groups.of[b]))
        if kept != gone:
            for place in groups.places[gone]:
                groups.of[place] = kept
            groups.places[kept] += groups.places.pop(gone)
    return True


def _join_numbers(placed: Sequence[Sequence[tuple[int, Value]]], groups: _Groups) -> None:
    """Join numbers that are equal without what separates their parts, and endings with the number that they end."""
    numbers: dict[str, Sequence[int]] = {}
    whole: dict[str, Sequence[int]] = {}
    for of_span in placed:
        parts = [
            (value.folded, range(place, place + len(value.slots)))
            for place, value in of_span
            if _kind(value.slots[0]) == "digits" and value.label not in CALENDAR
        ]
        together = "".join(digits for digits, _ in parts), [place for _, part in parts for place in part]
        for digits, part in [*parts, together] if len(parts) > 1 else parts:
            if len(digits) >= MIN_ENDING:
                _join(groups, numbers.setdefault(digits, part), part)
        if len(together[0]) >= MIN_NUMBER:
            whole.setdefault(*together)
    for digits, part in whole.items():
        for length in range(MIN_ENDING, len(digits)):
            if (ending := numbers.get(digits[-length:])) is not None:
                _join(groups, part[-length:], ending)


def _made_of_names(placed: Sequence[Sequence[tuple[int, Value]]], groups: _Groups) -> dict[int, tuple[Piece, ...]]:
    """What is made of the names of people: user names, the part of an address before the @, and initials."""
    people = [
        [(value.folded, place) for place, value in of_span if value.slots[0].table in _NAME_LISTS]
        for of_span in placed
        if of_span and of_span[0][1].label not in _MADE_OF_NAMES
    ]
    names: dict[str, int] = {}
    for name, place in (each for person in people for each in person):
        if len(name) >= MIN_NAME and name.isalpha():
            names.setdefault(name, place)
    initials = {
        "".join(name[0] for name, _ in person): [place for _, place in person] for person in people if len(person) > 1
    }
    made: dict[int, tuple[Piece, ...]] = {}
    for place, value in (each for of_span in placed for each in of_span):
        if not (names and value.drawn and value.folded.isalpha()) or value.label in CALENDAR:
            continue
        if value.folded in names and groups.of[names[value.folded]] == groups.of[place]:
            continue
        if pieces := _parsed(value, names, initials):
            made[place] = pieces
    return made


def _parsed(value: Value, names: Mapping[str, int], initials: Mapping[str, Sequence[int]]) -> tuple[Piece, ...]:
    surface, folded = "".join(value.stands), value.folded
    if len(surface) != len(folded) or (value.label in _PEOPLE and len(folded) > MAX_CAPITALS):
        return ()
    if value.label in _PEOPLE | _MADE_OF_NAMES:
        if len(folded) == 1:
            first = next((place for name, place in names.items() if name[0] == folded), None)
            return () if first is None else (Piece(first, True, _case(surface)),)
        if folded in initials:
            return tuple(Piece(at, True, _case(letter)) for at, letter in zip(initials[folded], surface, strict=True))
    if value.label in _PEOPLE:
        return ()
    parts = _name_parts(folded, sorted(names, key=len, reverse=True), MAX_PIECES)
    pieces, at = [], 0
    for part in parts:
        place = names.get(part)
        initial = place is None
        if place is None:
            place = next(place for name, place in names.items() if name[0] == part)
        pieces.append(Piece(place, initial, _case(surface[at : at + len(part)])))
        at += len(part)
    return tuple(pieces)


def _name_parts(text: str, names: Sequence[str], most: int) -> tuple[str, ...]:
    """A text as names and initials of names, one name at least; nothing where it is no such text."""

    def split(rest: str, most: int) -> tuple[str, ...] | None:
        if not rest or not most:
            return None if rest else ()
        heads = [*(name for name in names if rest.startswith(name)), rest[0]]
        for head in heads:
            if head in names or any(name[0] == head for name in names):
                behind = split(rest[len(head) :], most - 1)
                if behind is not None:
                    return head, *behind
        return None

    parts = split(text, most) or ()
    return parts if any(part in names and len(part) > MIN_NAME for part in parts) else ()


def _case(surface: str) -> str:
    if surface.islower():
        return "lower"
    return "upper" if surface.isupper() and len(surface) > 1 else "capitalised"


def _dates(flagged: Sequence[tuple[str, str]]) -> dict[int, AnotherForm]:
    """The spans that write the date of an earlier one in another form."""
    forms: dict[int, AnotherForm] = {}
    earlier: list[tuple[int, str, dict[Date, str]]] = []
    for number, (label, surface) in enumerate(flagged):
        if label not in CALENDAR or not (read := date_readings(surface)):
            continue
        for other, other_surface, other_read in earlier:
            # A day may leave its year out, but not have one that the earlier date lacks.
            same = next(
                ((theirs, ours) for theirs in other_read for ours in read if ours in (theirs, (None, *theirs[1:]))),
                None,
            )
            if same is not None and surface.casefold() != other_surface.casefold():
                forms[number] = AnotherForm(other, other_read[same[0]], read[same[1]])
                break
        else:
            earlier.append((number, surface, read))
    return forms


def shared_slots(groups: Sequence[int], slots: Sequence[DecoySlot]) -> dict[int, DecoySlot]:
    """What each group is drawn from."""
    of_group: dict[int, list[DecoySlot]] = {}
    for group, slot in zip(groups, slots, strict=True):
        of_group.setdefault(group, []).append(slot)
    return {group: _shared(tuple(dict.fromkeys(each))) or each[0] for group, each in of_group.items()}


def _rank(slot: DecoySlot) -> int:
    return _NAME_LISTS.index(slot.table) if slot.table in _NAME_LISTS else len(_NAME_LISTS)


@cache
def _shared(slots: tuple[DecoySlot, ...]) -> DecoySlot | None:
    """The choices that places of several kinds are drawn from together: the choices of the first that all have, in its
    case.

    They are drawn by the table of the first, or uniformly where one of the places must be uniform. Where fewer than
    `MIN_CHOICES` of them are common in any list, and fewer than one of the places has alone, names are drawn from the
    first list, and others are not drawn together: None.
    """
    first, *others = sorted(slots, key=_rank)
    if not others:
        return first
    spelled = [spellings(slot) for slot in slots]
    kept = [at for at, choice in enumerate(first.choices) if all(choice.casefold() in other for other in spelled)]
    usual = {choice.casefold() for slot in slots for choice in slot.choices[: slot.common]}
    common = [at for at in kept if first.choices[at].casefold() in usual]
    table = first.table if all(slot.table for slot in others) else ""
    if len(common) < min(MIN_CHOICES, *(slot.common for slot in slots)):
        # A detector that calls a name a place somewhere else must not make two of it.
        return first._replace(table=table) if all(slot.table in _NAME_LISTS for slot in slots) else None
    if len(kept) == len(first.choices):
        return first._replace(table=table, within=first.within if table else ())
    ordered = (*common, *(at for at in kept if at not in set(common)))
    within = tuple(first.within[at] for at in ordered) if first.within else ordered
    return DecoySlot(tuple(first.choices[at] for at in ordered), len(common), table, within if table else ())


@cache
def spellings(slot: DecoySlot) -> Mapping[str, str]:
    """The choices of a place by what they are after case folding."""
    return {choice.casefold(): choice for choice in slot.choices}
