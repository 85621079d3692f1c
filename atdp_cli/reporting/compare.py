"""Two reports side by side, line by line."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from atdp_cli.privacy.wording import SCOPES
from atdp_cli.reporting.audit_entry import own_audit
from atdp_cli.reporting.document import PrivateReport, PublicReport
from atdp_cli.reporting.html import VERDICTS, environment, render_value, visible
from atdp_cli.reporting.stage_facts import engine_used

Report = PublicReport | PrivateReport


@dataclass(frozen=True, kw_only=True)
class Line:
    """One property in both reports; a dash where a report does not have it."""

    label: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        """Whether the reports differ in it."""
        return self.left != self.right


def compare(left: Report, right: Report) -> tuple[Line, ...]:
    """Every property worth comparing, in the order of a report; figures of private text where both have them."""
    public = (public_of(left), public_of(right))
    lines = [Line(label=label, left=value(public[0]), right=value(public[1])) for label, value in _LINES]
    if isinstance(left, PrivateReport) and isinstance(right, PrivateReport):
        lines += [Line(label=label, left=value(left), right=value(right)) for label, value in _PRIVATE_LINES]
    return tuple(line for line in lines if (line.left, line.right) != ("–", "–"))


def public_of(report: Report) -> PublicReport:
    """The part of a report that may be published."""
    return report.public if isinstance(report, PrivateReport) else report


def render_comparison(left: Report, right: Report) -> str:
    """The comparison as one HTML file."""
    whole = isinstance(left, PrivateReport) and isinstance(right, PrivateReport)
    return visible(environment().get_template("compare.html.j2").render(lines=compare(left, right), whole=whole))


def _epsilon(scope: str) -> Callable[[PublicReport], str]:
    def value(report: PublicReport) -> str:
        epsilons = [guarantee.epsilon for guarantee in report.guarantees if guarantee.scope == scope]
        return render_value(epsilons[0], "epsilon") if epsilons else "–"

    return value


def _stages(report: PublicReport) -> str:
    return " + ".join(_stage(report)) or "none"


def _stage(report: PublicReport) -> Iterator[str]:
    for stage in report.stages:
        sigmas = stage.noise_multipliers
        noise = f", σ {min(sigmas):.4g} to {max(sigmas):.4g}" if sigmas else ""
        sigma = stage.release_noise_multiplier
        released = "" if sigma is None else f", released at σ {sigma:.4g}"
        taken = "" if stage.ended_after is None else f"{stage.ended_after:,} of "
        yield f"{stage.name} ({stage.text or 'no text'}, {taken}{stage.steps:,} steps{noise}{released})"


def _detector(report: PublicReport) -> str:
    kept = f" ({report.detector.kept})" if report.detector.kept else ""
    return f"{report.detector.tier}{kept}{', with lists' if report.detector.lists else ''}"


def _audit(form: str) -> Callable[[PublicReport], str]:
    def value(report: PublicReport) -> str:
        after = own_audit(report.audits)
        if after is None:
            return "–"
        if form == "verdict":
            return f"{after.verdict}, {sum(canary.planted for canary in after.canaries)} canaries"
        value, interval = (
            (after.mean, after.mean_interval) if form == "log p" else (after.mean_ratio, after.mean_ratio_interval)
        )
        within = "" if interval is None or value is None else f" ({interval[0]:.2f} to {interval[1]:.2f})"
        return f"{render_value(value, 'fixed')}{within}"

    return value


def _extraction(report: PublicReport) -> str:
    after = own_audit(report.audits)
    if after is None or (extraction := after.extraction) is None:
        return "–"
    return f"{extraction.greedy} greedy, {extraction.discoverable} in {extraction.samples:,} samples"


def _relearning(report: PublicReport) -> str:
    after = own_audit(report.audits)
    if after is None or (relearning := after.relearning) is None:
        return "–"
    ratio = "" if relearning.mean_ratio is None else f", ratio {relearning.mean_ratio:.2f}"
    return f"{render_value(relearning.mean, 'fixed')}{ratio} after {relearning.steps} steps"


_LINES: tuple[tuple[str, Callable[[PublicReport], str]], ...] = (
    ("name", lambda report: report.name or "–"),
    ("verdict", lambda report: VERDICTS[report.release.verdict] if report.release else "–"),
    ("protected", lambda report: report.summary.protects),
    *((f"ε, {name}", _epsilon(scope)) for scope, name in SCOPES.items()),
    ("δ", lambda report: f"{report.delta:g}"),
    ("unit", lambda report: report.unit),
    ("records", lambda report: f"{report.records:,}"),
    ("start's past", lambda report: report.checkpoint_history),
    ("recipe", lambda report: report.recipe),
    ("stages", _stages),
    ("passes", lambda report: render_value(report.passes, "plain")),
    ("tier", _detector),
    ("audit", _audit("verdict")),
    ("exposure, log p", _audit("log p")),
    ("exposure, ratio", _audit("ratio")),
    ("extraction", _extraction),
    ("relearning", _relearning),
    ("engine", lambda report: engine_used(report) or "–"),
)


def _perplexity(field: str) -> Callable[[PrivateReport], str]:
    def value(report: PrivateReport) -> str:
        before: float | None = getattr(report.perplexity.before, field)
        after: float | None = getattr(report.perplexity.after, field)
        return f"{render_value(before, 'fixed')} → {render_value(after, 'fixed')}"

    return value


def _decoyed_perplexity(report: PrivateReport) -> str:
    measured = report.decoyed_perplexity
    if measured is None:
        return "–"
    return f"{render_value(measured.before.all, 'fixed')} → {render_value(measured.after.all, 'fixed')}"


_PRIVATE_LINES: tuple[tuple[str, Callable[[PrivateReport], str]], ...] = (
    ("perplexity", _perplexity("all")),
    ("of sensitive tokens", _perplexity("sensitive")),
    ("of other tokens", _perplexity("other")),
    ("with decoys", _decoyed_perplexity),
    ("seconds", lambda report: render_value(report.seconds, "fixed")),
)
