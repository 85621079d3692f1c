"""Dot plots as SVG text: one row an item, one mark a figure, with an interval where there is one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from atdp_cli.reporting.charts import decade_ticks, drawing, drawn_line, drawn_text, linear_ticks

ROW, TOP, BOTTOM, RIGHT = 24, 58, 56, 48

CHARACTER = 7.6
"""About the width of a letter of the labels."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A figure.

    Attributes:
        interval: Its lowest and highest plausible value.
        hollow: Drawn as a circle, not as a disc.
        limit: An upper limit, drawn as a tick with its value.
    """

    value: float
    interval: tuple[float, float] | None = None
    hollow: bool = False
    limit: float | None = None


@dataclass(frozen=True, kw_only=True)
class DotPanel:
    """Rows over one axis.

    Attributes:
        rows: From top to bottom.
        lines: Upright lines at values that mean something, each with what it means.
        band: From where to where the ground is grey.
        width: Of the axis, pixels.
        logarithmic: Whether the axis is; all figures are then above 0. A linear one starts at 0.
        high: What the axis reaches at least.
    """

    title: str
    x_label: str
    rows: Sequence[tuple[str, Sequence[Mark]]]
    lines: Sequence[tuple[float, str]] = ()
    band: tuple[float, float] | None = None
    width: int = 400
    logarithmic: bool = False
    high: float | None = None


def dot_plot(title: str, description: str, panels: Sequence[DotPanel], *, legend: tuple[str, str]) -> str:
    """Panels of equal rows side by side as one SVG document, with what a screen reader says.

    Args:
        legend: What a disc is, and what a circle; empty for a kind that is not drawn.
    """
    left = 16 + CHARACTER * max(len(name) for panel in panels for name, _ in panel.rows)
    starts = [left]
    for panel in panels:
        starts.append(starts[-1] + panel.width + RIGHT)
    height = TOP + BOTTOM + ROW * max(len(panel.rows) for panel in panels) + (22 if any(legend) else 0)
    labels = [
        drawn_text(left - 10, _middle(place) + 4, name, anchor="end") for place, (name, _) in enumerate(panels[0].rows)
    ]
    drawn = [
        f'<g transform="translate({start:.0f},0)">\n{_panel(panel)}\n</g>'
        for start, panel in zip(starts, panels, strict=False)
    ]
    key = [
        shape
        for meaning, x, hollow in ((legend[0], left, False), (legend[1], left + 200, True))
        if meaning
        for shape in (
            _disc(x, height - 12, hollow=hollow),
            drawn_text(x + 10, height - 8, meaning, anchor="start"),
        )
    ]
    return drawing(title, description, "\n".join([*labels, *drawn, *key]), width=starts[-1], height=height)


def _panel(panel: DotPanel) -> str:
    ticks, across = _axis(panel)
    bottom = TOP + ROW * len(panel.rows)
    shapes = [] if panel.band is None else [_band(across(panel.band[0]), across(panel.band[1]), bottom)]
    shapes += [drawn_line(across(tick), TOP, across(tick), bottom, "#ddd") for tick in ticks]
    shapes += [drawn_text(across(tick), bottom + 17, f"{tick:g}", anchor="middle") for tick in ticks]
    shapes += [
        drawn_text(panel.width / 2, 18, panel.title, anchor="middle", weight="bold"),
        drawn_text(panel.width / 2, bottom + 36, panel.x_label, anchor="middle"),
    ]
    for value, meaning in panel.lines:
        place = across(value)
        shapes += [drawn_line(place, TOP - 6, place, bottom, "#222", dashed=True)]
        shapes += [drawn_text(place, TOP - 12, meaning, anchor="end" if place > panel.width * 0.6 else "start")]
    for row, (_, marks) in enumerate(panel.rows):
        for mark in marks:
            shapes += _mark(mark, _middle(row), across, end=panel.width)
    return "\n".join(shapes)


def _axis(panel: DotPanel) -> tuple[tuple[float, ...], Callable[[float], float]]:
    """Where the ticks are, and where a value is drawn."""
    marks = [mark for _, row in panel.rows for mark in row]
    figures = [figure for mark in marks for figure in (mark.value, *(mark.interval or ()), mark.limit)]
    values = [figure for figure in figures if figure is not None and math.isfinite(figure)]
    values += panel.band or ()
    values += () if panel.high is None else (panel.high,)
    values += [value for value, _ in panel.lines] or [1.0][: not values]
    scale = math.log10 if panel.logarithmic else float
    ticks = decade_ticks(min(values), max(values)) if panel.logarithmic else linear_ticks(0, max(values))
    low, high = scale(ticks[0]), scale(ticks[-1])
    return ticks, lambda value: (scale(value) - low) / (high - low) * panel.width


def _mark(mark: Mark, y: float, across: Callable[[float], float], *, end: float) -> list[str]:
    if not math.isfinite(mark.value):
        return [drawn_text(end, y + 4, "∞", anchor="end")]
    # Side by side, so that neither hides the other.
    y += 4 if mark.hollow else -4
    line = (
        []
        if mark.interval is None
        else [drawn_line(*(across(mark.interval[0]), y), *(across(mark.interval[1]), y), "#222")]
    )
    if mark.limit is not None:
        x = across(mark.limit)
        line += [
            drawn_line(x, y - 6, x, y + 6, "#222"),
            drawn_text(x + 6, y + 4, f"≤ {mark.limit:.2f}", anchor="start"),
        ]
    return [*line, _disc(across(mark.value), y, hollow=mark.hollow)]


def _band(low: float, high: float, bottom: float) -> str:
    return f'<rect x="{low:.1f}" y="{TOP}" width="{high - low:.1f}" height="{bottom - TOP}" fill="#eee"/>'


def _disc(x: float, y: float, *, hollow: bool) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" stroke="#222" fill="{"#fff" if hollow else "#222"}"/>'


def _middle(row: int) -> float:
    return TOP + ROW * (row + 0.5)
