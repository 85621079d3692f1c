"""Entries of audits as `audit-canary --json` prints them, made by the audit itself from scores."""

from typing import Any

import numpy as np

from atdp_cli.audit.canary import Target
from atdp_cli.audit.result import to_json
from atdp_cli.audit.verdict import Limits, audit_scores

POOL = 100_000


def entry(model: str, *ranks: int, max_exposure: float | None = None, mismatch: str | None = None) -> dict[str, Any]:
    """The audit of a model that gives each canary this rank among `POOL` candidates."""
    scores = -np.arange(POOL, dtype=np.float64)
    targets = [Target(index=rank - 1, repeats=1) for rank in ranks]
    lengths = np.ones(POOL, dtype=np.int32)
    found = audit_scores(model, scores, lengths, targets, mismatch=mismatch, limits=Limits(max_exposure=max_exposure))
    shown = to_json(found)
    return shown | {
        "max_exposure": max_exposure,
        "max_epsilon_lower_bound": None,
        "baseline": None,
        "gate": shown["verdict"],
    }


def unfinished(model: str) -> dict[str, Any]:
    """A model whose audit could not be completed."""
    return {
        "model": model,
        "verdict": "ERROR",
        "gate": "ERROR",
        "reasons": ("It is <damaged> & done.",),
        "notices": (),
        "alpha": 0.01,
        "max_exposure": None,
        "max_epsilon_lower_bound": None,
        "canaries": (),
        "combined": None,
        "tested_against_base": False,
        "epsilon": (),
        "distribution": None,
        "extraction": None,
        "membership": None,
        "resurfaced": None,
        "own_secrets": None,
        "weights": {},
        "baseline": None,
    }


INNOCENT = (12_345, 40_001, 56_789, 71_234, 23_456, 88_888, 34_567, 50_505, 67_890, 45_678)
"""Ranks of a model that remembers nothing, of enough canaries to say so."""
