"""An audit with something in every field, written out number by number: its files never depend on a library's rounding.

Means are over four planted canaries with exposures that are sums of powers of two, so that every figure is exact.
"""

from typing import Any

from atdp_cli.audit.results import (
    AnyAudit,
    Audit,
    CanaryResult,
    Combined,
    Distribution,
    EpsilonBound,
    Extraction,
    Membership,
    Relearning,
    TopCandidate,
    UnfinishedAudit,
    Verdict,
)

LEVEL = 0.0025


def canary(planted: bool, exposure: float, ratio: float, holm_p: float | None) -> CanaryResult:
    """A canary of ten thousand candidates."""
    return CanaryResult(
        planted=planted,
        repeats=7,
        pool=10_000,
        compared=10_000,
        rank_min=3,
        rank_max=4,
        stratum_size=4096,
        stratum_rank_min=1,
        stratum_rank_max=2,
        exposure=exposure,
        exposure_plain=11.25,
        exposure_per_token=1e-05,
        p_value=0.0009765625,
        holm_p=holm_p,
        rank_ratio_min=5,
        rank_ratio_max=6,
        exposure_ratio=ratio,
        exposure_ratio_plain=10.5,
        exposure_ratio_per_token=9.75,
        p_value_ratio=0.5,
        holm_p_ratio=None if holm_p is None else 1.0,
    )


def combined(mean: float) -> Combined:
    """All planted canaries; nothing is known of the copy's power."""
    return Combined(
        level=LEVEL,
        fisher_p=1.5e-07,
        fisher_p_ratio=0.25,
        holm_min_p=0.001953125,
        holm_min_p_ratio=1.0,
        mean_exposure=mean,
        mean_exposure_ratio=5.0,
        max_exposure=13.0,
        power=0.9375 if mean > 5 else None,
    )


def bound(method: Any, epsilon: float, finding: Any) -> EpsilonBound:
    """A bound that a claim of 2 is set beside."""
    return EpsilonBound(
        method=method,
        epsilon=epsilon,
        attainable=4.5,
        delta=1e-06,
        confidence=0.995,
        guesses=4,
        correct=3,
        top=None if method == "in-out" else 100,
        claim=None if finding == "no-claim" else 2.0,
        finding=finding,
    )


def rich_audit(model: str = "models/rich") -> Audit:
    """A model that fails in every way."""
    return Audit(
        model=model,
        verdict=Verdict.FAIL,
        reasons=("1 of 4 canaries stand out <here>.", "A canary has an exposure of 13.00 bits; the limit is 12."),
        notices=("Too few | candidates.",),
        alpha=0.01,
        canaries=(
            canary(True, 11.0, 5.0, 0.001953125),
            canary(False, 0.25, 1.5, None),
            canary(True, 13.0, 2.0, 0.5),
            canary(True, 4.0, 9.0, 1.0),
            canary(True, 2.0, 4.0, 1.0),
        ),
        combined=combined(7.5),
        tested_against_base=True,
        epsilon=(
            bound("in-out", 2.5, "refuted"),
            bound("rank", 3.25, "no-claim"),
        ),
        distribution=Distribution(
            edges=(-20.5, -10.25, -1e-05),
            counts=(9999, 1),
            total=0.125,
            top=(
                TopCandidate(rank=1, log_p=-1e-05, probability=0.75, canary=2, secret=("Zoë", "12")),
                TopCandidate(rank=2, log_p=-3.5, probability=0.03125, canary=None, secret=None),
            ),
        ),
        extraction=tuple(
            Extraction(
                greedy=greedy,
                sampled=3 if greedy else 0,
                samples=1000,
                log_p=-2.5 if greedy else -800.0,
                queries_half=9.0 if greedy else None,
                queries_nine_tenths=27.0 if greedy else None,
            )
            for greedy in (True, False, True, False, False)
        ),
        membership=(
            Membership(
                attack="loss", members=4, non_members=1, auc=0.75, auc_low=0.25, auc_high=1.0, tpr_at_1_fpr=None
            ),
            Membership(
                attack="min-k++", members=4, non_members=0, auc=None, auc_low=None, auc_high=None, tpr_at_1_fpr=None
            ),
        ),
        relearning=Relearning(
            steps=50,
            verdict=Verdict.PASS,
            exposures=(1.0, 2.0, 3.0, 4.0, 5.0),
            exposures_ratio=(1.5, 2.5, 3.5, 4.5, 5.5),
            combined=combined(3.25),
        ),
        weights={"model.safetensors": "ab12"},
        max_exposure=12.0,
        max_epsilon_lower_bound=3.0,
        gate=Verdict.FAIL,
    )


def audits() -> tuple[AnyAudit, ...]:
    """The rich audit, a copy that a baseline is to know, and one that was not completed."""
    unfinished = UnfinishedAudit(
        model="models/damaged",
        reasons=("It is damaged. Restore it.",),
    )
    return rich_audit(), rich_audit("models/again"), unfinished
