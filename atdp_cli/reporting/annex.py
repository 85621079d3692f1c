"""The annex of a report: the verdict on a release, and answers to the questions of NIST SP 800-226.

"Guidelines for Evaluating Differential Privacy Guarantees" (2025) orders them as a pyramid: at its top the direct
measures of a guarantee, below them what can undermine it, at the bottom what everything stands on, such as how the data
were collected. Each level holds only as well as those below it. Where nothing was tested, the row says so.
"""

from atdp_cli.privacy.wording import SCOPES, epsilon_delta
from atdp_cli.reporting.audit_entry import own_audit
from atdp_cli.reporting.document import AnnexRow, AnnexStatus, PrivateReport, PublicReport
from atdp_cli.reporting.stage_facts import engine_used, noise_used, releasing, stated_guarantees
from atdp_cli.reporting.wording import owner_verdict, release_verdict

ACCESS = (
    "Whoever reads the training data, OUT.private/ or the machine's memory needs no model. How these are kept is up to "
    "their owner."
)

BIAS = "Whether the model became worse for some groups of people than for others."

CENTRAL = (
    "Central: whoever ran atdp had the records. The guarantees are against everyone who has the files of this folder, "
    "even one who knows all other records."
)

MISTAKES = (
    "A mistake in this tool, or in what it builds on, would void the guarantees. An audit can find one, and cannot "
    "rule it out."
)

TIMING = "Whether the time that the run took reveals anything of the text."

FINDINGS = {
    "refuted": "refutes the ledger's claim",
    "not-refuted": "does not refute the ledger's claim",
    "inconclusive": "is inconclusive",
    "no-claim": "had no claim to refute",
}

COLLECTION = "How the records were collected, and who has seen them since, lies outside this report."


def with_verdict(report: PublicReport) -> PublicReport:
    """The report with its verdict and its annex, by its other parts."""
    return report.model_copy(update={"release": release_verdict(report), "annex": annex_rows(report)})


def with_public(private: PrivateReport, public: PublicReport) -> PrivateReport:
    """The whole report with this public part, and the verdict for its owner."""
    release = owner_verdict(
        public.release, spans=private.flagged_spans, share=private.flagged_share, missed_names=private.missed_names
    )
    return private.model_copy(update={"public": public, "release": release})


def annex_rows(report: PublicReport) -> tuple[AnnexRow, ...]:
    """Every question from the top of the pyramid down, and what the report says to it."""
    return (
        AnnexRow(level="the guarantee", topic="Privacy parameters", status="stated", lines=_epsilons(report)),
        AnnexRow(level="the guarantee", topic="Unit of privacy", status="stated", lines=(_unit(report),)),
        _algorithms(report),
        _correctness(report),
        _undermining("Side channels", "not tested", TIMING, *filter(None, (report.floating_point,))),
        _undermining("Data security and access control", "not tested", ACCESS),
        _utility(report),
        _undermining("Bias", "not tested", BIAS),
        AnnexRow(level="what it stands on", topic="Trust model", status="stated", lines=(CENTRAL,)),
        AnnexRow(
            level="what it stands on",
            topic="Data collection exposure",
            status="not tested",
            lines=(COLLECTION, _past(report)),
        ),
    )


def _undermining(topic: str, status: AnnexStatus, *lines: str) -> AnnexRow:
    return AnnexRow(level="what can undermine it", topic=topic, status=status, lines=lines)


def _epsilons(report: PublicReport) -> tuple[str, ...]:
    return tuple(
        f"{SCOPES[guarantee.scope].capitalize()}: "
        + (
            "nothing was spent."
            if guarantee.epsilon is None
            else f"{epsilon_delta(guarantee.epsilon, guarantee.delta)}, {guarantee.adjacency} adjacency."
        )
        for _, guarantee in stated_guarantees(report)
    )


def _unit(report: PublicReport) -> str:
    unit = report.unit
    return f"One {unit}. For whoever is in several {unit}s, ε is larger; atdp account computes it."


def _algorithms(report: PublicReport) -> AnnexRow:
    """What the guarantees rest on, and whether the run was compared with its ledger."""
    lines = []
    if engine := engine_used(report):
        lines.append(f"Gradients clipped record by record by the engine {engine}, which {report.engine_check}.")
    if released := releasing(report.stages):
        lines.append(f"One release with noise before stage {', '.join(released)}.")
    if report.sampling is not None:
        lines.append(f"Sampling: {report.sampling.run}")
    if noise := noise_used(report):
        lines.append(f"Noise: {noise}.")
    if not lines:
        return _undermining("Algorithms", "does not apply", "No ε of this run rests on noise.")
    if report.verified is None:
        return _undermining("Algorithms", "stated", *lines)
    return _undermining("Algorithms", "tested", *lines, report.verified)


def _correctness(report: PublicReport) -> AnnexRow:
    """Whether anyone tried to refute the guarantees."""
    own = own_audit(report.audits)
    if own is None:
        return _undermining("Correctness", "not tested", "No audit of this model is attached.", MISTAKES)
    bounds = (f"A lower bound on ε, by {bound.method}, {FINDINGS[bound.finding]}." for bound in own.bounds)
    return _undermining("Correctness", "tested", f"The audit's verdict: {own.verdict}.", *bounds, MISTAKES)


def _utility(report: PublicReport) -> AnnexRow:
    if not report.held_out:
        untried = "No record was held out, so how well the model still works was not measured."
        return _undermining("Utility", "not tested", untried)
    measured = (
        f"The perplexity of {report.held_out} held-out records. ε does not cover it: it is in the private report."
    )
    return _undermining("Utility", "tested", measured)


def _past(report: PublicReport) -> str:
    if report.checkpoint_history == "unknown":
        return "What the starting checkpoint had seen before is unknown."
    return "The starting checkpoint never saw the corpus, as the user declared. Nothing checked that."
