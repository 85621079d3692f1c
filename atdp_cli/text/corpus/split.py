"""The corpus of a run: its records in order, and which of them are held out."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.atomic_write import real_path
from atdp_cli.text.corpus.records import Record, Unit, read_records

BUILT_IN_UNITS = ("line", "paragraph", "document")
"""Any other unit is the name of a field whose equal values make one record."""

HOLD_OUT_EVERY = 20
HOLD_OUT_AT_MOST = 500


@dataclass(frozen=True, kw_only=True)
class Split:
    """Which records train and which only measure. The choice is by position alone, so it is public.

    Attributes:
        records: All, in the corpora's order; those of a separate validation file come last.
        held_out: Places of the records that only measure.
        sources: What an encoder reads for each of the records; None where the model has none.
    """

    records: tuple[Record, ...]
    held_out: frozenset[int]
    sources: tuple[Record, ...] | None = None

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
) -> Split:
    """Read the corpora in the order given; without `valid`, every twentieth record, at most 500, is held out.

    Args:
        source_field: The field of what an encoder reads, beside `text_field`, which its decoder learns to say.
        max_records: Take the first so many records of the corpora, at least 2; None takes all.

    Raises:
        InputError: A corpus is missing, malformed or too short.
        UsageError: `max_records` is below 2, a file comes twice, or grouped records would span files.
    """
    if len({real_path(path) for path in paths}) < len(paths):
        raise UsageError("A --data file is given twice.", "Name each corpus once.")
    if len(paths) > 1 and unit not in BUILT_IN_UNITS:
        raise UsageError(
            f"--unit {unit} goes with one --data file: records are grouped within a file.", "Join the files first."
        )
    if max_records is not None and max_records < 2:
        raise UsageError(f"max-records is {max_records}.", "Choose a whole number of at least 2.")

    def read(files: Iterable[Path], field: str, most: int | None) -> tuple[Record, ...]:
        records = (record for path in files for record in read_records(path, unit=unit, text_field=field))
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
        return Split(records=records + measured, held_out=frozenset(places), sources=sources)
    if len(records) < 2:
        raise InputError(f"{paths[0]} holds a single record.", "Give a corpus, or choose a smaller --unit.")
    return Split(records=records, held_out=frozenset(held_out_positions(len(records))), sources=sources)


def held_out_positions(records: int) -> range:
    """Every twentieth place, the last of each twenty, at most 500 of them; the last record where there are fewer."""
    if records < HOLD_OUT_EVERY:
        return range(records - 1, records)
    return range(HOLD_OUT_EVERY - 1, min(records, HOLD_OUT_EVERY * HOLD_OUT_AT_MOST), HOLD_OUT_EVERY)
