"""The verdict on a model: what the ranks of its canaries prove, and what they leave open."""

from collections.abc import Sequence
from math import log2
from typing import Annotated

from pydantic import Field

from atdp_cli.audit.canary import Target
from atdp_cli.audit.exposure import Rank
from atdp_cli.audit.hypothesis_tests import (
    Levels,
    TokenLengthGroup,
    fisher,
    fisher_in_sample,
    holm,
    least_detectable,
    mean_upper_limit,
    power,
)
from atdp_cli.audit.resolution import resolution
from atdp_cli.audit.results import (
    CONFIDENCE,
    MEMORISED_BITS,
    MIN_POWER,
    RANKS,
    Audit,
    CanaryResult,
    Combined,
    Conclusion,
    EpsilonBound,
    Verdict,
)
from atdp_cli.files.documents import copy_fields
from atdp_cli.settings import validated

MAX_UNRESOLVED = 2.0**-MEMORISED_BITS
"""The largest share of candidates that may score as a secret does: with more, no rank could show `MEMORISED_BITS`."""

MIN_ALPHA = 1e-9


@validated
class Limits:
    """The limits that fail a model.

    Attributes:
        alpha: Chance of failing a model that has learnt nothing by tests and bounds, from `MIN_ALPHA` to below 1.
        max_exposure: Of any planted canary by either score, bits, from 0.
        max_epsilon_lower_bound: Of any bound on ε, from 0.

    Raises:
        UsageError: One is out of range.
    """

    alpha: Annotated[float, Field(ge=MIN_ALPHA, lt=1)] = 0.01
    max_exposure: Annotated[float, Field(ge=0)] | None = None
    max_epsilon_lower_bound: Annotated[float, Field(ge=0)] | None = None


DEFAULT_LIMITS = Limits()


def judge(
    model: str,
    plain: Sequence[Rank],
    ratio: Sequence[Rank] | None,
    targets: Sequence[Target],
    *,
    pool: int,
    levels: Levels,
    calibrated: bool = True,
    mismatch: str | None = None,
    epsilon: tuple[EpsilonBound, ...] = (),
    limits: Limits = DEFAULT_LIMITS,
    length_groups: Sequence[TokenLengthGroup] | None = None,
    by_ranks: bool = True,
    needs_power: bool = True,
) -> Audit:
    """Judge a model by the ranks of its canaries.

    The canaries are independent uniform draws, so under no memorisation their p-values are independent and
    each at least uniform. Holm (is any canary remembered?) and Fisher (are they together?) are each run by each
    score at its share of alpha, so a model that has learnt nothing fails with probability at most alpha, the bounds
    included. Only canaries that were planted count.

    - FAIL: a test rejects, or a canary's exposure or a bound on ε passes a limit, or a bound refutes the ledger.
    - INCONCLUSIVE, if not FAIL: no canaries; all of every canary's group tied; a canary with more than
      `MAX_UNRESOLVED` of its group at its own score up to rounding; power against `MEMORISED_BITS` below `MIN_POWER`,
      or where that is no doubt, 2m / |S| above the level, even for the largest S, so that Holm could not reject even a
      canary of rank 1; a canary that was left out and ranks where Holm over these would reject; a limit that nothing
      could pass. Without calibration: no limit. A `mismatch` makes even a failure inconclusive: the ranks are not
      those of what was trained.
    - PASS otherwise. It says the smallest mean exposure that the tests would have found, and the largest that is left
      possible: passing proves no more.

    Args:
        model: Its name, for people.
        plain: The rank of each canary by log p, in the manifest's order.
        ratio: Their ranks by log p - log p_ref, if there is a reference.
        pool: Candidates that the template has.
        levels: Of tests and bounds, fixed before the model was looked at.
        calibrated: Whether the secrets were drawn from the CSPRNG (`Manifest.calibrated`).
        mismatch: What `token_mismatch` says.
        epsilon: The lower bounds, those that can fail the model each at `levels.bound`.
        length_groups: Of each canary where all are ranked among one sample; None where they are not.
        by_ranks: Whether the tests can fail the model; if not, what they reject is a notice.
        needs_power: Whether little power against `MEMORISED_BITS` is a doubt.
    """
    planted = [i for i, target in enumerate(targets) if target.planted]
    by_plain = [plain[i] for i in planted]
    by_ratio = None if ratio is None else [ratio[i] for i in planted]
    of_planted = None if length_groups is None else [length_groups[i] for i in planted]
    combined = _combine(by_plain, by_ratio, levels.test, calibrated, of_planted)
    canaries = _results(plain, ratio, targets, pool, calibrated)
    rejections = _rejections(canaries, combined)
    failures = (*(rejections if by_ranks else ()), *_above_limit(combined, limits), *_too_much(epsilon, limits))
    ranks = _rank_doubts(by_plain, by_ratio, combined, calibrated, limits, needs_power=needs_power)
    left_out = _left_out_first(plain, ratio, targets, levels.test) if calibrated else ()
    doubts = (*(ranks if by_ranks or not planted else ()), *left_out, *_out_of_reach(epsilon, limits))
    verdict, reasons, notices = _conclude(failures, doubts, mismatch, combined, by_ranks=by_ranks)
    if by_ranks and (combined.power or 0.0) >= MIN_POWER:
        notices += _none_alone(by_plain, combined)
    if not by_ranks:
        notices += ("The tests by ranks cannot fail this model: they are not among --fail-on.", *rejections)
    if ratio is None:
        notices += ("Not tested against an attacker who holds the base model: give it with --reference.",)
    return Audit(
        model=model,
        verdict=verdict,
        reasons=reasons,
        notices=notices,
        alpha=limits.alpha,
        canaries=canaries,
        combined=combined,
        tested_against_base=ratio is not None,
        epsilon=epsilon,
        max_exposure=limits.max_exposure,
        max_epsilon_lower_bound=limits.max_epsilon_lower_bound,
        gates=(RANKS,) if by_ranks else (),
        gate=verdict,
    )


