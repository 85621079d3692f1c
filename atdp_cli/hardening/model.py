"""The model that a run trains: loaded, moved, adapted, with the engine that fits it."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from atdp_cli.detection.detector import detector_pipeline
from atdp_cli.detection.scan import load_pipeline
from atdp_cli.errors import InputError, UsageError
from atdp_cli.events import Notify
from atdp_cli.files.documents import file_sha256
from atdp_cli.hardening.checkpoint import gather_tensors, load_tensors
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.model.adapter import add_adapter
from atdp_cli.model.checkpoint import Checkpoint, context_length, load_checkpoint
from atdp_cli.model.device import find_device, move_model
from atdp_cli.model.folder import is_adapter
from atdp_cli.model.hashes import seal_of
from atdp_cli.model.staging import changed
from atdp_cli.training.clip.engine import trainable
from atdp_cli.training.clip.select import SelectedEngine, select_engine
from atdp_cli.training.clip.self_check import random_records, relative_distance
from atdp_cli.training.gradients import check_stage
from atdp_cli.training.options import Precision
from atdp_cli.training.parallel.collectives import all_reduce_sum, broadcast_
from atdp_cli.training.parallel.fsdp import shard_model
from atdp_cli.training.parallel.ranks import local_items
from atdp_cli.training.precision import check_precision
from atdp_cli.training.recipe import DPSGD, takes_steps

SHARDED_TOLERANCE: dict[Precision, float] = {"float32": 1e-4, "bfloat16": 5e-2}
"""Between gradients of a whole and of a sharded model, relative to their length."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedModel:
    """A checkpoint ready to train, and the clipping engine that agreed with `per-record` on it, or that.

    Attributes:
        reference: The public model that some stages read, or that canaries are compared with; frozen, in eval mode.
        pipeline: What the detector reads with; None where spans come from a file and nothing else is to be read.
    """

    checkpoint: Checkpoint
    engine: SelectedEngine
    reference: PreTrainedModel | None = None
    pipeline: Any = None


def load_model(request: SettledRequest, notify: Notify, sha256: Callable[[Path], str] = file_sha256) -> LoadedModel:
    """Load the model of a request, and its detector.

    Args:
        sha256: Hashes a file as it was when the run was planned.

    Raises:
        RunError: A model's files are others than those that were planned with.
        InputError: The checkpoint or the reference cannot be used, they don't go together, or the engine asked for
            does not fit.
        UsageError: There is no such device, run.source-field does not go with the model, or a stage's objective does
            not.
    """
    checkpoint = _load(request.model, sha256, keeps_half=_trains_adapter_in_half(request))
    _check_source(request, checkpoint)
    # The adapter comes after the move: one that was made before it can train and change nothing.
    device = find_device(request.device)
    check_precision(request.compute_dtype, device)
    # A model that is to be sharded may be too large for the device; its shards are moved.
    model = checkpoint.model
    if not request.ranks.sharded:
        move_model(model, device)
    reference = (
        None if request.reference is None else _load_reference(request, _load(request.reference, sha256), checkpoint)
    )
    if request.lora_rank is not None:
        with _seeded(request.insecure_seed):
            model = add_adapter(model, request.lora_rank)
    for stage in request.recipe:
        if takes_steps(stage):
            check_stage(model, stage)  # refused here, not after hours of the stages before
        # Its random numbers are those of the first process.
        broadcast_(request.ranks, [parameter.detach() for parameter in trainable(model)])
    sums = request.ranks.sharded or any(isinstance(stage.mechanism, DPSGD) for stage in request.recipe)
    engine = select_engine(
        model,
        request.clipping if sums else "per-record",  # which is compared with nothing
        notify,
        tokens=request.max_batch_tokens,
        ranks=request.ranks,
        precision=request.compute_dtype,
    )
    if request.ranks.sharded:
        _shard(model, engine, request, device)
    return LoadedModel(
        checkpoint=replace(checkpoint, model=model),
        engine=engine,
        reference=reference,
        pipeline=_load_detector(request, checkpoint),
    )


def reads_one_text(checkpoint: Checkpoint) -> bool:
    """Whether the model is no encoder-decoder; only such a model can be measured on the made-up sentence."""
    return not checkpoint.model.config.is_encoder_decoder


def _load_detector(request: SettledRequest, checkpoint: Checkpoint) -> Any:
    if request.spans is not None and not reads_one_text(checkpoint):
        return None
    return detector_pipeline(request.detector, load_pipeline(request.detector.pipeline))


