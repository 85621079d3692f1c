"""Two reports side by side, line by line."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from atdp_cli.report.document import PrivateReport, PublicReport
from atdp_cli.report.html import SCOPES, environment, render_value
from atdp_cli.report.numbers import Number

Report = PublicReport | PrivateReport


@dataclass(frozen=True, kw_only=True)
class Line:
    """What both reports say of one thing; a dash where a report says nothing of it."""

    label: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        """Whether they say different things."""
        return self.left != self.right


def compare(left: Report, right: Report) -> tuple[Line, ...]:
    """Everything that is worth a look, in the order of a report; figures of private text where both have them."""
    public = (public_of(left), public_of(right))
    found = [Line(label=label, left=say(public[0]), right=say(public[1])) for label, say in _LINES]
    if isinstance(left, PrivateReport) and isinstance(right, PrivateReport):
        found += [Line(label=label, left=say(left), right=say(right)) for label, say in _PRIVATE_LINES]
    return tuple(line for line in found if (line.left, line.right) != ("–", "–"))


def public_of(report: Report) -> PublicReport:
    """The part of a report that may be published."""
    return report.public if isinstance(report, PrivateReport) else report


def render_comparison(left: Report, right: Report) -> str:
    """The comparison as one HTML file."""
    whole = isinstance(left, PrivateReport) and isinstance(right, PrivateReport)
    return environment().get_template("compare.html.j2").render(lines=compare(left, right), whole=whole)


def _epsilon(scope: str) -> Callable[[PublicReport], str]:
    def say(report: PublicReport) -> str:
        found = [one.epsilon for one in report.guarantees if one.scope == scope]
        return render_value(found[0], "epsilon") if found else "–"

    return say


def _stages(report: PublicReport) -> str:
    return " + ".join(_stage(report)) or "none"


def _stage(report: PublicReport) -> Iterator[str]:
    for one in report.stages:
        sigmas = one.noise_multipliers
        noise = f", σ {min(sigmas):.4g} to {max(sigmas):.4g}" if sigmas else ""
        released = "" if one.release_noise_multiplier is None else f", released at σ {one.release_noise_multiplier:.4g}"
        taken = "" if one.ended_after is None else f"{one.ended_after:,} of "
        yield f"{one.name} ({one.text or 'no text'}, {taken}{one.steps:,} steps{noise}{released})"


def _detector(report: PublicReport) -> str:
    return f"{report.detector.tier}{', with lists' if report.detector.lists else ''}"


def _audit(form: str) -> Callable[[PublicReport], str]:
    def say(report: PublicReport) -> str:
        after = next((one for one in report.audits if one.of == "after"), None)
        if after is None:
            return "–"
        if form == "verdict":
            return f"{after.verdict}, {sum(one.planted for one in after.canaries)} canaries"
        value, interval = (
            (after.mean, after.mean_interval) if form == "log p" else (after.mean_ratio, after.mean_ratio_interval)
        )
        within = "" if interval is None or value is None else f" ({interval[0]:.2f} to {interval[1]:.2f})"
        return f"{render_value(value, 'fixed')}{within}"

    return say


def _extraction(report: PublicReport) -> str:
    found = next((one.extraction for one in report.audits if one.of == "after"), None)
    return "–" if found is None else f"{found.greedy} greedy, {found.discoverable} in {found.samples:,} samples"


def _resurfaced(report: PublicReport) -> str:
    found = next((one.resurfacing for one in report.audits if one.of == "after"), None)
    if found is None:
        return "–"
    ratio = "" if found.mean_ratio is None else f", ratio {found.mean_ratio:.2f}"
    return f"{render_value(found.mean, 'fixed')}{ratio} after {found.steps} steps"


_LINES: tuple[tuple[str, Callable[[PublicReport], str]], ...] = (
    ("protected", lambda report: report.summary.protects),
    *((f"ε, {name}", _epsilon(scope)) for scope, name in SCOPES.items()),
    ("δ", lambda report: f"{report.delta:g}"),
    ("unit", lambda report: report.unit),
    ("records", lambda report: f"{report.records:,}"),
    ("start's past", lambda report: report.prior),
    ("recipe", lambda report: report.recipe),
    ("stages", _stages),
    ("passes", lambda report: render_value(report.passes, "plain")),
    ("tier", _detector),
    ("audit", _audit("verdict")),
    ("exposure, log p", _audit("log p")),
    ("exposure, ratio", _audit("ratio")),
    ("extraction", _extraction),
    ("resurfaced", _resurfaced),
    ("engine", lambda report: report.engine),
)


def _perplexity(field: str) -> Callable[[PrivateReport], str]:
    def say(report: PrivateReport) -> str:
        before: Number = getattr(report.perplexity.before, field)
        after: Number = getattr(report.perplexity.after, field)
        return f"{render_value(before, 'fixed')} → {render_value(after, 'fixed')}"

    return say


_PRIVATE_LINES: tuple[tuple[str, Callable[[PrivateReport], str]], ...] = (
    ("perplexity", _perplexity("all")),
    ("of sensitive tokens", _perplexity("sensitive")),
    ("of other tokens", _perplexity("other")),
    ("seconds", lambda report: render_value(report.seconds, "fixed")),
)
