"""The charts of a report as SVG, each narrow enough for a phone and for two side by side on a desk."""

from collections.abc import Mapping, Sequence

from atdp_cli.report.audit_entry import AuditedCanary, AuditEntry, ScoreName
from atdp_cli.report.charts import Curve, Panel, chart
from atdp_cli.report.document import PerplexityEntry, PrivateReport, PublicReport, StageEntry
from atdp_cli.report.dotplot import DotPanel as Dots
from atdp_cli.report.dotplot import Mark, dot_plot
from atdp_cli.report.numbers import Number

DASHES = ("", "7 4", "2 3")
"""What tells curves of one chart apart on grey paper."""

MODELS: tuple[tuple[ScoreName, bool], ...] = (("after", False), ("before", True))
"""Which model's exposures are drawn, and whether hollow."""

NARROW = 300
"""Pixels of the axis of exposures."""


def noise_figure(report: PublicReport) -> str | None:
    """σ over the steps of all stages, one after the other; None where no stage had noise."""
    curves: list[Curve] = []
    first = 0
    for stage in report.stages:
        if stage.noise_multipliers and stage.steps:
            curves.append(Curve(points=_held(stage, first), name=stage.name, dots=False))
        first += stage.steps
    if not curves:
        return None
    panel = Panel(title="Noise multiplier σ", x_label="step", y_label="σ", curves=curves)
    return chart(
        "Noise over the steps", "The standard deviation of the noise over the clip norm, step by step.", [panel]
    )


def _held(stage: StageEntry, first: int) -> list[tuple[float, float]]:
    """σ stays for an epoch: two points each."""
    length = stage.steps / len(stage.noise_multipliers)
    return [
        (first + length * place, sigma)
        for epoch, sigma in enumerate(stage.noise_multipliers)
        for place in (epoch, epoch + 1)
    ]


def epsilon_figure(report: PublicReport) -> str | None:
    """ε over the steps by each accountant; None where there is but one moment."""
    if len(report.epsilon_over_steps) < 2:
        return None
    names = {"pld": "PLD", "rdp": "RDP", "paper": "paper's"}
    curves = [
        Curve(
            points=[(one.step, _number(getattr(one, name))) for one in report.epsilon_over_steps],
            name=shown,
            dash=dash,
            dots=False,
        )
        for (name, shown), dash in zip(names.items(), DASHES, strict=True)
    ]
    panel = Panel(title=f"ε at δ = {report.delta:g}", x_label="step with noise", y_label="ε", curves=curves)
    told = "ε of what the noisy stages had spent, by three accountants; the first is the one to quote."
    return chart("Epsilon over the steps", told, [panel])


def exposure_figures(report: PublicReport) -> tuple[str, ...]:
    """Each canary's exposure by both scores, before as a circle and after as a disc."""
    by_model: dict[ScoreName, AuditEntry] = {one.of: one for one in report.audits if one.of != "other"}
    if not (shown := by_model.get("after") or by_model.get("before")):
        return ()
    found = [_exposures(by_model, shown, "log p", "exposure")]
    if any(one.exposure_ratio is not None for one in shown.canaries):
        found.append(_exposures(by_model, shown, "ratio", "exposure_ratio"))
    return tuple(found)


def _exposures(by_model: Mapping[ScoreName, AuditEntry], shown: AuditEntry, score: str, field: str) -> str:
    canaries = [place for place, one in enumerate(shown.canaries) if one.planted]
    rows = [
        (
            str(place + 1),
            tuple(
                mark
                for of, hollow in MODELS
                if of in by_model
                for mark in _marks(by_model[of].canaries, place, field, hollow=hollow)
            ),
        )
        for place in canaries
    ]
    # Both thresholds of an audit are one: the tests of both scores have the same level.
    lines = [] if shown.threshold is None else [(shown.threshold, "fails")]
    panel = Dots(
        title=f"By {score}" if field == "exposure" else "By the ratio to the base",
        x_label="exposure, bits",
        rows=rows,
        lines=lines,
        band=shown.null_band,
        width=NARROW,
    )
    told = (
        f"A row for each planted canary. Grey is where 95 of 100 lie that nobody remembers; one beyond the dashed line "
        f"fails the model. Score: {score}."
    )
    return dot_plot(f"Exposure by {score}", told, [panel], legend=("after", "before"))


def _marks(canaries: Sequence[AuditedCanary], place: int, field: str, *, hollow: bool) -> list[Mark]:
    value = getattr(canaries[place], field) if place < len(canaries) else None
    return [] if value is None else [Mark(value=value, hollow=hollow)]


def perplexity_figure(report: PrivateReport) -> str | None:
    """Held-out perplexity of sensitive and other tokens, epoch by epoch through all stages."""
    entries = [report.perplexity.before, *(one for stage in report.stages for one in stage.perplexities)]
    if len(entries) < 2:
        return None
    curves = [
        Curve(points=_over_epochs(entries, field), name=field, dash=dash)
        for field, dash in zip(("sensitive", "other"), DASHES, strict=False)
    ]
    panel = Panel(title="Held-out perplexity", x_label="epochs so far", y_label="perplexity", curves=curves)
    return chart("Perplexity over the epochs", "Of sensitive and of other tokens of held-out records.", [panel])


def _over_epochs(entries: Sequence[PerplexityEntry], field: str) -> list[tuple[float, float]]:
    return [(place, _number(value)) for place, one in enumerate(entries) if (value := getattr(one, field)) is not None]


def norms_figure(report: PrivateReport) -> str | None:
    """Mean gradient norm of each step's records before clipping; None where no stage clipped."""
    curves = [
        Curve(
            points=[(step, norm) for step, norm in enumerate(stage.mean_norms, start=1) if norm is not None],
            name=stage.name,
            dash=DASHES[place % len(DASHES)],
            dots=False,
        )
        for place, stage in enumerate(one for one in report.stages if one.mean_norms)
    ]
    if not any(curve.points for curve in curves):
        return None
    panel = Panel(title="Mean gradient norm", x_label="step of the stage", y_label="norm", curves=curves)
    return chart("Gradient norms over the steps", "The mean L2 norm of the sampled records, before clipping.", [panel])


def _number(value: Number) -> float:
    return float("nan") if value is None else float(value)
