"""The charts of a report: what stands where, and that nothing stands for what was not measured."""

import math
import xml.etree.ElementTree as ET

import pytest

from atdp_cli.privacy.accountant import EpsilonPoint
from atdp_cli.reporting.figures import epsilon_figure, mean_exposure_figure, noise_figure
from tests.reporting.documents import RAW, audit, public

SVG = "{http://www.w3.org/2000/svg}"


def places(svg: str | None) -> list[float]:
    """How far right each mark is, in pixels of its panel."""
    assert svg is not None
    return [float(disc.attrib["cx"]) for disc in ET.fromstring(svg).iter(f"{SVG}circle")]  # noqa: S314 - our own


def test_mean_exposures_stand_at_their_values_and_chance_at_its() -> None:
    svg = mean_exposure_figure((*public().audits, audit("given", mean=12.5, mean_ratio=None)))
    given, before, before_ratio, after, after_ratio, *_ = places(svg)
    per_bit = before / 11.9
    assert given == pytest.approx(12.5 * per_bit, abs=0.1), "the model that people have today stands first"
    assert after == pytest.approx(1.81 * per_bit, abs=0.1)
    assert after_ratio == before_ratio == pytest.approx(1.62 * per_bit, abs=0.1)
    limited = mean_exposure_figure((audit("after", mean_limit=1.9, mean_limit_ratio=2.25),))
    assert "≤ 2.25" in (limited or ""), "of both scores the larger limit"
    assert "≤ 1.90" not in (limited or "")
    [chance] = [line for line in ET.fromstring(svg or "").iter(f"{SVG}line") if "stroke-dasharray" in line.attrib]  # noqa: S314 - our own
    assert float(chance.attrib["x1"]) == pytest.approx(per_bit / math.log(2), abs=0.1)


def test_without_an_audit_of_the_model_no_exposure_is_drawn() -> None:
    assert mean_exposure_figure(()) is None
    assert mean_exposure_figure((audit("before"), audit("given"))) is None
    assert len(places(mean_exposure_figure((audit("after", mean_ratio=None),)))) == 2, "and its key"


def test_one_moment_of_epsilon_is_drawn_by_accountant() -> None:
    moment = EpsilonPoint(step=1, pld=2.001, rdp=2.4567, paper=3.1)
    pld, rdp, paper = places(epsilon_figure(public(epsilon_over_steps=(moment,))))
    assert rdp / pld == pytest.approx(2.4567 / 2.001, rel=1e-2)
    assert paper / pld == pytest.approx(3.1 / 2.001, rel=1e-2)
    assert epsilon_figure(public(RAW, epsilon=None, epsilon_over_steps=())) is None


def test_noise_is_drawn_by_epoch() -> None:
    svg = noise_figure(public())
    [line] = ET.fromstring(svg or "").iter(f"{SVG}polyline")  # noqa: S314 - our own
    points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    assert len(points) == 6
    widths = [points[place + 1][0] - points[place][0] for place in (0, 2, 4)]
    assert widths == pytest.approx([widths[0]] * 3, abs=0.2)
    assert points[0][1] == points[4][1] > points[2][1]
    assert noise_figure(public(stages=())) is None
