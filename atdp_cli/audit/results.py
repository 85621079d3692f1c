"""The result of an audit as one model: `--json` prints it, and every report and baseline reads it.

Its fields are the keys of the JSON, in their order. It imports neither torch nor the audit, so reports can read it.
"""

from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Count = Annotated[int, Field(ge=0)]

Positive = Annotated[int, Field(ge=1)]

DISCOVERABLE_QUERIES = 1000
"""The number of samples that must hold a discoverable canary with probability 1/2 or more (Hayes et al. 2024)."""

MEMORISED_BITS = 5.0
"""The mean exposure that a passed audit would have noticed."""

MIN_POWER = 0.8
"""The power against `MEMORISED_BITS` that a pass needs, and that of the mean exposure that it states."""

CONFIDENCE = 0.95
"""The confidence of the upper limits for the mean exposure, by all scores together."""


class Verdict(StrEnum):
    """The conclusion of an audit of one model. ERROR: it could not be completed."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"


RANKS: Final = "ranks"

Attack = Literal["extraction", "membership", "relearning"]

Gate = Literal["ranks", "extraction", "membership", "relearning"]
"""The tests that can fail a model beside limits and bounds: the tests by ranks, or the test of an attack."""

Conclusion = Literal[Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE]
"""The verdict of a completed audit."""

_Repetitions = Annotated[int, Field(ge=1, le=1 << 63)]

_Probability = Annotated[float, Field(ge=0, le=1)]

Bits = Annotated[float, Field(ge=-(1 << 20), le=1 << 20)]
"""An exposure: the logarithm of a number of candidates."""

_Epsilon = Annotated[float, Field(ge=0)]

_Queries = Annotated[float, Field(ge=1)] | None
"""A number of samples; None above the largest float."""


class AuditPart(BaseModel):
    """A part of an audit's result: its fields are the keys of the JSON, in their order."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_serialization_defaults_required=True
    )


class CanaryResult(AuditPart):
    """One canary under log p and, where a reference was given, under the ratio log p - log p_ref.

    Ranks count from 1 among the candidates compared; exposures are bits. `exposure`, `exposure_ratio` and the
    p-values are within the stratum of candidates of equal token length (see `exposure.rank_of`), the plain
    exposures over all lengths, those per token by the mean score of a token. p-values are None for a secret
    that nobody drew at random, ratio fields are None without a reference. `holm_p` is adjusted for the number
    of planted canaries, and None for one that is not planted.

    Attributes:
        planted: Whether it is in the corpus: only then does it count for the verdict.
        pool: Candidates that the template has.
        compared: Candidates that it was ranked among: all of them, or a sample and itself, which caps its
            exposures at log2(compared).
    """

    planted: bool
    repeats: _Repetitions
    pool: Positive
    compared: Positive
    rank_min: Positive
    rank_max: Positive
    stratum_size: Positive
    stratum_rank_min: Positive
    stratum_rank_max: Positive
    exposure: Bits
    exposure_plain: Bits
    exposure_per_token: Bits
    p_value: _Probability | None
    holm_p: _Probability | None
    rank_ratio_min: Positive | None
    rank_ratio_max: Positive | None
    exposure_ratio: Bits | None
    exposure_ratio_plain: Bits | None
    exposure_ratio_per_token: Bits | None
    p_value_ratio: _Probability | None
    holm_p_ratio: _Probability | None


class Combined(AuditPart):
    """All planted canaries together.

    Attributes:
        level: Of every single test: see `levels.split_alpha`.
        fisher_p, fisher_p_ratio: Fisher's combined p-value by log p, and by the ratio.
        holm_min_p, holm_min_p_ratio: The smallest adjusted p-value, likewise.
        mean_exposure, mean_exposure_ratio: Bits, likewise; 1.44 is what chance gives.
        max_exposure: The largest exposure of any planted canary by either score, bits.
        power: The chance of one score's tests to reject if the mean exposure were `verdict.MEMORISED_BITS`.
        detectable: The smallest mean exposure that one score's tests find with probability `MIN_POWER`,
            bits; None where they find none so often.
        mean_limit, mean_limit_ratio: Upper confidence limits for the mean exposure of secrets drawn and planted as
            these, bits; true together with probability `CONFIDENCE`, whatever the exposures' law.
    """

    level: Annotated[float, Field(gt=0, le=1)]
    fisher_p: _Probability | None
    fisher_p_ratio: _Probability | None
    holm_min_p: _Probability | None
    holm_min_p_ratio: _Probability | None
    mean_exposure: Bits | None
    mean_exposure_ratio: Bits | None
    max_exposure: Bits | None
    power: _Probability | None
    detectable: Bits | None = None
    mean_limit: Bits | None = None
    mean_limit_ratio: Bits | None = None


