"""All candidates at a glance: how their scores are spread, and which come first."""

from collections.abc import Sequence
from math import exp

import numpy as np

from atdp_cli.audit.canary import Target, Template
from atdp_cli.audit.exposure import Scores
from atdp_cli.audit_result import Distribution, TopCandidate

BINS = 40


def distribution(
    scores: Scores, template: Template, targets: Sequence[Target], *, top: int = 20, show_secrets: bool = False
) -> Distribution:
    """The distribution of log p over a whole pool.

    Args:
        scores: log p of every candidate, shape [pool], finite.
        top: How many of the likeliest to list.
        show_secrets: Whether to say what they are.
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
                secret=template.secret(int(index)) if show_secrets else None,
            )
            for rank, index in enumerate(first, start=1)
        ),
    )
