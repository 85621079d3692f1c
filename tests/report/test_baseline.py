"""The gate against a recorded state."""

from pathlib import Path
from typing import Any

import pytest

from atdp_cli.errors import InputError
from atdp_cli.report.baseline import make_baseline, new_failures, read_baseline
from tests.report.entries import INNOCENT, entry, unfinished


def _gate(now: tuple[int, ...], then: tuple[int, ...], **limits: float) -> tuple[str, str, list[int]]:
    before = make_baseline([entry("runs/a", *then, **limits)])  # type: ignore[arg-type]
    judged = new_failures(entry("runs/a", *now, **limits), before)  # type: ignore[arg-type]
    return judged["gate"], judged["baseline"]["state"], judged["baseline"]["worse"]


def test_as_recorded_is_no_failure_and_the_verdict_stays() -> None:
    failed = entry("./runs/a/", 1, *INNOCENT)
    judged = new_failures(failed, make_baseline([entry("runs/a", 1, *INNOCENT)]))
    assert (judged["verdict"], judged["gate"], judged["baseline"]["known"]) == ("FAIL", "PASS", [1])


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
    assert entry("a", *creeping)["verdict"] == "FAIL"
    assert not any(canary["holm_p"] <= 0.005 for canary in entry("a", *creeping)["canaries"])
    assert _gate(creeping, creeping) == ("PASS", "known", [])
    assert _gate(creeping, INNOCENT) == ("FAIL", "worse", [])
    assert _gate(tuple(rank // 3 for rank in creeping), creeping) == ("FAIL", "worse", [])


def test_a_limit_counts_as_the_tests_do() -> None:
    assert _gate((900, *INNOCENT), (900, *INNOCENT), max_exposure=6.0) == ("PASS", "known", [])
    assert _gate((900, *INNOCENT), (50_000, *INNOCENT), max_exposure=6.0) == ("FAIL", "worse", [1])


def _bounded(epsilon: float, finding: str, *, limit: float | None = None) -> dict[str, Any]:
    bound = {"method": "rank", "epsilon": epsilon, "finding": finding, "claim": 1.0}
    return entry("runs/a", *INNOCENT) | {
        "verdict": "FAIL",
        "gate": "FAIL",
        "epsilon": [bound],
        "max_epsilon_lower_bound": limit,
    }


def test_a_bound_that_fails_is_known_only_where_it_failed_then_by_no_more_than_one_less() -> None:
    innocent = entry("runs/a", *INNOCENT)
    refuted = _bounded(2.5, "refuted")
    assert new_failures(refuted, make_baseline([innocent]))["gate"] == "FAIL"
    assert new_failures(refuted, make_baseline([_bounded(1.6, "refuted")]))["gate"] == "PASS"
    assert new_failures(refuted, make_baseline([_bounded(1.4, "refuted")]))["gate"] == "FAIL"
    assert new_failures(_bounded(2.5, "no-claim", limit=2), make_baseline([innocent]))["gate"] == "FAIL"
    assert (
        new_failures(_bounded(2.5, "no-claim", limit=2), make_baseline([_bounded(2.4, "no-claim", limit=2)]))["gate"]
        == "PASS"
    )


def _numbered(exposure: float, ratio: float | None) -> dict[str, Any]:
    own = {"results": [{"exposure": exposure, "exposure_ratio": ratio}]}
    return entry("runs/a", *INNOCENT, max_exposure=14) | {"verdict": "FAIL", "gate": "FAIL", "own_secrets": own}


def test_a_number_of_the_corpus_that_fails_is_compared_by_the_score_that_judges_it() -> None:
    innocent = entry("runs/a", *INNOCENT, max_exposure=14)
    assert new_failures(_numbered(15, None), make_baseline([innocent]))["gate"] == "FAIL"
    assert new_failures(_numbered(15, None), make_baseline([_numbered(14.5, None)]))["gate"] == "PASS"
    assert new_failures(_numbered(17, 15), make_baseline([_numbered(14.5, 14.5)]))["gate"] == "PASS"
    assert new_failures(_numbered(17, 16), make_baseline([_numbered(20, 14.5)]))["gate"] == "FAIL"


def test_a_canary_that_is_not_planted_never_fails() -> None:
    found = entry("runs/a", 1, *INNOCENT, max_exposure=5)
    found["canaries"][0]["planted"] = False
    assert not make_baseline([found]).models["runs/a"].canaries[0].failing


def test_what_the_baseline_does_not_know_fails() -> None:
    before = make_baseline([entry("runs/a", 1, *INNOCENT), unfinished("runs/c")])
    assert list(before.models) == ["runs/a"]
    for other in (entry("runs/b", 1, *INNOCENT), entry("runs/a", 1, 1, *INNOCENT)):
        judged = new_failures(other, before)
        assert (judged["gate"], judged["baseline"]["state"]) == ("FAIL", "unrecorded")


def test_nothing_but_a_failure_is_changed() -> None:
    before = make_baseline([entry("runs/a", 1, *INNOCENT)])
    for other in (entry("runs/a", *INNOCENT), entry("runs/a", 1, mismatch="Other tokens."), unfinished("runs/a")):
        assert new_failures(other, before)["gate"] == other["verdict"]


@pytest.mark.parametrize("text", ["", "{}", '{"schema_version": 1, "kind": "atdp-canaries", "models": {}}'])
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(InputError, match="malformed"):
        read_baseline(tmp_path / "b.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_baseline(tmp_path / "none.json")
