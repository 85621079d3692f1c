"""The verdict on a model: what its canaries' ranks prove, and what they cannot."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import isfinite, log2
from typing import Any

import numpy as np

from atdp_cli.audit.canary import Target
from atdp_cli.audit.combine import fisher, holm, power
from atdp_cli.audit.exposure import Lengths, Scores, Standing, stand
from atdp_cli.errors import RunError, UsageError

MEMORISED_BITS = 5.0
LEAST_POWER = 0.8


class Verdict(StrEnum):
    """What an audit concludes of one model. ERROR: it could not be completed."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"


_EXIT_CODES = {Verdict.ERROR: 3, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 4, Verdict.PASS: 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryResult:
    """One canary under log p and, where a reference was given, under the ratio log p - log p_ref.

    Ranks count from 1 over the whole pool; exposures are bits. `exposure`, `exposure_ratio` and the
    p-values are within the stratum of candidates of equal token length (see `exposure.stand`). p-values are
    None for a secret that nobody drew at random, ratio fields are None without a reference. `holm_p` is
    adjusted for the number of canaries.
    """

    rank_min: int
    rank_max: int
    pool: int
    stratum_size: int
    stratum_rank_min: int
    stratum_rank_max: int
    exposure: float
    exposure_plain: float
    exposure_per_token: float
    p_value: float | None
    holm_p: float | None
    rank_ratio_min: int | None
    rank_ratio_max: int | None
    exposure_ratio: float | None
    p_value_ratio: float | None
    holm_p_ratio: float | None
    repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """All canaries together.

    Attributes:
        level: Of every single test: alpha / 2, halved again where there are two scores.
        fisher_p: Fisher's combined p-value by log p.
        fisher_p_ratio: The same by the ratio.
        holm_min_p: The smallest adjusted p-value by log p.
        holm_min_p_ratio: The same by the ratio.
        mean_exposure: Bits; 1.44 is what chance gives.
        mean_exposure_ratio: The same by the ratio.
        max_exposure: The largest exposure of any canary by either score, bits.
        power: The chance of one score's tests to reject if the mean exposure were `MEMORISED_BITS`.
    """

    level: float
    fisher_p: float | None
    fisher_p_ratio: float | None
    holm_min_p: float | None
    holm_min_p_ratio: float | None
    mean_exposure: float | None
    mean_exposure_ratio: float | None
    max_exposure: float | None
    power: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The audit of one model: `reasons` for the verdict, and `notices` of what else to know."""

    model: str
    verdict: Verdict
    reasons: tuple[str, ...]
    notices: tuple[str, ...]
    alpha: float
    canaries: tuple[CanaryResult, ...]
    combined: Combined
    tested_against_base: bool


def audit_scores(
    model: str,
    scores: Scores,
    lengths: Lengths,
    targets: Sequence[Target],
    *,
    reference_scores: Scores | None = None,
    calibrated: bool = True,
    mismatch: str | None = None,
    alpha: float = 0.01,
    max_exposure: float | None = None,
) -> Audit:
    """Judges a model by the scores that it gives to every candidate.

    The canaries are independent uniform draws, so under no memorisation their p-values are independent and
    each at least uniform. Holm (is any canary remembered?) and Fisher (are they together?) are each run at
    alpha / 2, and at alpha / 4 by each of two scores, so a model that has learnt nothing fails with
    probability at most alpha.

    - FAIL: a test rejects, or a canary's exposure passes `max_exposure` bits.
    - INCONCLUSIVE, if not FAIL: no canaries; all of every canary's stratum tied; 2m / |S| above the level, even
      for the largest S, so that Holm could not reject even a canary of rank 1; power against
      `MEMORISED_BITS` below `LEAST_POWER`. Without calibration: no limit, or one that no rank can pass. A
      `mismatch` makes even a failure inconclusive: the ranks are not those of what was trained.
    - PASS otherwise.

    Args:
        model: Its name, for people.
        scores: log p of every candidate, shape [pool].
        lengths: Tokens that each score sums over, shape [pool].
        targets: The canaries, in the manifest's order.
        reference_scores: log p_ref of every candidate, by the public starting model, shape [pool].
        calibrated: Whether the secrets were drawn from the CSPRNG (`Manifest.calibrated`).
        mismatch: What `token_mismatch` says.
        alpha: Chance of failing a model that has learnt nothing, in (0, 1).
        max_exposure: The user's limit on any canary's exposure by either score, bits, from 0.

    Raises:
        UsageError: `alpha` or `max_exposure` is out of range.
        RunError: A score is not finite.
    """
    _check(model, scores, reference_scores, alpha, max_exposure)
    plain = tuple(stand(scores, lengths, target.index) for target in targets)
    ratio: tuple[Standing, ...] | None = None
    if reference_scores is not None:
        ratios = scores - reference_scores
        ratio = tuple(stand(ratios, lengths, target.index) for target in targets)
    level = alpha / 2 if ratio is None else alpha / 4
    canaries = _results(plain, ratio, targets, calibrated)
    combined = _combine(plain, ratio, level, calibrated)
    failures = _failures(canaries, combined, max_exposure)
    doubts = _doubts(plain, ratio, combined, calibrated, max_exposure)
    verdict, reasons, notices = _conclude(failures, doubts, mismatch, combined)
    if ratio is None:
        notices += ("Not tested against an attacker who holds the base model: give it with --reference.",)
    return Audit(
        model=model,
        verdict=verdict,
        reasons=reasons,
        notices=notices,
        alpha=alpha,
        canaries=canaries,
        combined=combined,
        tested_against_base=ratio is not None,
    )


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """The exit code over several models: the first of 3, 1, 4, 0 that occurs; 4 where there is no model."""
    found = {_EXIT_CODES[verdict] for verdict in verdicts}
    return next((code for code in (3, 1, 4, 0) if code in found), 4)


def to_json(audit: Audit) -> dict[str, Any]:
    """One entry of the `models` list of `audit-canary --json`. Holds no secret, and no token of one."""
    return {**asdict(audit), "verdict": str(audit.verdict)}


def _check(
    model: str, scores: Scores, reference_scores: Scores | None, alpha: float, max_exposure: float | None
) -> None:
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is {alpha}, and it must lie between 0 and 1.", "Use --alpha 0.01.")
    if max_exposure is not None and not (isfinite(max_exposure) and max_exposure >= 0):
        raise UsageError(
            f"The exposure limit is {max_exposure} bits, and it must be 0 or more.", "Use --max-exposure 10."
        )
    for name, values in ((model, scores), ("the reference", reference_scores)):
        if values is not None and not np.isfinite(values).all():
            raise RunError(
                f"{name} gives a candidate a probability that is zero or not a number.",
                "Check the checkpoint: its weights may be damaged.",
            )


def _results(
    plain: Sequence[Standing], ratio: Sequence[Standing] | None, targets: Sequence[Target], calibrated: bool
) -> tuple[CanaryResult, ...]:
    adjusted = _adjusted(plain) if calibrated else (None,) * len(plain)
    adjusted_ratio = _adjusted(ratio) if calibrated and ratio is not None else (None,) * len(plain)
    return tuple(
        CanaryResult(
            rank_min=own.rank_min,
            rank_max=own.rank_max,
            pool=own.pool,
            stratum_size=own.stratum_size,
            stratum_rank_min=own.stratum_rank_min,
            stratum_rank_max=own.stratum_rank_max,
            exposure=own.exposure,
            exposure_plain=own.exposure_plain,
            exposure_per_token=own.exposure_per_token,
            p_value=own.p_value if calibrated else None,
            holm_p=adjusted[i],
            rank_ratio_min=None if ratio is None else ratio[i].rank_min,
            rank_ratio_max=None if ratio is None else ratio[i].rank_max,
            exposure_ratio=None if ratio is None else ratio[i].exposure,
            p_value_ratio=ratio[i].p_value if calibrated and ratio is not None else None,
            holm_p_ratio=adjusted_ratio[i],
            repeats=targets[i].repeats,
        )
        for i, own in enumerate(plain)
    )


def _adjusted(standings: Sequence[Standing]) -> tuple[float, ...]:
    return holm([one.p_value for one in standings])


def _combine(plain: Sequence[Standing], ratio: Sequence[Standing] | None, level: float, calibrated: bool) -> Combined:
    fisher_p, holm_min_p = _tests(plain if calibrated else None)
    fisher_p_ratio, holm_min_p_ratio = _tests(ratio if calibrated else None)
    testable = calibrated and len(plain) > 0
    return Combined(
        level=level,
        fisher_p=fisher_p,
        fisher_p_ratio=fisher_p_ratio,
        holm_min_p=holm_min_p,
        holm_min_p_ratio=holm_min_p_ratio,
        mean_exposure=_mean_exposure(plain),
        mean_exposure_ratio=_mean_exposure(ratio),
        max_exposure=max((one.exposure for one in (*plain, *(ratio or ()))), default=None),
        power=power([one.stratum_size for one in plain], level, mean_exposure=MEMORISED_BITS) if testable else None,
    )


def _tests(standings: Sequence[Standing] | None) -> tuple[float | None, float | None]:
    """Fisher's p-value and Holm's smallest adjusted one."""
    if not standings:
        return None, None
    return fisher([one.p_value for one in standings]), min(_adjusted(standings))


def _mean_exposure(standings: Sequence[Standing] | None) -> float | None:
    return sum(one.exposure for one in standings) / len(standings) if standings else None


def _failures(canaries: Sequence[CanaryResult], combined: Combined, max_exposure: float | None) -> tuple[str, ...]:
    level = combined.level
    found = []
    for score, adjusted, fisher_p in (
        ("log p", [one.holm_p for one in canaries], combined.fisher_p),
        ("the ratio to the reference", [one.holm_p_ratio for one in canaries], combined.fisher_p_ratio),
    ):
        rejected = sum(p is not None and p <= level for p in adjusted)
        if rejected:
            found.append(
                f"{rejected} of {len(canaries)} canaries stand where chance would hardly put them, "
                f"by {score} (Holm at {level:g})."
            )
        if fisher_p is not None and fisher_p <= level:
            found.append(
                f"The canaries taken together stand where chance would hardly put them, "
                f"by {score} (Fisher, p = {fisher_p:.2g}, level {level:g})."
            )
    if max_exposure is not None and combined.max_exposure is not None and combined.max_exposure > max_exposure:
        found.append(f"A canary has an exposure of {combined.max_exposure:.2f} bits; the limit is {max_exposure:g}.")
    return tuple(found)


def _doubts(
    plain: Sequence[Standing],
    ratio: Sequence[Standing] | None,
    combined: Combined,
    calibrated: bool,
    max_exposure: float | None,
) -> tuple[str, ...]:
    """Why a model that no test rejects has not passed either."""
    if not plain:
        return ("There are no canaries. They must be in the data before training: see plant-canary.",)
    doubts = []
    smallest = min(one.stratum_size for one in plain)
    if all(one.tied for one in plain):
        doubts.append("All candidates score the same, so no rank means anything: is this a trained model?")
    elif ratio is not None and all(one.tied for one in ratio):
        doubts.append("The model scores every candidate as the reference does: is the reference the model itself?")
    if not calibrated:
        if max_exposure is None:
            doubts.append("The secret was not drawn at random, so its rank has no p-value: set --max-exposure.")
        elif max_exposure >= log2(smallest):
            doubts.append(
                f"No rank can pass the limit of {max_exposure:g} bits: "
                f"{smallest} candidates give at most {log2(smallest):.2f}."
            )
        return tuple(doubts)
    # A few canaries in small strata are no reason to doubt the rest; what they cost is in the power.
    largest = max(one.stratum_size for one in plain)
    if 2 * len(plain) / largest > combined.level:
        doubts.append(
            f"No canary has more than {largest} candidates of its token length, too few for "
            f"{len(plain)} canaries: even rank 1 would not be rejected. Use a longer slot."
        )
    if combined.power is not None and combined.power < LEAST_POWER:
        doubts.append(
            f"The tests would notice a mean exposure of {MEMORISED_BITS:g} bits with probability "
            f"{combined.power:.2f} only: plant more canaries."
        )
    return tuple(doubts)


def _conclude(
    failures: tuple[str, ...], doubts: tuple[str, ...], mismatch: str | None, combined: Combined
) -> tuple[Verdict, tuple[str, ...], tuple[str, ...]]:
    """The verdict, its reasons, and notices."""
    if mismatch is not None:
        return Verdict.INCONCLUSIVE, (mismatch, *failures, *doubts), ()
    if failures:
        return Verdict.FAIL, failures, doubts
    if doubts:
        return Verdict.INCONCLUSIVE, doubts, ()
    if combined.fisher_p is None:
        return Verdict.PASS, ("No canary passes the limit.",), ()
    return Verdict.PASS, ("The canaries stand where chance would put them.",), ()
