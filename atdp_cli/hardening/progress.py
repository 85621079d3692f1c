"""How far a run is, and the document and tensors that a checkpoint or another process has of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict

from atdp_cli.replacement.frequencies import Frequencies, TableShares
from atdp_cli.training.objective import Weighing
from atdp_cli.training.state import BestEpoch, StageResult, StageState
from atdp_cli.training.tune.search import Tuned


@dataclass(frozen=True, kw_only=True, eq=False)
class Progress:
    """How far a run is, apart from its model.

    Attributes:
        stage: The position of the stage that runs or comes next; the number of stages where all are done.
        results: Of the stages before it.
        stage_state: How far that stage is; None at its beginning.
        frequencies: What the stage released to fit decoys; None where it did not.
        tuned: What the search for the stage's learning rate found; None where there was none, or it is not over.
        seconds: That the run had taken, by the clock.
    """

    stage: int = 0
    results: tuple[tuple[StageResult, Weighing], ...] = ()
    stage_state: StageState | None = None
    frequencies: Frequencies | None = None
    tuned: Tuned | None = None
    seconds: float = 0.0

    @property
    def step(self) -> int:
        """Steps that the stage has taken."""
        return 0 if self.stage_state is None else self.stage_state.step


class _StageDocument(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    step: int
    result: StageResult
    seed: int | None
    best: tuple[int, float] | None = None


class StateDocument(BaseModel):
    """The content of `state.json`. `journal` is the journal's size in bytes at the time."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    schema_version: Literal[1] = 1
    kind: Literal["atdp-state"] = "atdp-state"
    stage: int
    results: tuple[tuple[StageResult, Weighing], ...]
    underway: _StageDocument | None
    frequencies: dict[str, tuple[int, ...]] | None
    unlisted: dict[str, tuple[str, ...]] = {}
    tuned: Tuned | None = None
    seconds: float
    journal: int
    files: dict[str, str]


def serialize_progress(progress: Progress) -> bytes:
    """A run's progress as JSON, without the tensors."""
    return state_document(progress, 0, {}).model_dump_json().encode()


def deserialize_progress(serialized: bytes, tensors: Mapping[str, torch.Tensor]) -> Progress:
    """The progress from the output of `serialize_progress` and `progress_tensors`."""
    return document_progress(StateDocument.model_validate_json(serialized), tensors)


def state_document(progress: Progress, journal: int, files: Mapping[str, str]) -> StateDocument:
    """A checkpoint's document: everything about a run besides its tensors.

    Args:
        journal: The journal's size in bytes.
        files: The SHA-256 of each file of tensors, by name.
    """
    state = progress.stage_state
    return StateDocument(
        stage=progress.stage,
        results=progress.results,
        underway=None if state is None else _stage_document(state),
        frequencies=None
        if progress.frequencies is None
        else {name: tuple(shares.cumulative) for name, shares in progress.frequencies.items()},
        unlisted={name: shares.unlisted for name, shares in (progress.frequencies or {}).items() if shares.unlisted},
        tuned=progress.tuned,
        seconds=progress.seconds,
        journal=journal,
        files=dict(files),
    )


def _stage_document(state: StageState) -> _StageDocument:
    best = None if state.best is None else (state.best.epoch, state.best.loss)
    return _StageDocument(step=state.step, result=state.result, seed=state.seed, best=best)


def progress_tensors(progress: Progress) -> dict[str, torch.Tensor]:
    """The tensors of a run's progress by name: optimizer, start, best epoch, generators."""
    if (state := progress.stage_state) is None:
        return {}
    tensors = {f"optimizer.{name}": tensor for name, tensor in state.optimizer.items()}
    tensors |= {f"start.{position}": tensor for position, tensor in enumerate(state.start)}
    if state.best is not None:
        tensors |= {f"best.{position}": tensor for position, tensor in enumerate(state.best.parameters)}
    return tensors | {f"generator.{name}": tensor for name, tensor in state.generators.items()}


def document_progress(document: StateDocument, tensors: Mapping[str, torch.Tensor]) -> Progress:
    """The progress from its document and `progress_tensors`."""
    stage = document.underway
    return Progress(
        stage=document.stage,
        results=document.results,
        stage_state=None
        if stage is None
        else StageState(
            step=stage.step,
            result=stage.result,
            optimizer=_with_prefix("optimizer.", tensors),
            start=_in_order("start.", tensors),
            seed=stage.seed,
            best=None if stage.best is None else _best_epoch(*stage.best, tensors),
            generators=_with_prefix("generator.", tensors),
        ),
        frequencies=_frequencies(document),
        tuned=document.tuned,
        seconds=document.seconds,
    )


def _frequencies(document: StateDocument) -> Frequencies | None:
    """What the stage released."""
    fitted, words = document.frequencies, document.unlisted
    return None if fitted is None else {name: TableShares(fitted[name], words.get(name, ())) for name in fitted}


def _best_epoch(epoch: int, loss: float, tensors: Mapping[str, torch.Tensor]) -> BestEpoch:
    return BestEpoch(epoch=epoch, loss=loss, parameters=_in_order("best.", tensors))


def _in_order(prefix: str, tensors: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The tensors whose names are the prefix and a number."""
    numbered = sorted(_with_prefix(prefix, tensors).items(), key=lambda item: int(item[0]))
    return tuple(tensor for _, tensor in numbered)


def _with_prefix(prefix: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
