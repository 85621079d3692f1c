"""Opacus' two accountants as a second opinion. Torch is loaded when they are used, as Opacus needs it."""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from atdp_cli.privacy.adjacency import equal_steps
from atdp_cli.privacy.ledger import PrivateEvent

ORDERS = (
    *(1 + x / 10 for x in range(1, 100)),
    *range(12, 64),
    *(64, 80, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096),
)
"""Opacus' own orders, and more for noise multipliers in the hundreds."""

NEARLY_ALL = 1 - 1e-9
"""Opacus' PRV takes the logarithm of 1−q."""


@dataclass(frozen=True, kw_only=True)
class OpacusEpsilons:
    """ε by Opacus under add/remove; None where the accountant gives no number."""

    rdp: float | None
    prv: float | None


def opacus_epsilons(events: Iterable[PrivateEvent], delta: float) -> OpacusEpsilons:
    """ε at `delta` by Opacus' RDP accountant and by its PRV accountant (Gopi, Lee and Wutschitz 2021)."""
    events = tuple(events)
    with warnings.catch_warnings():
        # Opacus warns where its best order is the last one, and numpy where an order fails.
        warnings.simplefilter("ignore")
        return OpacusEpsilons(rdp=_rdp(events, delta), prv=_prv(events, delta))


def _rdp(events: tuple[PrivateEvent, ...], delta: float) -> float | None:
    from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent

    spent = [0.0] * len(ORDERS)
    for q, sigma, steps in equal_steps(events):
        added = compute_rdp(q=q, noise_multiplier=sigma, steps=steps, orders=list(ORDERS))
        spent = [total + float(more) for total, more in zip(spent, added, strict=True)]
    finite = [(order, rdp) for order, rdp in zip(ORDERS, spent, strict=True) if math.isfinite(rdp)]
    if not finite:
        return None
    epsilon, _ = get_privacy_spent(orders=[order for order, _ in finite], rdp=[rdp for _, rdp in finite], delta=delta)
    return max(0.0, float(epsilon))


def _prv(events: tuple[PrivateEvent, ...], delta: float) -> float | None:
    from opacus.accountants import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = [(sigma, min(q, NEARLY_ALL), steps) for q, sigma, steps in equal_steps(events)]
    try:
        epsilon = float(accountant.get_epsilon(delta))
    except (ArithmeticError, RuntimeError, ValueError):
        return None
    return epsilon if math.isfinite(epsilon) else None
