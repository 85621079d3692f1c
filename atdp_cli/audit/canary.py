"""Canaries: templates of records, their slots, and the secrets that fill them."""

import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, product
from math import prod

from atdp_cli.errors import InputError, UsageError

ALPHABETS = {"digits": string.digits, "hex": string.digits + "abcdef", "letters": string.ascii_lowercase}
LONGEST_SLOT = 64
MAX_SLOTS = 16

_SLOT = re.compile(r"\{([a-z]+):([^{}]*)\}")

Secret = tuple[str, ...]
"""The fillings of a template's slots, in their order."""


@dataclass(frozen=True, slots=True)
class Characters:
    """A slot of `length` characters of the alphabet `kind`, a key of `ALPHABETS`."""

    kind: str
    length: int

    def __str__(self) -> str:
        return f"{{{self.kind}:{self.length}}}"

    @property
    def size(self) -> int:
        """How many fillings there are: |alphabet| ** length."""
        return int(len(ALPHABETS[self.kind]) ** self.length)

    def filling(self, index: int) -> str:
        """The filling at `index` (from 0) of the lexicographic order."""
        alphabet = ALPHABETS[self.kind]
        letters = []
        for _ in range(self.length):
            index, digit = divmod(index, len(alphabet))
            letters.append(alphabet[digit])
        return "".join(reversed(letters))

    def place(self, filling: str) -> int | None:
        """The index of a filling, the inverse of `filling`; None if it does not fit."""
        alphabet = ALPHABETS[self.kind]
        if len(filling) != self.length or any(letter not in alphabet for letter in filling):
            return None
        index = 0
        for letter in filling:
            index = index * len(alphabet) + alphabet.index(letter)
        return index

    def fillings(self) -> Iterator[str]:
        """All fillings, in the lexicographic order."""
        return map("".join, product(ALPHABETS[self.kind], repeat=self.length))


@dataclass(frozen=True, slots=True)
class Choice:
    """A slot that takes one of the lines of a file.

    Attributes:
        name: Of the file, as the template writes it.
        options: Its lines, at least one, no two alike.
    """

    name: str
    options: tuple[str, ...]

    def __str__(self) -> str:
        return f"{{choice:{self.name}}}"

    @property
    def size(self) -> int:
        """How many fillings there are."""
        return len(self.options)

    def filling(self, index: int) -> str:
        """The filling at `index` (from 0), in the file's order."""
        return self.options[index]

    def place(self, filling: str) -> int | None:
        """The index of a filling; None if it is none of them."""
        return self.options.index(filling) if filling in self.options else None

    def fillings(self) -> Iterator[str]:
        """All fillings, in the file's order."""
        return iter(self.options)


Slot = Characters | Choice


