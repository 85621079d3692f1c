"""The privacy report as data. `privacy_report.json` in OUT/ is its public part; OUT.private/ has the whole."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from atdp_cli.privacy.guarantee import Guarantee

REPORT_FILE = "privacy_report.json"

Number = float | Literal["inf"] | None
"""A number, "inf", or null: for an ε where no DP stage ran, for a perplexity where there was no such token."""

NOT_COVERED = (
    "Records held out from training: their perplexity was measured, but ε does not cover them.",
    "Settings chosen by looking at the data, or at results on it.",
    "Term lists and spans taken from the data.",
    "A person or a secret that occurs in several records: ε is for one record, and grows fast with their number; "
    "atdp account --group says how fast.",
    "Other models from the same records: their ε adds to this one.",
    "Attacks on floating-point noise, and timing.",
)


CROSSCHECKED = (
    "What the cross-check's language model was sent, and who reads it there; which text is sensitive depends on its "
    "answers."
)
"""Not covered either, where a cross-check ran."""

REVIEWED = (
    "People's review while the run trained: lists were read anew before each epoch, and what people put on them may "
    "come from any record."
)
"""Not covered either, where people reviewed."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GuaranteeEntry(_Frozen):
    """One guarantee as the JSON shows it."""

    scope: Literal["end_to_end", "selective", "increment"]
    epsilon: Number
    delta: float
    adjacency: Literal["zero-out", "replace-one"]
    accountant: str
    assumptions: tuple[str, ...]


class StageEntry(_Frozen):
    """One stage as it was planned and run. σ is listed an epoch each.

    Attributes:
        text: What the stage read; null where it read no record.
        placeholders: Their style in redacted text; null for others.
        mechanism: `noise` has no gradient, `none` trains nothing.
        release_noise_multiplier: σ of the release that decoys are fitted by; null where none is.
        released_share: The corpus' share of sensitive tokens as released with noise, and `released_weight` the
            weight w that follows from it: post-processing of what the ledger holds.
        stopped_after: The epoch after which the canaries were below the bar, so that the stage took no further step.
            What it did not take is in its ε all the same.
    """

    name: str
    text: Literal["raw", "redacted", "decoy"] | None = None
    placeholders: str | None = None
    objective: str
    mechanism: Literal["plain", "dp-sgd", "noise", "none"]
    epochs: int = 0
    steps: int = 0
    batch: int = 0
    sampling_rate: float | None = None
    clip_norm: float | None = None
    noise_multipliers: tuple[float, ...] = ()
    release_noise_multiplier: float | None = None
    optimizer: str | None = None
    released_share: float | None = None
    released_weight: float | None = None
    stopped_after: int | None = None


class ReferenceEntry(_Frozen):
    """A public model that a stage read, and why it is held to be public."""

    past: Literal["public", "declared", "unknown"]
    weights: dict[str, str]


class CrossCheckEntry(_Frozen):
    """The language model that was asked about what is not flagged, and whether spans were masked in what it saw."""

    model: str
    masked: bool


class DetectorEntry(_Frozen):
    """Who marked the sensitive tokens."""

    tier: str
    pipeline: str | None
    lists: bool
    crosscheck: CrossCheckEntry | None = None


class EpsilonEntry(_Frozen):
    """ε of all private stages by each accountant, and without amplification, the samples of all steps being known."""

    pld: Number
    rdp: Number
    paper: Number
    without_amplification: Number


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
    references: tuple[ReferenceEntry, ...] = ()
    recipe: str
    stages: tuple[StageEntry, ...]
    detector: DetectorEntry
    engine: str
    engines_refused: tuple[str, ...] = ()
    noise_source: str
    insecure_seed: bool
    weights: dict[str, str]
    software: dict[str, str]
    created: str
    not_covered: tuple[str, ...] = NOT_COVERED


class PerplexityEntry(_Frozen):
    """exp of the mean negative log-likelihood a token."""

    all: Number
    sensitive: Number
    other: Number


class BeforeAfter(_Frozen):
    """Held-out perplexity of the checkpoint as given and of the file as written."""

    before: PerplexityEntry
    after: PerplexityEntry


class StagePrivate(_Frozen):
    """What a stage measured on private text.

    Attributes:
        seconds, processor_seconds: Of the stage without measuring, by the clock and of the processors.
        clamped: For weights from the record: the share of records whose own share of sensitive tokens was already at
            or above the target, so that w is 1 and their tokens weigh the same.
        sensitive_weight: The paper's r(w) as it came out at the start of the stage: the share of all weight, over the
            training records, that sensitive tokens carried; null where no token had weight.
    """

    name: str
    perplexities: tuple[PerplexityEntry, ...]
    mean_norms: tuple[float | None, ...]
    not_finite: int
    seconds: float
    processor_seconds: float
    clamped: float | None
    sensitive_weight: float | None


class PrivateReport(_Frozen):
    """The public report and what must stay with the records' owner.

    Attributes:
        sensitive_share: Of the held-out tokens, in [0, 1].
        planted_canaries: How many training records carry each canary of the manifest; null without one.
        seconds: Of the whole run; they depend on the text, so they are not public.
    """

    schema_version: Literal[1] = 1
    kind: Literal["atdp-private-report"] = "atdp-private-report"
    public: PublicReport
    seconds: float
    perplexity: BeforeAfter
    sensitive_share: float
    stages: tuple[StagePrivate, ...]
    planted_canaries: tuple[int, ...] | None


def guarantee_entries(found: Sequence[Guarantee]) -> tuple[GuaranteeEntry, ...]:
    """Guarantees in the form of the JSON."""
    return tuple(
        GuaranteeEntry(
            scope=one.scope,
            epsilon=json_number(one.epsilon),
            delta=one.delta,
            adjacency=one.adjacency,
            accountant=one.accountant,
            assumptions=one.assumptions,
        )
        for one in found
    )


def json_number(value: float | None) -> Number:
    """JSON has no infinity: it is spelt "inf"."""
    return "inf" if value is not None and math.isinf(value) else value


def json_numbers(values: Mapping[str, float | None]) -> dict[str, Number]:
    """`json_number` of every value."""
    return {name: json_number(value) for name, value in values.items()}
