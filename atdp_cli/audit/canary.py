"""Canaries: templates, the drawing of secrets, and planting them in a corpus."""

import re
import secrets as csprng
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from atdp_cli.errors import InputError, UsageError

ALPHABETS = {"digits": string.digits, "hex": string.digits + "abcdef", "letters": string.ascii_lowercase}
LARGEST_POOL = 10_000_000

_SLOT = re.compile(r"\{([a-z]+):([^{}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A record with one slot for the secret, written `prefix{kind:length}suffix`.

    Attributes:
        prefix: Text before the slot.
        kind: Which alphabet fills the slot: a key of `ALPHABETS`.
        length: Characters in the slot, at least 1.
        suffix: Text after the slot.
    """

    prefix: str
    kind: str
    length: int
    suffix: str

    def __str__(self) -> str:
        return f"{self.prefix}{{{self.kind}:{self.length}}}{self.suffix}"

    @property
    def pool(self) -> int:
        """How many secrets there are: |alphabet| ** length."""
        return int(len(ALPHABETS[self.kind]) ** self.length)

    def secret(self, index: int) -> str:
        """The secret at `index` (from 0) of the lexicographic order."""
        alphabet = ALPHABETS[self.kind]
        letters = []
        for _ in range(self.length):
            index, digit = divmod(index, len(alphabet))
            letters.append(alphabet[digit])
        return "".join(reversed(letters))

    def index_of(self, secret: str) -> int:
        """The place of `secret` (from 0) in the lexicographic order; the inverse of `secret`.

        Raises:
            InputError: The secret does not fit the slot.
        """
        alphabet = ALPHABETS[self.kind]
        if len(secret) != self.length or any(letter not in alphabet for letter in secret):
            raise InputError(
                f"A canary's secret does not fit its slot {{{self.kind}:{self.length}}}.",
                "Use the manifest that plant-canary wrote, with its own template.",
            )
        index = 0
        for letter in secret:
            index = index * len(alphabet) + alphabet.index(letter)
        return index

    def record(self, secret: str) -> str:
        """The whole record that holds `secret`."""
        return f"{self.prefix}{secret}{self.suffix}"

    def candidates(self) -> Iterator[str]:
        """All `pool` records, in the lexicographic order of their secrets."""
        for letters in product(ALPHABETS[self.kind], repeat=self.length):
            yield self.record("".join(letters))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A canary as the audit needs it: its place in the template's pool, and how many records carry it."""

    index: int
    repeats: int


def parse_template(text: str) -> Template:
    """Reads a template such as `My ID is {digits:6}`.

    Raises:
        UsageError: Not exactly one slot, an unknown kind, a length below 1, more than one line, or a pool
            above `LARGEST_POOL`.
    """
    slots = list(_SLOT.finditer(text))
    if len(slots) != 1:
        raise UsageError(
            f"The canary template has {len(slots)} slots, and it must have one.",
            'Write it like "My ID is {digits:6}".',
        )
    kind, length = slots[0].groups()
    if kind not in ALPHABETS:
        raise UsageError(f"The canary template has a slot of unknown kind '{kind}'.", f"Use {_kinds()}.")
    if not re.fullmatch(r"[1-9][0-9]{0,3}", length):
        raise UsageError(
            "The slot of the canary template has no usable length.",
            f"Write a whole number from 1, such as {{{kind}:4}}.",
        )
    return _checked(
        Template(prefix=text[: slots[0].start()], kind=kind, length=int(length), suffix=text[slots[0].end() :])
    )


def find_template(text: str) -> tuple[Template, str]:
    """Turns a finished canary such as `My ID is 341752` into its template and its secret.

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
    template = Template(prefix=text[: last.start()], kind="digits", length=len(last.group()), suffix=text[last.end() :])
    return _checked(template), last.group()


def draw(template: Template, count: int) -> tuple[str, ...]:
    """Draws `count` secrets from the system's CSPRNG, uniform over the pool and independent of each other.

    Two may be equal: drawing without replacement would make the ranks depend on each other, and the tests of
    the verdict assume that they do not.

    Raises:
        UsageError: `count` is below 1.
    """
    if count < 1:
        raise UsageError(f"{count} canaries cannot be planted.", "Ask for one or more; ten make a test.")
    return tuple(template.secret(csprng.randbelow(template.pool)) for _ in range(count))


def plant(
    lines: Sequence[str],
    template: Template,
    secrets: Sequence[str],
    repeats: int | Sequence[int],
    *,
    positions: Sequence[Sequence[int]] | None = None,
) -> tuple[list[str], tuple[tuple[int, ...], ...]]:
    """Puts every canary into a corpus, each repeat as a record (a line) of its own.

    Args:
        lines: The corpus without line endings; kept in order and unchanged.
        template: What surrounds the secrets.
        secrets: One a canary.
        repeats: How often each occurs, at least 1; one number for all, or one a canary.
        positions: Line numbers (from 1, in the planted file) to plant at, one group a canary, as a manifest
            records them. Without them every repeat's place among the non-blank lines is uniform (CSPRNG).

    Returns:
        The planted lines, and the line numbers of every canary's repeats, ascending.

    Raises:
        UsageError: A number of repeats below 1.
        InputError: The corpus has no record, or the positions do not fit it.
    """
    counts = (repeats,) * len(secrets) if isinstance(repeats, int) else tuple(repeats)
    if len(counts) != len(secrets) or any(count < 1 for count in counts):
        raise UsageError("Every canary needs a number of repeats of at least 1.", "Correct --repeats or the manifest.")
    if positions is None:
        places = _random_positions(lines, counts)
    else:
        places = tuple(tuple(sorted(group)) for group in positions)
        _check_positions(places, counts, len(lines) + sum(counts))
    records = {line: template.record(secrets[i]) for i, group in enumerate(places) for line in group}
    corpus = iter(lines)
    planted = [records[line] if line in records else next(corpus) for line in range(1, len(lines) + sum(counts) + 1)]
    return planted, places


def _random_positions(lines: Sequence[str], counts: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Uniform places among the records: an ordered sample of the slots of the planted sequence of records."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    if not filled:
        raise InputError("The corpus has no record to plant canaries among.", "Give a file with text in it.")
    total = sum(counts)
    slots = csprng.SystemRandom().sample(range(len(filled) + total), total)
    owner = dict(zip(slots, (i for i, count in enumerate(counts) for _ in range(count)), strict=True))
    places: list[list[int]] = [[] for _ in counts]
    line = 0  # lines written so far
    read = 0  # lines of the corpus read so far, leading blank ones of the next record included
    records = iter(filled)
    for slot in range(len(filled) + total):
        if slot in owner:
            line += 1
            places[owner[slot]].append(line)
        else:
            here = next(records)
            line += here + 1 - read
            read = here + 1
    return tuple(tuple(group) for group in places)


def _check_positions(places: Sequence[Sequence[int]], counts: Sequence[int], last: int) -> None:
    flat = [line for group in places for line in group]
    if [len(group) for group in places] != list(counts) or len(set(flat)) != len(flat):
        raise InputError(
            "The manifest's positions do not agree with its repeats, or name a line twice.",
            "Use the manifest as plant-canary wrote it.",
        )
    if any(not 1 <= line <= last for line in flat):
        raise InputError(
            f"The manifest plants beyond the corpus: the planted file would have {last} lines.",
            "Use the corpus that the manifest was made for.",
        )


def _checked(template: Template) -> Template:
    if len(f"{template.prefix}.{template.suffix}".splitlines()) != 1:
        raise UsageError(
            "The canary template runs over more than one line.", "Write it on one line: a line is a record."
        )
    if template.pool > LARGEST_POOL:
        raise UsageError(
            f"The canary's slot of {template.length} {template.kind} has over {LARGEST_POOL:,} candidates.",
            "Use a shorter slot: the exact audit scores every one.",
        )
    return template


def _kinds() -> str:
    return ", ".join(f"{{{kind}:n}}" for kind in ALPHABETS)
