"""The journal of a run that broke off: every line counts, whole or torn."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.errors import InputError
from atdp_cli.privacy.journal import mend_journal, open_journal, read_journal, spend
from atdp_cli.privacy.ledger import (
    GaussianRelease,
    LedgerEvent,
    PlainTraining,
    SubsampledGaussian,
    compact,
    private_events,
)
from atdp_cli.privacy.relation import hypothetical
from tests.privacy.ledgers import release, steps

DELTA = 1e-6
RAW = PlainTraining(stage="no-dp", text="raw", relation=hypothetical())
PLANNED: tuple[LedgerEvent, ...] = (RAW, release(20.0), *(steps(0.05, sigma, 1) for sigma in (1.0, 1.25, 1.5)))


def written(path: Path, events: Sequence[LedgerEvent]) -> bytes:
    with open_journal(path) as journal:
        for event in events:
            spend(journal, event)
    return path.read_bytes()


def count(events: Sequence[LedgerEvent]) -> int:
    """Steps and releases."""
    return sum(event.steps if isinstance(event, SubsampledGaussian) else 1 for event in private_events(events))


@pytest.mark.ci
@given(st.lists(st.sampled_from(PLANNED), min_size=1, max_size=6), st.data())
def test_a_journal_cut_anywhere_has_each_whole_line_and_the_torn_one_as_what_it_was(
    events: list[LedgerEvent], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        content = written(path, events)
        cut = data.draw(st.integers(0, len(content)))
        path.write_bytes(content[:cut])
        whole, torn = content[:cut].count(b"\n"), not content[:cut].endswith(b"\n") and cut > 0
        actual = mend_journal(path, PLANNED, DELTA)
        assert actual == read_journal(path)
        assert count(actual) >= count(events[:whole])
        assert count(actual) <= count(events[:whole]) + torn
        assert compact(events[:whole]) == compact(actual) or torn
        if torn and isinstance(events[whole], SubsampledGaussian | GaussianRelease):
            assert count(actual) == count(events[:whole]) + 1
            assert costs_more(private_events(actual)[-1], events[whole])
        again = path.read_bytes()
        assert mend_journal(path, PLANNED, DELTA) == actual
        assert path.read_bytes() == again


def costs_more(counted: LedgerEvent, meant: LedgerEvent) -> bool:
    """Whether a line counts as no less than it was meant to be: of equal steps the one with the least noise."""
    if isinstance(counted, SubsampledGaussian) and isinstance(meant, SubsampledGaussian):
        return counted.noise_multiplier <= meant.noise_multiplier
    return counted == meant or isinstance(counted, SubsampledGaussian)


def test_a_line_that_lacks_only_its_end_counts_as_itself(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    content = written(path, [PLANNED[3], PLANNED[4]])
    path.write_bytes(content[:-1])
    assert mend_journal(path, PLANNED, DELTA) == (PLANNED[3], PLANNED[4])
    assert path.read_bytes() == content


@pytest.mark.parametrize("torn", [b"\0" * 80, b'{"kind":"sub', b"\xff", b'{"kind":"subsampled_gaussian","run":null'])
def test_what_is_the_beginning_of_several_events_or_of_none_counts_as_the_one_that_costs_most(
    tmp_path: Path, torn: bytes
) -> None:
    path = tmp_path / "journal.jsonl"
    content = written(path, [PLANNED[4]])
    path.write_bytes(content + torn)
    assert mend_journal(path, PLANNED, DELTA) == (PLANNED[4], PLANNED[2])


def test_that_a_stage_trains_is_written_again_when_it_begins_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"kind":"plain","run":nu')
    assert mend_journal(path, PLANNED, DELTA) == ()
    assert path.read_bytes() == b""


def test_a_damaged_line_within_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [PLANNED[2], PLANNED[3]])
    content = path.read_bytes()
    path.write_bytes(content[:5] + b"\0" + content[6:])
    with pytest.raises(InputError, match="line 1"):
        mend_journal(path, PLANNED, DELTA)


def test_a_run_that_broke_off_before_its_journal_has_spent_nothing(tmp_path: Path) -> None:
    assert mend_journal(tmp_path / "journal.jsonl", PLANNED, DELTA) == ()


def test_a_mended_journal_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, [PLANNED[2]])
    path.write_bytes(path.read_bytes() + b"{")
    mend_journal(path, PLANNED, DELTA)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["journal.jsonl"]
