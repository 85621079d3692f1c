"""The privacy report as data. `privacy_report.json` in OUT/ is its public part; OUT.private/ has the whole."""

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from atdp_cli.privacy.guarantee import Guarantee

REPORT_FILE = "privacy_report.json"

Epsilon = float | Literal["inf"] | None
"""A number, "inf", or null where no DP stage ran."""

NOT_COVERED = (
    "Records held out from training: their perplexity was measured, but ε does not cover them.",
    "Settings chosen by looking at the data, or at results on it.",
    "Term lists and spans taken from the data.",
    "Other models from the same records: their ε adds to this one.",
    "Attacks on floating-point noise, and timing.",
)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GuaranteeEntry(_Frozen):
    """One guarantee as the JSON shows it."""

    scope: Literal["end_to_end", "selective", "increment"]
    epsilon: Epsilon
    delta: float
    adjacency: Literal["zero-out", "replace-one"]
    accountant: str
    assumptions: tuple[str, ...]


class StageEntry(_Frozen):
    """One stage as it was planned and run. σ is listed an epoch each."""

    name: str
    text: Literal["raw", "redacted"]
    objective: str
    mechanism: Literal["plain", "dp-sgd"]
    epochs: int
    steps: int
    batch: int
    sampling_rate: float | None
    clip_norm: float | None
    noise_multipliers: tuple[float, ...]
    optimizer: str


class DetectorEntry(_Frozen):
    """Who marked the sensitive tokens."""

    tier: str
    pipeline: str | None
    lists: bool


class EpsilonEntry(_Frozen):
    """ε of all private stages by each accountant."""

    pld: float
    rdp: float
    paper: float


class PublicReport(_Frozen):
    """What may be published with the model: no text, no file names, no figure measured on private text."""

    schema_version: Literal[1] = 1
    kind: Literal["atdp-report"] = "atdp-report"
    verdict: tuple[str, ...]
    guarantees: tuple[GuaranteeEntry, ...]
    epsilon: EpsilonEntry | None
    delta: float
    unit: str
    adjacency: Literal["zero-out"] = "zero-out"
    records: int
    held_out: int
    prior: Literal["public", "unknown"]
    inherited_ledger: bool
    recipe: str
    stages: tuple[StageEntry, ...]
    detector: DetectorEntry
    engine: str
    noise_source: str
    seconds: float
    weights: dict[str, str]
    software: dict[str, str]
    created: str
    not_covered: tuple[str, ...] = NOT_COVERED


class PerplexityEntry(_Frozen):
    """exp of the mean negative log-likelihood a token."""

    all: float | None
    sensitive: float | None
    other: float | None


class BeforeAfter(_Frozen):
    """Held-out perplexity of the checkpoint as given and of the file as written."""

    before: PerplexityEntry
    after: PerplexityEntry


class StagePrivate(_Frozen):
    """What a stage measured on private text."""

    name: str
    perplexities: tuple[PerplexityEntry, ...]
    mean_norms: tuple[float | None, ...]
    not_finite: int


class PrivateReport(_Frozen):
    """The public report and what must stay with the records' owner.

    Attributes:
        sensitive_share: Of the held-out tokens, in [0, 1].
        planted_canaries: Training records that are canaries of the manifest; null without one.
    """

    public: PublicReport
    perplexity: BeforeAfter
    sensitive_share: float
    stages: tuple[StagePrivate, ...]
    planted_canaries: int | None


def guarantee_entries(found: Sequence[Guarantee]) -> tuple[GuaranteeEntry, ...]:
    """Guarantees in the form of the JSON."""
    return tuple(
        GuaranteeEntry(
            scope=one.scope,
            epsilon=json_epsilon(one.epsilon),
            delta=one.delta,
            adjacency=one.adjacency,
            accountant=one.accountant,
            assumptions=one.assumptions,
        )
        for one in found
    )


def json_epsilon(value: float | None) -> Epsilon:
    """JSON has no infinity: it is spelt "inf"."""
    return "inf" if value is not None and math.isinf(value) else value
