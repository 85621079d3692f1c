"""What uses of a parameter say of norms and sums, against each record's gradient formed densely in fp64."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.training.clip.ghost_norm import (
    SUMMED_IN_FP32,
    EmbeddingUse,
    InstantiatedUse,
    LinearUse,
    Use,
    add_weighted,
    formed_norms,
    instantiate_gradients,
    must_instantiate,
    squared_norms,
)

RECORDS = 3
KINDS = ("product", "product", "lookup", "lookup", "transposed", "whole")


def use(kind: str, m: int, n: int, positions: int, draw: torch.Generator) -> Use:
    """A use of a matrix [m, n] with values of both signs; look-ups repeat rows and leave some out."""
    if kind == "product":
        return LinearUse(values(RECORDS, positions, m, draw=draw), values(RECORDS, positions, n, draw=draw))
    if kind == "whole":
        return InstantiatedUse(values(RECORDS, m, n, draw=draw))
    rows, width = (n, m) if kind == "transposed" else (m, n)
    ids = torch.randint(-1, max(1, rows // 2), (RECORDS, positions), generator=draw)
    return EmbeddingUse(ids, values(RECORDS, positions, width, draw=draw), transposed=kind == "transposed")


def values(*shape: int, draw: torch.Generator) -> torch.Tensor:
    return torch.randn(*shape, generator=draw)


def dense(uses: list[Use], m: int, n: int) -> torch.Tensor:
    """Each record's gradient, shape [R, m, n], added up entry by entry."""
    total = torch.zeros(RECORDS, m, n, dtype=torch.float64)
    for use in uses:
        for record in range(RECORDS):
            match use:
                case InstantiatedUse(gradient):
                    total[record] += gradient[record].double()
                case LinearUse(left, right):
                    for a, b in zip(left[record].double(), right[record].double(), strict=True):
                        total[record] += torch.outer(a, b)
                case EmbeddingUse(rows, vectors, transposed):
                    table = total[record].T if transposed else total[record]
                    for row, vector in zip(rows[record].tolist(), vectors[record].double(), strict=True):
                        if row >= 0:
                            table[row] += vector
    return total


mixtures = st.lists(st.sampled_from(KINDS), min_size=1, max_size=4)
sizes = st.integers(1, 9)


@given(mixtures, sizes, sizes, st.integers(1, 12), st.integers(0, 99))
def test_any_mixture_of_uses(kinds: list[str], m: int, n: int, positions: int, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    uses = [use(kind, m, n, positions, draw) for kind in kinds]
    expected = dense(uses, m, n)
    squares = expected.square().sum((1, 2))
    scale = float(squares.max()) + 1
    if not must_instantiate(uses):
        assert squared_norms(uses).tolist() == pytest.approx(squares.tolist(), abs=1e-10 * scale)
    for records in ([0], [1, 2], [0, 2], [0, 1, 2]):
        out = torch.full((len(records), m, n), math.nan)
        instantiate_gradients(uses, records, out)
        assert torch.allclose(out.double(), expected[records], atol=1e-5 * math.sqrt(scale))
        assert formed_norms(out).tolist() == pytest.approx(squares[records].tolist(), rel=1e-5, abs=1e-6 * scale)
    total = torch.ones(m, n)
    factors = torch.tensor([0.5, 0.0, 2.0], dtype=torch.float64)
    add_weighted(uses, factors, total)
    summed = 1 + torch.tensordot(factors, expected, dims=1)
    assert torch.allclose(total.double(), summed, atol=1e-5 * math.sqrt(scale))


@pytest.mark.parametrize("kinds", [("product",), ("product", "lookup")])
@pytest.mark.parametrize(("m", "n", "positions", "formed"), [(40, 30, 3, False), (8, 8, 30, True)])
def test_a_product_is_formed_where_that_costs_less(
    kinds: tuple[str, ...], m: int, n: int, positions: int, formed: bool
) -> None:
    draw = torch.Generator().manual_seed(0)
    uses = [use(kind, m, n, positions, draw) for kind in kinds]
    assert must_instantiate(uses) is formed
    expected = dense(uses, m, n).square().sum((1, 2))
    assert squared_norms(uses).tolist() == pytest.approx(expected.tolist(), rel=1e-10)


def test_two_products_of_one_parameter_have_to_be_formed() -> None:
    draw = torch.Generator().manual_seed(0)
    uses = [use("product", 40, 40, 2, draw), use("product", 40, 40, 2, draw)]
    assert must_instantiate(uses)
    with pytest.raises(ValueError, match="each record's gradient"):
        squared_norms(uses)


def test_a_record_with_factor_0_adds_nothing_although_it_is_not_finite() -> None:
    draw = torch.Generator().manual_seed(0)
    for kind in KINDS:
        layer_use = use(kind, 6, 5, 4, draw)
        for name in ("left", "vectors", "gradient"):
            if hasattr(layer_use, name):
                getattr(layer_use, name)[1] = math.nan
        total = torch.zeros(6, 5)
        add_weighted([layer_use], torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64), total)
        assert bool(torch.isfinite(total).all())
        if not must_instantiate([layer_use]):
            norms = squared_norms([layer_use])
            assert torch.isfinite(norms).tolist() == [True, False, True]


def test_products_that_cancel_have_a_norm_of_their_own() -> None:
    """Gram products in fp32 lose it among the terms, which are 3,000 times as large."""
    draw = torch.Generator().manual_seed(0)
    left = 1000 + torch.randn(1, 16, 400, generator=draw)
    right = torch.randn(1, 16, 400, generator=draw)
    right[:, 8:] = 1e-3 * right[:, 8:] - right[:, :8]
    product = LinearUse(left, right)
    expected = (left[0].double().T @ right[0].double()).square().sum()
    assert not must_instantiate([product])
    assert float(squared_norms([product])) == pytest.approx(float(expected), rel=1e-8)
    naive = float(((left[0] @ left[0].T) * (right[0] @ right[0].T)).sum())
    assert abs(naive - float(expected)) > 1e-3 * float(expected)


@pytest.mark.parametrize("kind", ["product", "lookup"])
def test_what_cancels_exactly_is_never_less_than_nothing(kind: str) -> None:
    draw = torch.Generator().manual_seed(0)
    for _ in range(200):
        left, right = values(1, 1, 50, draw=draw), values(1, 1, 50, draw=draw)
        parts = torch.tensor([0.1, 0.2, -0.3])[None, :, None]
        left, right = left.expand(1, 3, 50), right * parts
        assert float(squared_norms([LinearUse(left, right)])) >= 0


@given(st.integers(1, 3 * SUMMED_IN_FP32 + 1), st.sampled_from([1e-3, 1.0, 1e30]))
def test_squares_are_added_up_without_losing_digits(length: int, scale: float) -> None:
    gradients = scale * torch.randn(2, length, generator=torch.Generator().manual_seed(length))
    assert formed_norms(gradients).tolist() == pytest.approx(gradients.double().square().sum(1).tolist(), rel=1e-6)
