"""A table of systems as Markdown and as pictures."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from atdp_cli.privacy.wording import rounded_up
from atdp_cli.reporting import charts
from atdp_cli.reporting.charts import Curve
from atdp_cli.reporting.dotplot import DotPanel, Mark, dot_plot

Interval = tuple[float, float]

Number = float | Literal["inf"] | None
"""A number as the JSON of reports has it."""

CHANCE = 1 / math.log(2)
"""Bits of exposure that a model without memory has on average."""

SCOPES = {"end_to_end": "end to end", "selective": "selective", "increment": "increment"}


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Perplexity of all, sensitive and other tokens; None where there is no such token."""

    all: float | None
    sensitive: float | None
    other: float | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One system over all its repetitions.

    Attributes:
        exposure_mean: Over all canaries of all repetitions, bits; by log p.
        exposure_interval: 95 %, by a bootstrap over repetitions and canaries.
        exposure_ratio_mean, exposure_ratio_interval: By the ratio to the base model's log p; None for the base itself.
        fisher_p: One test over all canaries for each score; the smaller p times the number of scores.
        perplexity: Of held-out records, the mean over repetitions.
        relative_compute: Seconds over those of `no-dp`; None where that was not run.
        seconds: Of the processor, for all stages.
        epsilon: Of `scope`; the largest of the repetitions. None where nothing with noise read the corpus.
        scope: The strongest that has a finite ε.
        epsilon_end_to_end: "inf" where there is none.
        failed: Repetitions that fail their audit.
        greedy: Canaries that greedy decoding gives; None, as what follows, where it was not tried.
        discoverable: Canaries that a thousand samples hold with probability 1/2 or more.
        resurfaced_mean, resurfaced_ratio_mean: As the exposures, of copies that were fine-tuned on other text.
    """

    recipe: str
    exposure_mean: float
    exposure_interval: Interval
    exposure_ratio_mean: float | None
    exposure_ratio_interval: Interval | None
    fisher_p: float
    perplexity: float | None
    perplexity_tokens: Tokens
    sentence_tokens: Tokens
    relative_compute: float | None
    seconds: float
    epsilon: Number
    scope: str
    epsilon_end_to_end: Number
    delta: float
    assumptions: tuple[str, ...]
    canaries: int
    seeds: int
    failed: int
    greedy: int | None = None
    discoverable: int | None = None
    resurfaced_mean: float | None = None
    resurfaced_ratio_mean: float | None = None


def results(rows: Sequence[Row], **extra: Any) -> dict[str, Any]:
    """`results.json`: the rows, and what else is known of the run that made them."""
    return {"schema_version": 1, **extra, "rows": [asdict(row) for row in rows]}


def markdown(rows: Sequence[Row]) -> str:
    """The table with the paper's columns, and footnotes that state each scope and its assumptions."""
    lines = [
        "| system | compute | perplexity (sensitive, other) | exposure, bits | by the ratio | Fisher p | failed | ε | "
        "end to end |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    notes: dict[tuple[str, tuple[str, ...]], int] = {}
    for row in rows:
        note = ""
        if row.epsilon is not None:
            note = f" [{notes.setdefault((row.scope, row.assumptions), len(notes) + 1)}]"
        tokens = row.perplexity_tokens
        cells = (
            row.recipe,
            "–" if row.relative_compute is None else f"{row.relative_compute:.2f}",
            f"{_figure(row.perplexity)} ({_figure(tokens.sensitive)}, {_figure(tokens.other)})",
            _with_interval(row.exposure_mean, row.exposure_interval),
            _with_interval(row.exposure_ratio_mean, row.exposure_ratio_interval),
            f"{row.fisher_p:.1g}",
            f"{row.failed} of {row.seeds}",
            "–" if row.epsilon is None else f"{_epsilon(row.epsilon)} {SCOPES[row.scope]}{note}",
            _epsilon(row.epsilon_end_to_end),
        )
        lines.append(f"| {' | '.join(cells)} |")
    delta = rows[0].delta
    foot = [
        f"{number}. *{SCOPES[scope].capitalize()}*, δ = {delta:g}. {' '.join(said)}"
        for (scope, said), number in notes.items()
    ]
    return "\n".join(lines) + "\n\n" + "\n".join(foot) + ("\n" if foot else "")


def exposure_figure(rows: Sequence[Row], pool: int) -> str:
    """Exposure by system as SVG, with what certainty and chance would give."""
    certain = math.log2(pool)
    panel = DotPanel(
        title="Mean exposure of the canaries",
        x_label="bits",
        lines=((certain, f"certainty, {certain:.1f}"), (CHANCE, f"chance, {CHANCE:.2f}")),
        rows=tuple(
            (
                row.recipe,
                (
                    Mark(value=row.exposure_mean, interval=row.exposure_interval),
                    *(
                        ()
                        if row.exposure_ratio_mean is None
                        else (Mark(value=row.exposure_ratio_mean, interval=row.exposure_ratio_interval, hollow=True),)
                    ),
                ),
            )
            for row in rows
        ),
    )
    return dot_plot(
        "Exposure by system",
        "Mean exposure of planted canaries in bits with 95 % intervals: filled by log p, hollow by its ratio to the "
        "base model's.",
        (panel,),
        legend=("by log p", "by the ratio to the base model"),
    )


def perplexity_figure(rows: Sequence[Row], sentence: str) -> str:
    """Perplexity of sensitive and of other tokens by system as SVG: one sentence, and the held-out records."""
    panels = tuple(
        DotPanel(
            title=title,
            x_label="perplexity",
            logarithmic=True,
            rows=tuple(
                (
                    row.recipe,
                    tuple(
                        Mark(value=value, hollow=hollow)
                        for value, hollow in ((tokens.sensitive, False), (tokens.other, True))
                        if value is not None
                    ),
                )
                for row in rows
                for tokens in (getattr(row, which),)
            ),
        )
        for title, which in (("One sentence", "sentence_tokens"), ("Held-out records", "perplexity_tokens"))
    )
    return dot_plot(
        "Perplexity of sensitive and of other tokens by system",
        f"Filled: sensitive tokens; hollow: others. The sentence: {sentence}",
        panels,
        legend=("sensitive tokens", "other tokens"),
    )


def cost_figure(rows: Sequence[Row]) -> str:
    """Exposure over seconds as SVG, by both scores: a curve for each recipe, named before the comma of its rows."""
    recipes = dict.fromkeys(row.recipe.partition(",")[0] for row in rows)

    def curves(score: str) -> tuple[Curve, ...]:
        points = {
            recipe: [(row.seconds, getattr(row, score)) for row in rows if row.recipe.partition(",")[0] == recipe]
            for recipe in recipes
        }
        return tuple(Curve(name=recipe, points=sorted(found)) for recipe, found in points.items())

    panels = tuple(
        charts.Panel(title=title, x_label="processor seconds in all", y_label="bits", curves=curves(score))
        for title, score in (
            ("Exposure by log p", "exposure_mean"),
            ("By the ratio to the base", "exposure_ratio_mean"),
        )
    )
    return charts.chart(
        "Exposure over the seconds spent",
        "Mean exposure of planted canaries against the processor seconds of all stages, one point for each number of "
        "epochs of the last stage.",
        panels,
    )


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _with_interval(value: float | None, interval: Interval | None) -> str:
    if value is None or interval is None:
        return "–"
    return f"{value:.2f} ({interval[0]:.1f} to {interval[1]:.1f})"


def _epsilon(epsilon: Number) -> str:
    return "–" if epsilon is None else rounded_up(float(epsilon))
