"""The report in words for people who know nothing of differential privacy."""

import math
from collections.abc import Sequence

from atdp_cli.audit_result import resolution
from atdp_cli.privacy.claims import (
    DECLARED_TRAINING,
    UNFLAGGED_TEXT,
    epsilon_delta,
    other_values,
    rounded_up,
    tier_words,
    uncovered,
)
from atdp_cli.privacy.guarantee import Guarantee, flag_assumptions
from atdp_cli.privacy.ledger import DecoyedText, Ledger, ReadModel
from atdp_cli.privacy.relation import Neighbours
from atdp_cli.privacy.statement import uncounted_sentence
from atdp_cli.report.audit_entry import AuditEntry
from atdp_cli.report.document import PublicReport, Summary
from atdp_cli.report.release_verdict import WEAK

NO_AUDIT = "No audit is attached to this report: whether the model remembers anything was not measured."

OTHER_LINES = (
    "It does not protect {unit}s that were held out for measuring, nor a person or a secret that occurs in several "
    "{unit}s."
)


def lay_summary(ledger: Ledger, guarantees: Sequence[Guarantee]) -> Summary:
    """What is protected and what is not, for a report without an audit."""
    protects, leaves_open = _in_short(ledger, {guarantee.scope: guarantee for guarantee in guarantees})
    return Summary(protects=protects, leaves_open=leaves_open, audit=NO_AUDIT)


def _in_short(ledger: Ledger, guarantees: dict[str, Guarantee]) -> tuple[str, str]:
    unit, whole = ledger.unit, guarantees["end_to_end"]
    if ledger.insecure_seed:
        return (
            "Nothing is protected: the noise of this run came from a seed and can be taken off again.",
            "Such a run is for tests and reproductions.",
        )
    if whole.epsilon is None:
        return (
            "No stage read the corpus, so this run put nothing of it into the model.",
            "It does not cover what the starting checkpoint, or a model that was read, knew before.",
        )
    if math.isfinite(whole.epsilon):
        given = "".join(f" {sentence}" for sentence in flag_assumptions(ledger))
        return (
            f"Each {unit} of the corpus is protected: whether it was used or not changes the odds of whatever anyone "
            f"learns from this model by at most a factor of {factor(whole.epsilon)} "
            f"({_pair(whole)}).{given}{_weak(whole.epsilon)}",
            OTHER_LINES.format(unit=unit),
        )
    selective = guarantees.get("selective") or guarantees.get("declared")
    if selective is not None and selective.neighbours is not None:
        given = "".join(f" {sentence}" for sentence in flag_assumptions(ledger))
        given += f" {DECLARED_TRAINING}" if selective.scope == "declared" else ""
        return (
            f"{_flagged(selective, selective.neighbours, guarantees.get('uncounted'))}{given}"
            f"{_weak(selective.epsilon or 0)}",
            uncovered(selective.neighbours, exact=selective.exact),
        )
    added = guarantees["increment"].epsilon
    noisy = "" if added is None else f" The noisy stages add ε = {rounded_up(added)}, and nothing more is claimed."
    return (
        f"No {unit} of the corpus has a guarantee{_why(ledger)}.{noisy}",
        "It does not remove what the model had memorised. An audit can show that some of it is left, and cannot show "
        "that nothing is.",
    )


def _flagged(selective: Guarantee, neighbours: Neighbours, uncounted: Guarantee | None) -> str:
    """What holds for flagged characters, as a sentence or two."""
    unit, others = neighbours.unit, f"{other_values(neighbours)}{tier_words(neighbours)}"
    only = "What the detector flagged is protected, and nothing else: "
    if selective.exact:
        return (
            f"{only}if the flagged places of any number of {unit}s held {others}, what anyone learns from this model "
            f"would be the same ({_pair(selective)})."
        )
    rest = "" if uncounted is None else f" {uncounted_sentence(uncounted)}"
    return (
        f"{only}if the flagged places of one {unit} held {others}, the odds of whatever anyone learns from this model "
        f"would change by at most a factor of {factor(selective.epsilon or 0)} ({_pair(selective)}).{rest}"
    )


def _why(ledger: Ledger) -> str:
    """Why none holds, as a clause."""
    if any(event.kind == "plain" for event in ledger.events):
        return ", because a stage was trained on the text without protection"
    if any(isinstance(event, DecoyedText) for event in ledger.events):
        return f", because {UNFLAGGED_TEXT}"
    if any(isinstance(event, ReadModel) and event.past == "unknown" for event in ledger.events):
        return ", because it is not known what a model that it read had seen before"
    return ", because it is not known what the starting checkpoint had seen before"


def _pair(guarantee: Guarantee) -> str:
    return epsilon_delta(guarantee.epsilon or 0, guarantee.delta)


def factor(epsilon: float) -> str:
    """e^ε, rounded up to two digits; in words where nobody can read it.

    >>> factor(3.0), factor(0.0), factor(9.0), factor(40.0)
    ('21', '1', '8,200', 'more than a million')
    """
    factor = math.exp(min(epsilon, 700))
    if factor > 1e6:
        return "more than a million"
    step = 10.0 ** max(-1, math.floor(math.log10(factor)) - 1)
    return f"{math.ceil(factor / step - 1e-9) * step:,.10g}"


def _weak(epsilon: float) -> str:
    return " Nobody should rely on a protection this weak." if epsilon > WEAK else ""


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


def _bits(value: float | str | None) -> str:
    return "–" if value is None else f"{float(value):.2f}"


def model_title(report: PublicReport) -> str:
    """What a report calls its model: the name that its owner gave it, else what it was made from, if that is public."""
    if report.name is not None:
        return report.name
    made = "hardened by atdp" if report.epsilon else "written by atdp"
    return f"{report.card.base_model[0]}, {made}" if report.card.base_model else f"A language model {made}"
