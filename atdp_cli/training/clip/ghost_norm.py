"""Per-record gradients of a parameter, their norms and their sum, from a layer's inputs and output gradients, on a CPU.

Index r runs over records, t over a record's positions (those of all its windows, one after the other).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import torch

from atdp_cli.training.clip.engine import MAX_TERMS


@dataclass(frozen=True, slots=True, eq=False)
class LinearUse:
    """The parameter is a matrix [m, n], and record r's gradient of it is Σ_t left[r, t] ⊗ right[r, t].

    Attributes:
        left: Shape [R, T, m].
        right: Shape [R, T, n].
    """

    left: torch.Tensor
    right: torch.Tensor


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingUse:
    """The parameter is a table [m, n], and record r's gradient adds vectors[r, t] to its row rows[r, t].

    Attributes:
        rows: int64, shape [R, T]; -1 where nothing is added.
        vectors: Shape [R, T, n].
        transposed: The parameter is stored as [n, m]: its columns are looked up.
    """

    rows: torch.Tensor
    vectors: torch.Tensor
    transposed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class InstantiatedUse:
    """Each record's gradient itself: shape [R, *parameter]."""

    gradient: torch.Tensor


Use = LinearUse | EmbeddingUse | InstantiatedUse
"""What one call of a layer adds to each record's gradient of a parameter."""

UseType = TypeVar("UseType", LinearUse, EmbeddingUse, InstantiatedUse)


def must_instantiate(uses: Sequence[Use]) -> bool:
    """Whether each record's gradient has to be formed, or costs less than its norm by Gram products.

    A Gram product costs T²·(m + n) fp64 operations a record; forming a gradient adds a few passes over m·n
    numbers, its product being needed for the sum anyway. One pass over a number costs about four such
    operations (measured at m = 50,257 and 1,024, n = 256, T = 128).
    """
    form = _norm_form(uses)
    if form != "instantiated" and max(_positions(use) for use in uses) > MAX_TERMS:
        return True
    if form != "gram":
        return form is None
    [linear] = _only(LinearUse, uses)
    positions, m = linear.left.shape[1:]
    n = linear.right.shape[2]
    return positions * positions * (m + n) >= 4 * m * n


def _positions(use: Use) -> int:
    match use:
        case LinearUse(left, _):
            return left.shape[1]
        case EmbeddingUse(rows, _, _):
            return rows.shape[1]
        case InstantiatedUse(_):
            return 1


def squared_norms(uses: Sequence[Use]) -> torch.Tensor:
    """Each record's squared gradient norm of one parameter, fp64, shape [R], without forming the gradients.

    Source: Bu et al. 2022 ("Differentially Private Optimization on Large Model at Small Cost"), ghost norms.
    The products are taken in fp64: in fp32 they cancel, up to a norm of 0 for a large gradient.

    Raises:
        ValueError: For these uses each record's gradient has to be formed.
    """
    embeddings = _only(EmbeddingUse, uses)
    match _norm_form(uses):
        case "instantiated":
            gradients = [use.gradient.double() for use in _only(InstantiatedUse, uses)]
            return torch.stack(gradients).sum(0).flatten(1).square().sum(1)
        case "rows":
            return _row_norms(embeddings)
        case None:
            raise ValueError("these uses of a parameter need each record's gradient")
    [linear] = _only(LinearUse, uses)
    squares = _grams(linear.left, linear.right)
    for embedding in embeddings:
        squares += _row_norms([embedding])
        for record in range(len(squares)):
            squares[record] += 2 * _tied(linear, embedding, record)
    return squares.clamp(min=0)


def _norm_form(uses: Sequence[Use]) -> Literal["instantiated", "rows", "gram"] | None:
    """How norms follow without forming gradients; None where they don't.

    `gram` is for one linear use and at most one embedding of the same matrix's rows: a head and its tied embedding.
    """
    linear, embeddings = len(_only(LinearUse, uses)), _only(EmbeddingUse, uses)
    if not linear and not embeddings:
        return "instantiated"
    if len(embeddings) == len(uses) and len({use.transposed for use in embeddings}) == 1:
        return "rows"
    plain = len(embeddings) < 2 and not any(use.transposed for use in embeddings)
    return "gram" if linear == 1 and plain and linear + len(embeddings) == len(uses) else None


def _only(use_type: type[UseType], uses: Sequence[Use]) -> list[UseType]:
    return [use for use in uses if isinstance(use, use_type)]


