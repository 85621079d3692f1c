"""What a review says about the detector: the shares of sentences with a wrong flag or a missed term."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from atdp_cli.corpus.spans import Tier
from atdp_cli.detection.review.queue import Queue
from atdp_cli.files.documents import Frozen


class ErrorRate(Frozen):
    """An estimated share with its 95 % interval.

    Attributes:
        sampled: How many were looked at.
        share: None where nothing was.
        low: 0 where nothing was.
        high: 1 where nothing was.
    """

    sampled: int
    share: float | None
    low: float
    high: float


def estimate(sampled: Sequence[tuple[bool, float]]) -> ErrorRate:
    """Estimate the share of hits; each sentence is weighted by how many it stands for.

    The interval is Clopper and Pearson's for the effective sample size; where all weights are equal, that is the
    number of sentences.
    Source: Korn and Graubard 1998, "Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data".

    Args:
        sampled: Whether it is a hit, and a weight above 0, for each.
    """
    from scipy.special import betaincinv

    if not sampled:
        return ErrorRate(sampled=0, share=None, low=0.0, high=1.0)
    total = sum(weight for _, weight in sampled)
    share = sum(weight for hit, weight in sampled if hit) / total
    size = total**2 / sum(weight**2 for _, weight in sampled)
    hits = share * size
    low = float(betaincinv(hits, size - hits + 1, 0.025)) if any(hit for hit, _ in sampled) else 0.0
    high = 1.0 if all(hit for hit, _ in sampled) else float(betaincinv(hits + 1, size - hits, 0.975))
    return ErrorRate(sampled=len(sampled), share=share, low=low, high=high)


class ReviewSummary(Frozen):
    """`atdp review --json`: how far a review is, and what it says about the detector.

    Attributes:
        queue, allow, deny: Paths of the queue and of the lists.
        tier: What counted as sensitive.
        sentences: In the queue.
        reviewed: Looked at.
        skipped: Passed by.
        left: Without a decision.
        dropped: Spans found not to be sensitive.
        marked: Terms found missing, once for each sentence.
        wrongly_flagged: Of flagged sentences, those with a dropped span.
        missed_in_flagged: Of flagged sentences, those with a missed term.
        missed_in_unflagged: Of unflagged sentences, those with a missed term.
    """

    schema_version: Literal[1] = 1
    queue: str
    allow: str
    deny: str
    tier: Tier
    sentences: int
    reviewed: int
    skipped: int
    left: int
    dropped: int
    marked: int
    wrongly_flagged: ErrorRate
    missed_in_flagged: ErrorRate
    missed_in_unflagged: ErrorRate

    def says(self) -> tuple[str, ...]:
        """The detector's errors, a sentence each; those of which nothing was reviewed are left out."""
        return tuple(
            f"{what}: {rate.share:.1%} (95% interval {rate.low:.1%} to {rate.high:.1%})."
            for what, rate in (
                ("Flagged sentences with a wrong mask", self.wrongly_flagged),
                ("Flagged sentences with a missed term", self.missed_in_flagged),
                ("Unflagged sentences with a missed term", self.missed_in_unflagged),
            )
            if rate.share is not None
        )


def summarise(queue: Queue, *, path: Path, allow: Path, deny: Path) -> ReviewSummary:
    """Count the decisions of a queue; estimate the detector's errors in the corpus from what was reviewed."""
    decided = [(entry, entry.decision) for entry in queue.entries if entry.decision is not None]
    reviewed = [(entry, decision) for entry, decision in decided if decision.verdict == "reviewed"]
    flagged = [(entry, decision) for entry, decision in reviewed if entry.stratum == "flagged"]
    unflagged = [(entry, decision) for entry, decision in reviewed if entry.stratum == "unflagged"]
    return ReviewSummary(
        queue=str(path),
        allow=str(allow),
        deny=str(deny),
        tier=queue.header.tier,
        sentences=len(queue.entries),
        reviewed=len(reviewed),
        skipped=len(decided) - len(reviewed),
        left=len(queue.entries) - len(decided),
        dropped=sum(len(decision.drop) for _, decision in reviewed),
        marked=sum(len(decision.mark) for _, decision in reviewed),
        wrongly_flagged=estimate([(bool(decision.drop), entry.stands_for) for entry, decision in flagged]),
        missed_in_flagged=estimate([(bool(decision.mark), entry.stands_for) for entry, decision in flagged]),
        missed_in_unflagged=estimate([(bool(decision.mark), entry.stands_for) for entry, decision in unflagged]),
    )
