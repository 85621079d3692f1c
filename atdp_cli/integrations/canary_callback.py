"""Exposures of canaries while a transformers Trainer trains, for whatever the trainer logs to."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import torch
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from atdp_cli.audit.exposure import Scores
from atdp_cli.audit.manifest import Manifest, read_manifest
from atdp_cli.audit.rank import Pool, all_scores, pool_of
from atdp_cli.audit.request import AuditRequest, CanaryTargets
from atdp_cli.audit.run import RankedCanaries, rank_canaries
from atdp_cli.errors import InputError, UsageError
from atdp_cli.events import ignore
from atdp_cli.model.checkpoint import load_checkpoint
from atdp_cli.model.windows import tokenizer_fingerprint
from atdp_cli.settings import path_of

NAME = "the model in training"


@dataclass(frozen=True, kw_only=True)
class Exposures:
    """The exposures of all canaries after a step, in bits, in the manifest's order; 1.44 is what chance gives.

    Attributes:
        step: Optimizer steps so far.
        plain: By log p.
        ratio: By log p - log p_ref; None without a reference.
        planted: Which canaries are in the corpus. Means and maxima are over these.
    """

    step: int
    plain: tuple[float, ...]
    ratio: tuple[float, ...] | None
    planted: tuple[bool, ...]

    @property
    def mean(self) -> float:
        """Return the larger of the two scores' means."""
        return max(self._mean(bits) for bits in (self.plain, self.ratio) if bits is not None)

    def logs(self) -> dict[str, float]:
        """Return the figures that the trainer logs."""
        figures: dict[str, float] = {}
        for name, bits in (("exposure", self.plain), ("exposure_ratio", self.ratio)):
            if bits is not None:
                figures |= {f"canary_{name}_mean": self._mean(bits), f"canary_{name}_max": max(self._of_planted(bits))}
        return figures

    def _mean(self, bits: tuple[float, ...]) -> float:
        counted = self._of_planted(bits)
        return sum(counted) / len(counted)

    def _of_planted(self, bits: tuple[float, ...]) -> list[float]:
        return [exposure for exposure, planted in zip(bits, self.planted, strict=True) if planted]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Ready:
    """The inputs that all measurements share."""

    canaries: CanaryTargets
    pool: Pool
    base: Scores | None


