"""An audit as a report holds it: without the model's name or anything that reveals a canary's secret."""

from collections.abc import Iterable
from typing import Literal

from atdp_cli.audit.results import Conclusion, Gate
from atdp_cli.files.documents import Frozen, Number

Interval = tuple[float, float]

WEIGHT_SUFFIXES = (".safetensors", ".gguf")
"""The suffixes of files that hold weights, not settings or tokenizers."""

ScoreName = Literal["after", "before", "given", "other"]

MODEL_NAMES: dict[ScoreName, str] = {
    "after": "this model",
    "before": "its start",
    "given": "MODEL",
    "other": "another model",
}
"""What people read: the report's model, the checkpoint that its run started from, MODEL where the run started from the
reference, and any other."""


class AuditedCanary(Frozen):
    """One canary: exposure in bits and the p-value adjusted for how many there are, by log p and by the ratio."""

    planted: bool
    repeats: int
    exposure: float
    exposure_ratio: float | None
    p: float | None
    p_ratio: float | None


class ExtractionEntry(Frozen):
    """How many of the planted canaries a client can get.

    Attributes:
        greedy: By greedy decoding of what all candidates begin with.
        discoverable: Whose samples give it with even odds, by how many are drawn.
        samples: How many those are.
        fewest: The samples that the easiest takes for even odds; null where that passes all numbers.
    """

    greedy: int
    discoverable: int
    samples: int
    fewest: float | None


class MembershipEntry(Frozen):
    """Membership by one score: the area under the curve with a 95 % interval; null where nothing is to compare."""

    attack: str
    auc: float | None
    auc_interval: Interval | None


class RelearningEntry(Frozen):
    """The audit of a copy that was fine-tuned on other text; mean exposures in bits."""

    steps: int
    verdict: Conclusion
    mean: float | None
    mean_ratio: float | None


class Bound(Frozen):
    """A lower bound on the ε of all records of a canary together, and what became of the claim that it tests.

    Attributes:
        scope: In which the ledger makes the claim.
    """

    method: Literal["in-out", "rank", "pair"]
    epsilon: float
    delta: float
    confidence: float
    claim: float | None
    finding: Literal["refuted", "not-refuted", "inconclusive", "no-claim"]
    scope: Literal["end_to_end", "selective"] | None = None


class AuditEntry(Frozen):
    """One model's audit.

    Attributes:
        of: One of `MODEL_NAMES`.
        weights: SHA-256 of each weight file that was audited.
        verdict: As the audit concluded; a pass without calibration is inconclusive here, since no test made it.
        notices: What else the audit said.
        gates: Which tests could fail the model.
        alpha: The chance that a model which remembers nothing fails.
        threshold: Bits from which a single canary fails the model.
        null_band: Where 95 of 100 canaries that nobody remembers lie, bits.
        mean, mean_ratio: Mean exposures of the planted canaries, bits, with 95 % intervals.
        p, p_ratio: Fisher's combined p-values; null where the canaries were not drawn at random, or none was planted.
        detectable: The smallest mean exposure that the tests find four times in five, bits.
        mean_limit, mean_limit_ratio: Upper confidence limits for the mean exposure of secrets like these, bits.
    """

    of: ScoreName
    weights: dict[str, str]
    verdict: Conclusion
    reasons: tuple[str, ...]
    notices: tuple[str, ...] = ()
    gates: tuple[Gate, ...]
    alpha: float
    threshold: float | None
    null_band: Interval
    canaries: tuple[AuditedCanary, ...]
    mean: Number | None
    mean_interval: Interval | None
    mean_ratio: Number | None
    mean_ratio_interval: Interval | None
    p: float | None
    p_ratio: float | None
    detectable: float | None = None
    mean_limit: float | None = None
    mean_limit_ratio: float | None = None
    extraction: ExtractionEntry | None = None
    membership: tuple[MembershipEntry, ...] = ()
    relearning: RelearningEntry | None = None
    bounds: tuple[Bound, ...] = ()

    @property
    def artefact(self) -> tuple[str, ...]:
        """The first twelve digits of the SHA-256 of each file of weights, by which people tell models apart."""
        return tuple(digest[:12] for name, digest in self.weights.items() if name.endswith(WEIGHT_SUFFIXES))

    @property
    def calibrated(self) -> bool:
        """Whether it has p-values: canaries were drawn at random, and planted."""
        return self.p is not None


def own_audit(audits: Iterable[AuditEntry]) -> AuditEntry | None:
    """The audit of the report's model that counts, the worst where there are several; None where there is none."""
    return min((audit for audit in audits if audit.of == "after"), key=severity, default=None)


def severity(audit: AuditEntry) -> int:
    """How good a verdict is; 0 for the worst."""
    return ("FAIL", "INCONCLUSIVE", "PASS").index(audit.verdict)
