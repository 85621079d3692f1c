"""How long a plan will take, from a few timed batches of random tokens."""

import math
import shutil
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel

from atdp_cli.errors import RunError
from atdp_cli.jobs.harden.model import LoadedModel
from atdp_cli.jobs.harden.request import HardenRequest, Planned
from atdp_cli.model.checkpoint import context_length
from atdp_cli.model.folder import is_adapter
from atdp_cli.model.tokens import encode_record
from atdp_cli.model.windows import Window
from atdp_cli.privacy.rng import secure_stream
from atdp_cli.runs.checkpoint import STATE
from atdp_cli.training.clipping.batches import default_tokens
from atdp_cli.training.distributed.ranks import local_items
from atdp_cli.training.loop import gradient_sum
from atdp_cli.training.noise import normals
from atdp_cli.training.objective import Example, count_tokens
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.precision import computing_in
from atdp_cli.training.recipe import SGD, Recipe, Train, reads_records, reads_reference
from atdp_cli.training.trainable import selected, training_only

LOOKED_AT = 64
"""Records of the corpus whose length is looked at, spread over it."""

FILLS = 2
"""Physical batches that are timed, where a step has so many."""

TIMED_NORMALS = 1 << 18
TIMED_PARAMETERS = 1 << 20


def estimate_seconds(planned: Planned, opened: LoadedModel) -> float:
    """About how long the stages take: a part of a step of each is timed, and multiplied.

    Detection, measuring and writing are not in it.
    """
    examples = random_corpus(planned, opened)
    return sum(_stage_seconds(stage, planned, opened, examples) for stage in planned.plan.training)