class CanaryCallback(TrainerCallback):  # type: ignore[misc] # transformers has no types
    """Log the exposures of planted canaries while a Trainer trains, and stop it if they pass a limit.

    Add it by `CanaryCallback(...).attach(trainer)`: a trainer does not tell its callbacks who it is, and what is to
    reach its loggers must go through `trainer.log`. The figures are those of `atdp audit-canary` on the model as it
    would be saved then: the same candidates, ranks and strata. They appear as `canary_exposure_mean`,
    `canary_exposure_max` and, with a reference, `canary_exposure_ratio_mean` and `canary_exposure_ratio_max`; loggers
    put their own prefix before it.

    Canaries that were watched to decide when to stop are no longer chance to the finished model. `stop_at` ends
    training after a high exposure, so it can only make a later audit fail more often, never pass more often.

    Args:
        manifest: What was planted, or its file.
        reference: Folder of the public base model, for the second score.
        every: After every epoch, or after so many optimizer steps.
        stop_at: Bits; training stops once the mean exposure by either score is above.

    Attributes:
        history: What was measured, in order.

    Raises:
        UsageError: A number is out of range, or no canary is planted.
        InputError: The manifest cannot be read.
    """

    def __init__(
        self,
        manifest: Manifest | Path | str,
        reference: Path | str | None = None,
        every: Literal["epoch"] | int = "epoch",
        stop_at: float | None = None,
    ) -> None:
        self.manifest = manifest if isinstance(manifest, Manifest) else read_manifest(path_of(manifest, "manifest"))
        if every != "epoch" and (type(every) is not int or every < 1):
            raise UsageError("CanaryCallback needs every='epoch' or a whole number of steps.", "Give 1 or more.")
        if stop_at is not None and not (isinstance(stop_at, int | float) and math.isfinite(stop_at)):
            raise UsageError("stop_at is no number of bits.", "Give a number, or leave it out.")
        if not any(canary.planted for canary in self.manifest.canaries):
            raise UsageError("The manifest has no planted canary to watch.", "Plant some by atdp plant-canary.")
        self.reference = None if reference is None else path_of(reference, "reference")
        self.every, self.stop_at = every, stop_at
        self.history: list[Exposures] = []
        self._log: Callable[[dict[str, float]], None] | None = None
        self._ready: _Ready | None = None

    def attach(self, trainer: Trainer) -> Self:
        """Add the callback to a trainer, whose loggers get what it measures."""
        self._log = trainer.log
        trainer.add_callback(self)
        return self

    def on_train_begin(self, args: TrainingArguments, _state: Any, _control: Any, **handed: Any) -> None:
        """Tokenise the candidates and score them by the reference, before the first step.

        Raises:
            UsageError: The callback is not attached, or the model is sharded.
            InputError: The tokenizer splits the canaries otherwise, or is not the reference's.
        """
        if self._log is None:
            raise UsageError(
                "CanaryCallback does not know its trainer.", "Add it by CanaryCallback(...).attach(trainer)."
            )
        if args.fsdp or args.deepspeed:
            raise UsageError(
                "CanaryCallback needs the whole model in each process.", "Audit saved checkpoints instead."
            )
        tokenizer = handed.get("processing_class")
        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise UsageError("CanaryCallback needs the trainer's fast tokenizer.", "Give it as processing_class.")
        self._ready = _prepare(self.manifest, self.reference, tokenizer)

    def on_epoch_end(self, _args: Any, state: TrainerState, control: TrainerControl, **handed: Any) -> TrainerControl:
        """Measure, if it is asked for after every epoch."""
        return self._measure(state, control, handed["model"]) if self.every == "epoch" else control

    def on_step_end(self, _args: Any, state: TrainerState, control: TrainerControl, **handed: Any) -> TrainerControl:
        """Measure, if it is asked for after this step."""
        due = self.every != "epoch" and state.global_step % self.every == 0
        return self._measure(state, control, handed["model"]) if due else control

    def _measure(self, state: TrainerState, control: TrainerControl, model: torch.nn.Module) -> TrainerControl:
        ready, log = self._ready, self._log
        if ready is None or log is None:
            raise ValueError("on_train_begin prepares what is measured")
        with as_audited(model) as audited:
            ranked = rank_canaries(audited, ready.canaries, ready.pool, ready.base, name=NAME, notify=ignore)
        exposures = _exposures(state.global_step, ranked, ready.canaries)
        self.history.append(exposures)
        # Logging tells the trainer that this step has been logged, and its own figures may still be due.
        due = control.should_log
        log(exposures.logs())
        control.should_log = due
        if self.stop_at is not None and exposures.mean > self.stop_at:
            control.should_training_stop = True
        return control


def _prepare(manifest: Manifest, reference: Path | None, tokenizer: PreTrainedTokenizerFast) -> _Ready:
    canaries = CanaryTargets(template=manifest.slots(), targets=manifest.targets(), manifest=manifest)
    if problem := canaries.mismatch(tokenizer):
        raise InputError(problem, "Plant the canaries again with --tokenizer of this model.")
    rule = AuditRequest(reference=reference).sample_rule(canaries)
    pool = pool_of(tokenizer, canaries.template, canaries.targets, ignore, sample=rule)
    if reference is None:
        return _Ready(canaries=canaries, pool=pool, base=None)
    base = load_checkpoint(reference)
    if base.tokenizer_sha256 != tokenizer_fingerprint(tokenizer):
        raise InputError(
            f"The trainer's model and {reference} have different tokenizers.",
            "Give the base model that it is trained from.",
        )
    return _Ready(canaries=canaries, pool=pool, base=all_scores(base.model, pool, str(reference), ignore))


def _exposures(step: int, ranked: RankedCanaries, canaries: CanaryTargets) -> Exposures:
    return Exposures(
        step=step,
        plain=tuple(rank.exposure for rank in ranked.plain),
        ratio=None if ranked.ratio is None else tuple(rank.exposure for rank in ranked.ratio),
        planted=tuple(target.planted for target in canaries.targets),
    )


@contextmanager
def as_audited(model: torch.nn.Module) -> Iterator[PreTrainedModel]:
    """The model in eval mode, in fp32 and without autocast, as an audit loads it; it is left as it was.

    A model in half precision is copied. Under autocast the parameters are fp32, and accelerate's forward is passed by.
    """
    if any(part.is_floating_point() and part.dtype != torch.float32 for part in model.parameters()):
        yield deepcopy(model).float().eval()
        return
    modes = {module: module.training for module in model.modules()}
    wrapped: Any = model.__dict__.get("forward")
    original: Any = model.__dict__.get("_original_forward")
    if original is not None:
        model.forward = original
    try:
        yield model.eval()
    finally:
        for module, mode in modes.items():
            module.training = mode
        if original is not None:
            model.forward = wrapped
