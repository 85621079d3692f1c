"""The gate against a recorded state."""

from pathlib import Path

import pytest

from atdp_cli.audit.results import AnyAudit, Audit, BaselineComparison, EpsilonBound, Verdict
from atdp_cli.errors import InputError
from atdp_cli.reporting.ci.baseline import (
    Baseline,
    RecordedAudit,
    RecordedCanary,
    make_baseline,
    new_failures,
    read_baseline,
)
from tests.reporting.entries import INNOCENT, audit_of, unfinished


def _gate(now: tuple[int, ...], then: tuple[int, ...], max_exposure: float | None = None) -> tuple[str, str, list[int]]:
    before = make_baseline([audit_of("runs/a", *then, max_exposure=max_exposure)])
    gate, comparison = _judged(audit_of("runs/a", *now, max_exposure=max_exposure), before)
    return gate, comparison.state, list(comparison.worse)


def _judged(audit: AnyAudit, baseline: Baseline) -> tuple[str, BaselineComparison]:
    judged = new_failures(audit, baseline)
    assert judged.verdict is audit.verdict
    assert judged.baseline is not None
    return str(judged.gate), judged.baseline


def test_as_recorded_is_no_failure_and_the_verdict_stays() -> None:
    failed = audit_of("./runs/a/", 1, *INNOCENT)
    gate, comparison = _judged(failed, make_baseline([audit_of("runs/a", 1, *INNOCENT)]))
    assert (failed.verdict, gate, comparison.known) == (Verdict.FAIL, "PASS", (1,))


def test_a_canary_that_did_not_fail_then_is_worse() -> None:
    assert _gate((1, 1, *INNOCENT), (1, 50_000, *INNOCENT)) == ("FAIL", "worse", [2])
    assert _gate((1, *INNOCENT), (50_000, *INNOCENT)) == ("FAIL", "worse", [1])


def test_a_failing_canary_may_rise_by_one_bit_and_no_more() -> None:
    assert _gate((4, *INNOCENT), (8, *INNOCENT)) == ("PASS", "known", [])
    assert _gate((3, *INNOCENT), (8, *INNOCENT)) == ("FAIL", "worse", [1])
    assert _gate((8, *INNOCENT), (1, *INNOCENT))[0] == "PASS"


def test_a_passing_canary_may_move_freely() -> None:
    moved = tuple(reversed(INNOCENT))
    assert _gate((1, *moved), (1, *INNOCENT)) == ("PASS", "known", [])


def test_failing_together_is_compared_by_the_mean() -> None:
    creeping = (3_000, 2_000, 4_000, 2_500, 3_500, 1_500, 2_200, 2_800, 3_300, 1_800)
    assert audit_of("a", *creeping).verdict is Verdict.FAIL
    assert not any((canary.holm_p or 0) <= 0.005 for canary in audit_of("a", *creeping).canaries)
    assert _gate(creeping, creeping) == ("PASS", "known", [])
    assert _gate(creeping, INNOCENT) == ("FAIL", "worse", [])
    assert _gate(tuple(rank // 3 for rank in creeping), creeping) == ("FAIL", "worse", [])


def test_a_limit_counts_as_the_tests_do() -> None:
    assert _gate((900, *INNOCENT), (900, *INNOCENT), max_exposure=6.0) == ("PASS", "known", [])
    assert _gate((900, *INNOCENT), (50_000, *INNOCENT), max_exposure=6.0) == ("FAIL", "worse", [1])


def _bounded(epsilon: float, finding: str, *, limit: float | None = None) -> Audit:
    bound = EpsilonBound.model_construct(method="rank", epsilon=epsilon, finding=finding, claim=1.0)
    failed = audit_of("runs/a", *INNOCENT).concluding(Verdict.FAIL)
    return failed.model_copy(update={"epsilon": (bound,), "max_epsilon_lower_bound": limit})


def test_a_bound_that_fails_is_known_only_where_it_failed_then_by_no_more_than_one_less() -> None:
    innocent = audit_of("runs/a", *INNOCENT)
    refuted = _bounded(2.5, "refuted")
    assert new_failures(refuted, make_baseline([innocent])).gate is Verdict.FAIL
    assert new_failures(refuted, make_baseline([_bounded(1.6, "refuted")])).gate is Verdict.PASS
    assert new_failures(refuted, make_baseline([_bounded(1.4, "refuted")])).gate is Verdict.FAIL
    assert new_failures(_bounded(2.5, "no-claim", limit=2), make_baseline([innocent])).gate is Verdict.FAIL
    limited = _bounded(2.4, "no-claim", limit=2)
    assert new_failures(_bounded(2.5, "no-claim", limit=2), make_baseline([limited])).gate is Verdict.PASS


def test_a_canary_that_is_not_planted_never_fails() -> None:
    audit = audit_of("runs/a", 1, *INNOCENT, max_exposure=5)
    first, *others = audit.canaries
    left_out = first.model_copy(update={"planted": False})
    assert _first(make_baseline([audit])).failing
    audit = audit.model_copy(update={"canaries": (left_out, *others)})
    assert not _first(make_baseline([audit])).failing


def _first(baseline: Baseline) -> RecordedCanary:
    recorded = baseline.models["runs/a"]
    assert isinstance(recorded, RecordedAudit)
    return recorded.canaries[0]


def test_what_the_baseline_does_not_know_fails() -> None:
    before = make_baseline([audit_of("runs/a", 1, *INNOCENT), unfinished("runs/c")])
    assert list(before.models) == ["runs/a"]
    for other in (audit_of("runs/b", 1, *INNOCENT), audit_of("runs/a", 1, 1, *INNOCENT)):
        gate, comparison = _judged(other, before)
        assert (gate, comparison.state) == ("FAIL", "unrecorded")


def test_nothing_but_a_failure_is_changed() -> None:
    before = make_baseline([audit_of("runs/a", 1, *INNOCENT)])
    for other in (audit_of("runs/a", *INNOCENT), audit_of("runs/a", 1, mismatch="Other tokens."), unfinished("runs/a")):
        assert new_failures(other, before).gate is other.verdict


@pytest.mark.parametrize("text", ["", "{}", '{"schema_version": 1, "kind": "atdp-canaries", "models": {}}'])
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(InputError, match="malformed"):
        read_baseline(tmp_path / "b.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_baseline(tmp_path / "none.json")
