"""The report in words for readers who know nothing of differential privacy, and the verdict on a release."""

import math
from collections.abc import Sequence

from atdp_cli.audit.resolution import resolution
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.privacy.scope import Guarantee
from atdp_cli.privacy.wording import NOTHING_READ, SEEDED_NOISE, WEAK, epsilon_delta, protection, rounded_up
from atdp_cli.reporting.audit_entry import AuditEntry
from atdp_cli.reporting.document import PublicReport, ReleaseVerdict, Summary
from atdp_cli.reporting.entries import GuaranteeEntry

NO_AUDIT = "No audit is attached to this report: whether the model remembers anything was not measured."


def lay_summary(ledger: Ledger, guarantees: Sequence[Guarantee]) -> Summary:
    """What is protected and what is not, for a report without an audit."""
    protects, leaves_open = protection(ledger, guarantees)
    return Summary(protects=protects, leaves_open=leaves_open, audit=NO_AUDIT)


def audit_sentence(audits: Sequence[AuditEntry]) -> str:
    """What the audit found, for `Summary.audit`."""
    after = next((audit for audit in audits if audit.of == "after"), None)
    if after is None:
        return NO_AUDIT
    planted = sum(audit.planted for audit in after.canaries)
    by_ratio = "" if after.mean_ratio is None else f", {_bits(after.mean_ratio)} by the ratio to the base model"
    figures = f"mean exposure {_bits(after.mean)} bits{by_ratio}, where chance gives 1.44"
    sentence = {
        "PASS": f"The audit passed: its tests did not tell the ranks of {planted} planted canaries from chance "
        f"({figures}).{_left_open(after)}",
        "FAIL": f"The audit failed: the model remembers canaries planted among its records ({figures}, {planted} "
        "canaries).",
        "INCONCLUSIVE": f"The audit could not decide ({figures}, {planted} canaries).",
    }
    end = "A passed audit does not prove that nothing is remembered."
    return f"{sentence[after.verdict]}{_extracted(after)}{_attached(audits)} {end}"


def _attached(audits: Sequence[AuditEntry]) -> str:
    """The verdicts on other models, such as quantised versions of this one."""
    others = [str(audit.verdict) for audit in audits if audit.of == "other"]
    if not others:
        return ""
    fared = ", ".join(f"{verdict} {others.count(verdict)}" for verdict in ("PASS", "FAIL", "INCONCLUSIVE"))
    return f" Of {len(others)} other models that were audited with it: {fared}."


def _left_open(after: AuditEntry) -> str:
    """What a pass leaves possible."""
    left = resolution(after.detectable, after.mean_limit, after.mean_limit_ratio)
    return f" {left}" if left else ""


def _extracted(after: AuditEntry) -> str:
    if after.extraction is None or not after.extraction.greedy:
        return ""
    return f" Greedy decoding gives {after.extraction.greedy} of them."


def _bits(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def model_title(report: PublicReport) -> str:
    """What a report calls its model: the name that its owner gave it, else what it was made from, if that is public."""
    if report.name is not None:
        return report.name
    made = "hardened by atdp" if report.epsilon else "written by atdp"
    return f"{report.card.base_model[0]}, {made}" if report.card.base_model else f"A language model {made}"


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
        return _no(f"{SEEDED_NOISE.capitalize()}, so no ε holds.")
    if audit == "FAIL":
        return _no("The audit of this model failed, and no ε makes up for that.")
    if whole.epsilon is None or _holds(whole):
        return ReleaseVerdict(verdict="releasable", reason=f"{_whole(whole, unit)}; {_audited(audit)}.")
    if selective is not None and _holds(selective):
        pair = epsilon_delta(selective.epsilon, selective.delta)
        protected = f"What the detector flagged is protected at {pair}; what it missed has no guarantee"
        return ReleaseVerdict(verdict="flagged-values-only", reason=f"{protected}; {_audited(audit)}.")
    return _no(_too_weak(whole, selective, passed=audit == "PASS"))


def _whole(whole: GuaranteeEntry, unit: str) -> str:
    if whole.epsilon is None:
        return NOTHING_READ
    return f"Each {unit} of the corpus is protected at {epsilon_delta(whole.epsilon, whole.delta)}"


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


def _audited(verdict: str | None) -> str:
    if verdict is None:
        return "no audit has tested it"
    return "the audit passed" if verdict == "PASS" else "the audit could not decide"
