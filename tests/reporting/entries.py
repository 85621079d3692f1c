"""Audits made from scores, for what reports them."""

import numpy as np

from atdp_cli.audit.canary import Target
from atdp_cli.audit.results import Audit, UnfinishedAudit
from atdp_cli.audit.verdict import Limits
from tests.audit.scores import audit_scores

POOL = 100_000


def audit_of(model: str, *ranks: int, max_exposure: float | None = None, mismatch: str | None = None) -> Audit:
    """The audit of a model that gives each canary this rank among `POOL` candidates."""
    scores = -np.arange(POOL, dtype=np.float64)
    targets = [Target(index=rank - 1, repeats=1) for rank in ranks]
    lengths = np.ones(POOL, dtype=np.int32)
    return audit_scores(model, scores, lengths, targets, mismatch=mismatch, limits=Limits(max_exposure=max_exposure))


def unfinished(model: str) -> UnfinishedAudit:
    """A model whose audit could not be completed."""
    return UnfinishedAudit(model=model, reasons=("It is <damaged> & done.",))


INNOCENT = (12_345, 40_001, 56_789, 71_234, 23_456, 88_888, 34_567, 50_505, 67_890, 45_678)
"""Ranks of a model that remembers nothing, of enough canaries to say so."""
