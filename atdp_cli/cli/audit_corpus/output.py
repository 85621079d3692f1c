"""A memory map on the terminal: how much, where, and how sure."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from atdp_cli.memory_result import MemorisedPlace, MemoryMap

if TYPE_CHECKING:
    from rich.console import Console

MOST_VALUES = 20
MOST_CHARACTERS = 60

NOTES = (
    "nats: above the model's average gain, at the best of its places.",
    "samples: draws after the text before it until even odds that one holds it.",
    "decoys: the share likelier than a flagged value; a: as likely anywhere else.",
)


def show_map(found: MemoryMap, texts: Sequence[str] | None, console: "Console") -> None:
    """Print one model's map.

    Args:
        texts: Those of all records, to show what stands at the places; None to show labels alone.
    """
    from rich.table import Table

    head = "" if found.verdict is None else f"{found.verdict} "
    console.print(f"{head}{found.model}", style="bold", soft_wrap=True)
    for line in _sentences(found):
        console.print(line)
    if not found.places:
        return
    table = Table("record", "characters", "places", "label", "nats", "samples", "decoys")
    for number in (0, 2, 4, 5, 6):
        table.columns[number].justify = "right"
    if texts:
        table.add_column("text", overflow="fold")
    counts = Counter(place.value for place in found.places)
    first = {place.value: place for place in reversed(found.places)}
    values = [first[value] for value in sorted(first)]
    for place in values[:MOST_VALUES]:
        shown = (texts[place.record - 1][place.start : place.end][:MOST_CHARACTERS],) if texts else ()
        table.add_row(
            f"{place.record:,}",
            f"{place.start}–{place.end}",
            f"{counts[place.value]:,}",
            place.label,
            f"{place.gain:.1f}",
            _samples(place),
            _decoys(place),
            *shown,
        )
    console.print(table)
    if len(values) > MOST_VALUES:
        console.print(f"And {len(values) - MOST_VALUES:,} more texts; -o or --json has all places.")
    for line in NOTES:
        console.print(line)


def _sentences(found: MemoryMap) -> list[str]:
    by = "log p over the reference" if found.reference is not None else "log p alone, as there is no --reference"
    against = f"of {found.tested:,} against {found.held_out:,} held out, by {by}"
    if not found.memorised:
        listed = f"Memorised: 0 {against}."
    elif found.calibrated:
        labels = Counter(place.label for place in found.places).most_common(3)
        named = ", ".join(f"{label} {count:,}" for label, count in labels)
        listed = (
            f"Memorised: {found.memorised:,} {against}, at a false discovery rate of {found.fdr:.0%}. "
            f"Places: {len(found.places):,} ({named})."
        )
    else:
        listed = f"Uncalibrated: {found.memorised:,} {against}, score above every held-out one; that may be chance."
    sentences = [listed]
    if not found.calibrated:
        sentences.append(
            f"Nothing is significant unless {found.fewest_findings:,} stand out together; more held-out records lower "
            "that number."
        )
    if found.max_memorised is not None:
        sentences.append(f"Limit: {found.max_memorised:,}.")
    return sentences


def _samples(place: MemorisedPlace) -> str:
    if place.greedy:
        return "greedy"
    if place.queries_half is None or place.queries_half >= 10**6:
        return "> 10⁶"
    return f"{place.queries_half:,.0f}"


def _decoys(place: MemorisedPlace) -> str:
    if place.rank is None:
        return "–"
    return f"{place.rank.likelier:.3f}{' a' if place.rank.anywhere else ''}"
