"""How much memory a run will take, from one timed batch of random tokens and from what it is going to allocate."""

from collections.abc import Sequence
from pathlib import Path

import torch

from atdp_cli.jobs.opening import Opened
from atdp_cli.jobs.request import Planned
from atdp_cli.jobs.timing import a_step, random_corpus
from atdp_cli.training.clipping.batches import default_tokens
from atdp_cli.training.objective import Example
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.recipe import SGD, reads_records
from atdp_cli.training.subset import selected, training_only

PIPELINE = 250 << 20
"""Bytes of the detector's small pipeline, loaded once in every run."""

A_TOKEN = 15
"""Bytes of a token of the corpus for each text that a stage reads: its id, its marks and its weight."""

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def estimate_bytes(planned: Planned, opened: Opened) -> int | None:
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
    tokens = sum(len(window.token_ids) for example in examples for window in example.windows) / max(1, len(examples))
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


def _peak(stage: StagePlan, planned: Planned, opened: Opened, examples: Sequence[Example]) -> int | None:
    """The most bytes while a part of a step is computed."""
    model = opened.checkpoint.model
    tokens = planned.request.microbatch or default_tokens(model)
    sample = a_step(examples, stage.batch, tokens) if reads_records(stage.stage) else ()
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
