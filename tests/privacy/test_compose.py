"""Several ledgers as one."""

from pathlib import Path

import pytest

from atdp_cli.errors import InputError, UsageError
from atdp_cli.privacy.accountant import epsilon_pld
from atdp_cli.privacy.compose import compose_ledgers
from atdp_cli.privacy.ledger import (
    Ledger,
    PlainTraining,
    SubsampledGaussian,
    compact,
    new_run,
    private_events,
    read_ledger,
    write_ledger,
)
from atdp_cli.privacy.relation import hypothetical
from tests.privacy.ledgers import ledger, steps


def epsilon(actual: Ledger) -> float:
    return epsilon_pld(private_events(actual.events), actual.delta, grid=1e-3)


def written(folder: Path, name: str, *parents: Ledger, spent: SubsampledGaussian) -> Ledger:
    """The ledger that a run on `parents` leaves, as read from its file."""
    events = compact([*(event for parent in parents for event in parent.events), spent])
    write_ledger(folder / name, ledger(*events, run=new_run()))
    return read_ledger(folder / name)


def test_siblings_count_their_parent_once(tmp_path: Path) -> None:
    parent = written(tmp_path, "parent", spent=steps(0.1, 1.0, 30))
    sibling = written(tmp_path, "sibling", parent, spent=steps(0.1, 2.0, 10))
    other = written(tmp_path, "other", parent, spent=steps(0.1, 3.0, 10))
    both = compose_ledgers([sibling, other])
    assert sum(event.steps for event in both.events if isinstance(event, SubsampledGaussian)) == 50
    assert epsilon(compose_ledgers([parent, sibling])) == pytest.approx(epsilon(sibling), abs=1e-9)
    assert max(epsilon(sibling), epsilon(other)) < epsilon(both) < epsilon(sibling) + epsilon(other)
    assert epsilon(compose_ledgers([other, sibling])) == epsilon(both)


def test_a_run_that_repeats_its_parents_parameters_is_a_run_of_its_own(tmp_path: Path) -> None:
    parent = written(tmp_path, "parent", spent=steps(0.1, 1.0, 30))
    child = written(tmp_path, "child", parent, spent=steps(0.1, 1.0, 30))
    assert len(child.events) == 2
    assert epsilon(compose_ledgers([parent, child])) == pytest.approx(epsilon(child), abs=1e-9)
    assert epsilon(child) > epsilon(parent)


def test_equal_runs_of_different_names_both_count() -> None:
    first, second = (
        ledger(steps(0.1, 1.0, 30).model_copy(update={"run": name}), run=name) for name in ("first", "second")
    )
    assert epsilon(compose_ledgers([first, second])) > epsilon(first)
    unnamed = ledger(steps(0.1, 1.0, 30))
    assert epsilon(compose_ledgers([unnamed, unnamed])) > epsilon(unnamed)


def test_the_weaker_side_wins() -> None:
    stronger = ledger(steps(0.1, 1.0, 30), records=500)
    other = stronger.model_copy(
        update={
            "checkpoint_history": "unknown",
            "delta": 1e-8,
            "insecure_seed": True,
            "records": 90,
            "seal": {"a": "b"},
        }
    )
    both = compose_ledgers([stronger, other])
    assert (both.checkpoint_history, both.delta, both.insecure_seed, both.records) == ("unknown", 1e-8, True, 500)
    assert both.seal == {}
    assert compose_ledgers([stronger]) is stronger


def test_a_plain_stage_of_any_ledger_is_kept() -> None:
    plain = PlainTraining(stage="no-dp", text="raw", run="x", relation=hypothetical())
    assert plain in compose_ledgers([ledger(steps(0.1, 1.0, 3)), ledger(plain)]).events


def test_different_units_do_not_compose() -> None:
    other = ledger(steps(0.1, 1.0, 3)).model_copy(update={"unit": "document"})
    with pytest.raises(UsageError, match="unit line and unit document"):
        compose_ledgers([ledger(steps(0.1, 1.0, 3)), other])


def test_two_stories_of_one_run_are_refused() -> None:
    story, other = (ledger(steps(0.1, 1.0, count).model_copy(update={"run": "same"}), run="same") for count in (30, 31))
    with pytest.raises(InputError, match="the same run, same"):
        compose_ledgers([story, other])
