"""Room on the disk, looked at before a run begins and not when it is full."""

import shutil
from pathlib import Path

import torch
from transformers import PreTrainedModel

from atdp_cli.errors import RunError
from atdp_cli.jobs.opening import Opened
from atdp_cli.jobs.request import HardenRequest
from atdp_cli.jobs.states import STATE
from atdp_cli.model.folder import is_adapter
from atdp_cli.training.recipe import SGD, Recipe, Train

SLACK = 32 * 2**20
"""For reports, tokenizer, spans and the journal."""

STATES = 2
"""At a time: the last one, and the one before it or the one that is being written."""


def check_room(request: HardenRequest, opened: Opened, root: Path) -> None:
    """Refuse a run whose files the disk has no room for.

    Args:
        root: OUT.partial/, whose states it will replace.

    Raises:
        RunError: Says how much is missing.
    """
    model = opened.checkpoint.model
    written = _written(model, request, opened.checkpoint.stored_dtype)
    states = STATES * state_bytes(model, request.recipe) if request.checkpoint_every else 0
    there = sum(path.stat().st_size for path in root.glob(f"{STATE}*/*"))
    free = shutil.disk_usage(root).free + there
    if written + states + SLACK <= free:
        return
    without = f", or --checkpoint-every 0, which takes {_amount(written + SLACK)}" if states else ""
    raise RunError(
        f"The disk of {root.parent} has room for {_amount(free)}; the run needs up to "
        f"{_amount(written + states + SLACK)}.",
        f"Free some, or choose another -o{without}.",
    )


def state_bytes(model: PreTrainedModel, recipe: Recipe) -> int:
    """How large a saved state can become: parameters, and what the optimizer has gathered of them."""
    trained = sum(int(one.numel()) for one in model.parameters() if one.requires_grad)
    stages = [stage for stage in recipe if isinstance(stage, Train)]
    return 4 * trained * (1 + max((_gathered(stage) for stage in stages), default=0))


def _gathered(stage: Train) -> int:
    """Numbers that are kept of each parameter besides its own."""
    moments = 0 if isinstance(stage.optimizer, SGD) else 2
    return moments + (stage.optimizer.towards == "start" and stage.optimizer.weight_decay > 0)


def _written(model: PreTrainedModel, request: HardenRequest, stored_dtype: str) -> int:
    adapted = request.lora_rank is not None or is_adapter(request.model)
    whole = request.merge_adapter or not adapted
    numbers = sum(int(one.numel()) for one in model.parameters() if whole or one.requires_grad)
    dtype: torch.dtype = getattr(torch, request.dtype or stored_dtype)
    return numbers * int(dtype.itemsize)


def _amount(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
