"""The corpus of a run: its records in order, and which of them are held out."""

import sys
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from pathlib import Path

from atdp_cli.corpus.record import Record, Unit, read_records, select_records
from atdp_cli.corpus.segments import Selection
from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.atomic_write import real_path
from atdp_cli.files.corpus_file import KIND_NAMES, display_name, kind_of, raise_error

BUILT_IN_UNITS = ("line", "paragraph", "document")
"""Any other unit is the name of a field whose equal values make one record."""

HOLD_OUT_EVERY = 20

HOLD_OUT_AT_MOST = 500

BLANK_LINE, EACH_RECORD = "blank-line", "record"
"""Values of run.holdout-by that name no field."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """The records that train, and those that only measure. The choice is by position alone, so it is public.

    Attributes:
        records: All, in the corpora's order; those of a separate validation file come last.
        held_out: Places of the records that only measure.
        sources: What an encoder reads for each of the records; None where the model has none.
        skipped: Lines and rows that could not be read, and were left out.
    """

    records: tuple[Record, ...]
    held_out: frozenset[int]
    sources: tuple[Record, ...] | None = None
    skipped: int = 0

    @property
    def training(self) -> int:
        """N, the number of records that train."""
        return len(self.records) - len(self.held_out)


def load_split(
    paths: Sequence[Path],
    *,
    unit: Unit,
    text_field: str,
    source_field: str | None = None,
    max_records: int | None,
    valid: Path | None,
    holdout_by: str | None = None,
    turns: str | None = None,
    skip_bad: bool = False,
) -> Split:
    """Read the corpora in the order given; without `valid`, every twentieth record, at most 500, is held out.

    Args:
        holdout_by: What is held out whole, in place of single records: `blank-line` for the lines between blank ones,
            or the field whose equal values make a conversation or a user. Where these begin and end is public.
        turns: As for `read_records`.
        source_field: The field of what an encoder reads, beside `text_field`, which its decoder learns to say.
        max_records: Take the first so many records of the corpora, at least 2; None takes all.
        skip_bad: Leave out lines and rows that cannot be read.

    Raises:
        InputError: A corpus is missing, malformed or too short, or is all one group.
        UsageError: `max_records` is below 2, a file comes twice, grouped records would span files, or `holdout_by` does
            not go with the format, the unit or `valid`.
    """
    if holdout_by is not None:
        if valid is not None:
            raise UsageError(
                "--eval-data is what is held out, so run.holdout-by has nothing to choose.", "Leave one of them out."
            )
        check_groups(paths, holdout_by, unit)
    if len({real_path(path) for path in paths}) < len(paths):
        raise UsageError("A --data file is given twice.", "Name each corpus once.")
    if len(paths) > 1 and unit not in BUILT_IN_UNITS:
        raise UsageError(
            f"--privacy-unit {unit} goes with one --data file: records are grouped within a file.",
            "Join the files first.",
        )
    if max_records is not None and max_records < 2:
        raise UsageError(f"max-records is {max_records}.", "Choose a whole number of at least 2.")

    if skip_bad and (source_field is not None or holdout_by not in (None, EACH_RECORD)):
        raise UsageError("--skip-bad does not go with run.holdout-by and run.source-field.", "Leave one of them out.")
    skipped: list[InputError] = []
    on_error = skipped.append if skip_bad else raise_error

    def read(files: Iterable[Path], field: str, most: int | None) -> tuple[Record, ...]:
        selection = Selection(unit, field, turns=turns)
        records = (record for path in files for record in select_records(path, selection, on_error))
        return tuple(islice(records, most if most is None else min(most, sys.maxsize)))

    def read_all(field: str) -> tuple[Record, ...]:
        return read(paths, field, max_records) + (read([valid], field, None) if valid is not None else ())

    records = read(paths, text_field, max_records)
    sources = None if source_field is None else read_all(source_field)
    if valid is not None:
        measured = read([valid], text_field, None)
        if unit not in BUILT_IN_UNITS and {record.id for record in records} & {record.id for record in measured}:
            raise InputError(
                f"{valid} and --data have values of {unit} in common.", "Hold out records with other values."
            )
        places = range(len(records), len(records) + len(measured))
        held_out = frozenset(places)
        return Split(records=records + measured, held_out=held_out, sources=sources, skipped=len(skipped))
    if len(records) < 2:
        raise InputError(f"{paths[0]} holds a single record.", "Give a corpus, or choose a smaller --privacy-unit.")
    held_out = _held_out(paths, records, text_field, holdout_by)
    return Split(records=records, held_out=held_out, sources=sources, skipped=len(skipped))


def check_groups(paths: Sequence[Path], holdout_by: str, unit: Unit) -> None:
    """Refuse groups that cannot be read from these files.

    Raises:
        UsageError: The format or the unit has no such groups.
    """
    if holdout_by == EACH_RECORD:
        return
    if unit != "line":
        raise UsageError(
            f"run.holdout-by={holdout_by} groups lines, objects or rows, and --privacy-unit {unit} has other records.",
            "Use --privacy-unit line, or leave run.holdout-by out.",
        )
    for path in paths:
        kind = kind_of(path)
        if holdout_by == BLANK_LINE and kind != "text":
            raise UsageError(
                f"run.holdout-by=blank-line is for plain text, and {display_name(path)} is {KIND_NAMES[kind]}.",
                "Name the field whose value a conversation has in common.",
            )
        if holdout_by != BLANK_LINE and kind == "text":
            raise UsageError(
                f"run.holdout-by={holdout_by} names a field, and {display_name(path)} is plain text.",
                "Use --set run.holdout-by=blank-line, or a corpus with fields (.jsonl, .csv, .parquet).",
            )


def _held_out(
    paths: Sequence[Path], records: Sequence[Record], text_field: str, holdout_by: str | None
) -> frozenset[int]:
    if holdout_by is None or holdout_by == EACH_RECORD:
        return frozenset(held_out_positions(len(records)))
    held_out = held_out_groups(record_groups(paths, records, text_field, holdout_by))
    if not held_out:
        raise InputError(
            f"By run.holdout-by={holdout_by} the whole corpus is one group.",
            "Leave it out, or hold out a file by --eval-data.",
        )
    return held_out


def record_groups(paths: Sequence[Path], records: Sequence[Record], text_field: str, holdout_by: str) -> list[Hashable]:
    """The group of each of the first records of the files, as `check_groups` allows them."""
    if holdout_by == EACH_RECORD:
        return list(range(len(records)))
    if holdout_by == BLANK_LINE:
        return _blocks(records)
    # The same records, with the field's value for an id.
    again = (read_records(path, text_field=text_field, id_field=holdout_by) for path in paths)
    return [record.id for record in islice(chain.from_iterable(again), len(records))]


def _blocks(records: Sequence[Record]) -> list[Hashable]:
    """By record, the block of lines without a blank one between them that it belongs to."""
    lines = [int(record.id) for record in records]
    begins = (line != before + 1 for line, before in zip(lines, [-1, *lines], strict=False))
    return list(accumulate(map(int, begins)))


def held_out_groups(groups: Sequence[Hashable]) -> frozenset[int]:
    """The places of every twentieth group, the last of each twenty; of the last one where there are fewer.

    Groups are counted in the order in which they begin. No more are taken once they would have over 500 records, but
    one always is. Nothing is held out of a single group.

    Args:
        groups: The group of each record.
    """
    places: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    if len(places) < 2:
        return frozenset()
    members = list(places.values())
    chosen = [members[position] for position in held_out_positions(len(members))]
    sizes = accumulate(map(len, chosen))
    return frozenset(
        place
        for number, (group, size) in enumerate(zip(chosen, sizes, strict=True))
        if number == 0 or size <= HOLD_OUT_AT_MOST
        for place in group
    )


def held_out_positions(records: int) -> range:
    """Every twentieth place, the last of each twenty, at most 500 of them; the last record where there are fewer."""
    if records < HOLD_OUT_EVERY:
        return range(records - 1, records)
    return range(HOLD_OUT_EVERY - 1, min(records, HOLD_OUT_EVERY * HOLD_OUT_AT_MOST), HOLD_OUT_EVERY)
