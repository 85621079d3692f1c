"""Exposures during real trainings: the audit's own figures, in the trainer's logs, and an end to training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from atdp_cli.audit.manifest import write_manifest
from atdp_cli.audit.request import AuditRequest, CanaryTargets
from atdp_cli.audit.results import Audit
from atdp_cli.audit.run import audit_models
from atdp_cli.errors import InputError, UsageError
from atdp_cli.events import ignore
from atdp_cli.integrations.canary_callback import as_audited
from atdp_cli.integrations.transformers import CanaryCallback, Exposures
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from tests.integrations.conftest import Planted

Sft = Callable[..., Any]


class Logger(TrainerCallback):  # type: ignore[misc] # transformers has no types
    """Hears what TensorBoard's and other loggers hear; it stands before the callback under test, as they do."""

    def __init__(self) -> None:
        self.heard: list[dict[str, float]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **handed: Any) -> None:
        self.heard.append(dict(logs))


def trainer_of(checkpoint: Checkpoint, planted: Planted, folder: Path, **settings: Any) -> tuple[Trainer, Logger]:
    """A plain Trainer over the planted lines."""
    tokenizer = checkpoint.tokenizer
    rows = [tokenizer(f"{line}{tokenizer.eos_token}")["input_ids"] for line in planted.lines]

    def collate(batch: list[list[int]]) -> dict[str, torch.Tensor]:
        width = max(map(len, batch))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in batch])
        labels = torch.tensor([row + [-100] * (width - len(row)) for row in batch])
        return {"input_ids": ids, "labels": labels, "attention_mask": (labels != -100).long()}

    given = {
        "output_dir": str(folder),
        "per_device_train_batch_size": 16,
        "learning_rate": 1e-2,
        "num_train_epochs": 3,
        "use_cpu": True,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "remove_unused_columns": False,
        "logging_strategy": "epoch",
    }
    logger = Logger()
    trainer = Trainer(
        model=checkpoint.model,
        args=TrainingArguments(**given | settings),
        train_dataset=rows,
        data_collator=collate,
        processing_class=tokenizer,
        callbacks=[logger],
    )
    return trainer, logger


def audited(model: Path, planted: Planted, reference: Path | None) -> Audit:
    """As `atdp audit-canary` has it."""
    manifest = planted.manifest
    canaries = CanaryTargets(template=manifest.slots(), targets=manifest.targets(), manifest=manifest)
    [actual] = audit_models(canaries, AuditRequest(models=(model,), reference=reference), ignore)
    assert isinstance(actual, Audit)
    return actual


@pytest.mark.ci
@pytest.mark.parametrize("with_reference", [False, True])
def test_what_is_logged_is_what_an_audit_of_the_saved_model_finds(
    planted: Planted, checkpoint_folder: Path, tmp_path: Path, *, with_reference: bool
) -> None:
    trainer, logger = trainer_of(load_checkpoint(checkpoint_folder), planted, tmp_path / "run")
    reference = checkpoint_folder if with_reference else None
    callback = CanaryCallback(planted.manifest, reference).attach(trainer)
    trainer.train()
    trainer.save_model(str(tmp_path / "saved"))
    trainer.processing_class.save_pretrained(tmp_path / "saved")
    audit = audited(tmp_path / "saved", planted, reference)
    last = callback.history[-1]
    assert last.plain == tuple(canary.exposure for canary in audit.canaries)
    if with_reference:
        assert last.ratio == tuple(canary.exposure_ratio for canary in audit.canaries)
    logged = [heard for heard in logger.heard if "canary_exposure_mean" in heard]
    assert [entry["canary_exposure_mean"] for entry in logged] == [
        sum(exposures.plain) / len(exposures.plain) for exposures in callback.history
    ]
    assert logged[-1]["canary_exposure_mean"] == pytest.approx(audit.combined.mean_exposure)
    assert [exposures.step for exposures in callback.history] == [14, 28, 42]
    # The trainer's own figures, due at the same steps, are not lost.
    assert [entry["step"] for entry in trainer.state.log_history if "loss" in entry] == [14, 28, 42]
    assert [entry["step"] for entry in trainer.state.log_history if "canary_exposure_mean" in entry] == [14, 28, 42]


def test_training_is_the_same_with_the_callback(planted: Planted, checkpoint_folder: Path, tmp_path: Path) -> None:
    """Dropout is on in training: measuring draws no random numbers, and puts the mode back."""
    weights = []
    for watched in (False, True):
        trainer, _ = trainer_of(load_checkpoint(checkpoint_folder), planted, tmp_path / "run", max_steps=6)
        if watched:
            CanaryCallback(planted.manifest, every=2).attach(trainer)
        trainer.train()
        weights.append([parameter.clone() for parameter in trainer.model.parameters()])
    assert all(map(torch.equal, *weights))


