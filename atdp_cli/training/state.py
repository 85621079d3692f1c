"""What a stage has done: when it is over, and between two of its steps, from where it can go on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

from atdp_cli.model.perplexity import Perplexity


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """What a stage did; all of it is private but for `ended_after`.

    Attributes:
        perplexities: Held-out perplexity after each epoch.
        mean_norms: Mean gradient norm of the records of each step before clipping; None for an empty step.
        not_finite: Records whose gradient was not finite and that added nothing, counted over all steps.
        stopped_after: The epoch after which it was enough; None where the stage went on.
        ended_after: The last step that the allowed ε has room for; None where it has room for all. Where the stage
            stopped before it, the steps up to it are spent.
        tokens: Read by all steps.
        seconds, processor_seconds: Of all but the measuring, by the clock and of the processors.
    """

    perplexities: tuple[Perplexity, ...]
    mean_norms: tuple[float | None, ...] = ()
    not_finite: int = 0
    stopped_after: int | None = None
    ended_after: int | None = None
    tokens: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class StageState:
    """A stage after some of its steps: what it needs to go on, besides the model. No key of a stream is in it.

    The tensors are the living ones, which the next step changes.

    Attributes:
        step: Steps taken. Where the last of them ends an epoch, all that belongs to the epoch's end is done.
        result: Of these steps.
        optimizer: As `optimizer_tensors` has them.
        start: What weight decay draws towards, a tensor for each trained parameter; none where that is zero.
        seed: What a plain stage's order comes from; None for a stage with noise.
        generators: The states of torch's own generators, by device: dropout goes on where it was. None for a stage
            with noise, which draws nothing from them.
    """

    step: int
    result: StageResult
    optimizer: Mapping[str, torch.Tensor]
    start: tuple[torch.Tensor, ...] = ()
    seed: int | None = None
    generators: Mapping[str, torch.Tensor] = field(default_factory=dict)


@dataclass(kw_only=True)
class StageMetrics:
    """What a stage has measured so far, added up step by step; as `StageResult` has it."""

    perplexities: list[Perplexity]
    mean_norms: list[float | None]
    not_finite: int
    tokens: int

    @classmethod
    def since(cls, begun: StageState | None) -> "StageMetrics":
        """Goes on from where a stage stands; None for its beginning."""
        before = StageResult(perplexities=()) if begun is None else begun.result
        return cls(
            perplexities=list(before.perplexities),
            mean_norms=list(before.mean_norms),
            not_finite=before.not_finite,
            tokens=before.tokens,
        )

    def count(self, norms: torch.Tensor) -> None:
        """Take in the norms of a step's records."""
        finite = norms[torch.isfinite(norms)]
        self.mean_norms.append(float(finite.mean()) if len(finite) else None)
        self.not_finite += len(norms) - len(finite)

    def result(self, *, stopped_after: int | None = None, ended_after: int | None = None) -> StageResult:
        """All that was measured."""
        return StageResult(
            perplexities=tuple(self.perplexities),
            mean_norms=tuple(self.mean_norms),
            not_finite=self.not_finite,
            stopped_after=stopped_after,
            ended_after=ended_after,
            tokens=self.tokens,
        )


AfterStep = Callable[[Callable[[], StageState]], None]
"""Is called after each step with what tells where the stage stands; what it raises ends the stage."""


def ignore_state(underway: Callable[[], StageState]) -> None:
    """The `AfterStep` that keeps nothing."""


def generator_states() -> dict[str, torch.Tensor]:
    """The states of torch's generators, bytes each."""
    devices = {f"cuda:{place}": state for place, state in enumerate(_cuda_states())}
    return {"cpu": torch.get_rng_state(), **devices}


def set_generators(states: Mapping[str, torch.Tensor]) -> None:
    """Put torch's generators where they were, as far as there are such devices here."""
    if "cpu" in states:
        torch.set_rng_state(states["cpu"])
    for place in range(torch.cuda.device_count()):
        if (state := states.get(f"cuda:{place}")) is not None:
            torch.cuda.set_rng_state(state, place)


def _cuda_states() -> list[torch.Tensor]:
    # To ask for the state of a GPU that is not in use would take it into use.
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.cuda.get_rng_state_all() if in_use else []
