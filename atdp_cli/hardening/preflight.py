"""Checks before a plan starts: memory, measured on random tokens, disk space, and a rehearsed output."""

import copy
import shutil
from collections.abc import Sequence
from itertools import chain, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch.distributed.fsdp import FSDPModule
from transformers import AutoConfig, PreTrainedModel

from atdp_cli.corpus.spans import FlaggedRecord
from atdp_cli.corpus.split import Split
from atdp_cli.detection.detector import flagged_share
from atdp_cli.errors import AtdpError, InputError, RunError
from atdp_cli.events import Notify, ignore
from atdp_cli.hardening.encode import flag_sample
from atdp_cli.hardening.model import LoadedModel, load_model
from atdp_cli.hardening.plan import Planned
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.hardening.summary import HardenPlan, plan_summary
from atdp_cli.hardening.workspace import STATE
from atdp_cli.model.adapter import is_adapted, merged, no_warnings
from atdp_cli.model.chat import check_learnt, load_chat_template
from atdp_cli.model.checkpoint import Checkpoint, context_length, load_tokenizer, random_tokens
from atdp_cli.model.device import training_threads, use_threads
from atdp_cli.model.folder import is_adapter, tokenizer_folder
from atdp_cli.model.forward import Batch, logits_of
from atdp_cli.model.rendered import render_record
from atdp_cli.model.tokenizer import save_tokenizer
from atdp_cli.model.windows import Window, encode_record, tokenizer_fingerprint
from atdp_cli.reporting.stage_facts import clipped
from atdp_cli.reporting.wording import hardly_flagged
from atdp_cli.training.clip.batches import default_tokens
from atdp_cli.training.clip.engine import trainable
from atdp_cli.training.examples import Example, count_tokens
from atdp_cli.training.gradients import unclipped_sum
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.recipe import Recipe, Train, reads_records, takes_steps


def rehearse_output(checkpoint: Checkpoint, root: Path, source: Path, *, merge: bool) -> None:
    """Do what `save_checkpoint` does, without the weights, and read the result back: before the first step.

    Args:
        root: OUT.partial/, in which a folder is made and removed.
        source: Where the model comes from, for messages.
        merge: Whether its adapter is merged, which takes a copy of the model.

    Raises:
        InputError: The tokenizer, the configuration or the generation settings cannot be saved, or do not load again
            as they were.
        OSError: The disk failed.
    """
    tokenizer, part = checkpoint.tokenizer, "The merged adapter"
    try:
        with no_warnings():
            model = _merged_copy(checkpoint.model, source) if merge else checkpoint.model
            part = "The model's configuration or generation settings"
            with TemporaryDirectory(prefix=".", dir=root) as folder:
                _save(model, Path(folder))
                part = "The tokenizer"
                save_tokenizer(tokenizer, Path(folder))
                again = load_tokenizer(Path(folder))
                part = "The model's configuration"
                if not is_adapted(model):
                    AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (AtdpError, OSError):
        raise
    except Exception as error:  # transformers and peft raise many kinds here
        raise InputError(
            f"{part} of {source} cannot be saved again, so the run could not end ({type(error).__name__}).",
            "Correct it, or save the model again with transformers: save_pretrained.",
        ) from error
    if tokenizer_fingerprint(again) != tokenizer_fingerprint(tokenizer):
        raise InputError(
            f"{source}: the tokenizer is another one once it is saved and loaded again.",
            "Save the model's fast tokenizer again, and look at its tokenizer_config.json.",
        )


@torch.inference_mode()
def _merged_copy(model: PreTrainedModel, source: Path) -> PreTrainedModel:
    """A copy with its adapter merged, which must predict the same."""
    whole, ids = merged(copy.deepcopy(model)), random_tokens(model, 16)
    batch = Batch(ids, None, *((ids, torch.ones_like(ids)) if model.config.is_encoder_decoder else ()))
    apart, together = (logits_of(each.eval(), batch).float() for each in (model, whole))
    if float((apart - together).abs().max()) > MERGED_TOLERANCE * float(apart.abs().max()):
        raise InputError(
            f"{source} predicts otherwise once its adapter is merged: it adapts one of two places that share a matrix.",
            "Leave run.merge-adapter out.",
        )
    return whole


def _save(model: PreTrainedModel, folder: Path) -> None:
    config, generation = model.config, model.generation_config
    if not isinstance(model, FSDPModule):
        model.save_pretrained(folder, state_dict={})
        return
    config.save_pretrained(folder)  # saving a sharded model takes all processes
    generation.save_pretrained(folder)


SAMPLED_RECORDS = 64
"""Records whose length is measured, spread over those that are looked at."""

