"""The charts of a report as SVG, each narrow enough for a phone and for two side by side on a desk."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from atdp_cli.reporting.audit_entry import MODEL_NAMES, AuditEntry, ScoreName, severity
from atdp_cli.reporting.charts import Curve, Panel, chart
from atdp_cli.reporting.document import PrivateReport, PublicReport
from atdp_cli.reporting.dotplot import DotPanel as Dots
from atdp_cli.reporting.dotplot import Mark, dot_plot
from atdp_cli.reporting.entries import PerplexityEntry

DASHES = ("", "7 4", "2 3")
"""The dashes that tell curves of one chart apart on grey paper."""

MODELS: tuple[tuple[ScoreName, bool], ...] = (("after", False), ("before", True))
"""The models whose exposures are drawn, and whether hollow."""

NARROW = 300
"""Pixels of the axis of exposures."""

MOST_BITS = 20.0
"""log₂ of a million candidates, about: the exposure of a secret of six digits that is known for sure."""

CHANCE = 1 / math.log(2)
"""Bits: the mean exposure of canaries that nobody remembers."""

ACCOUNTANTS = {"pld": "PLD", "rdp": "RDP", "paper": "paper's"}


def noise_figure(report: PublicReport) -> str | None:
    """σ over the epochs of all stages, one after the other; None where no step had noise."""
    curves: list[Curve] = []
    first = 0
    for stage in report.stages:
        if stage.noise_multipliers and stage.steps:
            points = [(first + epoch + side, s) for epoch, s in enumerate(stage.noise_multipliers) for side in (0, 1)]
            curves.append(Curve(points=points, name=stage.name, dots=False))
        first += stage.epochs
    if not curves:
        return None
    panel = Panel(title="Noise multiplier σ", x_label="epochs so far", y_label="σ", curves=curves)
    return chart("Noise by epoch", "The standard deviation of the noise over the clip norm, epoch by epoch.", [panel])


def person_figure(report: PublicReport) -> str | None:
    """ε over the records of one person; None where it does not grow with them."""
    points = [(float(group.records), _number(group.epsilon)) for group in report.person]
    if not points:
        return None
    panel = Panel(
        title=f"ε at δ = {report.delta:g}",
        x_label=f"{report.unit}s of one person",
        y_label="ε",
        curves=[Curve(points=points)],
    )
    return chart("Epsilon by records of a person", "How ε grows with the records of one person.", [panel])


def epsilon_figure(report: PublicReport) -> str | None:
    """ε over the steps by each accountant, or at the end if there is but one moment; None without noise."""
    if len(report.epsilon_over_steps) < 2:
        return _epsilon_at_the_end(report)
    curves = [
        Curve(
            points=[(point.step, _number(getattr(point, name))) for point in report.epsilon_over_steps],
            name=label,
            dash=dash,
            dots=False,
        )
        for (name, label), dash in zip(ACCOUNTANTS.items(), DASHES, strict=True)
    ]
    panel = Panel(title=f"ε at δ = {report.delta:g}", x_label="step with noise", y_label="ε", curves=curves)
    description = "ε of what was spent with noise, by three accountants; the first is the one to quote."
    return chart("Epsilon over the steps", description, [panel])


def _epsilon_at_the_end(report: PublicReport) -> str | None:
    if report.epsilon is None:
        return None
    rows = [(label, [Mark(value=_number(getattr(report.epsilon, name)))]) for name, label in ACCOUNTANTS.items()]
    panel = Dots(title=f"ε at δ = {report.delta:g}", x_label="ε spent with noise", rows=rows, width=NARROW)
    description = "ε of what was spent with noise, by three accountants; the first is the one to quote."
    return dot_plot("Epsilon by accountant", description, [panel], legend=("", ""))


def mean_exposure_figure(audits: Sequence[AuditEntry]) -> str | None:
    """The mean exposures of MODEL, the start and the result, with intervals; None without an audit of the result.

    A tick is the upper limit for secrets like the canaries, of both scores the larger.
    """
    by_model = _worst(audits)
    if "after" not in by_model:
        return None
    drawn = [(MODEL_NAMES[of], by_model[of]) for of in ("given", "before", "after") if of in by_model]
    rows = [(name, marks) for name, audit in drawn if (marks := _means(audit))]
    if not rows:
        return None
    panel = Dots(
        title="Mean exposure of the canaries",
        x_label="bits, 95 % intervals" + ", upper limit" * any(mark.limit for _, marks in rows for mark in marks),
        rows=rows,
        lines=[(CHANCE, "chance")],
        width=NARROW,
        high=MOST_BITS,
    )
    description = "The mean exposure of the planted canaries by both scores; what nobody remembers lies at chance."
    ratio = "by the ratio" if any(mark.hollow for _, marks in rows for mark in marks) else ""
    return dot_plot("Mean exposure", description, [panel], legend=("by log p", ratio))


def _means(audit: AuditEntry) -> list[Mark]:
    """An audit's mean exposures by both scores, the larger of their upper limits beside the second."""
    limits = [limit for limit in (audit.mean_limit, audit.mean_limit_ratio) if limit is not None]
    marks = [
        Mark(value=mean, interval=interval, hollow=hollow)
        for mean, interval, hollow in (
            (audit.mean, audit.mean_interval, False),
            (audit.mean_ratio, audit.mean_ratio_interval, True),
        )
        if mean is not None
    ]
    return [*marks[:-1], *(replace(mark, limit=max(limits, default=None)) for mark in marks[-1:])]


