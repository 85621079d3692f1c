"""A memory map as one HTML page for the corpus's owner: worst texts first, then the records with most of them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from atdp_cli.memorisation.results import MemoryDocument, MemoryMap
from atdp_cli.reporting.ci.checks import best_places, memory_sentences, samples_needed
from atdp_cli.reporting.html import environment, figure_of, visible

MAP_PAGE = "memory_map.html"

MAX_TEXTS = 100
"""The most rows of the table of texts, the worst first."""

MAX_RECORDS = 30
"""The most records that are drawn, the densest first."""


class RecordPart(NamedTuple):
    """A stretch of a record in one piece: its characters, its text if that is shown, and whether it is a place."""

    start: int
    end: int
    text: str | None
    memorised: bool


class DenseRecord(NamedTuple):
    """A record as the page draws it.

    Attributes:
        number: From 1.
        id: Its own; of plain text, the line on which it begins.
        gain: The sum over its places, nats.
        share: Of its characters that are in places, in (0, 1].
    """

    number: int
    id: str
    gain: float
    share: float
    segments: tuple[RecordPart, ...]


def render_map_page(maps: Sequence[MemoryMap], records: Sequence[Sequence[tuple[str, str]]], *, show_text: bool) -> str:
    """The page.

    Args:
        records: The id and the text of every record of the corpus, for each map; a place's `record` counts from 1.
        show_text: Whether the text of the densest records is on the page.
    """
    document = MemoryDocument(models=tuple(maps)).model_dump(mode="json")
    sections = [
        _section(memory_map, corpus, show_text=show_text) for memory_map, corpus in zip(maps, records, strict=True)
    ]
    template = environment().get_template("map.html.j2")
    return visible(template.render(sections=sections, figure=figure_of(document), show_text=show_text))


def _section(memory_map: MemoryMap, corpus: Sequence[tuple[str, str]], *, show_text: bool) -> dict[str, Any]:
    """One model's part of the page; `texts` has the position of each text's best place in the map."""
    position = {id(place): number for number, place in enumerate(memory_map.places)}
    return {
        "memory": memory_map,
        "sentences": memory_sentences(memory_map),
        "labels": Counter(place.label for place in memory_map.places).most_common(),
        "texts": [position[id(place)] for place in best_places(memory_map)][:MAX_TEXTS],
        "counts": Counter(place.value for place in memory_map.places),
        "samples": [samples_needed(place) for place in memory_map.places],
        "records": densest_records(memory_map, corpus, show_text=show_text)[:MAX_RECORDS],
    }


def densest_records(
    memory_map: MemoryMap, corpus: Sequence[tuple[str, str]], *, show_text: bool
) -> tuple[DenseRecord, ...]:
    """The records with a place, that with the greatest sum of gains first."""
    places = defaultdict(list)
    for place in memory_map.places:
        places[place.record].append(place)
    dense = []
    for number, here in places.items():
        id_, text = corpus[number - 1]
        segments = tuple(_segments(text, [(place.start, place.end) for place in here], show_text=show_text))
        covered = sum(segment.end - segment.start for segment in segments if segment.memorised)
        gain = sum(place.gain for place in here)
        dense.append(DenseRecord(number=number, id=id_, gain=gain, share=covered / len(text), segments=segments))
    return tuple(sorted(dense, key=lambda record: (-record.gain, record.number)))


def _segments(text: str, places: Sequence[tuple[int, int]], *, show_text: bool) -> Iterator[RecordPart]:
    """The record from its first character to its last, cut where a place begins or ends; overlapping ones are one."""
    marked = [False] * len(text)
    for start, end in places:
        marked[start:end] = [True] * (end - start)
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or marked[end] != marked[start]:
            yield RecordPart(start, end, text[start:end] if show_text else None, marked[start])
            start = end