MEASURED_FILLS = 2
"""Physical batches whose memory is measured, where a step has so many."""

PIPELINE_BYTES = 250 << 20
"""Memory of the detector's small pipeline, loaded once in every run."""

TOKEN_BYTES = 15
"""Memory of a token of the corpus for each text that a stage reads: its id, its marks and its weight."""

MERGED_TOLERANCE = 0.05
"""Between logits of a model and of the same with its adapter merged, which rounds in bfloat16."""

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")

SLACK_BYTES = 32 << 20
"""Disk space for reports, tokenizer, spans and the journal."""

STATES = 2
"""Saved states on disk at a time: the last one, and the one before it or the one that is being written."""


def random_corpus(split: Split, loaded: LoadedModel, max_windows: int) -> tuple[Example, ...]:
    """Records of random tokens in random order, with lengths from the corpus."""
    model = loaded.checkpoint.model
    limit = context_length(model)
    random = np.random.default_rng(0)
    vocabulary = model.get_input_embeddings().weight.shape[0]
    examples, records = [], split.records
    for record in records[:: max(1, len(records) // SAMPLED_RECORDS)][:SAMPLED_RECORDS]:
        tokens = len(encode_record(loaded.checkpoint.tokenizer, record.text))
        length = max(2, min(tokens, limit * max_windows))
        examples.append(_random_example(length, limit, vocabulary, random, source=split.sources is not None))
    return tuple(examples[position] for position in random.permutation(len(examples)))


def _sample(stage: StagePlan, examples: Sequence[Example], *, tokens: int) -> tuple[Example, ...]:
    """About as many records of a step of the stage as the tokens allow, but at least one."""
    chosen: list[Example] = []
    for example in islice(cycle(examples), stage.batch if reads_records(stage.stage) else 0):
        if chosen and count_tokens([*chosen, example]) > tokens:
            break
        chosen.append(example)
    return tuple(chosen)


def _gradient(stage: StagePlan, request: SettledRequest, loaded: LoadedModel, sample: Sequence[Example]) -> object:
    model = loaded.checkpoint.model
    if stage.noise_multipliers:
        return loaded.engine.run(model, sample, 1.0)
    # The start costs a forward pass, whatever its parameters are.
    start = tuple(parameter.data for parameter in trainable(model)) if stage.stage.objective.demands.start else ()
    engine = loaded.engine.run if request.ranks.sharded else None
    summed = unclipped_sum(model, engine, request.compute_dtype, stage.stage.objective, start=start, seed=0)
    return summed(model, sample)


def _random_example(length: int, limit: int, vocabulary: int, random: np.random.Generator, *, source: bool) -> Example:
    windows, weights = [], []
    for start in range(0, length, limit):
        size = min(limit, length - start)
        ids, nothing = random.integers(0, vocabulary, size), np.zeros(size, dtype=np.bool_)
        windows.append(Window(0, ids, nothing, nothing, nothing, ids if source else None))
        values = np.ones(size, dtype=np.float32)
        values[0] = 0
        weights.append(values)
    return Example(tuple(windows), tuple(weights))


def estimate_bytes(planned: Planned, loaded: LoadedModel) -> int | None:
    """Roughly the peak memory of the run in bytes: on the GPU if it trains on one, otherwise in the process.

    None where the system does not show what a process has.
    """
    model = loaded.checkpoint.model
    examples = random_corpus(planned.split, loaded, planned.request.max_windows)
    most = 0
    for stage in planned.plan.training:
        peak = _peak(stage, planned.request, loaded, examples)
        if peak is None:
            return None
        trained = sum(parameter.numel() for parameter in trainable(model))
        # The first step is compared with what was before it. Trials go back to the start, a stage to its best epoch.
        copies = 1 + _optimizer_numbers(stage.stage) + int(stage.search is not None or bool(stage.stage.restore_best))
        most = max(most, peak + 4 * int(trained) * copies)
    if model.device.type == "cuda":
        return most
    tokens = count_tokens(examples) / max(1, len(examples))
    texts = len({stage.stage.text for stage in planned.plan.training})
    corpus = int(tokens * len(planned.split.records) * texts * TOKEN_BYTES)
    read_back = 4 * int(sum(parameter.numel() for parameter in model.parameters()))  # the written model, a second one
    return max(most, (_process_bytes("VmRSS") or 0) + read_back) + corpus + PIPELINE_BYTES


def _optimizer_numbers(stage: Train) -> int:
    """Numbers kept for each trained parameter besides its value: optimizer slots and its starting value."""
    return stage.optimizer.state_slots + stage.objective.demands.start


def _peak(stage: StagePlan, request: SettledRequest, loaded: LoadedModel, examples: Sequence[Example]) -> int | None:
    """The peak bytes while a part of a step is computed."""
    model = loaded.checkpoint.model
    graphics = model.device.type == "cuda"
    if graphics:
        torch.cuda.reset_peak_memory_stats(model.device)
    elif CLEAR.exists():
        CLEAR.write_text("5")
    measured = MEASURED_FILLS * (request.max_batch_tokens or default_tokens(model))
    if sample := _sample(stage, examples, tokens=measured):
        _gradient(stage, request, loaded, sample)
    return int(torch.cuda.max_memory_allocated(model.device)) if graphics else _process_bytes("VmHWM")


def _process_bytes(name: str) -> int | None:
    if not STATUS.exists():
        return None
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return None


def check_room(request: SettledRequest, loaded: LoadedModel, root: Path) -> None:
    """Refuse a run whose files do not fit on the disk.

    Args:
        root: OUT.partial/, whose states it will replace; its parent is there.

    Raises:
        RunError: States how much is missing.
    """
    model = loaded.checkpoint.model
    written = _written_bytes(model, request, loaded.checkpoint.stored_dtype) + SLACK_BYTES
    states = STATES * state_bytes(model, request.recipe) if request.checkpoint_every else 0
    replaced = sum(path.stat().st_size for path in root.glob(f"{STATE}*/*"))
    free = shutil.disk_usage(root.parent).free + replaced
    if written + states <= free:
        return
    without = f", or --set run.checkpoint-every=0, which takes {_amount(written)}" if states else ""
    raise RunError(
        f"The disk of {root.parent} has room for {_amount(free)}; the run needs up to {_amount(written + states)}.",
        f"Free some, or choose another -o{without}.",
    )


def state_bytes(model: PreTrainedModel, recipe: Recipe) -> int:
    """The largest size of a saved state: parameters, and what the optimizer keeps of them."""
    trained = sum(int(parameter.numel()) for parameter in model.parameters() if parameter.requires_grad)
    stages = [stage for stage in recipe if takes_steps(stage)]
    return 4 * trained * (1 + max((_optimizer_numbers(stage) for stage in stages), default=0))


def _written_bytes(model: PreTrainedModel, request: SettledRequest, stored_dtype: str) -> int:
    adapter = (request.lora_rank is not None or is_adapter(request.model)) and not request.merge_adapter
    numbers = sum(int(parameter.numel()) for parameter in model.parameters() if parameter.requires_grad or not adapter)
    dtype: torch.dtype = getattr(torch, request.save_dtype or stored_dtype)
    return numbers * dtype.itemsize


def _amount(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def check_conversations(planned: Planned) -> None:
    """Render the first conversations, so that a template that refuses them does so at once.

    Raises:
        InputError: It does, or no message is learnt.
    """
    request, records = planned.request, planned.split.records
    if any(record.turns for record in records):
        chat = load_chat_template(load_tokenizer(tokenizer_folder(request.model)), request.chat_template)
        for one in islice(chain.from_iterable(record.conversations for record in records), 200):
            render_record(chat, one)
        check_learnt(records, everybody=request.loss_on == "all")


def load_and_measure(
    planned: Planned, notify: Notify, *, dry_run: bool
) -> tuple[LoadedModel, HardenPlan, tuple[FlaggedRecord, ...]]:
    """Load the model and the detector, and return the plan with the resources it needs, and the records looked at.

    Raises:
        InputError: The model or the reference cannot be used.
        UsageError: Options do not go with the model.
    """
    request, summary = planned.request, plan_summary(planned)
    use_threads(request.threads)
    check_conversations(planned)
    model, sample = load_model(request, notify, planned.sha256), tuple[FlaggedRecord, ...]()
    if request.ranks.first:
        # A run hears of the detector's warnings when it flags all records.
        sample = flag_sample(planned.split, request, model.pipeline, notify if dry_run else ignore)
    if request.threads is None:
        use_threads(training_threads(model.checkpoint.model.num_parameters()))
    reads_flags = any(stage.text in ("redacted", "decoy") for stage in summary.stages)
    flagged = flagged_share(sample) if sample else None
    hardly = hardly_flagged(flagged.share) if flagged is not None and reads_flags else None
    needs = {
        "flagged": flagged,
        "advice": (*((hardly,) if hardly else ()), *summary.advice),
        "engine": model.engine.name if clipped(summary.stages) else None,
        "estimated_bytes": estimate_bytes(planned, model),
    }
    return model, summary.model_copy(update=needs), sample
