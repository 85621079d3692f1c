"""Relearning: does a suppressed secret come back when the model is fine-tuned further on other text?"""

import copy
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F
from transformers import PreTrainedModel

from atdp_cli.corpus.record import read_records
from atdp_cli.errors import InputError, RunError, UsageError
from atdp_cli.events import Notify, StepDone, ignore
from atdp_cli.model.checkpoint import Checkpoint, context_length
from atdp_cli.model.forward import logits_of, pad
from atdp_cli.model.windows import Marks, Window, encode_windows

MAX_RECORDS = 10_000
"""The most records that are read of the other text."""


def read_windows(path: Path, checkpoint: Checkpoint) -> tuple[Window, ...]:
    """The first records of a text as windows, one each.

    Raises:
        InputError: It cannot be read, or has no token to predict.
    """
    windows: list[Window] = []
    context = context_length(checkpoint.model)
    for index, record in enumerate(islice(read_records(path), MAX_RECORDS)):
        windows += encode_windows(checkpoint.tokenizer, index, record.text, Marks(), context=context, max_windows=1)
    if not windows:
        raise InputError(f"{path} has no record with a token to predict.", "Give another text.")
    return tuple(windows)


def fine_tune_copy(
    model: PreTrainedModel,
    windows: Sequence[Window],
    *,
    steps: int = 50,
    batch_size: int = 8,
    learning_rate: float = 1e-4,
    seed: int = 0,
    name: str = "the model",
    notify: Notify = ignore,
) -> PreTrainedModel:
    """Fine-tune a copy of the model on text without canaries, to audit it again.

    Anyone who holds the weights can do this, so what a short, ordinary fine-tune brings back was hidden and not
    forgotten. Source: Hu et al. 2024, "Unlearning or obfuscating? Jogging the memory of unlearned LLMs via benign
    relearning", arXiv 2406.13356; their text is loosely related to the secret, the caller's need not be.

    AdamW at a constant rate, with its usual moments and without weight decay, so that nothing but the text moves
    the weights. Adam moves a weight by about the rate a step: 50 steps of 1e-4, a common rate for fine-tuning
    small models, by some 0.005 at most, a fraction of its usual size. The loss is the mean over a batch's target
    tokens. Every parameter is trained, also those that the model has frozen: an attacker would.

    Dropout is off, as in evaluation mode, so the batches are the only random choice and no global random state
    is read or written: on a CPU the same seed gives the same weights.

    Args:
        model: float32 or float64; left exactly as it is, its flags and its mode as well.
        windows: The other text; those without a target are left out.
        steps: Optimizer steps, from 0.
        batch_size: Windows a step, from 1. Every window is used once before any is used again.
        learning_rate: In (0, 1].
        seed: Of the order of the windows.
        name: Of the model, for progress and errors.
        notify: Hears `StepDone` after every step.

    Returns:
        The copy in evaluation mode, tied weights tied, `requires_grad` as in `model`, without gradients.

    Raises:
        UsageError: No window has a target.
        RunError: The loss, or a weight after the last step, is NaN or infinite.
    """
    usable = [window for window in windows if window.targets.any()]
    if not usable:
        raise UsageError("The other text has no token to train on.", "Give some lines of ordinary text.")
    tuned = copy.deepcopy(model).eval()
    flags = [parameter.requires_grad for parameter in tuned.parameters()]
    tuned.requires_grad_(True)
    optimizer = torch.optim.AdamW(tuned.parameters(), lr=learning_rate, weight_decay=0.0)
    batches = _batches(usable, batch_size, torch.Generator().manual_seed(seed))
    with torch.enable_grad():
        for step, batch in zip(range(1, steps + 1), batches, strict=False):
            optimizer.zero_grad()
            loss = _loss(tuned, batch)
            if not torch.isfinite(loss):
                raise _diverged(name, step, steps)
            loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
            optimizer.step()
            tokens = sum(len(window.token_ids) for window in batch)
            notify(StepDone(stage=f"tuning {name}", step=step, steps=steps, noise_multiplier=None, tokens=tokens))
    optimizer.zero_grad()
    if not all(bool(torch.isfinite(parameter).all()) for parameter in tuned.parameters()):
        raise _diverged(name, steps, steps)
    for parameter, flag in zip(tuned.parameters(), flags, strict=True):
        parameter.requires_grad_(flag)
    return tuned


def _diverged(name: str, step: int, steps: int) -> RunError:
    return RunError(
        f"Tuning {name} on other text diverged at step {step} of {steps}.",
        "Check the checkpoint, or use a lower learning rate.",
    )


def _batches(windows: Sequence[Window], size: int, generator: torch.Generator) -> Iterator[list[Window]]:
    """Batches without end: one shuffle of all windows after another, cut every `size` windows."""
    waiting: list[int] = []
    while True:
        while len(waiting) < size:
            waiting += torch.randperm(len(windows), generator=generator).tolist()
        yield [windows[i] for i in waiting[:size]]
        waiting = waiting[size:]


def _loss(model: PreTrainedModel, windows: Sequence[Window]) -> torch.Tensor:
    """Mean negative log-likelihood of the windows' targets."""
    batch = pad(windows)
    is_target = torch.zeros(batch.input_ids.shape, dtype=torch.bool)
    for row, window in zip(is_target, windows, strict=True):
        row[: len(window.token_ids)] = torch.from_numpy(np.asarray(window.targets))
    chosen = is_target[:, 1:]
    logits = logits_of(model, batch)[:, :-1]
    return F.cross_entropy(logits[chosen.to(logits.device)], batch.input_ids[:, 1:][chosen].to(logits.device))
