"""The audit of a model by the scores that it gives to every candidate, without a model."""

from collections.abc import Sequence

from atdp_cli.audit.canary import Target
from atdp_cli.audit.exposure import Lengths, Rank, Scores, rank_of
from atdp_cli.audit.hypothesis_tests import split_alpha
from atdp_cli.audit.rank import check_finite
from atdp_cli.audit.results import Audit
from atdp_cli.audit.verdict import DEFAULT_LIMITS, Limits, judge


def audit_scores(
    model: str,
    scores: Scores,
    lengths: Lengths,
    targets: Sequence[Target],
    *,
    reference_scores: Scores | None = None,
    calibrated: bool = True,
    mismatch: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Audit:
    """Judges a model by the scores that it gives to every candidate: `judge` on where they place the canaries.

    Args:
        scores: log p of every candidate, shape [pool].
        lengths: Tokens that each score sums over, shape [pool].
        targets: The canaries, in the manifest's order.
        reference_scores: log p_ref of every candidate, by the public starting model, shape [pool].

    Raises:
        RunError: A score is not finite.
    """
    check_finite(model, scores)
    plain = tuple(rank_of(scores, lengths, target.index) for target in targets)
    ratio: tuple[Rank, ...] | None = None
    if reference_scores is not None:
        check_finite("the reference", reference_scores)
        ratios = scores - reference_scores
        ratio = tuple(rank_of(ratios, lengths, target.index) for target in targets)
    return judge(
        model,
        plain,
        ratio,
        targets,
        pool=scores.size,
        levels=split_alpha(limits.alpha, scores=1 if ratio is None else 2, bounds=0, canaries=0),
        calibrated=calibrated,
        mismatch=mismatch,
        limits=limits,
    )
