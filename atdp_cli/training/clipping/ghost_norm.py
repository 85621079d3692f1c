"""How a parameter's gradient is made of what went into its layers and what came back.

Index r runs over records, t over a record's positions (those of all its windows, one after the other).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch


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
        transposed: The parameter is stored as [n, m], its columns are looked up.
    """

    rows: torch.Tensor
    vectors: torch.Tensor
    transposed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class InstantiatedUse:
    """Each record's gradient as it is: shape [R, *parameter]."""

    gradient: torch.Tensor


Use = LinearUse | EmbeddingUse | InstantiatedUse


def must_form(uses: Sequence[Use]) -> bool:
    """Whether each record's gradient has to be formed, or costs less than its norm by Gram products.

    A Gram product costs T²·(m + n) fp64 operations a record; forming a gradient adds a few passes over m·n
    numbers, its product being needed for the sum anyway. One pass over a number costs about four such
    operations (measured at m = 50,257 and 1,024, n = 256, T = 128).
    """
    if all(isinstance(use, InstantiatedUse) for use in uses) or _tables(uses):
        return False
    if not _gram_formed(uses):
        return True
    product = next(use for use in uses if isinstance(use, LinearUse))
    positions, m = product.left.shape[1:]
    n = product.right.shape[2]
    return positions * positions * (m + n) >= 4 * m * n


def squared_norms(uses: Sequence[Use]) -> torch.Tensor:
    """Each record's squared gradient norm of one parameter, fp64, shape [R], without forming the gradients.

    Source: Bu et al. 2022 ("Differentially Private Optimization on Large Model at Small Cost"), ghost norms.
    The products are taken in fp64: in fp32 they cancel, up to a norm of 0 for a large gradient.

    Raises:
        ValueError: `must_form` says that these uses have no such form.
    """
    wholes = [use.gradient.double() for use in uses if isinstance(use, InstantiatedUse)]
    if len(wholes) == len(uses):
        return torch.stack(wholes).sum(0).flatten(1).square().sum(1)
    if _tables(uses):
        return _table_norms([use for use in uses if isinstance(use, EmbeddingUse)])
    if not _gram_formed(uses):
        raise ValueError("these uses of a parameter need each record's gradient")
    product = next(use for use in uses if isinstance(use, LinearUse))
    lookup = next((use for use in uses if isinstance(use, EmbeddingUse)), None)
    found = torch.stack([_gram(left, right) for left, right in zip(product.left, product.right, strict=True)])
    if lookup is None:
        return found.clamp(min=0)
    found += _table_norms([lookup])
    for record in range(len(found)):
        found[record] += 2 * _tied(product, lookup, record)
    return found.clamp(min=0)


def _tables(uses: Sequence[Use]) -> bool:
    lookups = [use for use in uses if isinstance(use, EmbeddingUse)]
    return len(lookups) == len(uses) and len({lookup.transposed for lookup in lookups}) == 1


def _gram_formed(uses: Sequence[Use]) -> bool:
    """One product, and at most one look-up of the same matrix's rows: a head and its tied embedding."""
    products = sum(isinstance(use, LinearUse) for use in uses)
    lookups = [use for use in uses if isinstance(use, EmbeddingUse)]
    plain = not any(lookup.transposed for lookup in lookups)
    return products == 1 and len(lookups) < 2 and products + len(lookups) == len(uses) and plain


