"""Line charts and their parts as SVG text: no scripts, no fonts, and no colours that grey printing would lose."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

Point = tuple[float, float]

WIDTH, HEIGHT = 440, 320

LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 52

NAME_HEIGHT = 14


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Points joined by a line.

    Attributes:
        points: Ascending in x; those that are not finite are left out.
        name: Written beside its last point.
        dash: Lengths of strokes and gaps, as SVG has them; a plain line where it is empty.
        dots: Whether each point is marked.
    """

    points: Sequence[Point]
    name: str = ""
    dash: str = ""
    dots: bool = True


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Curves with their axes, both of which start at 0."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]


def chart(title: str, description: str, panels: Sequence[Panel]) -> str:
    """Panels side by side as one SVG document, with the title and description that a screen reader says."""
    drawn = "\n".join(
        f'<g transform="translate({WIDTH * place},0)">\n{_panel(panel)}\n</g>' for place, panel in enumerate(panels)
    )
    return drawing(title, description, drawn, width=WIDTH * len(panels), height=HEIGHT)


def drawing(title: str, description: str, body: str, *, width: float, height: float) -> str:
    """An SVG document on white, with what a screen reader says; several of different titles can stand in one page."""
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-labelledby="{name}-title {name}-desc" font-family="sans-serif" '
        f'font-size="12" fill="#222">\n<title id="{name}-title">{escape(title)}</title>\n'
        f'<desc id="{name}-desc">{escape(description)}</desc>\n'
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def linear_ticks(low: float, high: float, about: int = 5) -> tuple[float, ...]:
    """Round numbers from `low` to at least `high`, steps of 1, 2 or 5 times a power of ten.

    >>> linear_ticks(0, 7)
    (0.0, 2.0, 4.0, 6.0, 8.0)
    """
    span = high - low if high > low else 1.0
    power = 10.0 ** math.floor(math.log10(span / about))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= about)
    first = math.floor(low / step + 1e-9)
    last = max(math.ceil(high / step - 1e-9), first + 1)
    return tuple(round(place * step, 12) for place in range(first, last + 1))


def decade_ticks(low: float, high: float, most: int = 7) -> tuple[float, ...]:
    """Powers of ten that enclose the range, evenly thinned to at most `most`.

    >>> decade_ticks(1e-7, 2e-3)
    (1e-07, 1e-06, 1e-05, 0.0001, 0.001, 0.01)
    """
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    stride = math.ceil((last - first + 1) / most)
    last += -(last - first) % stride
    return tuple(float(f"1e{power}") for power in range(first, last + 1, stride))


def _panel(panel: Panel) -> str:
    curves = [(curve, [point for point in curve.points if all(map(math.isfinite, point))]) for curve in panel.curves]
    points = [point for _, finite in curves for point in finite]
    if not points:
        return drawn_text(WIDTH / 2, HEIGHT / 2, f"{panel.title}: nothing to draw", anchor="middle")
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x_ticks = linear_ticks(0, max(xs))
    y_ticks = linear_ticks(0, max(ys))

    def across(x: float) -> float:
        return LEFT + x / x_ticks[-1] * (WIDTH - LEFT - RIGHT)

    def down(y: float) -> float:
        return HEIGHT - BOTTOM - y / y_ticks[-1] * (HEIGHT - TOP - BOTTOM)

    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    lines = [drawn_line(LEFT, down(tick), right, down(tick), "#ddd") for tick in y_ticks]
    lines += [drawn_line(across(tick), bottom, across(tick), bottom + 5, "#222") for tick in x_ticks]
    lines += [drawn_line(LEFT, bottom, right, bottom, "#222"), drawn_line(LEFT, TOP, LEFT, bottom, "#222")]
    labels = [drawn_text(LEFT - 8, down(tick) + 4, f"{tick:g}", anchor="end") for tick in y_ticks]
    labels += [drawn_text(across(tick), bottom + 19, f"{tick:g}", anchor="middle") for tick in x_ticks]
    middle = (LEFT + right) / 2
    labels += [
        drawn_text(middle, 22, panel.title, anchor="middle", weight="bold"),
        drawn_text(middle, HEIGHT - 12, panel.x_label, anchor="middle"),
        drawn_text(16, (TOP + bottom) / 2, panel.y_label, anchor="middle", turned=True),
    ]
    scaled = [(curve, [(across(x), down(y)) for x, y in finite]) for curve, finite in curves if finite]
    drawn = [_curve(curve, places) for curve, places in scaled]
    drawn += _names([(curve.name, *places[-1]) for curve, places in scaled if curve.name])
    return "\n".join(lines + labels + drawn)


def _curve(curve: Curve, places: Sequence[Point]) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dash = f' stroke-dasharray="{curve.dash}"' if curve.dash else ""
    shapes = [f'<polyline points="{path}" fill="none" stroke="#222" stroke-width="1.5"{dash}/>']
    return "\n".join(shapes + [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places if curve.dots])


def _names(ends: Sequence[tuple[str, float, float]]) -> list[str]:
    """The names of curves beside their ends, from the top down, each clear of the one above."""
    labels, above = [], -math.inf
    for name, x, y in sorted(ends, key=lambda end: end[2]):
        above = max(y - 6, above + NAME_HEIGHT)
        beyond = x > WIDTH / 2
        labels.append(drawn_text(x + (-6 if beyond else 6), above, name, anchor="end" if beyond else "start"))
    return labels


def drawn_line(x1: float, y1: float, x2: float, y2: float, stroke: str, *, dashed: bool = False) -> str:
    """A straight line."""
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}"{dash}/>'


def drawn_text(x: float, y: float, text: str, *, anchor: str, weight: str = "normal", turned: bool = False) -> str:
    """A line of text at its base line, from its `start`, `middle` or `end`."""
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}"{turn}>{escape(text)}</text>'
