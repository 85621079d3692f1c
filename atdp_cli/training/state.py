"""A stage's result, and its state between two steps, from which it can resume."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

from atdp_cli.model.perplexity import Perplexity
from atdp_cli.training.search import Tuned


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """The result of a stage; all of it is private but for `ended_after`, `restored_epoch` and the η of `tuned`.

    Attributes:
        perplexities: Held-out perplexity after each epoch.
        mean_norms: Mean gradient norm of the records of each step before clipping; None for an empty step.
        not_finite: Records whose gradient was not finite and that added nothing, counted over all steps.
        ended_after: The last step that the allowed ε has room for; None where it has room for all.
        tokens: Read by all steps.
        tuned: The learning rate that a search chose, and its trials; None without a search.
        unlisted_words: The words that no public list has and that the stage's release had.
        restored_epoch: The epoch whose weights the stage has in the end; None where it does not go back to the best.
        seconds, processor_seconds: Wall-clock and CPU seconds without those of measuring.
    """

    perplexities: tuple[Perplexity, ...]
    mean_norms: tuple[float | None, ...] = ()
    not_finite: int = 0
    ended_after: int | None = None
    tokens: int = 0
    tuned: Tuned | None = None
    unlisted_words: tuple[str, ...] = ()
    restored_epoch: int | None = None
    seconds: float = 0.0
    processor_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class BestEpoch:
    """The epoch after which a stage's loss on decoyed held-out text was lowest so far.

    Attributes:
        loss: In nats a token. Private.
        parameters: Copies of the trained ones, in the order of the model.
    """

    epoch: int
    loss: float
    parameters: tuple[torch.Tensor, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class StageState:
    """A stage after some of its steps: what it needs to resume, besides the model. No key of a stream is in it.

    The tensors are not copies: the next step changes them.

    Attributes:
        step: Steps taken. Where the last of them ends an epoch, all that belongs to the epoch's end is done.
        result: Of these steps.
        optimizer: As `optimizer_tensors` has them.
        start: The parameters at the start of the stage, one tensor for each trained parameter, where the
            loss compares with them; else empty.
        seed: Of a plain stage's order; None for a stage with noise.
        best: None where the stage keeps its last epoch, or none is over.
        generators: The states of torch's own generators, by device, so that dropout continues its sequence. Empty for
            a stage with noise, which draws nothing from them.
    """

    step: int
    result: StageResult
    optimizer: Mapping[str, torch.Tensor]
    start: tuple[torch.Tensor, ...] = ()
    seed: int | None = None
    best: BestEpoch | None = None
    generators: Mapping[str, torch.Tensor] = field(default_factory=dict)


@dataclass(kw_only=True)
class StageMetrics:
    """The measurements of a stage so far, with the meanings of `StageResult`."""

    perplexities: list[Perplexity]
    mean_norms: list[float | None]
    not_finite: int
    tokens: int

    @classmethod
    def resumed(cls, state: StageState | None) -> "StageMetrics":
        """The metrics of the steps that a state has behind it; None for a stage that starts."""
        before = StageResult(perplexities=()) if state is None else state.result
        return cls(
            perplexities=list(before.perplexities),
            mean_norms=list(before.mean_norms),
            not_finite=before.not_finite,
            tokens=before.tokens,
        )

    def count(self, tokens: int, norms: torch.Tensor | None) -> None:
        """Count a step's tokens and, for a step that clips, its records' gradient norms, shape [records]."""
        self.tokens += tokens
        if norms is None:
            return
        finite = norms[torch.isfinite(norms)]
        self.mean_norms.append(float(finite.mean()) if len(finite) else None)
        self.not_finite += len(norms) - len(finite)

    def result(
        self,
        *,
        ended_after: int | None = None,
        restored_epoch: int | None = None,
    ) -> StageResult:
        """The metrics as a result."""
        return StageResult(
            perplexities=tuple(self.perplexities),
            mean_norms=tuple(self.mean_norms),
            not_finite=self.not_finite,
            ended_after=ended_after,
            restored_epoch=restored_epoch,
            tokens=self.tokens,
        )


AfterStep = Callable[[Callable[[], StageState]], None]
"""Called after each step with a function that gives the stage's state; an exception from it ends the stage."""


def ignore_state(state: Callable[[], StageState]) -> None:
    """The `AfterStep` that saves nothing."""


def generator_states() -> dict[str, torch.Tensor]:
    """The states of torch's generators, bytes each."""
    # Asking for the state of a GPU that is not in use would initialise it.
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    cuda_states = torch.cuda.get_rng_state_all() if in_use else []
    return {"cpu": torch.get_rng_state(), **{f"cuda:{index}": state for index, state in enumerate(cuda_states)}}


def set_generators(states: Mapping[str, torch.Tensor]) -> None:
    """Restore torch's generators, as far as this machine has their devices."""
    if "cpu" in states:
        torch.set_rng_state(states["cpu"])
    for index in range(torch.cuda.device_count()):
        if (state := states.get(f"cuda:{index}")) is not None:
            torch.cuda.set_rng_state(state, index)
