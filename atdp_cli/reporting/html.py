"""The privacy report as one HTML file that needs no network and no script."""

import math
import unicodedata
from collections.abc import Callable
from functools import cache, reduce
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from atdp_cli.privacy.wording import SCOPES, rounded_up
from atdp_cli.reporting import figures, stage_facts
from atdp_cli.reporting.audit_entry import MODEL_NAMES, own_audit
from atdp_cli.reporting.document import AuditReport, PrivateReport, PublicReport, listed_audits
from atdp_cli.reporting.wording import MAY, model_title, protected_kinds

VERDICTS = {
    "releasable": "Releasable",
    "flagged-values-only": "Releasable for flagged values only",
    "not-audited": "Not audited",
    "not-releasable": "Not releasable",
}
"""The badge of each verdict."""

FORMS: dict[str, Callable[[float], str]] = {
    "epsilon": rounded_up,
    "count": lambda value: f"{value:,.0f}",
    "plain": lambda value: f"{value:.4g}",
    "fixed": lambda value: f"{value:,.2f}",
    "share": lambda value: f"{value:.1%}",
}
"""The formats of numbers; those of `epsilon` are never rounded down."""


def render_html(report: PublicReport | PrivateReport) -> str:
    """The report as HTML; the whole one where it is given the whole."""
    private = report if isinstance(report, PrivateReport) else None
    public = report.public if isinstance(report, PrivateReport) else report
    at = "" if private is None else "public."
    audits = listed_audits(report)
    charts = {
        "noise": figures.noise_figure(public),
        "epsilon": figures.epsilon_figure(public),
        "person": figures.person_figure(public),
        "means": figures.mean_exposure_figure([audit for _, audit in audits]),
        "exposures": figures.exposure_figures(public.audits),
        "perplexity": None if private is None else figures.perplexity_figure(private),
        "usefulness": None if private is None else figures.usefulness_figure(private),
        "norms": None if private is None else figures.norms_figure(private),
    }
    return visible(
        environment()
        .get_template("report.html.j2")
        .render(
            report=public,
            private=private,
            release=public.release if private is None else private.release,
            figure=figure_of(report.model_dump(mode="json")),
            at=at,
            charts=charts,
            audits=audits,
            names=MODEL_NAMES,
            title=model_title(public),
            weights=[each for each in public.weights.items() if each[0].endswith(".safetensors")],
            audited=own_audit(public.audits),
            verdicts=VERDICTS,
            may=MAY,
            kinds=protected_kinds(public.guarantees, public.unit, insecure_seed=public.insecure_seed),
            stage_facts=stage_facts,
            scopes=SCOPES,
            most_bits=max((_bits(token.before, token.after) for token in public.sentence), default=1.0) or 1.0,
        )
    )


def render_audits(report: AuditReport) -> str:
    """The report of a model of which nothing but its audits is known, as HTML."""
    return visible(
        environment()
        .get_template("audit_report.html.j2")
        .render(
            report=report,
            release=report.release,
            audited=own_audit(report.audits),
            audits=listed_audits(report),
            figure=figure_of(report.model_dump(mode="json")),
            charts={
                "means": figures.mean_exposure_figure(report.audits),
                "exposures": figures.exposure_figures(report.audits),
            },
            names=MODEL_NAMES,
            verdicts=VERDICTS,
            may=MAY,
        )
    )


def figure_of(document: dict[str, Any]) -> Callable[[str, str], Markup]:
    """Make the function that shows the number at a path of the JSON, so that no other can stand there.

    `figure("epsilon.pld", "epsilon")` → `<data value="2.998" data-path="epsilon.pld">3.00</data>`.
    """

    def figure(path: str, form: str) -> Markup:
        value = reduce(lambda part, key: part[int(key) if isinstance(part, list) else key], path.split("."), document)
        given = "" if value is None else str(value)
        return Markup('<data value="{}" data-path="{}">{}</data>').format(given, path, render_value(value, form))

    return figure


def render_value(value: Any, form: str) -> str:
    """A number in one of the `FORMS`, ∞ where it is infinite, a dash for null.

    >>> render_value(2.9981, "epsilon"), render_value("inf", "fixed"), render_value(None, "count")
    ('3.00', '∞', '–')
    """
    if value is None:
        return "–"
    return "∞" if math.isinf(float(value)) else FORMS[form](float(value))


def _bits(*values: float | None) -> float:
    return max((value for value in values if value is not None and math.isfinite(value)), default=0.0)


_STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of what is no mark: controls, formats, half characters and separators."""


def visible(page: str) -> str:
    """A page in which a control, or a mark that turns the text's direction, is shown and does nothing."""
    return "".join(
        mark.encode("unicode_escape").decode("ascii")
        if mark not in "\n\t\u200c\u200d" and unicodedata.category(mark) in _STEERING
        else mark
        for mark in page
    )


@cache
def environment() -> Environment:
    """The templates; in those of HTML, what comes from a report is escaped."""
    templates = Environment(
        loader=PackageLoader("atdp_cli.reporting"),
        undefined=StrictUndefined,
        # Nothing in a model card comes from a corpus, and escaping would garble it.
        autoescape=select_autoescape(disabled_extensions=("md.j2",), default=True),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["svg"] = Markup
    templates.filters["cell"] = lambda text: escape(text if text.strip() else text.replace("\n", "⏎").replace(" ", "␣"))
    return templates
