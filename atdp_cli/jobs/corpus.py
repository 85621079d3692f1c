"""The corpus of a run: its records in order, and which of them are held out."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from atdp_cli.errors import InputError, UsageError
from atdp_cli.text.records import Record, Unit, read_records

HOLD_OUT_EVERY = 20
HOLD_OUT_AT_MOST = 500


@dataclass(frozen=True, kw_only=True)
class Split:
    """Which records train and which only measure. The choice is by position alone, so it is public.

    Attributes:
        records: All, in the corpora's order; those of a separate validation file come last.
        held_out: Places of the records that only measure.
    """

    records: tuple[Record, ...]
    held_out: frozenset[int]

    @property
    def training(self) -> int:
        """N, the number of records that train."""
        return len(self.records) - len(self.held_out)


def load_split(
    paths: Sequence[Path], *, unit: Unit, text_field: str, max_records: int | None, valid: Path | None
) -> Split:
    """Read the corpora in the order given; without `valid`, every twentieth record, at most 500, is held out.

    Args:
        max_records: Take the first so many records of the corpora, at least 2; None takes all.

    Raises:
        InputError: A corpus is missing, malformed or too short.
        UsageError: `max_records` is below 2.
    """
    if max_records is not None and max_records < 2:
        raise UsageError(f"max-records is {max_records}.", "Choose a whole number of at least 2.")
    chained = (record for path in paths for record in read_records(path, unit=unit, text_field=text_field))
    records = tuple(islice(chained, max_records))
    if valid is not None:
        measured = tuple(read_records(valid, unit=unit, text_field=text_field))
        places = range(len(records), len(records) + len(measured))
        return Split(records=records + measured, held_out=frozenset(places))
    if len(records) < 2:
        raise InputError(f"{paths[0]} holds a single record.", "Give a corpus, or choose a smaller --unit.")
    return Split(records=records, held_out=frozenset(held_out_positions(len(records))))


def held_out_positions(records: int) -> range:
    """Every twentieth place, the last of each twenty, at most 500 of them; the last record where there are fewer."""
    if records < HOLD_OUT_EVERY:
        return range(records - 1, records)
    return range(HOLD_OUT_EVERY - 1, min(records, HOLD_OUT_EVERY * HOLD_OUT_AT_MOST), HOLD_OUT_EVERY)
