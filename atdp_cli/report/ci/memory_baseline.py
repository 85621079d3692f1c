"""The recorded state of memory maps: a gate with a baseline fails a model only where it knows more than recorded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from atdp_cli.files.document import read_document
from atdp_cli.memory_result import MapVerdict, MemoryMap


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RecordedMap(_Record):
    """One model's map.

    Attributes:
        tested, held_out: Groups of records.
        memorised: How many of them stood out.
        greedy: Texts that greedy decoding said.
    """

    verdict: MapVerdict | None
    tested: int
    held_out: int
    memorised: int
    greedy: int


class MapBaseline(_Record):
    """The maps by their models' paths as given on the command line. Holds neither text nor places."""

    schema_version: Literal[1] = 1
    kind: Literal["atdp-map-baseline"] = "atdp-map-baseline"
    models: dict[str, RecordedMap]


def make_map_baseline(maps: Sequence[MemoryMap]) -> MapBaseline:
    """The state that these maps found."""
    return MapBaseline(
        models={
            _name(memory_map): RecordedMap(
                verdict=memory_map.verdict,
                tested=memory_map.tested,
                held_out=memory_map.held_out,
                memorised=memory_map.memorised,
                greedy=memory_map.greedy,
            )
            for memory_map in maps
        }
    )


def read_map_baseline(path: Path) -> MapBaseline:
    """Reads what `audit-corpus --write-baseline` wrote.

    Raises:
        InputError: Missing, unreadable or malformed.
    """
    remedy = "Give the file that audit-corpus --write-baseline wrote."
    return read_document(path, MapBaseline, name="The baseline", remedy=remedy)


def compared_with(baseline: MapBaseline, memory_map: MemoryMap) -> MemoryMap:
    """The map judged against the recorded state: its `gate` is PASS where it fails no worse than recorded.

    A failure is no worse if the model is recorded as failing, over as many groups of records, tested and held out, and
    now no more of them are memorised and greedy decoding says no more texts. Nothing but FAIL is changed.
    """
    if memory_map.verdict != "FAIL":
        return memory_map.model_copy(update={"baseline": "not-needed"})
    recorded = baseline.models.get(_name(memory_map))
    same = recorded is not None and (recorded.tested, recorded.held_out) == (memory_map.tested, memory_map.held_out)
    if recorded is None or not same:
        return memory_map.model_copy(update={"baseline": "unrecorded"})
    known = (
        recorded.verdict == "FAIL"
        and memory_map.memorised <= recorded.memorised
        and memory_map.greedy <= recorded.greedy
    )
    return memory_map.model_copy(update={"baseline": "known" if known else "worse"})


def _name(memory_map: MemoryMap) -> str:
    return Path(memory_map.model).as_posix()
