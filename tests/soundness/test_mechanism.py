"""One step, 10⁴ times with a record and 10⁴ times without: sample, clip and noise are private to the last per cent.

The record is a Dirac canary (Nasr et al. 2023): its gradient is longer than C and orthogonal to all others'.
Zero-out adjacency: in the world without it, an empty record has its place.

(q, σ, δ) = (3/4, 1/2, 1/5), where ε = 2.15. It takes a δ of this size: at the best (q, σ) and threshold the bound
to be expected of 10⁴ repetitions is 68 % of ε for δ = 10⁻³, 81 % for 10⁻² and 88 % for 0.05, since the test that
proves ε fires too rarely to be counted; here it is 89 %. With this q, a loop that forgot to sample would be seen too.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from atdp_cli.events import ignore
from atdp_cli.privacy.accountant import epsilon_pld, grid_for
from atdp_cli.privacy.ledger import SubsampledGaussian
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.rng import KeyStream, insecure_stream
from atdp_cli.training.clip.engine import ClippingEngine, trainable
from atdp_cli.training.clip.select import select_engine
from atdp_cli.training.examples import Example
from atdp_cli.training.noise import add_noise, poisson_sample
from atdp_cli.training.objectives import Weighted
from atdp_cli.training.options import ENGINES, ClippingEngineName
from tests.soundness.broken import Everyone, window_by_window
from tests.soundness.rates import best_threshold, epsilon_bound, firing_rates
from tests.soundness.tiny import EMPTY, llama, pairs
from tests.training.test_clipping import norm

Q, SIGMA, DELTA = 0.75, 0.5, 0.2
CLIP = 0.1
REPETITIONS = 10_000
RECORDS, VOCABULARY = 4, 16

THRESHOLD = best_threshold(Q, SIGMA, DELTA, REPETITIONS)


@functools.cache
def epsilon() -> float:
    """The accountant's ε of this one step."""
    event = SubsampledGaussian(
        stage="one", sampling_rate=Q, noise_multiplier=SIGMA, clip_norm=CLIP, steps=1, relation=hypothetical()
    )
    return epsilon_pld([event], DELTA, grid=grid_for([event]))


def model() -> Any:
    """Only its embedding trains, and each record begins with a token of its own: the gradients are orthogonal."""
    actual = llama(VOCABULARY, 4, tied=False)
    actual.requires_grad_(False)
    actual.get_input_embeddings().weight.requires_grad_(True)
    return actual


def worlds() -> tuple[list[Example], list[Example]]:
    """The records with the canary at the end, which has two equal windows, and with an empty one there."""
    records = pairs(RECORDS, VOCABULARY, Weighted(), windows=2)
    return records, [*records[:-1], EMPTY]


def step_outputs(
    examples: Sequence[Example], direction: torch.Tensor, engine: ClippingEngine, *, sample: KeyStream, noise: KeyStream
) -> npt.NDArray[np.float64]:
    """What each repetition of the step gives away along the canary's direction, in units of C."""
    current = model()

    @functools.cache
    def clipped(rows: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
        return engine(current, [examples[row] for row in rows], CLIP).gradient

    actual = np.empty(REPETITIONS)
    for place in range(REPETITIONS):
        total = [part.clone() for part in clipped(tuple(poisson_sample(len(examples), Q, sample).tolist()))]
        add_noise(total, SIGMA * CLIP, noise)
        actual[place] = float(torch.cat([part.flatten() for part in total]).double() @ direction) / CLIP
    return actual


def measure(
    wanted: ClippingEngineName, *, broken: bool = False, sample: KeyStream | None = None
) -> tuple[float, float, float]:
    """How often the test fires with and without the canary, and the bound on ε that this proves."""
    right = select_engine(model(), wanted, ignore).run
    engine = window_by_window(right) if broken else right
    canary = right(model(), [worlds()[0][-1]], CLIP)
    assert float(canary.norms[0]) > CLIP
    direction = torch.cat([part.flatten() for part in canary.gradient]).double() / norm(canary.gradient)
    fired = []
    for number, examples in enumerate(worlds()):
        streams = sample or insecure_stream(number, "sample"), insecure_stream(number, "noise")
        outputs = step_outputs(examples, direction, engine, sample=streams[0], noise=streams[1])
        fired.append(int((outputs > THRESHOLD).sum()))
    bound = epsilon_bound(fired[0], fired[1], REPETITIONS, DELTA)
    return fired[0] / REPETITIONS, fired[1] / REPETITIONS, bound


@pytest.mark.one_in(3)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_bound_is_within_15_per_cent_of_epsilon(engine: ClippingEngineName) -> None:
    fired_with, fired_without, bound = measure(engine)
    expected = firing_rates(Q, SIGMA, np.array([THRESHOLD]))
    assert 0.85 * epsilon() <= bound <= epsilon()
    for actual, rate in zip((fired_with, fired_without), (float(rates[0]) for rates in expected), strict=True):
        assert abs(actual - rate) < 4 * (rate * (1 - rate) / REPETITIONS) ** 0.5


@pytest.mark.ci
def test_clipping_window_by_window_is_found() -> None:
    assert measure("ghost", broken=True)[2] > epsilon()


@pytest.mark.ci
def test_taking_everyone_is_found() -> None:
    assert measure("ghost", sample=Everyone())[2] > epsilon()


def test_the_threshold_test_proves_the_accountants_epsilon() -> None:
    """With the exact rates, the best threshold proves ε to within the accountant's grid."""
    fires, without = firing_rates(Q, SIGMA, np.linspace(0, 3, 3001))
    proved = float(np.log((fires[fires > DELTA] - DELTA) / without[fires > DELTA]).max())
    assert proved == pytest.approx(epsilon(), abs=2e-3)
    assert proved <= epsilon()


def test_the_canary_is_orthogonal_to_the_others() -> None:
    records = worlds()[0]
    engine = select_engine(model(), "per-record", ignore).run
    whole, others, alone = (engine(model(), batch, CLIP) for batch in (records, records[:-1], records[-1:]))
    assert len(trainable(model())) == 1
    assert float((others.gradient[0] * alone.gradient[0]).abs().max()) == 0
    assert torch.equal(whole.gradient[0], others.gradient[0] + alone.gradient[0])
