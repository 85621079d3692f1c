"""A release over a domain that is too large to list is that of noise on each of its items."""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, ks_2samp, norm

from atdp_cli.privacy import noisy_statistic as sparse_release
from atdp_cli.privacy.noisy_statistic import MADE_UP, released_items, threshold
from atdp_cli.privacy.rng import KeyStream, insecure_stream

SIGMA = 2.5
SHARES = {name: 2.0 ** -(place + 2) for place, name in enumerate("abcdefgh")}
VOTES = {"b": 5.0, "g": 9.0}


def drawing(stream: KeyStream) -> Callable[[], str | None]:
    """Each item with the probability that is its share."""

    def draw() -> str | None:
        drawn = float(stream.uniforms(1)[0])
        return next((item for item, share in SHARES.items() if share < drawn <= 2 * share), None)

    return draw


def rounded(count: float) -> float:
    return math.floor(count * 16 / SIGMA) * SIGMA / 16


@given(st.floats(1e-30, 1), st.floats(0.1, 100))
def test_noise_alone_reaches_a_threshold_as_often_as_it_should(share: float, sigma: float) -> None:
    passes = norm.sf(threshold(share, sigma) / sigma)
    assert passes == pytest.approx(-math.expm1(-MADE_UP * share), rel=1e-12)


def test_a_release_has_as_many_items_without_votes_as_it_says() -> None:
    stream = insecure_stream(0, "sparse")
    made_up = sum(len(released_items({}, SIGMA, SHARES.__getitem__, drawing(stream), stream)) for _ in range(30_000))
    expected = 30_000 * MADE_UP * sum(SHARES.values())
    assert abs(made_up - expected) < 5 * math.sqrt(expected)


@pytest.mark.ci
def test_it_is_that_of_noise_on_every_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a λ so large that many items pass: which do, together and each, and with which counts."""
    monkeypatch.setattr(sparse_release, "MADE_UP", 6.0)
    rounds = 6000
    stream, dice = insecure_stream(1, "sparse"), np.random.default_rng(2)
    ours, theirs = [], []
    for _ in range(rounds):
        noise = dict(zip(SHARES, dice.normal(0, SIGMA, len(SHARES)).tolist(), strict=True))
        noisy = {item: VOTES.get(item, 0.0) + added for item, added in noise.items()}
        theirs.append(
            {item: rounded(count) for item, count in noisy.items() if count >= threshold(SHARES[item], SIGMA)}
        )
        voted = {item: VOTES[item] + float(added) for item, added in zip(VOTES, dice.normal(0, SIGMA, 2), strict=True)}
        ours.append(released_items(voted, SIGMA, SHARES.__getitem__, drawing(stream), stream))
    for item, share in SHARES.items():
        values = [[released[item] for released in each if item in released] for each in (ours, theirs)]
        expected = norm.sf((threshold(share, SIGMA) - VOTES.get(item, 0.0)) / SIGMA)
        for counted in values:
            assert abs(len(counted) - rounds * expected) < 5 * math.sqrt(rounds * expected * (1 - expected)) + 1
        if min(map(len, values)) > 50:
            assert ks_2samp(*values).pvalue > 1e-4
    sizes, others = (Counter(len(released) for released in each) for each in (ours, theirs))
    common = [size for size in others if min(sizes[size], others[size]) > 20]
    assert chi2_contingency([[counted[size] for size in common] for counted in (sizes, others)]).pvalue > 1e-4


def test_items_with_votes_have_their_own_noise_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_release, "MADE_UP", 50.0)
    stream = insecure_stream(3, "sparse")
    for _ in range(50):
        noisy = {"a": -1e9, "b": 1e9}
        released = released_items(noisy, SIGMA, SHARES.__getitem__, drawing(stream), stream)
        assert "a" not in released
        assert released["b"] == rounded(1e9)