@dataclass(frozen=True, slots=True)
class Template:
    """A record with slots for the secret, written like `My ID is {digits:6}`.

    Attributes:
        texts: The text before, between and after the slots: one more than there are slots.
        slots: At least one.
    """

    texts: tuple[str, ...]
    slots: tuple[Slot, ...]

    def __str__(self) -> str:
        return self.record(tuple(map(str, self.slots)))

    @property
    def pool(self) -> int:
        """How many secrets there are: the product of the slots' sizes."""
        return prod(slot.size for slot in self.slots)

    def secret(self, index: int) -> Secret:
        """The secret at `index` (from 0), the last slot's filling changing fastest."""
        fillings = []
        for slot in reversed(self.slots):
            index, filling = divmod(index, slot.size)
            fillings.append(slot.filling(filling))
        return tuple(reversed(fillings))

    def index_of(self, secret: Secret) -> int:
        """The place of `secret` (from 0); the inverse of `secret`.

        Raises:
            InputError: The secret does not fit the slots.
        """
        index = 0
        places = [slot.place(filling) for slot, filling in zip(self.slots, secret, strict=False)]
        if len(secret) != len(self.slots) or None in places:
            raise InputError(
                f"A canary's secret does not fit its template's slots, {' '.join(map(str, self.slots))}.",
                "Use the manifest that plant-canary wrote, with its own template.",
            )
        for slot, place in zip(self.slots, places, strict=True):
            index = index * slot.size + (place or 0)
        return index

    def record(self, secret: Secret) -> str:
        """The whole record that holds `secret`."""
        return "".join(chain.from_iterable(zip(self.texts, (*secret, ""), strict=True)))

    def candidates(self) -> Iterator[str]:
        """All `pool` records, in the order of `secret`."""
        return map(self.record, product(*(tuple(slot.fillings()) for slot in self.slots)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A canary as the audit needs it.

    Attributes:
        index: Its secret's place in the template's pool.
        repeats: How many records carry it, or would, had its coin fallen the other way.
        planted: Whether it is in the corpus.
    """

    index: int
    repeats: int
    planted: bool = True


def parse_template(text: str, choices: Mapping[str, tuple[str, ...]] | None = None) -> Template:
    """Read a template such as `My ID is {digits:6}` or `{choice:names.txt} has the code {hex:4}`.

    Args:
        choices: The lines of each file that a {choice:FILE} names (`choice_files` says which).

    Raises:
        UsageError: No slot or more than `MAX_SLOTS`, an unknown kind, a length below 1 or above
            `LONGEST_SLOT`, more than one line, one candidate alone, or more than
            `MOST_CANDIDATES`.
    """
    slots = tuple(_slot(match[1], match[2], choices or {}) for match in _SLOT.finditer(text))
    if not 1 <= len(slots) <= MAX_SLOTS:
        raise UsageError(
            f"The canary template has {len(slots)} slots, and it must have 1 to {MAX_SLOTS}.",
            'Write it like "My ID is {digits:6}".',
        )
    return _checked(Template(texts=tuple(_SLOT.split(text)[::3]), slots=slots))


def choice_files(text: str) -> tuple[str, ...]:
    """The files that the {choice:FILE} slots of a template name, as they are written, each once."""
    return tuple(dict.fromkeys(detail for kind, detail in _SLOT.findall(text) if kind == "choice"))


def find_template(text: str) -> tuple[Template, Secret]:
    """Turn a finished canary such as `My ID is 341752` into its template and its secret.

    The last run of digits is taken for the secret. Nobody drew it at random, so it is uncalibrated: it has a
    rank and an exposure, and no p-value.

    Raises:
        UsageError: No digits, too many of them, more than one line, or the text holds a slot.
    """
    if _SLOT.search(text):
        raise UsageError(
            "The canary is a template: its slot holds no secret.",
            "Give the sentence with its number in it, or the manifest of plant-canary.",
        )
    runs = list(re.finditer(r"[0-9]+", text))
    if not runs:
        raise UsageError(
            "The canary has no run of digits that could be its secret.",
            'Give the whole sentence with the number in it, such as "My ID is " and six digits.',
        )
    last = runs[-1]
    slot = _characters("digits", str(len(last.group())))
    return _checked(Template(texts=(text[: last.start()], text[last.end() :]), slots=(slot,))), (last.group(),)


def _slot(kind: str, detail: str, choices: Mapping[str, tuple[str, ...]]) -> Slot:
    if kind in ALPHABETS:
        return _characters(kind, detail)
    if kind != "choice":
        known = ", ".join(f"{{{alphabet}:n}}" for alphabet in ALPHABETS)
        raise UsageError(
            f"The canary template has a slot of unknown kind '{kind}'.", f"Use {known} or {{choice:FILE}}."
        )
    options = choices.get(detail, ())
    if not options or len(set(options)) != len(options):
        raise UsageError(
            f"The lines for the slot {{choice:{detail}}} are missing, or two are alike.",
            "Give a file with one choice a line.",
        )
    return Choice(name=detail, options=options)


def _characters(kind: str, length: str) -> Characters:
    if not re.fullmatch(r"[1-9][0-9]{0,3}", length) or int(length) > LONGEST_SLOT:
        raise UsageError(
            f"A slot of the canary template has no usable length: it takes 1 to {LONGEST_SLOT} characters.",
            f"Write it like {{{kind}:4}}.",
        )
    return Characters(kind=kind, length=int(length))


MOST_CANDIDATES = 10**300
"""Far above what any audit tells apart; beyond it their number is no float."""


def _checked(template: Template) -> Template:
    options = (option for slot in template.slots if isinstance(slot, Choice) for option in slot.options)
    if any(len(f".{text}.".splitlines()) != 1 for text in (*template.texts, *options)):
        raise UsageError(
            "The canary template runs over more than one line.", "Write it on one line: a line is a record."
        )
    if template.pool > MOST_CANDIDATES:
        raise UsageError(
            "The canary template has more candidates than floating point counts.", "Use fewer or shorter slots."
        )
    if template.pool < 2:
        raise UsageError(
            "The canary template has one candidate alone, so there is no secret.", "Give its slots more to choose from."
        )
    return template