def _results(
    plain: Sequence[Rank],
    ratio: Sequence[Rank] | None,
    targets: Sequence[Target],
    pool: int,
    calibrated: bool,
) -> tuple[CanaryResult, ...]:
    nothing = (None,) * len(plain)
    adjusted = _adjusted(plain, targets) if calibrated else nothing
    adjusted_ratio = _adjusted(ratio, targets) if calibrated and ratio is not None else nothing
    return tuple(
        copy_fields(
            CanaryResult,
            target,
            rank,
            pool=pool,
            compared=rank.pool,
            p_value=rank.p_value if calibrated else None,
            holm_p=adjusted[i],
            rank_ratio_min=None if by_ratio is None else by_ratio.rank_min,
            rank_ratio_max=None if by_ratio is None else by_ratio.rank_max,
            exposure_ratio=None if by_ratio is None else by_ratio.exposure,
            exposure_ratio_plain=None if by_ratio is None else by_ratio.exposure_plain,
            exposure_ratio_per_token=None if by_ratio is None else by_ratio.exposure_per_token,
            p_value_ratio=by_ratio.p_value if calibrated and by_ratio is not None else None,
            holm_p_ratio=adjusted_ratio[i],
        )
        for i, (rank, by_ratio, target) in enumerate(zip(plain, ratio or nothing, targets, strict=True))
    )


def _adjusted(ranks: Sequence[Rank], targets: Sequence[Target], *, planted: bool = True) -> tuple[float | None, ...]:
    """Holm's adjusted p-values over the planted canaries, or over those that were left out; None for the others."""
    tested = [i for i, target in enumerate(targets) if target.planted is planted]
    adjusted: list[float | None] = [None] * len(targets)
    for i, p in zip(tested, holm([ranks[i].p_value for i in tested]), strict=True):
        adjusted[i] = p
    return tuple(adjusted)