def _shard(model: PreTrainedModel, engine: SelectedEngine, request: SettledRequest, device: torch.device) -> None:
    """Shard the model among the processes, and check that gradients of random tokens do not change."""
    records = random_records(model)
    before = engine.run(model, records, math.inf)
    shard_model(model, request.ranks, device)
    after = engine.run(model, local_items(request.ranks, records), math.inf)
    all_reduce_sum(request.ranks, after.gradient)
    if relative_distance(after.gradient, before.gradient) > SHARDED_TOLERANCE[request.compute_dtype]:
        raise InputError(
            f"{request.model} has other gradients once it is sharded, so run.shard-model does not fit it.",
            "Leave run.shard-model out.",
        )


def unshard(request: SettledRequest, checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint with the whole model in the first process; elsewhere, or without shards, unchanged."""
    if not request.ranks.sharded:
        return checkpoint
    sharded = ((f"model.{name}", parameter) for name, parameter in checkpoint.model.named_parameters())
    complete = gather_tensors(request.ranks, sharded)
    if not request.ranks.first:
        return checkpoint
    fresh = load_checkpoint(request.model)
    if fresh.seal != checkpoint.seal:
        raise changed(request.model)
    model = fresh.model if request.lora_rank is None else add_adapter(fresh.model, request.lora_rank)
    load_tensors(model, dict(complete))
    return replace(checkpoint, model=model)


def _trains_adapter_in_half(request: SettledRequest) -> bool:
    """Whether the weights beside the adapter are only read, by layers that compute in bfloat16."""
    adapter = request.lora_rank is not None or is_adapter(request.model)
    return adapter and request.compute_dtype == "bfloat16" and not (request.merge_adapter or request.ranks.sharded)


def _load(folder: Path, sha256: Callable[[Path], str], *, keeps_half: bool = False) -> Checkpoint:
    """The checkpoint of a folder, which has to be the one that the ledger and the fingerprint are about."""
    checkpoint = load_checkpoint(folder, keeps_half=keeps_half)
    if checkpoint.seal != seal_of(folder, sha256):
        raise changed(folder)
    return checkpoint


def _load_reference(request: SettledRequest, reference: Checkpoint, checkpoint: Checkpoint) -> PreTrainedModel:
    folder = request.reference
    if reference.tokenizer_sha256 != checkpoint.tokenizer_sha256:
        raise InputError(
            f"{folder} and {request.model} have different tokenizers.", "Give the base model that was fine-tuned."
        )
    theirs, ours = _vocabulary(reference.model), _vocabulary(checkpoint.model)
    if theirs != ours:
        raise InputError(
            f"{folder} predicts {theirs:,} tokens, {request.model} {ours:,}.",
            "Give the base model that was fine-tuned.",
        )
    if reference.model.config.is_encoder_decoder != checkpoint.model.config.is_encoder_decoder:
        raise InputError(f"Only one of {folder} and {request.model} has an encoder.", "Give the base model.")
    if context_length(reference.model) < context_length(checkpoint.model):
        raise InputError(
            f"{folder} reads {context_length(reference.model):,} tokens at a time, {request.model} "
            f"{context_length(checkpoint.model):,}.",
            "Give a reference that reads as many.",
        )
    if not all(map(takes_steps, request.recipe)):
        if request.lora_rank is not None:
            raise UsageError("This recipe changes whole models, not adapters.", "Leave --lora-rank out.")
        if _shapes(reference.model) != _shapes(checkpoint.model):
            raise InputError(
                f"{folder} and {request.model} have weights of different names or shapes.",
                "Give the base model that was fine-tuned.",
            )
    move_model(reference.model, find_device(request.device))
    return reference.model.requires_grad_(False)


def _vocabulary(model: PreTrainedModel) -> int:
    return int(model.get_input_embeddings().weight.shape[0])


def _shapes(model: PreTrainedModel) -> dict[str, torch.Size]:
    return {name: parameter.shape for name, parameter in model.named_parameters()}


def _check_source(request: SettledRequest, checkpoint: Checkpoint) -> None:
    reads = checkpoint.model.config.is_encoder_decoder
    if reads and request.source_field is None:
        raise UsageError(
            f"{request.model} is an encoder-decoder model: it reads one text and writes another.",
            "Name both fields: --set run.source-field=source --text-field target.",
        )
    if request.source_field is not None and not reads:
        raise UsageError(f"{request.model} has no encoder to read run.source-field.", "Leave it out.")


@contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    """An adapter starts from random numbers, which tests want to be the same every time."""
    with torch.random.fork_rng():
        if seed is not None:
            torch.manual_seed(seed)
        yield