def _marks(
    by_model: Mapping[ScoreName, AuditEntry],
    figure: Callable[[AuditEntry], float | None],
) -> list[Mark]:
    """A figure of each audited model that has it."""
    values = [(figure(by_model[of]), hollow) for of, hollow in MODELS if of in by_model]
    return [Mark(value=value, hollow=hollow) for value, hollow in values if value is not None]


def _worst(audits: Sequence[AuditEntry]) -> dict[ScoreName, AuditEntry]:
    """The audit that counts of each model."""
    return {audit.of: audit for audit in sorted(audits, key=severity, reverse=True)}


def _legend(by_model: Mapping[ScoreName, AuditEntry]) -> tuple[str, str]:
    """The legend of the audited models."""
    after, before = (MODEL_NAMES[of] if of in by_model else "" for of, _ in MODELS)
    return after, before


def exposure_figures(audits: Sequence[AuditEntry]) -> tuple[str, ...]:
    """Each canary's exposure by both scores, of the start as a circle and of the result as a disc."""
    by_model = _worst(audits)
    drawn = by_model.get("after") or by_model.get("before")
    if drawn is None or not any(canary.planted for canary in drawn.canaries):
        return ()
    charts = [_exposures(by_model, drawn, "log p", "exposure")]
    if any(audit.exposure_ratio is not None for audit in drawn.canaries):
        charts.append(_exposures(by_model, drawn, "ratio", "exposure_ratio"))
    return tuple(charts)


def _exposures(by_model: Mapping[ScoreName, AuditEntry], drawn: AuditEntry, score: str, field: str) -> str:

    def exposure_of(index: int) -> Callable[[AuditEntry], float | None]:
        return lambda audit: getattr(audit.canaries[index], field) if index < len(audit.canaries) else None

    planted = [index for index, canary in enumerate(drawn.canaries) if canary.planted]
    rows = [(str(index + 1), _marks(by_model, exposure_of(index))) for index in planted]
    # Both thresholds of an audit are one: the tests of both scores have the same level.
    lines = [] if drawn.threshold is None else [(drawn.threshold, "fails")]
    panel = Dots(
        title=f"By {score}" if field == "exposure" else "By the ratio to the base",
        x_label="exposure, bits",
        rows=rows,
        lines=lines,
        band=drawn.null_band,
        width=NARROW,
    )
    description = (
        f"A row for each planted canary. Grey is where 95 of 100 lie that nobody remembers; one beyond the dashed line "
        f"fails the model. Score: {score}."
    )
    return dot_plot(f"Exposure by {score}", description, [panel], legend=_legend(by_model))


def perplexity_figure(report: PrivateReport) -> str | None:
    """Held-out perplexity of sensitive and other tokens, epoch by epoch through all stages."""
    entries = [report.perplexity.before, *(entry for stage in report.stages for entry in stage.perplexities)]
    if len(entries) < 2:
        return None
    curves = [
        Curve(points=_over_epochs(entries, field), name=field, dash=dash)
        for field, dash in zip(("sensitive", "other"), DASHES, strict=False)
    ]
    panel = Panel(title="Held-out perplexity", x_label="epochs so far", y_label="perplexity", curves=curves)
    return chart("Perplexity over the epochs", "Of sensitive and of other tokens of held-out records.", [panel])


def _over_epochs(entries: Sequence[PerplexityEntry], field: str) -> list[tuple[float, float]]:
    return [
        (epoch, _number(value)) for epoch, entry in enumerate(entries) if (value := getattr(entry, field)) is not None
    ]


def usefulness_figure(report: PrivateReport) -> str | None:
    """The share of repeated values that each model says right, with intervals; None where there are too few."""
    rows = [
        (entry.model, [Mark(value=entry.whole / entry.values, interval=entry.within)])
        for entry in report.usefulness
        if entry.within is not None
    ]
    if not rows:
        return None
    panel = Dots(
        title="Repeated values said right", x_label="share, with 95 % intervals", rows=rows, lines=[], width=NARROW
    )
    description = "How often each model goes on as the record has it, where a value stands again."
    return dot_plot("Repeated values", description, [panel], legend=("", ""))


def norms_figure(report: PrivateReport) -> str | None:
    """Mean gradient norm of each step's records before clipping; None where no stage clipped."""
    curves = [
        Curve(
            points=[(step, norm) for step, norm in enumerate(stage.mean_norms, start=1) if norm is not None],
            name=stage.name,
            dash=DASHES[place % len(DASHES)],
            dots=False,
        )
        for place, stage in enumerate(stage for stage in report.stages if stage.mean_norms)
    ]
    if not any(curve.points for curve in curves):
        return None
    panel = Panel(title="Mean gradient norm", x_label="step of the stage", y_label="norm", curves=curves)
    return chart("Gradient norms over the steps", "The mean L2 norm of the sampled records, before clipping.", [panel])


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