def random_corpus(planned: Planned, opened: LoadedModel) -> tuple[Example, ...]:
    """Records of random tokens, as long as some of the corpus are, in random order."""
    records = planned.split.records
    some = records[:: max(1, len(records) // LOOKED_AT)][:LOOKED_AT]
    tokenizer, limit = opened.checkpoint.tokenizer, context_length(opened.checkpoint.model)
    draw = np.random.default_rng(0)
    vocabulary = opened.checkpoint.model.get_input_embeddings().weight.shape[0]
    found = []
    for record in some:
        length = max(2, min(len(encode_record(tokenizer, record.text)), limit * planned.request.max_windows))
        found.append(_random_example(length, limit, vocabulary, draw, source=planned.split.sources is not None))
    return tuple(found[place] for place in draw.permutation(len(found)))


def one_step(examples: Sequence[Example], batch: int, tokens: int) -> tuple[Example, ...]:
    """Records of a step, no more than fill `FILLS` physical batches of so many tokens."""
    chosen: list[Example] = []
    left = FILLS * tokens
    for example in islice(cycle(examples), batch):
        left -= count_tokens([example])
        if chosen and left < 0:
            break
        chosen.append(example)
    return tuple(chosen)


def _stage_seconds(stage: StagePlan, planned: Planned, opened: LoadedModel, examples: Sequence[Example]) -> float:
    model, ranks = opened.checkpoint.model, planned.request.ranks
    with training_only(model, stage.stage.layers):
        parameters = sum(parameter.numel() for parameter in selected(model, stage.stage.layers))
        step = parameters * _seconds_a_parameter()
        if stage.noise_multipliers:
            step += parameters * _seconds_a_normal() / ranks.size
        if reads_records(stage.stage):
            sample = one_step(examples, stage.batch, planned.request.microbatch or default_tokens(model))
            # A reference runs forwards only, which is a third of a step.
            read = 4 / 3 if reads_reference(stage.stage) else 1.0
            own = local_items(ranks, sample)
            step += read * _seconds(lambda: _gradient(stage, planned, opened, own)) * stage.batch / len(sample)
    return stage.steps * step


def _gradient(stage: StagePlan, planned: Planned, opened: LoadedModel, sample: Sequence[Example]) -> object:
    model = opened.checkpoint.model
    if stage.noise_multipliers:
        return opened.engine.run(model, sample, 1.0)
    if planned.request.ranks.sharded:
        return opened.engine.run(model, sample, math.inf)
    with computing_in(model, planned.request.precision):
        return gradient_sum(model, sample, tokens=default_tokens(model))


def _seconds_a_normal() -> float:
    stream = secure_stream()
    return _seconds(lambda: normals(stream, TIMED_NORMALS)) / TIMED_NORMALS


def _seconds_a_parameter() -> float:
    """What goes over the parameters in a step: Adam's four passes, and the look for numbers that are not finite."""
    parameter, gradient, first, second = (torch.ones(TIMED_PARAMETERS) for _ in range(4))

    def step() -> None:
        first.lerp_(gradient, 0.1)
        second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        parameter.addcdiv_(first, second.sqrt().add_(1e-8), value=-1e-6)
        bool(torch.isfinite(parameter).all())

    return _seconds(step) / TIMED_PARAMETERS


def _random_example(length: int, limit: int, vocabulary: int, draw: np.random.Generator, *, source: bool) -> Example:
    windows, weights = [], []
    for start in range(0, length, limit):
        size = min(limit, length - start)
        ids, nothing = draw.integers(0, vocabulary, size), np.zeros(size, dtype=np.bool_)
        windows.append(Window(0, ids, nothing, nothing, nothing, ids if source else None))
        values = np.ones(size, dtype=np.float32)
        values[0] = 0
        weights.append(values)
    return Example(tuple(windows), tuple(weights))


def _seconds(work: Callable[[], object]) -> float:
    took = []
    for _ in range(2):
        started = time.monotonic()
        work()
        took.append(time.monotonic() - started)
    return min(took)


PIPELINE = 250 << 20
"""Bytes of the detector's small pipeline, loaded once in every run."""

A_TOKEN = 15
"""Bytes of a token of the corpus for each text that a stage reads: its id, its marks and its weight."""

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def estimate_bytes(planned: Planned, opened: LoadedModel) -> int | None:
    """About the most memory that the run will have, bytes: of the GPU where it trains on one, else of the process.

    None where the system does not tell what a process has.
    """
    model, examples = opened.checkpoint.model, random_corpus(planned, opened)
    whole = sum(parameter.numel() for parameter in model.parameters())
    graphics = model.device.type == "cuda"
    most = 0
    for stage in planned.plan.training:
        found = _peak(stage, planned, opened, examples)
        if found is None:
            return None
        trained = sum(parameter.numel() for parameter in selected(model, stage.stage.layers))
        most = max(most, found + trained * _kept(stage))
    if graphics:
        return int(most)
    tokens = count_tokens(examples) / max(1, len(examples))
    texts = len({stage.stage.text for stage in planned.plan.training})
    corpus = int(tokens * len(planned.split.records) * texts * A_TOKEN)
    read_back = 4 * whole  # at the end the written model lies beside the first
    return int(max(most, (_resident() or 0) + read_back) + corpus + PIPELINE)


def _kept(stage: StagePlan) -> int:
    """Bytes for each trained parameter that the first step allocates beyond the sum of gradients."""
    settings = stage.stage.optimizer
    moments = 0 if isinstance(settings, SGD) else 8
    start = 4 if settings.towards == "start" and settings.weight_decay else 0
    compared = 4  # the first step is compared with what was before it
    return moments + start + compared


def _peak(stage: StagePlan, planned: Planned, opened: LoadedModel, examples: Sequence[Example]) -> int | None:
    """The most bytes while a part of a step is computed."""
    model = opened.checkpoint.model
    tokens = planned.request.microbatch or default_tokens(model)
    sample = one_step(examples, stage.batch, tokens) if reads_records(stage.stage) else ()
    _forget(model.device)
    with training_only(model, stage.stage.layers):
        opened.engine.run(model, sample, 1.0)
    return _most(model.device)


def _forget(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif CLEAR.exists():
        CLEAR.write_text("5")


def _most(device: torch.device) -> int | None:
    return int(torch.cuda.max_memory_allocated(device)) if device.type == "cuda" else _said("VmHWM")


def _resident() -> int | None:
    return _said("VmRSS")


def _said(name: str) -> int | None:
    if not STATUS.exists():
        return None
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return None


SLACK = 32 * 2**20
"""For reports, tokenizer, spans and the journal."""

STATES = 2
"""At a time: the last one, and the one before it or the one that is being written."""


def check_room(request: HardenRequest, opened: LoadedModel, root: Path) -> None:
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