def _grams(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The Gram product of each record, shape [R], one at a time: a CPU's cache holds one."""
    return torch.stack([_gram(*record) for record in zip(left, right, strict=True)])


def _gram(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    left, right = left.double(), right.double()
    return ((left @ left.mT) * (right @ right.mT)).sum((-2, -1))


def _tied(linear: LinearUse, embedding: EmbeddingUse, record: int) -> torch.Tensor:
    """⟨linear gradient, embedding gradient⟩ = Σ_{s,t} left[t, rows_s]·⟨right_t, vectors_s⟩."""
    rows = embedding.rows[record]
    used = rows >= 0
    left = linear.left[record][:, rows[used]].double()
    return (left * (linear.right[record].double() @ embedding.vectors[record][used].double().T)).sum()


def _row_norms(embeddings: Sequence[EmbeddingUse]) -> torch.Tensor:
    """Vectors that meet in a row are added first, so that repeated tokens count as one."""
    records = len(embeddings[0].rows)
    rows = torch.cat([use.rows for use in embeddings], dim=1)
    vectors = torch.cat([use.vectors for use in embeddings], dim=1)
    numbers = torch.arange(records, device=rows.device)[:, None].expand_as(rows)
    used = rows >= 0
    keys = numbers[used] * (int(rows.max()) + 1 if rows.numel() else 1) + rows[used]
    distinct, inverse = torch.unique(keys, return_inverse=True)
    sums = torch.zeros(len(distinct), vectors.shape[2], dtype=torch.float64, device=rows.device)
    sums.index_add_(0, inverse, vectors[used].double())
    owner = torch.zeros(len(distinct), dtype=torch.long, device=rows.device)
    owner[inverse] = numbers[used]
    squares = torch.zeros(records, dtype=torch.float64, device=rows.device)
    return squares.index_add_(0, owner, sums.square().sum(1))


def magnitudes(uses: Sequence[Use]) -> torch.Tensor:
    """The sum of the norms of the terms that make up each record's gradient, fp64, shape [R]."""
    return torch.stack([_magnitude(use) for use in uses]).sum(0)


def _magnitude(use: Use) -> torch.Tensor:
    match use:
        case LinearUse(left, right):
            return (_lengths(left) * _lengths(right)).sum(1)
        case EmbeddingUse(_, vectors, _):
            return _lengths(vectors).sum(1)
        case InstantiatedUse(gradient):
            return _lengths(gradient.flatten(1))


def _lengths(values: torch.Tensor) -> torch.Tensor:
    lengths: torch.Tensor = torch.linalg.vector_norm(
        values.to(torch.promote_types(values.dtype, torch.float32)), dim=-1
    )
    return lengths.double()


def instantiate_gradients(uses: Sequence[Use], records: Sequence[int], out: torch.Tensor) -> None:
    """Write the gradients of the parameter of these records into `out`.

    Args:
        out: Shape [len(records), *parameter], contiguous.
    """
    for record, gradient in zip(records, out, strict=True):
        _instantiate(uses, record, gradient)


def _instantiate(uses: Sequence[Use], record: int, out: torch.Tensor) -> None:
    linear = _only(LinearUse, uses)
    if not linear:
        out.zero_()
    for use in linear:
        left, right = use.left[record].mT.to(out.dtype), use.right[record].to(out.dtype)
        out.addmm_(left, right, beta=0 if use is linear[0] else 1)
    for other in uses:
        if isinstance(other, EmbeddingUse):
            _add_rows(out, other.rows[record], other.vectors[record], transposed=other.transposed)
        elif isinstance(other, InstantiatedUse):
            out.add_(other.gradient[record])


def formed_norms(gradients: torch.Tensor) -> torch.Tensor:
    """The squared L2 norm of each gradient.

    Args:
        gradients: Shape [records, *parameter], contiguous.

    Returns:
        fp64, shape [records].
    """
    flat = gradients.view(len(gradients), gradients[0].numel())
    return torch.stack([_squared_norm(gradient) for gradient in flat])


def _squared_norm(gradient: torch.Tensor) -> torch.Tensor:
    """Short fp32 sums of squares, added up in fp64.

    A sum over everything in fp32 would lose digits with the size of the tensor; in fp64 it takes a CPU ten times as
    long. What overflows fp32 is computed again in fp64.
    """
    if gradient.dtype == torch.float64:
        return gradient.square().sum()
    body = len(gradient) - len(gradient) % SUMMED_IN_FP32
    parts = torch.linalg.vector_norm(gradient[:body].view(-1, SUMMED_IN_FP32), dim=1).double()
    square = parts.dot(parts) + gradient[body:].double().square().sum()
    return square if float(square) < torch.inf else gradient.double().square().sum()


SUMMED_IN_FP32 = 256


def add_weighted(uses: Sequence[Use], factors: torch.Tensor, total: torch.Tensor) -> None:
    """total += Σ_r factors[r]·(record r's gradient); a record with factor 0 adds nothing, finite or not.

    Args:
        factors: Shape [R], fp64.
        total: Shaped like the parameter, fp64.
    """
    kept = factors.nonzero()[:, 0]
    weights = factors[kept].to(total.dtype)
    for use in uses:
        match use:
            case LinearUse(left, right):
                scaled = right[kept].to(total.dtype) * weights[:, None, None]
                _add_product(total, left if len(kept) == len(factors) else left[kept], scaled)
            case EmbeddingUse(rows, vectors, transposed):
                scaled = vectors[kept].to(total.dtype) * weights[:, None, None]
                _add_rows(total, rows[kept].flatten(), scaled.flatten(0, 1), transposed=transposed)
            case InstantiatedUse(gradient):
                total.add_(torch.tensordot(weights, gradient[kept].to(total.dtype), dims=1))


def _add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """total += Σ_{r,t} left[r, t] ⊗ right[r, t], some rows at a time: `left` may be as large as the logits."""
    left, right = left.flatten(0, 1), right.flatten(0, 1)
    count = max(1, CONVERTED_AT_ONCE // max(1, len(left)))
    for part, columns in zip(torch.split(total, count), torch.split(left, count, dim=1), strict=True):
        part.addmm_(columns.to(total.dtype).T, right)


CONVERTED_AT_ONCE = 1 << 20
"""Numbers that are converted to fp64 at a time."""


def _add_rows(table: torch.Tensor, rows: torch.Tensor, vectors: torch.Tensor, *, transposed: bool) -> None:
    used = rows >= 0
    target = table.T if transposed else table
    target.index_add_(0, rows[used], vectors[used].to(table.dtype))