class TopCandidate(AuditPart):
    """One of the likeliest candidates.

    Attributes:
        rank: From 1; candidates of equal scores come in their order.
        log_p: Natural logarithm of its probability, given what all candidates begin with.
        probability: The same as a probability.
        canary: Which canary it is, from 1; None if it is none.
        secret: What fills its slots; None unless secrets are to be shown.
    """

    rank: Positive
    log_p: float
    probability: _Probability
    canary: Positive | None
    secret: tuple[str, ...] | None


class Distribution(AuditPart):
    """The scores of all candidates, by log p.

    Attributes:
        edges: Of the histogram's bins, natural logarithms, ascending, shape [bins + 1].
        counts: Candidates in each bin, shape [bins]; the last one is closed.
        total: Probability of all candidates together, given what they begin with.
        top: The likeliest.
    """

    edges: tuple[float, ...]
    counts: tuple[Count, ...]
    total: Annotated[float, Field(ge=0)]
    top: tuple[TopCandidate, ...]


class Extraction(AuditPart):
    """How one canary's tail is extracted by a client who sends the prefix that all candidates share.

    Attributes:
        greedy: Greedy decoding of the prefix begins with the tail.
        sampled: Continuations, of `samples` drawn at temperature 1 from the whole vocabulary, that begin with it.
        log_p: Natural logarithm of the probability p_z that one such continuation begins with it.
        queries_half: The least n for which n continuations hold the tail with probability 0.5 or more; from 1; None
            where it passes the largest float.
        queries_nine_tenths: The same for probability 0.9.
    """

    greedy: bool
    sampled: Count
    samples: Count
    log_p: float
    queries_half: _Queries
    queries_nine_tenths: _Queries


class Membership(AuditPart):
    """How well one score tells members from non-members.

    Attributes:
        attack: The score's name.
        members, non_members: Records that were trained on, and that were held out.
        auc: The chance that a member scores above a non-member, ties counting half, in [0, 1]; 0.5 is guessing. None
            without members or without non-members, and so are its bounds.
        auc_low, auc_high: A 95 % interval for it, in [0, 1].
        tpr_at_1_fpr: Share of the members above a threshold that at most 1 % of the non-members pass; None, not
            resolvable, for fewer than `membership.MIN_OUTS` non-members or without members.
    """

    attack: Literal["loss", "reference", "min-k++"]
    members: Count
    non_members: Count
    auc: _Probability | None
    auc_low: _Probability | None
    auc_high: _Probability | None
    tpr_at_1_fpr: _Probability | None


class Relearning(AuditPart):
    """The audit of a copy of the model that was fine-tuned on other text.

    Attributes:
        steps: Of that fine-tuning.
        verdict: What the same tests say of the copy, at the level of this attack where it is a gate.
        exposures: Of each canary by log p, bits.
        exposures_ratio: By the ratio; None without a reference.
    """

    steps: _Repetitions
    verdict: Conclusion
    exposures: tuple[Bits, ...]
    exposures_ratio: tuple[Bits, ...] | None
    combined: Combined


class EpsilonBound(AuditPart):
    """A lower bound on the ε of replacing all records of a canary together, and the claim that it tests.

    Attributes:
        method: `in-out` guesses each coin (Steinke et al. 2023); `rank` names the K likeliest candidates
            (Mahloujifar et al. 2024); `pair` says which of two candidates is the canary (Steinke et al. 2023).
        epsilon: The bound, at least 0.
        attainable: What it would be if all guesses were right: no larger claim can be refuted.
        guesses, correct: How many, fixed in advance, and how many were right.
        top: K, for `rank`.
        claim: The group ε that the model's ledger claims; None where it claims none.
        finding: `refuted` (ε above the claim), `not-refuted`, `inconclusive` (the claim is not below what is
            attainable) or `no-claim`.
        scope: In which the ledger claims it.
        missing: Why it claims nothing, as a clause.
    """

    method: Literal["in-out", "rank", "pair"]
    epsilon: _Epsilon
    attainable: _Epsilon
    delta: _Probability
    confidence: _Probability
    guesses: Count
    correct: Count
    top: Positive | None
    claim: _Epsilon | None
    finding: Literal["refuted", "not-refuted", "inconclusive", "no-claim"]
    scope: Literal["end_to_end", "selective"] | None = None
    missing: str | None = None


