"""What an audit finds, as one model: the job makes it, `--json` prints it, and every report and baseline reads it.

Its fields are the keys of the JSON, in their order. It belongs to no room, as `audit` makes it and `report` reads it.
"""

from enum import StrEnum
from math import isfinite
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

DISCOVERABLE_QUERIES = 1000
"""A canary is called discoverable where so many samples hold it with probability 1/2 or more (Hayes et al. 2024)."""


class Verdict(StrEnum):
    """What an audit concludes of one model. ERROR: it could not be completed."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"


Conclusion = Literal[Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE]
"""The verdict of a completed audit."""

_Count = Annotated[int, Field(ge=0)]
_Positive = Annotated[int, Field(ge=1)]
_Repetitions = Annotated[int, Field(ge=1, le=1 << 63)]
"""Whole numbers that charts and tables take as floats."""
_Probability = Annotated[float, Field(ge=0, le=1)]
_Epsilon = Annotated[float, Field(ge=0)]
_Queries = Annotated[
    Annotated[float, Field(ge=1, allow_inf_nan=True)] | None,
    AfterValidator(lambda queries: queries if queries is not None and isfinite(queries) else None),
]
"""How many samples; None where that passes the largest float."""


class _Result(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_serialization_defaults_required=True
    )


class CanaryResult(_Result):
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
    pool: _Positive
    compared: _Positive
    rank_min: _Positive
    rank_max: _Positive
    stratum_size: _Positive
    stratum_rank_min: _Positive
    stratum_rank_max: _Positive
    exposure: float
    exposure_plain: float
    exposure_per_token: float
    p_value: _Probability | None
    holm_p: _Probability | None
    rank_ratio_min: _Positive | None
    rank_ratio_max: _Positive | None
    exposure_ratio: float | None
    exposure_ratio_plain: float | None
    exposure_ratio_per_token: float | None
    p_value_ratio: _Probability | None
    holm_p_ratio: _Probability | None


class Combined(_Result):
    """All planted canaries together.

    Attributes:
        level: Of every single test: alpha / 2, halved again where there are two scores.
        fisher_p, fisher_p_ratio: Fisher's combined p-value by log p, and by the ratio.
        holm_min_p, holm_min_p_ratio: The smallest adjusted p-value, likewise.
        mean_exposure, mean_exposure_ratio: Bits, likewise; 1.44 is what chance gives.
        max_exposure: The largest exposure of any planted canary by either score, bits.
        power: The chance of one score's tests to reject if the mean exposure were `verdict.MEMORISED_BITS`.
    """

    level: Annotated[float, Field(gt=0, le=1)]
    fisher_p: _Probability | None
    fisher_p_ratio: _Probability | None
    holm_min_p: _Probability | None
    holm_min_p_ratio: _Probability | None
    mean_exposure: float | None
    mean_exposure_ratio: float | None
    max_exposure: float | None
    power: _Probability | None


class EpsilonBound(_Result):
    """A lower bound on the ε of all records of a canary together, and the claim that it tests.

    Attributes:
        method: `in-out` guesses each coin (Steinke et al. 2023); `rank` names the K likeliest candidates
            (Mahloujifar et al. 2024).
        adjacency: What the records of one canary are compared with: none of them, or those of another secret.
        epsilon: The bound, at least 0.
        attainable: What it would be if all guesses were right: no larger claim can be refuted.
        guesses: How many, fixed in advance.
        correct: How many were right.
        top: K, for `rank`.
        claim: The group ε that the model's ledger claims end to end; None where it claims none.
        finding: `refuted` (ε above the claim), `not-refuted`, `inconclusive` (the claim is not below what is
            attainable) or `no-claim`.
    """

    method: Literal["in-out", "rank"]
    adjacency: Literal["zero-out", "replace-one"]
    epsilon: _Epsilon
    attainable: _Epsilon
    delta: _Probability
    confidence: _Probability
    guesses: _Count
    correct: _Count
    top: _Positive | None
    claim: _Epsilon | None
    finding: Literal["refuted", "not-refuted", "inconclusive", "no-claim"]


class TopCandidate(_Result):
    """One of the likeliest candidates.

    Attributes:
        rank: From 1; candidates of equal scores come in their order.
        log_p: Natural logarithm of its probability, given what all candidates begin with.
        probability: The same as a probability.
        canary: Which canary it is, from 1; None if it is none.
        secret: What fills its slots; None unless secrets are to be shown.
    """

    rank: _Positive
    log_p: float
    probability: _Probability
    canary: _Positive | None
    secret: tuple[str, ...] | None


class Distribution(_Result):
    """The scores of all candidates, by log p.

    Attributes:
        edges: Of the histogram's bins, natural logarithms, ascending, shape [bins + 1].
        counts: Candidates in each bin, shape [bins]; the last one is closed.
        total: Probability of all candidates together, given what they begin with.
        top: The likeliest.
    """

    edges: tuple[float, ...]
    counts: tuple[_Count, ...]
    total: Annotated[float, Field(ge=0)]
    top: tuple[TopCandidate, ...]


class Extraction(_Result):
    """How one canary's tail is extracted by a client who sends the prefix that all candidates share.

    Attributes:
        greedy: Greedy decoding of the prefix begins with the tail.
        sampled: Continuations, of `samples` drawn at temperature 1 from the whole vocabulary, that begin with it.
        samples: Continuations drawn.
        log_p: Natural logarithm of the probability p_z that one such continuation begins with it.
        queries_half: The least n for which n continuations hold the tail with probability 0.5 or more; from 1; None
            where it passes the largest float.
        queries_nine_tenths: The same for probability 0.9.
    """

    greedy: bool
    sampled: _Count
    samples: _Count
    log_p: float
    queries_half: _Queries
    queries_nine_tenths: _Queries


class Membership(_Result):
    """How well one score tells members from non-members.

    Attributes:
        attack: The score's name.
        members: Records that were trained on.
        non_members: Records that were held out.
        auc: The chance that a member scores above a non-member, ties counting half, in [0, 1]; 0.5 is guessing. None
            without members or without non-members, and so are its bounds.
        auc_low, auc_high: A 95 % interval for it, in [0, 1].
        tpr_at_1_fpr: Share of the members above a threshold that at most 1 % of the non-members pass; None, not
            resolvable, for fewer than `membership.LEAST_OUTS` non-members or without members.
    """

    attack: Literal["loss", "reference", "min-k++"]
    members: _Count
    non_members: _Count
    auc: _Probability | None
    auc_low: _Probability | None
    auc_high: _Probability | None
    tpr_at_1_fpr: _Probability | None


class Relearning(_Result):
    """The audit of a copy of the model that was fine-tuned on other text.

    Attributes:
        steps: Of that fine-tuning.
        verdict: What the same tests say of the copy; the model's own verdict does not count it.
        exposures: Of each canary by log p, bits.
        exposures_ratio: By the ratio; None without a reference.
    """

    steps: _Repetitions
    verdict: Conclusion
    exposures: tuple[float, ...]
    exposures_ratio: tuple[float, ...] | None
    combined: Combined


class NumberResult(_Result):
    """How a model ranks a number of the corpus among those of its format. Holds no text.

    Nobody drew it at random, so its exposure is no evidence of memory by itself: dates and years are likelier than
    other digits before any training. That by the ratio takes out what was likely before.

    By log p of the number given the record's text before it, and by the ratio log p - log p_ref; ratio fields are
    None without a reference. Ranks count from 1 among all candidates compared. `exposure` and `exposure_ratio` are
    within the stratum of equal token length, as a canary's are: numbers of few tokens are likelier than others in any
    model. The plain exposures are over all lengths. Bits.

    Attributes:
        record: Which record of the corpus, from 1: the line of the spans file.
        line: The line of the corpus on which the record begins, from 1; None where the corpus has no lines.
        start, end: Code points of the record's text, end exclusive.
        label: What the detector took it for.
        pool: Numbers of its format.
        compared: Candidates that it was ranked among: all of them, or a sample and itself, which caps its plain
            exposures at log2(compared).
        stratum_size: Those of its token length, which cap its exposures at log2(stratum_size).
    """

    record: _Positive
    line: _Positive | None
    start: _Count
    end: _Positive
    label: str
    pool: _Positive
    compared: _Positive
    rank_min: _Positive
    rank_max: _Positive
    stratum_size: _Positive
    exposure: float
    exposure_plain: float
    exposure_ratio: float | None
    exposure_ratio_plain: float | None

    @property
    def judged_exposure(self) -> float:
        """The exposure that a limit is compared with: by the ratio where there is a reference, bits."""
        return self.exposure if self.exposure_ratio is None else self.exposure_ratio


class NumberResults(_Result):
    """The numbers of the corpus itself, uncalibrated. Holds no text.

    Attributes:
        eligible: Numbers of the corpus that could be tested.
        skipped_short, skipped_long: Spans with digits, and too few or too many of them.
        skipped_repeated: Spans whose text is in the same record before: copying it takes no memory.
        tested: How many `results` there are.
        skipped_context: Numbers of the sample that no one window of this model's context holds with all of their
            alternatives, or with no token before them.
        skipped_tokens: Numbers of the sample that have other tokens in the whole record, where text follows them,
            than alone: training saw those.
        mean_exposure: Bits, None where none was tested; 1.44 if the numbers were uniform and not remembered.
        mean_exposure_ratio: The same by the ratio; None without a reference.
        max_exposure: The largest `exposure` or `exposure_ratio`, bits.
    """

    eligible: _Count
    tested: _Count
    skipped_short: _Count
    skipped_long: _Count
    skipped_repeated: _Count
    skipped_context: _Count
    skipped_tokens: _Count
    results: tuple[NumberResult, ...]
    mean_exposure: float | None
    mean_exposure_ratio: float | None
    max_exposure: float | None


class BaselineComparison(_Result):
    """A model's failure beside the recorded one.

    Attributes:
        known: Canaries that fail no worse than recorded, from 1.
        worse: Canaries that fail worse.
    """

    state: Literal["not-needed", "unrecorded", "known", "worse"]
    known: tuple[_Positive, ...] = ()
    worse: tuple[_Positive, ...] = ()


class Audit(_Result):
    """The completed audit of one model. It holds no secret, unless `distribution` was to show them.

    What was not asked for is None. Extraction has an entry a canary, in the manifest's order.

    Attributes:
        reasons: For the verdict.
        notices: What else to know.
        weights: SHA-256 of each weight file that was audited.
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
    distribution: Distribution | None = None
    extraction: tuple[Extraction, ...] | None = None
    membership: tuple[Membership, ...] | None = None
    resurfaced: Relearning | None = None
    own_secrets: NumberResults | None = None
    weights: dict[str, str] = {}
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


class UnfinishedAudit(_Result):
    """A model that could not be audited; `reasons` says why, in words, for an error would keep the model in memory."""

    model: str
    verdict: Literal[Verdict.ERROR] = Verdict.ERROR
    reasons: tuple[str, ...]
    notices: tuple[str, ...] = ()
    canaries: tuple[CanaryResult, ...] = ()
    combined: None = None
    tested_against_base: bool = False
    epsilon: tuple[EpsilonBound, ...] = ()
    distribution: None = None
    extraction: None = None
    membership: None = None
    resurfaced: None = None
    own_secrets: None = None
    weights: dict[str, str] = {}
    gate: Literal[Verdict.ERROR] = Verdict.ERROR
    alpha: _Probability
    max_exposure: float | None = None
    max_epsilon_lower_bound: float | None = None
    baseline: BaselineComparison | None = None


AnyAudit = Audit | UnfinishedAudit


class AuditDocument(_Result):
    """What `audit-canary --json` prints: every model, in the order given."""

    schema_version: Literal[1] = 1
    models: tuple[Annotated[AnyAudit, Field(discriminator="verdict")], ...]
