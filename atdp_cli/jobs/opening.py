"""The model that a run trains: loaded, moved, adapted, with the engine that fits it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from atdp_cli.errors import UsageError
from atdp_cli.events import Notify
from atdp_cli.jobs.request import HardenRequest
from atdp_cli.model.adapter import add_adapter
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from atdp_cli.model.device import find_device
from atdp_cli.training.clipping.selection import Chosen, choose


@dataclass(frozen=True, kw_only=True, eq=False)
class Opened:
    """A checkpoint ready to train, and the clipping engine that agreed with `loop` on it."""

    checkpoint: Checkpoint
    engine: Chosen


def open_model(request: HardenRequest, notify: Notify) -> Opened:
    """Load the model of a request.

    Raises:
        InputError: The checkpoint cannot be used, or the engine asked for does not fit it.
        UsageError: There is no such device, or --source-field does not go with the model.
    """
    checkpoint = load_checkpoint(request.model)
    _check_source(request, checkpoint)
    # The adapter comes after the move: one that was made before it can train and change nothing.
    model = checkpoint.model.to(find_device(request.device))
    if request.lora_rank is not None:
        with _seeded(request.insecure_seed):
            model = add_adapter(model, request.lora_rank)
    engine = choose(model, request.engine, notify, tokens=request.microbatch)
    return Opened(checkpoint=replace(checkpoint, model=model), engine=engine)


def _check_source(request: HardenRequest, checkpoint: Checkpoint) -> None:
    reads = checkpoint.model.config.is_encoder_decoder
    if reads and request.source_field is None:
        raise UsageError(
            f"{request.model} is an encoder-decoder model: it reads one text and says another.",
            "Name both fields: --source-field source --text-field target.",
        )
    if request.source_field is not None and not reads:
        raise UsageError(f"{request.model} has no encoder to read --source-field.", "Leave it out.")


@contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    """An adapter starts from random numbers, which tests want to be the same every time."""
    with torch.random.fork_rng():
        if seed is not None:
            torch.manual_seed(seed)
        yield
