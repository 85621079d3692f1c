"""Which audits count towards a report, and what is said of them: the worst, by its gates, if a test made its pass."""

import json
from pathlib import Path

import pytest

from atdp_cli.audit.results import Audit, CanaryResult, Verdict
from atdp_cli.errors import InputError
from atdp_cli.reporting.audit_entry import own_audit
from atdp_cli.reporting.document import PublicReport, ReleaseVerdict
from atdp_cli.reporting.html import render_html
from atdp_cli.reporting.write import as_json, read_audits, read_report, with_audits
from tests.reporting.documents import NOISY, public
from tests.reporting.rich_audit import rich_audit

PASSED = rich_audit().concluding(Verdict.PASS, "The canaries rank where chance would put them.")
FAILED = rich_audit().concluding(Verdict.FAIL, "A canary has an exposure of 19.00 bits; the limit is 9.")
UNSURE = rich_audit().concluding(Verdict.INCONCLUSIVE, "The tests would notice nothing.")


def of(report: PublicReport, audit: Audit) -> Audit:
    """The audit, of the report's own model."""
    return audit.model_copy(update={"weights": dict(report.weights)})


def uncalibrated(audit: Audit) -> Audit:
    """The audit of secrets that somebody chose."""
    nothing = dict.fromkeys(["p_value", "holm_p", "p_value_ratio", "holm_p_ratio"])
    names = ("fisher_p", "fisher_p_ratio", "holm_min_p", "holm_min_p_ratio", "power", "detectable", "mean_limit")
    combined = audit.combined.model_copy(update=dict.fromkeys(names))
    canaries = tuple(canary.model_copy(update=nothing) for canary in audit.canaries)
    return audit.model_copy(update={"canaries": canaries, "combined": combined})


def release(report: PublicReport) -> ReleaseVerdict:
    assert report.release is not None
    return report.release


def reported(*audits: Audit) -> PublicReport:
    report = public(NOISY)
    return with_audits(report, [of(report, audit) for audit in audits])


@pytest.mark.parametrize(
    ("audits", "verdict"),
    [
        ((PASSED, FAILED), "FAIL"),
        ((FAILED, PASSED), "FAIL"),
        ((PASSED, UNSURE), "INCONCLUSIVE"),
        ((PASSED, UNSURE, FAILED, PASSED), "FAIL"),
        ((PASSED, uncalibrated(FAILED)), "FAIL"),
        ((PASSED, uncalibrated(PASSED)), "INCONCLUSIVE"),
        ((PASSED, PASSED), "PASS"),
    ],
)
def test_of_several_audits_of_one_model_the_worst_counts(audits: tuple[Audit, ...], verdict: str) -> None:
    made = reported(*audits)
    own = own_audit(made.audits)
    assert own is not None
    assert own.verdict == verdict
    assert f"the worst of {len(audits)} audits of this model" in made.summary.audit
    assert (release(made).verdict == "not-releasable") >= (verdict == "FAIL")
    assert ("The audit passed" in made.summary.audit) is (verdict == "PASS")
    assert ("the audit passed" in release(made).reason) <= (verdict == "PASS")
    assert f'Audit: <span class="{verdict}">' in render_html(made)


def test_a_secret_that_nobody_drew_passes_nothing() -> None:
    """Whatever limit it lies below."""
    limited = uncalibrated(PASSED).concluding(Verdict.PASS, "No canary is above the limit.")
    made = reported(limited)
    assert made.audits[0].verdict == "INCONCLUSIVE"
    assert "uncalibrated" in made.summary.audit
    assert "an uncalibrated audit decides nothing" in release(made).reason
    assert "it is uncalibrated" in render_html(made)


@pytest.mark.parametrize("gates", [("extraction",), ("membership", "relearning")])
def test_a_pass_by_other_gates_says_nothing_of_ranks(gates: tuple[str, ...]) -> None:
    notice = "4 of 4 canaries rank where chance would hardly put them, by log p (Holm at 0.0025)."
    passed = PASSED.concluding(Verdict.PASS, "The attacks find no more than chance would.")
    made = reported(passed.model_copy(update={"gates": gates, "notices": (notice,)}))
    assert made.audits[0].gates == gates
    assert "from chance" not in made.summary.audit
    assert f"{' and '.join(gates)} found no more than chance would" in made.summary.audit
    assert notice in made.summary.audit
    assert f"the audit passed by {' and '.join(gates)} alone" in release(made).reason
    assert notice in render_html(made)


def none_planted(canary: CanaryResult) -> CanaryResult:
    return canary.model_copy(update={"planted": False, "holm_p": None, "holm_p_ratio": None})


def test_an_audit_in_which_nothing_was_planted_is_reported(tmp_path: Path) -> None:
    """As where every coin of --in-out left its canary out."""
    empty = uncalibrated(UNSURE)
    figures = dict.fromkeys(["mean_exposure", "mean_exposure_ratio", "max_exposure", "mean_limit_ratio"])
    canaries = tuple(map(none_planted, empty.canaries))
    combined = empty.combined.model_copy(update=figures)
    made = reported(empty.model_copy(update={"canaries": canaries, "combined": combined}))
    (tmp_path / "report.json").write_text(as_json(made))
    assert read_report(tmp_path / "report.json") == made
    assert "INCONCLUSIVE" in render_html(made)


@pytest.mark.parametrize("bits", [1e308, 2e6])
def test_an_exposure_that_no_rank_has_is_no_audit(bits: float, tmp_path: Path) -> None:
    """log2 of no number of candidates is so large; a mean of such figures would be infinite."""
    canaries = tuple(canary.model_copy(update={"exposure": bits}) for canary in PASSED.canaries)
    changed = PASSED.model_copy(update={"canaries": canaries}).model_dump(mode="json")
    (tmp_path / "audit.json").write_text(json.dumps({"schema_version": 1, "models": [changed]}))
    with pytest.raises(InputError, match="exposure"):
        read_audits(tmp_path / "audit.json")