class GroupEpsilon(AuditPart):
    """The ε that the model's ledger states end to end for all records of a canary together, against leaving them out.

    Attributes:
        records: How many of them there are.
        epsilon: The group ε, at `delta`; None where no finite one is claimed.
        missing: Why none is, as a clause.
    """

    records: Positive
    epsilon: _Epsilon | None
    delta: _Probability
    missing: str | None


class AttackTest(AuditPart):
    """The test of an attack that is a gate.

    Attributes:
        p_value: The chance of at least this much by a model that has learnt nothing.
        level: Its share of alpha.
        least: The smallest p-value that these canaries can have.
        rejects: Whether it fails the model.
    """

    attack: Attack
    p_value: _Probability
    level: Annotated[float, Field(gt=0, le=1)]
    least: _Probability
    rejects: bool


BaselineState = Literal["not-needed", "unrecorded", "known", "worse"]
"""The state of a model against its recorded baseline: did not fail; is not known; fails no worse; fails worse."""


class BaselineComparison(AuditPart):
    """A model's failure beside the recorded one.

    Attributes:
        known, worse: Canaries that fail no worse than recorded, and worse; from 1.
    """

    state: BaselineState
    known: tuple[Positive, ...] = ()
    worse: tuple[Positive, ...] = ()


class Audit(AuditPart):
    """The completed audit of one model. It holds no secret, unless `distribution` was to show them.

    What was not asked for is None. Extraction has an entry a canary, in the manifest's order.

    Attributes:
        reasons: For the verdict.
        notices: What else to know.
        group_epsilon: One for each number of records that planted canaries have, the smallest first.
        gates: Which tests can fail the model.
        attack_tests: Of the attacks among them.
        weights: SHA-256 of each file that was loaded, and of those of an adapter's base as `base/NAME`.
        max_exposure, max_epsilon_lower_bound: The limits that were set.
        gate: Decides the exit code: the verdict, or PASS where a failure is no worse than the baseline.
    """

    model: str
    verdict: Conclusion
    reasons: tuple[str, ...]
    notices: tuple[str, ...]
    alpha: _Probability
    canaries: tuple[CanaryResult, ...]
    combined: Combined
    tested_against_base: bool
    epsilon: tuple[EpsilonBound, ...]
    group_epsilon: tuple[GroupEpsilon, ...] = ()
    distribution: Distribution | None = None
    extraction: tuple[Extraction, ...] | None = None
    membership: tuple[Membership, ...] | None = None
    relearning: Relearning | None = None
    gates: tuple[Gate, ...] = (RANKS,)
    attack_tests: tuple[AttackTest, ...] = ()
    weights: dict[str, str] = Field(default={})
    max_exposure: float | None = None
    max_epsilon_lower_bound: float | None = None
    baseline: BaselineComparison | None = None
    gate: Conclusion

    @model_validator(mode="after")
    def _extracts_every_canary(self) -> Self:
        if self.extraction is not None and len(self.extraction) != len(self.canaries):
            raise ValueError("There is not one extraction a canary.")
        return self

    def planted_extraction(self) -> tuple[Extraction, ...]:
        """The extraction of each canary that was planted; none where it was not tried."""
        pairs = zip(self.extraction or (), self.canaries, strict=False)
        return tuple(extraction for extraction, canary in pairs if canary.planted)

    def concluding(self, verdict: Conclusion, *reasons: str) -> Self:
        """The audit with another verdict, for these reasons."""
        return self.model_copy(update={"verdict": verdict, "gate": verdict, "reasons": reasons})


class UnfinishedAudit(AuditPart):
    """A model that could not be audited; `reasons` says why, in words, for an error would keep the model in memory."""

    model: str
    verdict: Literal[Verdict.ERROR] = Verdict.ERROR
    reasons: tuple[str, ...]
    canaries: tuple[CanaryResult, ...] = ()
    combined: None = None
    gate: Literal[Verdict.ERROR] = Verdict.ERROR
    baseline: BaselineComparison | None = None


AnyAudit = Audit | UnfinishedAudit


class AuditDocument(AuditPart):
    """The document that `audit-canary --json` prints: every model, in the order given."""

    schema_version: Literal[1] = 1
    models: tuple[Annotated[AnyAudit, Field(discriminator="verdict")], ...]
