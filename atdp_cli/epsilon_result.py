"""What an audit finds of ε: bounds from below, and what the model's ledger claims."""

from typing import Annotated, Literal

from pydantic import Field

from atdp_cli.number_result import AuditPart, Count, Positive

_Epsilon = Annotated[float, Field(ge=0)]
_Probability = Annotated[float, Field(ge=0, le=1)]


class EpsilonBound(AuditPart):
    """A lower bound on the ε of all records of a canary together, and the claim that it tests.

    Attributes:
        method: `in-out` guesses each coin (Steinke et al. 2023); `rank` names the K likeliest candidates
            (Mahloujifar et al. 2024); `pair` says which of two candidates is the canary (Steinke et al. 2023, with
            replace-one adjacency).
        adjacency: What the records of one canary are compared with: none of them, or those of another secret.
        epsilon: The bound, at least 0.
        attainable: What it would be if all guesses were right: no larger claim can be refuted.
        guesses: How many, fixed in advance.
        correct: How many were right.
        top: K, for `rank`.
        claim: The group ε that the model's ledger claims; None where it claims none.
        finding: `refuted` (ε above the claim), `not-refuted`, `inconclusive` (the claim is not below what is
            attainable) or `no-claim`.
        scope: In which the ledger claims it.
        missing: Why it claims nothing, as a clause.
        gaussian: For `in-out`, the bound on ε at δ where the mechanism is Gaussian (μ-GDP; Mahloujifar et al. 2025), as
            noise in every step roughly is. It is no less than `epsilon`, and tests no claim.
    """

    method: Literal["in-out", "rank", "pair"]
    adjacency: Literal["zero-out", "replace-one"]
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
    gaussian: _Epsilon | None = None


class GroupEpsilon(AuditPart):
    """What the model's ledger claims end to end of all records of a canary together, against leaving them out.

    Attributes:
        records: How many of them there are.
        epsilon: The group ε, at `delta`; None where no finite one is claimed.
        missing: Why none is, as a clause.
    """

    records: Positive
    epsilon: _Epsilon | None
    delta: _Probability
    missing: str | None
