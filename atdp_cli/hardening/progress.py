"""The progress of a run. A checkpoint, and another process, gets it as a document and the tensors that are in it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from atdp_cli.hardening.budget import Cursor
from atdp_cli.replacement.frequencies import Frequencies
from atdp_cli.training.examples import Weighing
from atdp_cli.training.search import Tuned
from atdp_cli.training.state import StageResult, StageState


@dataclass(frozen=True, kw_only=True, eq=False)
class Progress:
    """The progress of a run, apart from its model.

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
    def cursor(self) -> Cursor:
        """Its position in the plan."""
        step = 0 if self.stage_state is None else self.stage_state.step
        return Cursor(stage=self.stage, step=step, released=self.frequencies is not None)


def take_tensors(progress: Progress) -> tuple[Progress, dict[str, torch.Tensor]]:
    """The progress without its tensors, and these by name: optimizer, start, best epoch, generators."""
    if (state := progress.stage_state) is None:
        return progress, {}
    tensors = {f"optimizer.{name}": tensor for name, tensor in state.optimizer.items()}
    tensors |= {f"start.{position}": tensor for position, tensor in enumerate(state.start)}
    tensors |= {f"generator.{name}": tensor for name, tensor in state.generators.items()}
    best = state.best
    if best is not None:
        tensors |= {f"best.{position}": tensor for position, tensor in enumerate(best.parameters)}
        best = replace(best, parameters=())
    return replace(progress, stage_state=replace(state, optimizer={}, start=(), generators={}, best=best)), tensors


def put_tensors(progress: Progress, tensors: Mapping[str, torch.Tensor]) -> Progress:
    """The progress from both results of `take_tensors`; tensors of the model are left aside."""
    if (state := progress.stage_state) is None:
        return progress
    state = replace(
        state,
        optimizer=_with_prefix("optimizer.", tensors),
        start=_in_order("start.", tensors),
        generators=_with_prefix("generator.", tensors),
        best=None if state.best is None else replace(state.best, parameters=_in_order("best.", tensors)),
    )
    return replace(progress, stage_state=state)


def _in_order(prefix: str, tensors: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The tensors whose names are the prefix and a number."""
    numbered = sorted(_with_prefix(prefix, tensors).items(), key=lambda item: int(item[0]))
    return tuple(tensor for _, tensor in numbered)


def _with_prefix(prefix: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
