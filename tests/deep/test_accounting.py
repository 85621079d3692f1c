"""The accountants against the libraries used directly, on many ledgers."""

import pytest

from atdp_cli.privacy.accountant import epsilon_pld, epsilon_rdp, grid_for
from atdp_cli.privacy.participation import epsilon_without_amplification
from tests.privacy.ledgers import direct_pld, heterogeneous, opacus_rdp


@pytest.mark.deep
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.ci] if seed < 1020 else []) for seed in range(1000, 1200)]
)
def test_random_ledgers(seed: int) -> None:
    events = heterogeneous(seed)
    grid = max(2e-4, grid_for(events))
    pld = epsilon_pld(events, 1e-6, grid=grid)
    assert pld == pytest.approx(direct_pld(events, 1e-6, grid), abs=1e-6)
    assert epsilon_rdp(events, 1e-6) == pytest.approx(opacus_rdp(events, 1e-6), rel=0.01)
    assert epsilon_rdp(events, 1e-6) >= pld - grid
    assert epsilon_without_amplification(events, 1e-6) >= pld - grid
