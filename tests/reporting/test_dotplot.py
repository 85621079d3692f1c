"""Dot plots and the table of systems."""

import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from atdp_cli.reporting.dotplot import DotPanel, Mark, dot_plot
from examples.experiments.figures import Row, Tokens, exposure_figure, markdown, perplexity_figure, results

SVG = "{http://www.w3.org/2000/svg}"

ROW = Row(
    recipe="no-dp+atdp",
    exposure_mean=12.5,
    exposure_interval=(11.0, 14.0),
    exposure_ratio_mean=9.0,
    exposure_ratio_interval=(8.0, 10.0),
    fisher_p=1e-9,
    perplexity=4.5,
    perplexity_tokens=Tokens(all=4.5, sensitive=12.0, other=2.5),
    sentence_tokens=Tokens(all=50.0, sensitive=1234.0, other=20.0),
    relative_compute=1.9,
    seconds=100.0,
    epsilon=4.6214,
    scope="increment",
    epsilon_end_to_end="inf",
    delta=1e-6,
    assumptions=("It bounds only what is added.",),
    canaries=30,
    seeds=3,
    failed=3,
)
BASE = replace(
    ROW,
    recipe="base",
    exposure_ratio_mean=None,
    exposure_ratio_interval=None,
    relative_compute=0.0,
    epsilon=None,
    scope="end_to_end",
    epsilon_end_to_end=None,
    assumptions=(),
    failed=0,
)


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 - our own


def discs(svg: str) -> list[ET.Element]:
    return list(parsed(svg).iter(f"{SVG}circle"))


def test_marks_stand_where_their_values_are() -> None:
    panel = DotPanel(
        title="t", x_label="x", rows=(("a", (Mark(value=1.0), Mark(value=3.0))), ("b", (Mark(value=2.0),)))
    )
    places = [float(disc.attrib["cx"]) for disc in discs(dot_plot("t", "d", (panel,), legend=("p", "q")))][:3]
    assert places[1] - places[2] == pytest.approx(places[2] - places[0], abs=0.2)


def test_a_logarithmic_axis_has_equal_ratios_equally_far() -> None:
    rows = (("a", tuple(Mark(value=value) for value in (2.0, 20.0, 200.0))),)
    svg = dot_plot("t", "d", (DotPanel(title="t", x_label="x", rows=rows, logarithmic=True),), legend=("p", "q"))
    places = [float(disc.attrib["cx"]) for disc in discs(svg)][:3]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)


def test_nothing_is_drawn_outside_and_odd_names_and_infinities_do_no_harm() -> None:
    rows = (("<&>", (Mark(value=math.inf), Mark(value=5.0, interval=(0.5, 19.0), hollow=True))), ("none", ()))
    svg = dot_plot("a<b", "c&d", (DotPanel(title="t", x_label="x", rows=rows),), legend=("p", "q"))
    root = parsed(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for node in root.iter():
        for name, most in (("cx", width), ("x1", width), ("x2", width), ("cy", height), ("y1", height)):
            assert 0 <= float(node.attrib.get(name, 0)) <= most
    assert "<&>" in "".join(root.itertext())


def test_the_figures_have_a_mark_for_every_figure() -> None:
    assert len(discs(exposure_figure([BASE, ROW], 10**6))) == 1 + 2 + 2, "two of the legend"
    assert "19.9" in exposure_figure([ROW], 10**6)
    assert len(discs(perplexity_figure([BASE, ROW], "A sentence."))) == 2 * 4 + 2


def test_the_table_states_scope_and_assumptions() -> None:
    lines = markdown([BASE, ROW, replace(ROW, recipe="other")]).splitlines()
    assert lines[3] == (
        "| no-dp+atdp | 1.90 | 4.50 (12.00, 2.50) | 12.50 (11.0 to 14.0) | 9.00 (8.0 to 10.0) | 1e-09 | 3 of 3 "
        "| 4.63 increment [1] | ∞ |"
    )
    assert lines[2].endswith("| – | 1e-09 | 0 of 3 | – | – |")
    assert lines[6] == "1. *Increment*, δ = 1e-06. It bounds only what is added."
    assert len(lines) == 7, "equal footnotes are one"


def test_results_have_the_promised_keys() -> None:
    actual = results([ROW], command="c")
    assert actual["command"] == "c"
    assert set(actual["rows"][0]) >= {
        "recipe",
        "exposure_mean",
        "exposure_interval",
        "exposure_ratio_mean",
        "exposure_ratio_interval",
        "fisher_p",
        "perplexity",
        "relative_compute",
        "epsilon",
        "scope",
        "epsilon_end_to_end",
    }
