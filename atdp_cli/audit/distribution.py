"""All candidates at a glance: how their scores are spread, and which come first."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from atdp_cli.audit.canary import Target, Template
from atdp_cli.audit.exposure import Scores

BINS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class TopCandidate:
    """One of the likeliest candidates.

    Attributes:
        rank: From 1; candidates of equal scores come in their order.
        log_p: Natural logarithm of its probability, given what all candidates begin with.
        probability: The same as a probability.
        canary: Which canary it is, from 1; None if it is none.
        secret: What fills its slots; None unless secrets are to be shown.
    """

    rank: int
    log_p: float
    probability: float
    canary: int | None
    secret: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """The scores of all candidates, by log p.

    Attributes:
        edges: Of the histogram's bins, natural logarithms, ascending, shape [bins + 1].
        counts: Candidates in each bin, shape [bins]; the last one is closed.
        total: Probability of all candidates together, given what they begin with.
        top: The likeliest.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    total: float
    top: tuple[TopCandidate, ...]


def distribution(
    scores: Scores, template: Template, targets: Sequence[Target], *, top: int = 20, shown: bool = False
) -> Distribution:
    """The distribution of log p over a whole pool.

    Args:
        scores: log p of every candidate, shape [pool], finite.
        top: How many of the likeliest to list.
        shown: Whether to say what they are.
    """
    counts, edges = np.histogram(scores, bins=BINS)
    numbers = {target.index: number for number, target in reversed(list(enumerate(targets, start=1)))}
    first = np.argsort(-scores, kind="stable")[:top]
    return Distribution(
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        total=float(np.exp(scores).sum()),
        top=tuple(
            TopCandidate(
                rank=rank,
                log_p=float(scores[index]),
                probability=exp(scores[index]),
                canary=numbers.get(int(index)),
                secret=template.secret(int(index)) if shown else None,
            )
            for rank, index in enumerate(first, start=1)
        ),
    )
