"""The rows of the table, from measured figures made by hand."""

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

from atdp_cli.audit.exposure import bootstrap
from examples.experiments.figures import Tokens
from examples.experiments.table import Measured, row_of, strongest


def guarantee(scope: str, epsilon: float | str | None) -> dict[str, Any]:
    return {"scope": scope, "epsilon": epsilon, "delta": 1e-6, "assumptions": [f"as {scope}"]}


def run(exposures: list[float], **changed: Any) -> Measured:
    """One repetition, with ratios half as large as the exposures."""
    p = [min(1.0, 2 * 2**-bits) for bits in exposures]
    given: dict[str, Any] = {
        "exposures": tuple(exposures),
        "ratios": tuple(bits / 2 for bits in exposures),
        "p_values": tuple(p),
        "p_ratios": tuple(min(1.0, 2 * 2 ** (-bits / 2)) for bits in exposures),
        "perplexity": Tokens(all=10.0, sensitive=20.0, other=5.0),
        "sentence": Tokens(all=10.0, sensitive=None, other=5.0),
        "seconds": 30.0,
        "guarantees": (guarantee("end_to_end", "inf"), guarantee("increment", 4.0)),
        "verdict": "PASS",
    }
    return Measured(**(given | changed))


def test_a_row_is_over_all_canaries_of_all_repetitions() -> None:
    runs = [run([8.0, 12.0], verdict="FAIL", seconds=20.0), run([1.0, 3.0])]
    row = row_of("x", runs, plain=10.0)
    assert row.exposure_mean == 6.0
    assert row.exposure_ratio_mean == 3.0
    assert (row.canaries, row.seeds, row.failed) == (4, 2, 1)
    assert (row.seconds, row.relative_compute) == (25.0, 2.5)
    by_score = [
        stats.combine_pvalues([p for repetition in runs for p in getattr(repetition, kind)]).pvalue
        for kind in ("p_values", "p_ratios")
    ]
    assert row.fisher_p == pytest.approx(2 * min(by_score))
    assert row.exposure_interval[0] < 6 < row.exposure_interval[1]


def test_the_base_model_has_no_ratio_and_one_score() -> None:
    row = row_of("base", [run([1.0, 2.0], ratios=(), p_ratios=())], plain=None)
    assert (row.exposure_ratio_mean, row.exposure_ratio_interval, row.relative_compute) == (None, None, None)
    assert row.fisher_p == pytest.approx(stats.combine_pvalues([1.0, 0.5]).pvalue)


def test_epsilon_is_the_largest_of_the_repetitions() -> None:
    runs = [
        run([1.0, 1.0], guarantees=(guarantee("end_to_end", value), guarantee("increment", value)))
        for value in (3.9, 4.1, 4.0)
    ]
    row = row_of("x", runs, plain=None)
    assert (row.epsilon, row.scope, row.epsilon_end_to_end) == (4.1, "end_to_end", 4.1)
    json.dumps(row.epsilon)


@pytest.mark.parametrize(
    ("found", "scope", "epsilon"),
    [
        ([("end_to_end", 3.0), ("increment", 3.0)], "end_to_end", 3.0),
        ([("end_to_end", None), ("increment", None)], "end_to_end", None),
        ([("end_to_end", "inf"), ("selective", 5.0), ("increment", 3.0)], "selective", 5.0),
        ([("end_to_end", "inf"), ("increment", 3.0)], "increment", 3.0),
        ([("end_to_end", "inf"), ("increment", None)], "increment", None),
    ],
)
def test_the_strongest_scope_with_a_finite_epsilon(
    found: list[tuple[str, Any]], scope: str, epsilon: float | None
) -> None:
    assert strongest([guarantee(*fields) for fields in found])[0] == scope
    assert strongest([guarantee(*fields) for fields in found])[1]["epsilon"] == epsilon


def test_the_bootstrap_covers_the_mean() -> None:
    """Of 30 exponentials: percentile intervals of so few are somewhat short."""
    dice = np.random.default_rng(3)
    inside = 0
    for _ in range(400):
        low, high = bootstrap([dice.exponential(2.0, 30)], resamples=400)
        inside += low <= 2.0 <= high
    assert 0.87 <= inside / 400 <= 0.99


def test_repetitions_that_differ_widen_the_interval() -> None:
    """Canaries of one repetition share a model: ten alike are not ten witnesses."""
    dice = np.random.default_rng(4)
    alike = [dice.normal(0, 0.1, 10) + shift for shift in (-3, 0, 3)]
    low, high = bootstrap(alike)
    apart = bootstrap([dice.permutation(np.concatenate(alike))])
    assert high - low > 2 * (apart[1] - apart[0])


def test_equal_figures_have_no_spread() -> None:
    assert bootstrap([np.full(10, 2.5)] * 3) == (2.5, 2.5)
