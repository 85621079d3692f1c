"""The clipped sum of a batch on a GPU, by the same uses as on a CPU, without waiting for the GPU.

Each record's gradient of a parameter is formed by one matrix product for its norm. Where all of them do not fit into
`HELD_BYTES` it is dropped, and formed once more, bit for bit, for the sum. No number crosses to the CPU, and nothing is
in fp64 but totals and the last sum of a norm, of which there are few: many GPUs compute in fp64 at a 64th of the speed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from atdp_cli.training.clip.engine import ADDED_IN_FP32, clip_factors
from atdp_cli.training.clip.ghost_norm import SUMMED_IN_FP32, EmbeddingUse, InstantiatedUse, LinearUse, Use

HELD_BYTES = 4 * 2**30
"""Bytes of formed gradients at a time."""

SUM_EFFECT = 2 * ADDED_IN_FP32 * 2.0**-24
"""η of adding in fp32: in sums of 32 terms each rounds by at most 32·2⁻²⁴ of itself, with one record and without it."""

UNDERFLOW = 2.0**-126
"""More than the square of an fp32 number loses where it is too small for fp32."""


def clip_on_device(
    uses: Mapping[torch.Tensor, Sequence[Use]],
    records: int,
    clip_norm: float,
    total: Mapping[torch.Tensor, torch.Tensor],
) -> torch.Tensor:
    """Add the clipped gradients of a batch's records to `total`.

    Args:
        uses: Of each parameter.
        records: R.
        total: fp64, for each parameter.

    Returns:
        The records' norms before clipping, fp64, shape [R], on the device. Not finite where a gradient is not, and then
        it added nothing.
    """
    uses = {parameter: [_rounded(use) for use in used] for parameter, used in uses.items()}
    held = _held(uses, records)
    lengths = [length for parameter in uses for length in _lengths(held, uses[parameter], records, parameter)]
    squares = torch.cat(lengths, dim=1).double().square().sum(1)
    norms = squares.add_(UNDERFLOW * sum(parameter.numel() for parameter in uses)).sqrt()
    factors, wrong = clip_factors(norms, clip_norm), ~norms.isfinite()
    for parameter, used in uses.items():
        finite = [] if parameter in held else [_without(use, wrong) for use in used]
        for rows in _groups(records, parameter):
            if parameter in held:
                formed = held[parameter].masked_fill_(wrong.view(-1, *[1] * parameter.dim()), 0.0)
            else:
                formed = form(finite, rows, parameter)
            total[parameter].view(-1).add_(factors[rows].to(formed.dtype) @ formed.flatten(1))
    return norms


def _held(uses: Mapping[torch.Tensor, Sequence[Use]], records: int) -> dict[torch.Tensor, torch.Tensor]:
    """All formed gradients, if they fit; else none."""
    if records > ADDED_IN_FP32 or 4 * records * sum(parameter.numel() for parameter in uses) > HELD_BYTES:
        return {}
    return {parameter: form(used, slice(0, records), parameter) for parameter, used in uses.items()}


def _lengths(
    held: Mapping[torch.Tensor, torch.Tensor], used: Sequence[Use], records: int, parameter: torch.Tensor
) -> list[torch.Tensor]:
    """The norms of short pieces of each record's gradient of a parameter, each of shape [R, pieces]."""
    if parameter in held:
        return _short_lengths(held[parameter])
    groups = [_short_lengths(form(used, rows, parameter)) for rows in _groups(records, parameter)]
    return [torch.cat(parts) for parts in zip(*groups, strict=True)]


def _short_lengths(formed: torch.Tensor) -> list[torch.Tensor]:
    """Those of `SUMMED_IN_FP32` numbers each, and of what is left: in fp32 a longer sum loses digits."""
    flat = formed.flatten(1)
    body = flat.shape[1] - flat.shape[1] % SUMMED_IN_FP32
    pieces = flat[:, :body].reshape(len(flat), -1, SUMMED_IN_FP32), flat[:, None, body:]
    return [torch.linalg.vector_norm(piece, dim=2) for piece in pieces if piece.numel()]


def _groups(records: int, parameter: torch.Tensor) -> Iterator[slice]:
    """Rows of records whose gradients are formed together."""
    at_once = min(ADDED_IN_FP32, max(1, HELD_BYTES // (4 * parameter.numel())))
    return (slice(first, min(first + at_once, records)) for first in range(0, records, at_once))


def form(uses: Sequence[Use], rows: slice, parameter: torch.Tensor) -> torch.Tensor:
    """The gradients of some records, shape [records, *parameter], in fp32 at least."""
    dtype = torch.promote_types(parameter.dtype, torch.float32)
    gradient: torch.Tensor | None = None
    for use in sorted(uses, key=lambda use: not isinstance(use, LinearUse)):
        if isinstance(use, LinearUse):
            product = _product(use.left[rows].mT, use.right[rows], dtype)
            gradient = product if gradient is None else gradient.add_(product)
            continue
        if gradient is None:
            gradient = torch.zeros((rows.stop - rows.start, *parameter.shape), dtype=dtype, device=parameter.device)
        if isinstance(use, InstantiatedUse):
            gradient.add_(use.gradient[rows])
        else:
            _add_rows(gradient.mT if use.transposed else gradient, use.rows[rows], use.vectors[rows])
    if gradient is None:
        raise ValueError("no use of the parameter")
    return gradient


def _product(left: torch.Tensor, right: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Products of numbers in bf16 are added up in fp32 by the GPU's matrix units."""
    if left.device.type == "cuda" and left.dtype == right.dtype == torch.bfloat16:
        return torch.bmm(left, right, out_dtype=dtype)
    return torch.bmm(left.to(dtype), right.to(dtype))


def _add_rows(table: torch.Tensor, rows: torch.Tensor, vectors: torch.Tensor) -> None:
    """Add each vector to its row of its record's table; atomic additions would come in any order, this sorts first."""
    records = torch.arange(len(rows), device=rows.device)[:, None].expand_as(rows)
    added = vectors.to(table.dtype).masked_fill((rows < 0)[..., None], 0.0)
    table.index_put_((records, rows.clamp(min=0)), added, accumulate=True)


def _rounded(use: Use) -> Use:
    """A product's factors in the precision that the layer computed in: autocast rounds its input inside of it."""
    if isinstance(use, LinearUse) and torch.bfloat16 in (use.left.dtype, use.right.dtype):
        return LinearUse(use.left.to(torch.bfloat16), use.right.to(torch.bfloat16))
    return use


def _without(use: Use, wrong: torch.Tensor) -> Use:
    """The use, 0 for the records whose gradient is not finite."""
    if isinstance(use, LinearUse):
        return LinearUse(_zeroed(use.left, wrong), _zeroed(use.right, wrong))
    if isinstance(use, EmbeddingUse):
        return replace(use, vectors=_zeroed(use.vectors, wrong))
    return InstantiatedUse(_zeroed(use.gradient, wrong))


def _zeroed(values: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
    return values.masked_fill(wrong.view(-1, *[1] * (values.dim() - 1)), 0.0)
