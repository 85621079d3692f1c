"""The verdict whether a model may be released, from its guarantees and the audits of its weights."""

import math
from collections.abc import Sequence
from typing import Literal

from atdp_cli.files.documents import Frozen
from atdp_cli.privacy.wording import WEAK, epsilon_delta, rounded_up
from atdp_cli.reporting.audit_entry import AuditEntry
from atdp_cli.reporting.entries import GuaranteeEntry


class ReleaseVerdict(Frozen):
    """Whether the model may be released, and why, in a sentence.

    Attributes:
        verdict: `flagged-values-only` where nothing but what the detector flagged is protected.
    """

    verdict: Literal["releasable", "flagged-values-only", "not-releasable"]
    reason: str


def release_verdict(
    guarantees: Sequence[GuaranteeEntry], audits: Sequence[AuditEntry], *, unit: str, insecure_seed: bool
) -> ReleaseVerdict:
    """The verdict on a model.

    A failed audit of it rules out a release, whatever ε is. A passed one does not make up for an ε that is infinite or
    above `WEAK`: it shows what was not found. An audit that is missing or inconclusive changes nothing, and the reason
    says so.

    Args:
        insecure_seed: Whether the noise came from a seed, so that no ε holds.
    """
    audit = next((entry.verdict for entry in audits if entry.of == "after"), None)
    by_scope = {guarantee.scope: guarantee for guarantee in guarantees}
    whole, selective = by_scope["end_to_end"], by_scope.get("selective")
    if insecure_seed:
        return _no("The noise of this run came from a seed and can be taken off again, so no ε holds.")
    if audit == "FAIL":
        return _no("The audit of this model failed, and no ε makes up for that.")
    if whole.epsilon is None or _holds(whole):
        return ReleaseVerdict(verdict="releasable", reason=f"{_whole(whole, unit)}; {_audited(audit)}.")
    if selective is not None and _holds(selective):
        protected = f"What the detector flagged is protected at {_pair(selective)}; what it missed has no guarantee"
        return ReleaseVerdict(verdict="flagged-values-only", reason=f"{protected}; {_audited(audit)}.")
    return _no(_too_weak(whole, selective, passed=audit == "PASS"))


def _whole(whole: GuaranteeEntry, unit: str) -> str:
    if whole.epsilon is None:
        return "No stage read the corpus, so this run put nothing of it into the model"
    return f"Each {unit} of the corpus is protected at {_pair(whole)}"


def _too_weak(whole: GuaranteeEntry, selective: GuaranteeEntry | None, *, passed: bool) -> str:
    stated = [entry.epsilon for entry in (whole, selective) if entry is not None and entry.epsilon is not None]
    if finite := [epsilon for epsilon in stated if math.isfinite(epsilon)]:
        return f"ε = {rounded_up(min(finite))} is too weak to rely on: it should be at most {WEAK:g}."
    audit = ", and the passed audit does not make up for that" if passed else ""
    return f"No finite ε holds, neither end to end nor for what the detector flagged{audit}."


def _no(reason: str) -> ReleaseVerdict:
    return ReleaseVerdict(verdict="not-releasable", reason=reason)


def _holds(guarantee: GuaranteeEntry) -> bool:
    return guarantee.epsilon is not None and 0 <= guarantee.epsilon <= WEAK


def _pair(guarantee: GuaranteeEntry) -> str:
    return epsilon_delta(guarantee.epsilon or 0.0, guarantee.delta)


def _audited(verdict: str | None) -> str:
    if verdict is None:
        return "no audit has tested it"
    return "the audit passed" if verdict == "PASS" else "the audit could not decide"