def _gram(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    left, right = left.double(), right.double()
    return ((left @ left.T) * (right @ right.T)).sum()


def _tied(product: LinearUse, lookup: EmbeddingUse, record: int) -> torch.Tensor:
    """⟨product's gradient, look-up's gradient⟩ = Σ_{s,t} left[t, rows_s]·⟨right_t, vectors_s⟩."""
    rows = lookup.rows[record]
    used = rows >= 0
    left = product.left[record][:, rows[used]].double()
    return (left * (product.right[record].double() @ lookup.vectors[record][used].double().T)).sum()


def _table_norms(lookups: Sequence[EmbeddingUse]) -> torch.Tensor:
    """Vectors that meet in a row are added first, so that repeated tokens count as one."""
    records = len(lookups[0].rows)
    rows = torch.cat([lookup.rows for lookup in lookups], dim=1)
    vectors = torch.cat([lookup.vectors for lookup in lookups], dim=1)
    numbers = torch.arange(records, device=rows.device)[:, None].expand_as(rows)
    used = rows >= 0
    keys = numbers[used] * (int(rows.max()) + 1 if rows.numel() else 1) + rows[used]
    found, inverse = torch.unique(keys, return_inverse=True)
    sums = torch.zeros(len(found), vectors.shape[2], dtype=torch.float64, device=rows.device)
    sums.index_add_(0, inverse, vectors[used].double())
    owner = torch.zeros(len(found), dtype=torch.long, device=rows.device)
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
    found: torch.Tensor = torch.linalg.vector_norm(values.to(torch.promote_types(values.dtype, torch.float32)), dim=-1)
    return found.double()


def per_record_gradients(uses: Sequence[Use], record: int, out: torch.Tensor) -> None:
    """Write one record's gradient of the parameter into `out`."""
    products = [use for use in uses if isinstance(use, LinearUse)]
    if products:
        torch.mm(products[0].left[record].T.to(out.dtype), products[0].right[record].to(out.dtype), out=out)
    else:
        out.zero_()
    for product in products[1:]:
        out.addmm_(product.left[record].T.to(out.dtype), product.right[record].to(out.dtype))
    for use in uses:
        if isinstance(use, EmbeddingUse):
            _add_rows(out, use.rows[record], use.vectors[record], transposed=use.transposed)
        elif isinstance(use, InstantiatedUse):
            out.add_(use.gradient[record])


def squared_norm(gradient: torch.Tensor) -> float:
    """The squared L2 norm of a contiguous tensor: short fp32 sums of squares, added up in fp64.

    A sum over everything in fp32 would lose digits with the size of the tensor; in fp64 it takes ten times as
    long. What overflows fp32 is done again in fp64.
    """
    flat = gradient.reshape(-1)
    if gradient.dtype == torch.float64:
        return float(flat.dot(flat))
    body = len(flat) - len(flat) % CHUNK
    parts = torch.linalg.vector_norm(flat[:body].view(-1, CHUNK), dim=1).double()
    found = float(parts.dot(parts)) + float(flat[body:].double().square().sum())
    return found if found < float("inf") else float(flat.double().square().sum())


CHUNK = 256


def add_weighted(uses: Sequence[Use], factors: torch.Tensor, total: torch.Tensor) -> None:
    """total += Σ_r factors[r]·(record r's gradient); a record with factor 0 adds nothing, finite or not.

    Args:
        factors: Shape [R], fp64.
        total: Shaped like the parameter.
    """
    kept = factors.nonzero()[:, 0]
    weights = factors[kept].to(total.dtype)
    for use in uses:
        match use:
            case LinearUse(left, right):
                scaled = right[kept].to(total.dtype) * weights[:, None, None]
                total.addmm_(left[kept].flatten(0, 1).T.to(total.dtype), scaled.flatten(0, 1))
            case EmbeddingUse(rows, vectors, transposed):
                scaled = vectors[kept].to(total.dtype) * weights[:, None, None]
                _add_rows(total, rows[kept].flatten(), scaled.flatten(0, 1), transposed=transposed)
            case InstantiatedUse(gradient):
                total.add_(torch.tensordot(weights, gradient[kept].to(total.dtype), dims=1))


def _add_rows(table: torch.Tensor, rows: torch.Tensor, vectors: torch.Tensor, *, transposed: bool) -> None:
    used = rows >= 0
    target = table.T if transposed else table
    target.index_add_(0, rows[used], vectors[used].to(table.dtype))