def _combine(
    plain: Sequence[Rank],
    ratio: Sequence[Rank] | None,
    level: float,
    calibrated: bool,
    length_groups: Sequence[TokenLengthGroup] | None,
) -> Combined:
    fisher_p, holm_min_p = _tests(plain if calibrated else None, length_groups)
    fisher_p_ratio, holm_min_p_ratio = _tests(ratio if calibrated else None, length_groups)
    testable, sizes = calibrated and len(plain) > 0, tuple(rank.stratum_size for rank in plain)
    confidence = 1 - (1 - CONFIDENCE) / (1 if ratio is None else 2)
    return Combined(
        level=level,
        fisher_p=fisher_p,
        fisher_p_ratio=fisher_p_ratio,
        holm_min_p=holm_min_p,
        holm_min_p_ratio=holm_min_p_ratio,
        mean_exposure=_mean_exposure(plain),
        mean_exposure_ratio=_mean_exposure(ratio),
        max_exposure=max((rank.exposure for rank in (*plain, *(ratio or ()))), default=None),
        power=power(sizes, level, mean_exposure=MEMORISED_BITS) if testable else None,
        detectable=least_detectable(sizes, level, least_power=MIN_POWER) if testable else None,
        mean_limit=_mean_limit(plain, confidence) if testable else None,
        mean_limit_ratio=_mean_limit(ratio, confidence) if testable and ratio is not None else None,
    )


def _tests(
    ranks: Sequence[Rank] | None, length_groups: Sequence[TokenLengthGroup] | None
) -> tuple[float | None, float | None]:
    """Fisher's p-value and Holm's smallest adjusted one."""
    if not ranks:
        return None, None
    p_values, lowest = [rank.p_value for rank in ranks], min(holm([rank.p_value for rank in ranks]))
    if length_groups is None:
        return fisher(p_values), lowest
    return fisher_in_sample(p_values, length_groups), lowest


def _mean_exposure(ranks: Sequence[Rank] | None) -> float | None:
    return sum(rank.exposure for rank in ranks) / len(ranks) if ranks else None


def _mean_limit(ranks: Sequence[Rank], confidence: float) -> float:
    most = max(log2(rank.stratum_size) for rank in ranks)
    return mean_upper_limit([rank.exposure for rank in ranks], most, confidence=confidence) if most else 0.0


def _rejections(canaries: Sequence[CanaryResult], combined: Combined) -> tuple[str, ...]:
    level, planted = combined.level, sum(canary.planted for canary in canaries)
    failures = []
    for score, adjusted, fisher_p in (
        ("log p", [canary.holm_p for canary in canaries], combined.fisher_p),
        ("the ratio to the reference", [canary.holm_p_ratio for canary in canaries], combined.fisher_p_ratio),
    ):
        rejected = sum(p is not None and p <= level for p in adjusted)
        if rejected:
            failures.append(
                f"{rejected} of {planted} canaries rank where chance would hardly put them, "
                f"by {score} (Holm at {level:g})."
            )
        if fisher_p is not None and fisher_p <= level:
            failures.append(
                f"The canaries taken together rank where chance would hardly put them, "
                f"by {score} (Fisher, p = {fisher_p:.2g}, level {level:g})."
            )
    return tuple(failures)


def _above_limit(combined: Combined, limits: Limits) -> tuple[str, ...]:
    limit = limits.max_exposure
    if limit is None or combined.max_exposure is None or combined.max_exposure <= limit:
        return ()
    return (f"A canary has an exposure of {combined.max_exposure:.2f} bits; the limit is {limit:g}.",)


def _rank_doubts(
    plain: Sequence[Rank],
    ratio: Sequence[Rank] | None,
    combined: Combined,
    calibrated: bool,
    limits: Limits,
    *,
    needs_power: bool,
) -> tuple[str, ...]:
    """The reasons why a model that no test rejects has not passed."""
    if not plain:
        return ("No canary is in the data. Canaries must be planted before training: see plant-canary.",)
    doubts, max_exposure = [], limits.max_exposure
    smallest = min(rank.stratum_size for rank in plain)
    if all(rank.tied for rank in plain):
        doubts.append("All candidates score the same, so no rank means anything: is this a trained model?")
    elif ratio is not None and all(rank.tied for rank in ratio):
        doubts.append("The model scores every candidate as the reference does: is the reference the model itself?")
    elif (unresolved := sum(rank.unresolved > MAX_UNRESOLVED for rank in (*plain, *(ratio or ())))) > 0:
        doubts.append(
            f"{unresolved} ranks cannot be told: more than one candidate in {1 / MAX_UNRESOLVED:.0f} has the secret's "
            "score up to rounding. Are the model's probabilities as its training left them?"
        )
    if not calibrated:
        if max_exposure is None:
            doubts.append("The secret was not drawn at random, so its rank has no p-value: set --max-exposure.")
        elif max_exposure >= log2(smallest):
            doubts.append(
                f"No rank can exceed the limit of {max_exposure:g} bits: "
                f"{smallest} candidates give at most {log2(smallest):.2f}."
            )
        return tuple(doubts)
    if (combined.power or 0.0) < MIN_POWER:
        doubts += _none_alone(plain, combined)
    if needs_power and combined.power is not None and combined.power < MIN_POWER:
        doubts.append(
            f"The tests would notice a mean exposure of {MEMORISED_BITS:g} bits with probability "
            f"{combined.power:.2f} only: plant more canaries."
        )
    return tuple(doubts)