def test_training_stops_once_the_mean_passes_the_limit(
    planted: Planted, checkpoint_folder: Path, tmp_path: Path
) -> None:
    trainer, _ = trainer_of(load_checkpoint(checkpoint_folder), planted, tmp_path / "run", num_train_epochs=40)
    callback = CanaryCallback(planted.manifest, checkpoint_folder, every=14, stop_at=2.5).attach(trainer)
    trainer.train()
    assert trainer.state.global_step == callback.history[-1].step < 40 * 14
    assert callback.history[-1].mean > 2.5
    assert all(exposures.mean <= 2.5 for exposures in callback.history[:-1])


def test_means_are_over_planted_canaries() -> None:
    actual = Exposures(step=1, plain=(1.0, 3.0, 9.0), ratio=(4.0, 0.0, 9.0), planted=(True, True, False))
    assert actual.logs() == {
        "canary_exposure_mean": 2.0,
        "canary_exposure_max": 3.0,
        "canary_exposure_ratio_mean": 2.0,
        "canary_exposure_ratio_max": 4.0,
    }
    assert actual.mean == 2.0


@pytest.mark.ci
def test_an_sft_trainer_logs_it_too(sft: Sft, planted: Planted, checkpoint_folder: Path, tmp_path: Path) -> None:
    """TRL adds figures of its own to every log, and trains in checkpointed activations by default."""
    write_manifest(tmp_path / "canaries.json", planted.manifest)
    trainer = sft([{"text": line} for line in planted.lines], num_train_epochs=1, activation_checkpointing=True)
    callback = CanaryCallback(tmp_path / "canaries.json", checkpoint_folder).attach(trainer)
    trainer.train()
    [entry] = [entry for entry in trainer.state.log_history if "canary_exposure_ratio_mean" in entry]
    assert entry["canary_exposure_mean"] == callback.history[-1].logs()["canary_exposure_mean"]
    trainer.save_model(str(tmp_path / "saved"))
    assert callback.history[-1].plain == tuple(
        canary.exposure for canary in audited(tmp_path / "saved", planted, None).canaries
    )


def test_a_model_in_half_precision_or_under_autocast_is_scored_in_fp32(loaded: Checkpoint) -> None:
    """accelerate puts autocast into `forward`, and keeps the original beside it."""
    from copy import deepcopy

    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)  # the trainers of other tests have set it
    ids = torch.arange(5, 15)[None]
    exact = loaded.model(ids).logits
    prepared = Accelerator(mixed_precision="bf16", cpu=True).prepare(deepcopy(loaded.model)).train()
    forward = prepared.forward
    with as_audited(prepared) as actual, torch.no_grad():
        assert torch.equal(actual(ids).logits, exact)
    assert prepared.training
    assert prepared.forward is forward
    AcceleratorState._reset_state(reset_partial_state=True)
    half = deepcopy(loaded.model).to(torch.bfloat16).train()
    with as_audited(half) as actual:
        assert {parameter.dtype for parameter in actual.parameters()} == {torch.float32}
        assert not actual.training
    assert half.training


def test_what_cannot_be_watched_is_refused(
    planted: Planted, checkpoint_folder: Path, loaded: Checkpoint, tmp_path: Path
) -> None:
    for every in (0, "banana", 1.5, True, None):
        with pytest.raises(UsageError, match="every='epoch' or a whole number"):
            CanaryCallback(planted.manifest, every=every)  # type: ignore[arg-type]
    for stop_at in ("banana", float("nan")):
        with pytest.raises(UsageError, match="stop_at"):
            CanaryCallback(planted.manifest, stop_at=stop_at)  # type: ignore[arg-type]
    wrong: list[tuple[Any, Any]] = [({"train": []}, None), (planted.manifest, "Ada moved " * 100)]
    for manifest, reference in wrong:
        with pytest.raises(UsageError, match="is no path"):
            CanaryCallback(manifest, reference)
    none = planted.manifest.model_copy(update={"canaries": ()})
    with pytest.raises(UsageError, match="no planted canary"):
        CanaryCallback(none)
    trainer, _ = trainer_of(load_checkpoint(checkpoint_folder), planted, tmp_path / "run", max_steps=1)
    trainer.add_callback(CanaryCallback(planted.manifest))
    with pytest.raises(UsageError, match="does not know its trainer"):
        trainer.train()
    other = planted.manifest.model_copy(update={"tokenizer_sha256": "0" * 64})
    trainer, _ = trainer_of(load_checkpoint(checkpoint_folder), planted, tmp_path / "run", max_steps=1)
    CanaryCallback(other).attach(trainer)
    with pytest.raises(InputError, match="another tokenizer"):
        trainer.train()
