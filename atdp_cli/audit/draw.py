"""Random draws for canaries: secrets, coins, rare words, places in a corpus."""

import secrets as csprng
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from atdp_cli.audit.canary import Secret, Template
from atdp_cli.errors import InputError, UsageError
from atdp_cli.model.windows import encode_record

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


MAX_CANARIES = 100_000

MAX_PLANTED = 1_000_000
"""The most records with a canary in one corpus."""


def draw_secrets(template: Template, count: int) -> tuple[Secret, ...]:
    """Draw `count` secrets from the system's CSPRNG, uniform over the pool and independent of each other.

    Two may be equal: drawing without replacement would make the ranks depend on each other, and the tests of
    the verdict assume that they do not.

    Raises:
        UsageError: `count` is below 1 or above `MAX_CANARIES`.
    """
    if not 1 <= count <= MAX_CANARIES:
        raise UsageError(
            f"{count} canaries cannot be planted.", f"Ask for 1 to {MAX_CANARIES:,} by --count; ten make a test."
        )
    return tuple(template.secret(csprng.randbelow(template.pool)) for _ in range(count))


def toss_coins(count: int) -> tuple[bool, ...]:
    """Toss a fair coin for each canary, by the CSPRNG: whether it is planted (Steinke et al. 2023, section 3)."""
    return tuple(csprng.randbelow(2) == 1 for _ in range(count))


def one_token_words(
    tokenizer: "PreTrainedTokenizerFast", before: str, after: str
) -> tuple[tuple[int, ...], dict[int, str]]:
    """Words of the vocabulary that are one token each between two texts, with the same tokens around each of them.

    Args:
        before, after: What a template has around its slot.

    Returns:
        The tokens before the word, and each word by its token.
    """
    special = set(tokenizer.all_special_ids)
    texts = {tokenizer.decode([token]).strip() for token in range(len(tokenizer)) if token not in special}
    words = sorted(text for text in texts if text.isprintable() and len(text.split()) == 1 and "\ufffd" not in text)
    encoded = [tuple(encode_record(tokenizer, f"{before}{word}{after}")) for word in words]
    around = Counter((ids[:place], ids[place + 1 :]) for ids in encoded for place in range(len(ids))).most_common(1)
    if not around:
        return (), {}
    [((first, last), _)] = around
    place = len(first)
    of_token = {
        ids[place]: word
        for word, ids in zip(words, encoded, strict=True)
        if ids[:place] == first and ids[place + 1 :] == last and len(ids) == place + 1 + len(last)
    }
    return first, of_token


def plant(
    lines: Sequence[str],
    template: Template,
    secrets: Sequence[Secret],
    repeats: int | Sequence[int],
    *,
    positions: Sequence[Sequence[int]] | None = None,
    written: Callable[[str, int], str] | None = None,
) -> tuple[list[str], tuple[tuple[int, ...], ...]]:
    """Put every canary into a corpus, each repeat as a record (a line) of its own.

    Args:
        lines: The corpus without line endings; kept in order and unchanged.
        template: What surrounds the secrets.
        secrets: One a canary.
        repeats: How often each occurs, at least 1; one number for all, or one a canary.
        positions: Line numbers (from 1, in the planted file) to plant at, one group a canary, as a manifest
            records them. Without them every repeat's place among the non-blank lines is uniform (CSPRNG).
        written: Gives the line of a record by its text and its number; None where the text is the line.

    Returns:
        The planted lines, and the line numbers of every canary's repeats, ascending.

    Raises:
        UsageError: A number of repeats below 1.
        InputError: The corpus has no record, or the positions do not fit it.
    """
    counts = (repeats,) * len(secrets) if isinstance(repeats, int) else tuple(repeats)
    if len(counts) != len(secrets) or any(count < 1 for count in counts):
        raise UsageError("Every canary needs a number of repeats of at least 1.", "Correct --repeats or the manifest.")
    if sum(counts) > MAX_PLANTED:
        raise UsageError(
            f"The canaries would be in more than {MAX_PLANTED:,} records.", "Correct --repeats or the manifest."
        )
    if positions is None:
        places = _random_positions(lines, counts)
    else:
        places = tuple(tuple(sorted(group)) for group in positions)
        _check_positions(places, counts, len(lines) + sum(counts))
    texts = {line: template.record(secrets[i]) for i, group in enumerate(places) for line in group}
    records = {line: text if written is None else written(text, line) for line, text in texts.items()}
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
            number = next(records)
            line += number + 1 - read
            read = number + 1
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
