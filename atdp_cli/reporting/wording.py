"""The report in words for readers who know nothing of differential privacy."""

from collections.abc import Sequence

from atdp_cli.audit.resolution import resolution
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.privacy.scope import Guarantee
from atdp_cli.privacy.wording import protection
from atdp_cli.reporting.audit_entry import AuditEntry
from atdp_cli.reporting.document import PublicReport, Summary

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
    """How other models fared, such as quantised versions of this one."""
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
