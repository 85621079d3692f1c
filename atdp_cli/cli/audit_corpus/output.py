"""A memory map on the terminal: how much, where, and how sure."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from atdp_cli.memory_result import MemorisedPlace, MemoryMap
from atdp_cli.report.ci.checks import best_places, memory_sentences, samples_needed

if TYPE_CHECKING:
    from rich.console import Console

MOST_VALUES = 20
MOST_CHARACTERS = 60

NOTES = (
    "nats: above the model's average gain, at the best of its places.",
    "samples: draws after the text before it until even odds that one holds it.",
    "decoys: the share likelier than a flagged value; a: as likely anywhere else.",
)


def show_map(memory_map: MemoryMap, texts: Sequence[str] | None, console: "Console") -> None:
    """Print one model's map.

    Args:
        texts: Those of all records, to show what stands at the places; None to show labels alone.
    """
    from rich.table import Table

    head = "" if memory_map.verdict is None else f"{memory_map.verdict} "
    known = " (no worse than the baseline)" if memory_map.baseline == "known" else ""
    console.print(f"{head}{memory_map.model}{known}", style="bold", soft_wrap=True)
    for line in memory_sentences(memory_map):
        console.print(line)
    if not memory_map.places:
        return
    table = Table("record", "characters", "places", "label", "nats", "samples", "decoys")
    for number in (0, 2, 4, 5, 6):
        table.columns[number].justify = "right"
    if texts:
        table.add_column("text", overflow="fold")
    counts = Counter(place.value for place in memory_map.places)
    values = best_places(memory_map)
    for place in values[:MOST_VALUES]:
        shown = (texts[place.record - 1][place.start : place.end][:MOST_CHARACTERS],) if texts else ()
        table.add_row(
            f"{place.record:,}",
            f"{place.start}–{place.end}",
            f"{counts[place.value]:,}",
            place.label,
            f"{place.gain:.1f}",
            samples_needed(place),
            _decoys(place),
            *shown,
        )
    console.print(table)
    if len(values) > MOST_VALUES:
        console.print(f"And {len(values) - MOST_VALUES:,} more texts; -o or --json has all places.")
    for line in NOTES:
        console.print(line)


def _decoys(place: MemorisedPlace) -> str:
    if place.rank is None:
        return "–"
    return f"{place.rank.likelier:.3f}{' a' if place.rank.anywhere else ''}"
