"""Hardening in rounds: what a round's result still knows of its corpus is flagged in the next."""

from dataclasses import dataclass
from pathlib import Path

from atdp_cli.errors import UsageError
from atdp_cli.events import Notify
from atdp_cli.files.private import PRIVATE, beside, make_private
from atdp_cli.jobs.harden.request import HardenRequest
from atdp_cli.jobs.report import attach_maps
from atdp_cli.memory_result import MemoryMap
from atdp_cli.text.corpus.split import EACH_RECORD

MAPS = f".maps{PRIVATE}"
"""What is appended to OUT for the folder of the rounds' maps."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """A round that is over.

    Attributes:
        number: From 1.
        memory: What its result still knew.
        file: The map, as a spans file; None where nothing is significant.
    """

    number: int
    memory: MemoryMap
    file: Path | None


def check_rounds(request: HardenRequest) -> None:
    """Refuse rounds whose maps could not be drawn.

    Raises:
        UsageError: As said.
    """
    if len(request.data) != 1:
        raise UsageError("--rounds goes with one --data file.", "Harden on one corpus, or leave --rounds out.")
    if request.valid is None:
        raise UsageError(
            "--rounds needs records that the model never read: they show what chance looks like.",
            "Give some hundreds for each round by --valid.",
        )
    for name, given in (("max-records", request.max_records), ("source-field", request.source_field)):
        if given is not None:
            raise UsageError(f"--rounds and --{name} do not go together.", f"Leave --{name} out.")
    if request.ranks.size > 1:
        raise UsageError("--rounds goes with one process.", "Map with atdp audit-corpus between the runs.")


def map_file(output: Path, number: int) -> Path:
    """Where a round's map is kept."""
    return beside(output, MAPS) / f"map-{number}.jsonl"


def with_map(request: HardenRequest, number: int) -> HardenRequest:
    """The request of the round after this one: its map's places are flagged, and its result is replaced."""
    return request.replace(also=(*request.also, map_file(request.output, number)), force=True)


def first_round(request: HardenRequest, rounds: int) -> tuple[int, HardenRequest]:
    """The number and request of the round to begin with: where --resume goes on, the one after the last map.

    Raises:
        UsageError: Maps of other rounds are there, and neither --resume nor --force is given.
    """
    drawn = list(beside(request.output, MAPS).glob("map-*.jsonl"))
    if not request.resume:
        if drawn and not request.force:
            raise UsageError(
                f"{beside(request.output, MAPS)} has maps of other rounds.", "Use --force to replace them, or --resume."
            )
        for file in drawn:
            file.unlink()
        return 1, request
    number = 1
    while map_file(request.output, number) in drawn and number < rounds:
        request = with_map(request, number)
        number += 1
    return number, request


def draw_map(request: HardenRequest, reference: Path | None, number: int, rounds: int, notify: Notify) -> Round:
    """Map what a round's result knows, against its own part of the held-out records, and write what is significant.

    What was found is in the result's private report too.

    Args:
        reference: The public base model; None for none.

    Raises:
        InputError: A file cannot be read, or there are fewer held-out groups than rounds.
    """
    from atdp_cli.jobs.audit_corpus import MapRequest, map_models, write_map  # loads torch

    mapping = MapRequest(
        data=request.data[0],
        valid=request.valid,
        part=(number, rounds),
        unit=request.unit,
        text_field=request.text_field,
        turns=request.turns,
        chat_template=request.chat_template,
        holdout_by=request.holdout_by or EACH_RECORD,
        reference=reference,
        detector=request.detector,
        device=request.device,
    )
    [mapped] = map_models([request.output], mapping, notify)
    attach_maps(request.output, [mapped.memory])
    if not mapped.memory.calibrated:
        return Round(number=number, memory=mapped.memory, file=None)
    file = map_file(request.output, number)
    make_private(file.parent)
    write_map(mapped, file, replace=True)
    return Round(number=number, memory=mapped.memory, file=file)
