"""Ledgers for tests, and ε of their events by the libraries used directly."""

import random
import warnings

import dp_accounting
from dp_accounting.pld import PLDAccountant

from atdp_cli.privacy.adjacency import sampling_rate
from atdp_cli.privacy.ledger import GaussianRelease, Ledger, LedgerEvent, PrivateEvent, SubsampledGaussian
from atdp_cli.privacy.relation import hypothetical


def steps(q: float, sigma: float, count: int) -> SubsampledGaussian:
    """`count` equal steps."""
    return SubsampledGaussian(
        stage="a", sampling_rate=q, noise_multiplier=sigma, clip_norm=0.1, steps=count, relation=hypothetical()
    )


def release(sigma: float) -> GaussianRelease:
    """A release of a sum over all records."""
    return GaussianRelease(
        stage="a", statistic="alpha", sensitivity=1.0, noise_multiplier=sigma, relation=hypothetical()
    )


def ledger(*events: LedgerEvent, records: int = 100, run: str | None = None) -> Ledger:
    """A ledger of these events."""
    return Ledger(
        unit="line", checkpoint_history="public", records=records, delta=1e-6, grid=1e-3, events=events, run=run
    )


def heterogeneous(seed: int) -> list[PrivateEvent]:
    """One to four runs of steps with q, σ and counts of their own, and now and then a release."""
    draw = random.Random(seed)
    actual: list[PrivateEvent] = [
        steps(draw.uniform(0.005, 0.3), draw.uniform(0.8, 6), draw.randint(1, 40)) for _ in range(draw.randint(1, 4))
    ]
    return [*actual, release(draw.uniform(5, 30))] if draw.random() < 0.3 else actual


def direct_pld(events: list[PrivateEvent], delta: float, grid: float, *, replace_one: bool = False) -> float:
    """ε by dp_accounting's accountant, event by event in the ledger's order."""
    relation = dp_accounting.NeighboringRelation
    accountant = PLDAccountant(
        relation.REPLACE_ONE if replace_one else relation.ADD_OR_REMOVE_ONE, value_discretization_interval=grid
    )
    for event in events:
        gaussian = dp_accounting.GaussianDpEvent(event.noise_multiplier)
        q = sampling_rate(event)
        count = event.steps if isinstance(event, SubsampledGaussian) else 1
        accountant.compose(gaussian if q == 1 else dp_accounting.PoissonSampledDpEvent(q, gaussian), count)
    return float(accountant.get_epsilon(delta))


def opacus_rdp(events: list[PrivateEvent], delta: float) -> float:
    """ε by Opacus' RDP accountant; its own orders end at 63, and a small ε wants larger ones."""
    from opacus.accountants import RDPAccountant

    accountant = RDPAccountant()
    accountant.history = [
        (event.noise_multiplier, sampling_rate(event), event.steps if isinstance(event, SubsampledGaussian) else 1)
        for event in events
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(accountant.get_epsilon(delta, alphas=[*RDPAccountant.DEFAULT_ALPHAS, *range(64, 513, 16)]))
