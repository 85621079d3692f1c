"""What an audit finds: each canary, all of them together, the bounds on ε, and the verdict."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from atdp_cli.audit.attacks.extraction import Extraction
    from atdp_cli.audit.attacks.membership import Membership
    from atdp_cli.audit.distribution import Distribution


DISCOVERABLE_QUERIES = 1000
"""A canary is called discoverable where so many samples hold it with probability 1/2 or more (Hayes et al. 2024)."""


class Verdict(StrEnum):
    """What an audit concludes of one model. ERROR: it could not be completed."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"


_EXIT_CODES = {Verdict.ERROR: 3, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 4, Verdict.PASS: 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryResult:
    """One canary under log p and, where a reference was given, under the ratio log p - log p_ref.

    Ranks count from 1 among the candidates compared; exposures are bits. `exposure`, `exposure_ratio` and the
    p-values are within the stratum of candidates of equal token length (see `exposure.stand`), the plain
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
    repeats: int
    pool: int
    compared: int
    rank_min: int
    rank_max: int
    stratum_size: int
    stratum_rank_min: int
    stratum_rank_max: int
    exposure: float
    exposure_plain: float
    exposure_per_token: float
    p_value: float | None
    holm_p: float | None
    rank_ratio_min: int | None
    rank_ratio_max: int | None
    exposure_ratio: float | None
    exposure_ratio_plain: float | None
    exposure_ratio_per_token: float | None
    p_value_ratio: float | None
    holm_p_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """All planted canaries together.

    Attributes:
        level: Of every single test: alpha / 2, halved again where there are two scores.
        fisher_p: Fisher's combined p-value by log p.
        fisher_p_ratio: The same by the ratio.
        holm_min_p: The smallest adjusted p-value by log p.
        holm_min_p_ratio: The same by the ratio.
        mean_exposure: Bits; 1.44 is what chance gives.
        mean_exposure_ratio: The same by the ratio.
        max_exposure: The largest exposure of any planted canary by either score, bits.
        power: The chance of one score's tests to reject if the mean exposure were `verdict.MEMORISED_BITS`.
    """

    level: float
    fisher_p: float | None
    fisher_p_ratio: float | None
    holm_min_p: float | None
    holm_min_p_ratio: float | None
    mean_exposure: float | None
    mean_exposure_ratio: float | None
    max_exposure: float | None
    power: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonBound:
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
    epsilon: float
    attainable: float
    delta: float
    confidence: float
    guesses: int
    correct: int
    top: int | None
    claim: float | None
    finding: Literal["refuted", "not-refuted", "inconclusive", "no-claim"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resurfaced:
    """The audit of a copy of the model that was fine-tuned on other text.

    Attributes:
        steps: Of that fine-tuning.
        verdict: What the same tests say of the copy; the model's own verdict does not count it.
        exposures: Of each canary by log p, bits.
        exposures_ratio: By the ratio; None without a reference.
    """

    steps: int
    verdict: Verdict
    exposures: tuple[float, ...]
    exposures_ratio: tuple[float, ...] | None
    combined: Combined


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSecret:
    """Where a model places a number of the corpus among those of its format. Holds no text.

    Nobody drew it at random, so its exposure is no evidence of memory by itself: dates and years are likelier than
    other digits before any training. That by the ratio takes out what was likely before.

    By log p of the number given the record's text before it, and by the ratio log p - log p_ref; ratio fields are
    None without a reference. Ranks count from 1 among all candidates compared. `exposure` and `exposure_ratio` are
    within the stratum of equal token length, as a canary's are: numbers of few tokens are likelier than others in any
    model. The plain exposures are over all lengths. Bits.

    Attributes:
        record: Which record of the corpus, from 1: the line of the spans file.
        line: The line of the corpus on which the record begins, from 1; None where the corpus has none to tell.
        start, end: Code points of the record's text, end exclusive.
        label: What the detector took it for.
        pool: Numbers of its format.
        compared: Candidates that it was ranked among: all of them, or a sample and itself, which caps its plain
            exposures at log2(compared).
        stratum_size: Those of its token length, which cap its exposures at log2(stratum_size).
    """

    record: int
    line: int | None
    start: int
    end: int
    label: str
    pool: int
    compared: int
    rank_min: int
    rank_max: int
    stratum_size: int
    exposure: float
    exposure_plain: float
    exposure_ratio: float | None
    exposure_ratio_plain: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSecrets:
    """What one model makes of the corpus's own numbers, uncalibrated. Holds no text.

    Attributes:
        eligible: Numbers of the corpus that could be tested.
        skipped_short, skipped_long: Spans with digits, and too few or too many of them.
        skipped_repeated: Spans whose text stands in the same record before: copying it takes no memory.
        tested: How many `results` there are.
        skipped_context: Numbers of the sample that no one window of this model's context holds with all of their
            alternatives, or with no token before them.
        skipped_tokens: Numbers of the sample that have other tokens in the whole record, where text follows them,
            than alone: training saw those.
        mean_exposure: Bits, None where none was tested; 1.44 if the numbers were uniform and not remembered.
        mean_exposure_ratio: The same by the ratio; None without a reference.
        max_exposure: The largest `exposure` or `exposure_ratio`, bits.
    """

    eligible: int
    tested: int
    skipped_short: int
    skipped_long: int
    skipped_repeated: int
    skipped_context: int
    skipped_tokens: int
    results: tuple[OwnSecret, ...]
    mean_exposure: float | None
    mean_exposure_ratio: float | None
    max_exposure: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The audit of one model: `reasons` for the verdict, and `notices` of what else to know.

    What was not asked for is None. Extraction has an entry a canary, in the manifest's order.

    Attributes:
        weights: SHA-256 of each weight file that was audited.
    """

    model: str
    verdict: Verdict
    reasons: tuple[str, ...]
    notices: tuple[str, ...]
    alpha: float
    canaries: tuple[CanaryResult, ...]
    combined: Combined
    tested_against_base: bool
    epsilon: tuple[EpsilonBound, ...]
    distribution: "Distribution | None" = None
    extraction: "tuple[Extraction, ...] | None" = None
    membership: "tuple[Membership, ...] | None" = None
    resurfaced: Resurfaced | None = None
    own_secrets: OwnSecrets | None = None
    weights: Mapping[str, str] = field(default_factory=dict)


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """The exit code over several models: the first of 3, 1, 4, 0 that occurs; 4 where there is no model."""
    found = {_EXIT_CODES[verdict] for verdict in verdicts}
    return next((code for code in (3, 1, 4, 0) if code in found), 4)


def to_json(audit: Audit) -> dict[str, Any]:
    """One entry of the `models` list of `audit-canary --json`; what is beyond all numbers there is null.

    It holds no secret, and no token of one, unless `distribution` was asked to show them.
    """
    found: dict[str, Any] = _finite(asdict(audit))
    return found


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if isinstance(value, Verdict):
        return str(value)
    return None if isinstance(value, float) and not isfinite(value) else value
