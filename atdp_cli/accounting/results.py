"""The result of `account`, which `--json` prints."""

from typing import Any, Literal

from pydantic import SerializerFunctionWrapHandler, model_serializer

from atdp_cli.accounting.equal_steps import Parameters
from atdp_cli.files.documents import Frozen, Number
from atdp_cli.privacy.accountant import Epsilons
from atdp_cli.reporting.entries import GroupFigure, GuaranteeEntry

_WHERE_ASKED = ("ledgers", "parameters", "stages")


class ScopeEntry(Frozen):
    """The figures of a scope.

    Attributes:
        person: ε for so many records of one person, who changes them together.
    """

    scope: Literal["end_to_end", "selective", "declared", "uncounted", "increment"]
    adjacency: Literal["zero-out", "replace-one"]
    delta: float
    epsilon: Epsilons
    person: tuple[GroupFigure, ...]


class LedgerEpsilon(Frozen):
    """One of several ledgers, with ε of its noisy stages alone; null if it has none."""

    path: str
    delta: float
    epsilon: Number | None


class HypotheticalStage(Frozen):
    """A stage of a recipe that nobody has run. σ is listed an epoch each; without noise there is no sampling rate."""

    name: str
    epochs: int
    steps: int
    batch: int
    sampling_rate: float | None
    noise_multipliers: tuple[float, ...]
    release_noise_multiplier: float | None


class AccountSummary(Frozen):
    """`atdp account --json`. What was not asked about is None, and left out of the JSON.

    Attributes:
        scope, adjacency, epsilon: Of the strongest scope with a finite ε, whose figures are those to quote.
        scopes: All of them, the strongest first.
        sentences: What is guaranteed, the strongest scope first; empty for a run of equal steps.
        advice: How ε could be finite.
        ledgers: Each of several.
        parameters: Where a run of equal steps was asked about.
        stages: Where a recipe was.
    """

    schema_version: Literal[1] = 1
    scope: Literal["end_to_end", "selective", "declared", "uncounted", "increment"] | None
    adjacency: Literal["zero-out", "replace-one"] | None
    epsilon: Epsilons | None
    scopes: tuple[ScopeEntry, ...]
    unit: str
    delta: float
    grid: float
    insecure_seed: bool
    guarantees: tuple[GuaranteeEntry, ...]
    sentences: tuple[str, ...]
    advice: str | None
    ledgers: tuple[LedgerEpsilon, ...] | None = None
    parameters: Parameters | None = None
    stages: tuple[HypotheticalStage, ...] | None = None

    @model_serializer(mode="wrap")
    def _without_what_nobody_asked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = handler(self)
        return {name: value for name, value in members.items() if value is not None or name not in _WHERE_ASKED}
