"""Whether two checkpoints have the same weights, however they are stored. Loads torch for an adapter alone."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from atdp_cli.model.folder import is_adapter, weight_files

Numbers = npt.NDArray[Any]

NEAR = 2.0**-7
"""The relative L2 distance of matrices that rounding explains. Rounding a number to bfloat16 moves it by 2⁻⁸ of itself
at most, which happens twice where an adapter is merged. docs/recipes.md has the distances of fine-tuned models."""

CHANGED = 0.01
"""The share of a model's numbers in other matrices that makes it another model: one matrix alone does not."""

SAMPLE = 4096
"""How many numbers of two matrices are compared before all are."""

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def same_weights(first: Path, second: Path) -> bool:
    """Whether two checked folders hold the same matrices but for rounding, whatever their names, files and dtypes.

    Matrices are compared that have one shape in both. Vectors are left out: a bias near 0 is far from its rounding.
    """
    ours = defaultdict[tuple[int, ...], dict[str, Numbers]](dict)
    for name, matrix in _matrices(first).items():
        ours[matrix.shape][name] = matrix
    theirs = {name: matrix for name, matrix in _matrices(second).items() if matrix.shape in ours}
    total, changed = sum(matrix.size for matrix in theirs.values()), 0
    for name, matrix in theirs.items():
        named = ours[matrix.shape]
        # The one of the same name first, as a rule the only one that is looked at.
        candidates = [named[name], *named.values()] if name in named else [*named.values()]
        if not any(_near(matrix, other) for other in candidates):
            changed += matrix.size
            if changed >= CHANGED * total:
                return False
    return total > 0


def _near(first: Numbers, second: Numbers) -> bool:
    step = max(1, first.size // SAMPLE)
    one, other = first.reshape(-1), second.reshape(-1)
    # Of a sample the distance is about that of the whole.
    return _distance(one[::step], other[::step]) <= 2 * NEAR and _distance(one, other) <= NEAR


def _distance(first: Numbers, second: Numbers) -> float:
    """Of two rows of numbers, relative to the longer one."""
    one, other = _plain(first), _plain(second)
    longer = max(float(np.linalg.norm(one)), float(np.linalg.norm(other)))
    return float(np.linalg.norm(one - other)) / longer if longer else 0.0


def _plain(numbers: Numbers) -> Numbers:
    """In fp32; 16 bits without a sign are bfloat16, whose numbers are the first half of an fp32's."""
    if numbers.dtype == np.uint16:
        return (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers.astype(np.float32)


def _matrices(folder: Path) -> dict[str, Numbers]:
    """The matrices of a checkpoint by name, read where they are used; of an adapter those of the merged model."""
    if is_adapter(folder):
        return _merged(folder)
    return {name: matrix for file in weight_files(folder) for name, matrix in _stored(file).items()}


def _merged(folder: Path) -> dict[str, Numbers]:
    from atdp_cli.model.adapter import merged
    from atdp_cli.model.checkpoint import load_checkpoint

    state = merged(load_checkpoint(folder).model).state_dict()
    return {name: tensor.numpy() for name, tensor in state.items() if tensor.ndim > 1}


def _stored(file: Path) -> dict[str, Numbers]:
    """Those of a safetensors file: numpy knows no bfloat16, so safetensors' own reader for it does not read them."""
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(size))
    bytes_ = np.memmap(file, mode="r", offset=8 + size)
    return {
        name: bytes_[slice(*tensor["data_offsets"])].view(_TYPES[tensor["dtype"]]).reshape(tensor["shape"])
        for name, tensor in header.items()
        if name != "__metadata__"
        and tensor["dtype"] in _TYPES
        and len(tensor["shape"]) > 1
        and 0 not in tensor["shape"]
    }
