"""The report in words for readers who know nothing of differential privacy, and the verdict on a release."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from atdp_cli.audit.resolution import resolution
from atdp_cli.audit.results import RANKS
from atdp_cli.corpus.split import BUILT_IN_UNITS
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.privacy.scope import Guarantee
from atdp_cli.privacy.wording import NOTHING_READ, SEEDED_NOISE, WEAK, epsilon_delta, protection, rounded_up
from atdp_cli.reporting.audit_entry import AuditEntry, own_audit
from atdp_cli.reporting.document import PublicReport, ReleaseVerdict, Summary
from atdp_cli.reporting.entries import GuaranteeEntry

MOST_OF_RECORDS = 3.0
"""The largest ε that can be relied on where one person may have many records: `WEAK` where a field groups them."""

LEAST_FLAGGED = 0.001
"""The share of flagged characters below which hardly anything is protected: one name or number of ten letters in ten
thousand characters, about five pages. Of text about people, chats and letters, a hundred times as much is flagged."""

AUDIT_FAILED = "The audit of this model failed, and no ε makes up for that."

NO_AUDIT = "No audit is attached to this report: whether the model remembers anything was not measured."


def lay_summary(ledger: Ledger, guarantees: Sequence[Guarantee]) -> Summary:
    """What is protected and what is not, for a report without an audit."""
    protects, leaves_open = protection(ledger, guarantees, weak=most_epsilon(ledger.unit))
    return Summary(protects=protects, leaves_open=leaves_open, audit=NO_AUDIT)


def audit_sentence(audits: Sequence[AuditEntry]) -> str:
    """What the audit found, for `Summary.audit`."""
    after = own_audit(audits)
    if after is None:
        return NO_AUDIT
    planted = sum(audit.planted for audit in after.canaries)
    by_ratio = "" if after.mean_ratio is None else f", {_bits(after.mean_ratio)} by the ratio to the base model"
    figures = f"mean exposure {_bits(after.mean)} bits{by_ratio}, where chance gives 1.44"
    by_ranks = f"its tests did not tell the ranks of {planted} planted canaries from chance ({figures})"
    by_others = f"{_named(after.gates)} found no more than chance would ({figures}, {planted} canaries)"
    others = " ".join(("", *after.notices)) if RANKS not in after.gates else ""
    sentence = {
        "PASS": f"The audit passed: {by_ranks if RANKS in after.gates else by_others}.{_left_open(after)}{others}",
        "FAIL": f"The audit failed ({figures}, {planted} canaries). {' '.join(after.reasons)}",
        "INCONCLUSIVE": f"The audit could not decide ({figures}, {planted} canaries). {' '.join(after.reasons)}",
    }
    end = "A passed audit does not prove that nothing is remembered."
    return f"{sentence[after.verdict]}{_several(audits)}{_extracted(after)}{_attached(audits)} {end}"


def _named(gates: Sequence[str]) -> str:
    return " and ".join(gates)


def _several(audits: Sequence[AuditEntry]) -> str:
    count = sum(audit.of == "after" for audit in audits)
    return f" It is the worst of {count} audits of this model." if count > 1 else ""


def _attached(audits: Sequence[AuditEntry]) -> str:
    """The verdicts on other models, such as quantised versions of this one."""
    others = [str(audit.verdict) for audit in audits if audit.of not in ("after", "before")]
    if not others:
        return ""
    fared = ", ".join(f"{verdict} {others.count(verdict)}" for verdict in ("PASS", "FAIL", "INCONCLUSIVE"))
    return f" Other models that were audited with it: {fared}."


def _left_open(after: AuditEntry) -> str:
    """What a pass leaves possible."""
    if RANKS not in after.gates:
        return ""
    left = resolution(after.detectable, after.mean_limit, after.mean_limit_ratio)
    return f" {left}" if left else ""


def _extracted(after: AuditEntry) -> str:
    if after.extraction is None or not after.extraction.greedy:
        return ""
    return f" Greedy decoding gives {after.extraction.greedy} of them."


def _bits(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


NAMES, NUMBERS, REST = "Names, places, dates, amounts", "IDs, keys, card numbers", "All other text"

ALL = "All text"


class TextKind(NamedTuple):
    """A kind of text, and what the strongest finite guarantee says of it, as a sentence."""

    name: str
    protected: bool
    says: str


def protected_kinds(
    guarantees: Sequence[GuaranteeEntry], unit: str, *, insecure_seed: bool = False
) -> tuple[TextKind, ...]:
    """What the guarantees of a report or a plan say of each kind of text."""
    by_scope = {guarantee.scope: guarantee for guarantee in guarantees}
    whole, flagged = by_scope["end_to_end"], by_scope.get("selective") or by_scope.get("declared")
    if insecure_seed:
        return (TextKind(ALL, False, f"{SEEDED_NOISE}."),)
    if whole.epsilon is None:
        return (TextKind(ALL, True, "this run read none of the corpus."),)
    if math.isfinite(whole.epsilon):
        return (TextKind(ALL, True, f"{epsilon_delta(whole.epsilon, whole.delta)} for each {unit}."),)
    if flagged is None or flagged.epsilon is None or math.isinf(flagged.epsilon):
        return (TextKind(ALL, False, "no finite ε holds. A passed audit does not make up for that."),)
    where = "where flagged" + (", as the user declares" if flagged.scope == "declared" else "")
    one = "" if flagged.epsilon == 0 else f" for one {unit}"
    shaped = flagged.neighbours is not None and {"shape", "pattern"} & {*flagged.neighbours.shapes}
    shapes = " Their shapes are not hidden." if shaped else ""
    counted = f"{where}, {epsilon_delta(flagged.epsilon, flagged.delta)}{one}.{shapes}"
    uncounted = f"{where}, {epsilon_delta(0.0, 0.0)}.{shapes}"
    return (
        TextKind(NAMES, True, counted),
        TextKind(NUMBERS, True, uncounted if "uncounted" in by_scope else counted),
        TextKind(REST, False, "what is not flagged is learnt as it stands (ε = ∞)."),
    )


MAY = {
    "releasable": "The model may be published, with its folder OUT. OUT.private stays with you.",
    "flagged-values-only": "Give the model to people who may read the text of the corpus that is not flagged.",
    "not-audited": "Do not publish the model yet. Audit it with atdp audit-canary, then atdp report --audit.",
    "not-releasable": "Give the model only to people who may read the corpus.",
}
"""What each verdict allows."""


def model_title(report: PublicReport) -> str:
    """What a report calls its model: the name that its owner gave it, else what it was made from, if that is public."""
    if report.name is not None:
        return report.name
    made = "hardened by atdp" if report.epsilon else "written by atdp"
    return f"{report.card.base_model[0]}, {made}" if report.card.base_model else f"A language model {made}"


def release_verdict(report: PublicReport) -> ReleaseVerdict:
    """The verdict on a model, by its guarantees and audits.

    A failed audit of it rules out a release, whatever ε is; of several the worst counts. A passed one does not make up
    for an ε that is infinite or above `most_epsilon`: it shows what was not found. Without one that passed, calibrated,
    no model is releasable.
    """
    audit = own_audit(report.audits)
    by_scope = {guarantee.scope: guarantee for guarantee in report.guarantees}
    whole, selective = by_scope["end_to_end"], by_scope.get("selective")
    if report.insecure_seed:
        return _no(f"{SEEDED_NOISE.capitalize()}, so no ε holds.")
    if audit is not None and audit.verdict == "FAIL":
        return _no(AUDIT_FAILED)
    if whole.epsilon is None:
        return _audited_verdict("end_to_end", NOTHING_READ, audit)
    most = most_epsilon(report.unit)
    held = whole if selective is None or whole.epsilon <= most or selective.epsilon is None else selective
    if math.isinf(held.epsilon or 0):
        failing = (
            ", and the passed audit does not make up for that" if audit is not None and audit.verdict == "PASS" else ""
        )
        return _no(f"No finite ε holds, neither for whole records nor for flagged values{failing}.")
    return _of_finite(held, report, audit)


def audit_verdict(audits: Sequence[AuditEntry]) -> ReleaseVerdict:
    """The verdict on a model of which nothing but audits is known: no pass makes up for a missing guarantee."""
    audit = own_audit(audits)
    if audit is not None and audit.verdict == "FAIL":
        return _no(AUDIT_FAILED)
    return _no(f"This report knows no ε of the model, and {_audited(audit)}, which does not make up for that.")


def _of_finite(held: GuaranteeEntry, report: PublicReport, audit: AuditEntry | None) -> ReleaseVerdict:
    """The verdict where a guarantee has a finite ε."""
    unit, records, ten = report.unit, report.records, ten_records(report)
    most = most_epsilon(unit)
    together = "" if ten is None else f", and whoever has ten {unit}s at ε = {rounded_up(ten)}"
    protected = f"{_protected(held, unit)} is protected at {epsilon_delta(held.epsilon, held.delta)}{together}"
    if (held.epsilon or 0) > most:
        person = f" for a {unit}, or {WEAK:g} where --privacy-unit FIELD makes a person's records one" * (most < WEAK)
        return _no(f"{protected}, which is too weak to rely on: ε should be at most {most:g}{person}.")
    if held.delta >= 1 / (10 * records):
        limit = f"{1 / (10 * records):.3g} = 1/(10·N) for {records:,} {unit}s"
        return _no(f"{protected}, whose δ is too large: it should be below {limit}.")
    if held.scope == "end_to_end":
        return _audited_verdict("end_to_end", protected, audit)
    return _audited_verdict("selective", f"{protected}; what it missed has no guarantee", audit)


def ten_records(report: PublicReport) -> float | None:
    """ε for ten records of one person; None where `PublicReport.person` is empty."""
    return next((group.epsilon for group in report.person if group.records == 10), None)


def _audited_verdict(
    scope: Literal["end_to_end", "selective"], protected: str, audit: AuditEntry | None
) -> ReleaseVerdict:
    """The verdict where a guarantee holds: what it says depends on the audit."""
    passed = audit is not None and audit.calibrated and audit.verdict == "PASS"
    reason = f"{protected}; {_audited(audit)}."
    if not passed:
        return ReleaseVerdict(verdict="not-audited", reason=reason, scope=scope)
    whole = scope == "end_to_end"
    return ReleaseVerdict(verdict="releasable" if whole else "flagged-values-only", reason=reason, scope=scope)


def _protected(guarantee: GuaranteeEntry, unit: str) -> str:
    """What a guarantee is for."""
    if guarantee.scope == "end_to_end":
        return f"Each {unit} of the corpus"
    kept = guarantee.neighbours.kept if guarantee.neighbours is not None else ""
    return f"What the detector flagged{f' ({kept})' if kept else ''}"


def most_epsilon(unit: str) -> float:
    """The largest ε that can be relied on. A person has many lines, paragraphs and documents, and ε grows with them."""
    return MOST_OF_RECORDS if unit in BUILT_IN_UNITS else WEAK


def _no(reason: str) -> ReleaseVerdict:
    return ReleaseVerdict(verdict="not-releasable", reason=reason)


def _audited(audit: AuditEntry | None) -> str:
    if audit is None:
        return "no audit has tested it"
    if not audit.calibrated:
        return "an uncalibrated audit decides nothing"
    if audit.verdict != "PASS":
        return "the audit could not decide"
    return "the audit passed" if RANKS in audit.gates else f"the audit passed by {_named(audit.gates)} alone"


def hardly_flagged(share: float) -> str | None:
    """That next to nothing is flagged, as a sentence; None where enough is."""
    return None if share >= LEAST_FLAGGED else f"{share:.1%} of the text is flagged: hardly anything is protected."


def owner_verdict(
    release: ReleaseVerdict | None, *, spans: int, share: float, missed_names: str | None
) -> ReleaseVerdict | None:
    """The verdict for the records' owner, who may know how much of them is flagged.

    Args:
        release: The published one.
        spans: Flagged spans of the training records.
        share: Of their characters.
        missed_names: That the detector reads another language, as a sentence.
    """
    if release is None or release.scope != "selective":
        return release
    missed = "" if missed_names is None else f"{missed_names} "
    if not spans:
        return _no(f"{missed}Nothing is flagged in the training records, so nothing of them is protected.")
    flagged = hardly_flagged(share) or f"{share:.1%} of the text is flagged."
    return release.model_copy(update={"reason": f"{missed}{flagged} {release.reason}"})