def _none_alone(plain: Sequence[Rank], combined: Combined) -> tuple[str, ...]:
    """The sentence for groups so small that Holm could reject no canary; what a few of them cost is in the power."""
    largest = max(rank.stratum_size for rank in plain)
    if 2 * len(plain) / largest <= combined.level:
        return ()
    return (
        f"No canary has more than {largest} candidates of its token length, too few for {len(plain)} canaries: even "
        "rank 1 of one would not be rejected, only all of them together. Use a longer slot.",
    )


def _left_out_first(
    plain: Sequence[Rank], ratio: Sequence[Rank] | None, targets: Sequence[Target], level: float
) -> tuple[str, ...]:
    """The sentence for canaries that were not planted and that the model knows: it read more than the manifest says.

    By Holm over these canaries, at the level of the tests by each score.
    """
    rejected = {
        i
        for ranks in (plain, ratio)
        if ranks is not None
        for i, p in enumerate(_adjusted(ranks, targets, planted=False))
        if p is not None and p <= level
    }
    if not rejected:
        return ()
    left_out = sum(not target.planted for target in targets)
    return (
        f"{len(rejected)} of {left_out} canaries that were left out rank where chance would hardly put them (Holm at "
        f"{level:g}). Was the model trained on the corpus of this manifest?",
    )


def _too_much(epsilon: Sequence[EpsilonBound], limits: Limits) -> tuple[str, ...]:
    """The bounds on ε that exceed the user's limit, or the ε of the ledger."""
    failures, limit = [], limits.max_epsilon_lower_bound
    for bound in epsilon:
        proved = f"The canaries prove ε ≥ {bound.epsilon:.2f} ({bound.method}, {bound.confidence:.1%} confidence)"
        if limit is not None and bound.epsilon > limit:
            failures.append(f"{proved}; the limit is {limit:g}.")
        if bound.finding == "refuted" and bound.claim is not None:
            failures.append(f"{proved}; the ledger claims {bound.claim:.2f} for a canary's records, and is refuted.")
    return tuple(failures)


def _out_of_reach(epsilon: Sequence[EpsilonBound], limits: Limits) -> tuple[str, ...]:
    """The limit on ε that these canaries could never prove to be exceeded."""
    limit = limits.max_epsilon_lower_bound
    if limit is None or any(bound.attainable > limit for bound in epsilon):
        return ()
    largest = max((bound.attainable for bound in epsilon), default=0.0)
    return (f"These canaries prove at most ε ≥ {largest:.2f}, so the limit of {limit:g} cannot be tested: plant more.",)


def _conclude(
    failures: tuple[str, ...], doubts: tuple[str, ...], mismatch: str | None, combined: Combined, *, by_ranks: bool
) -> tuple[Conclusion, tuple[str, ...], tuple[str, ...]]:
    """The verdict, its reasons, and notices."""
    if mismatch is not None:
        return Verdict.INCONCLUSIVE, (mismatch, *failures, *doubts), ()
    if failures:
        return Verdict.FAIL, failures, doubts
    if doubts:
        return Verdict.INCONCLUSIVE, doubts, ()
    if combined.fisher_p is None:
        return Verdict.PASS, ("No canary is above the limit.",), ()
    if not by_ranks:  # what the gates found is said by them
        return Verdict.PASS, (), ()
    left = resolution(combined.detectable, combined.mean_limit, combined.mean_limit_ratio)
    return Verdict.PASS, ("The canaries rank where chance would put them.", left), ()
