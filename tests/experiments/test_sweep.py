"""The sweep's systems, and what it takes for the best."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from examples.experiments.figures import Row
from examples.experiments.systems import slug_of
from tests.report.test_dotplot import ROW

SCRIPT = Path(__file__).parents[2] / "examples" / "sweep" / "run.py"


@pytest.fixture(scope="module")
def sweep() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sweep_run", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(recipe: str, bits: float, perplexity: float, **changed: Any) -> Row:
    """By all scores alike, but for what is changed."""
    alike: dict[str, Any] = {
        "exposure_mean": bits,
        "exposure_ratio_mean": bits,
        "resurfaced_mean": bits,
        "resurfaced_ratio_mean": bits,
    }
    return replace(ROW, recipe=recipe, perplexity=perplexity, **(alike | changed))


def test_there_are_as_many_systems_as_promised_all_different_and_runnable(sweep: ModuleType) -> None:
    many, few = sweep.many(3.0), sweep.few(3.0)
    assert len(many) >= 40
    assert len(few) == 12
    assert len({slug_of(system.steps) for system in many}) == len({system.name for system in many}) == len(many)
    assert all(step.recipe for system in many for step in system.steps)


def test_who_only_hides_is_as_far_as_what_comes_back(sweep: ModuleType) -> None:
    plain = row("no-dp", 12.0, 5.0)
    hidden = row("hidden", 1.0, 5.0, resurfaced_ratio_mean=8.0)
    assert sweep.distance(hidden, [plain, hidden]) == pytest.approx(2.0)
    for score in ("exposure_mean", "exposure_ratio_mean", "resurfaced_mean"):
        assert sweep.distance(row("x", 1.0, 5.0, **{score: 4.0}), [plain]) == pytest.approx(1.0)


def test_the_goal_is_no_distance_and_perplexity_counts_beyond_it(sweep: ModuleType) -> None:
    plain = row("no-dp", 12.0, 5.0)
    assert sweep.distance(row("there", 2.0, 5.1), [plain]) == 0
    assert sweep.distance(row("expensive", 1.0, 2 * 5.1), [plain]) == pytest.approx(1.0)


def test_the_best_are_nearest_to_the_goal_and_plain_training_is_none_of_them(sweep: ModuleType) -> None:
    plain = [system for system in sweep.many(3.0) if all(step.part == "no-dp" for step in system.steps)]
    others = [system for system in sweep.many(3.0) if system not in plain]
    assert len(plain) > 1
    rows = [row(system.name, 2.0 + place, 5.0) for place, system in enumerate([*plain, *others])]
    assert sweep.best(rows, [*others, *plain], 3) == tuple(other.name for other in others[:3])


def test_recipes_are_compared_where_their_perplexities_meet(sweep: ModuleType) -> None:
    systems = sweep.many(3.0)
    rows = [row(system.name, 2.0, 50.0 + place) for place, system in enumerate(systems) if place]
    rows.append(row("no-dp", 12.0, 5.0))
    close = {
        "no-dp+atdp, learning-rate=5e-3": 8.0,
        "no-dp+noise, noise-multiplier=1.247, learning-rate=3e-3": 8.1,
        "no-dp+anchored, epochs=1": 7.9,
        "no-dp+interpolate, beta=0.75": 8.2,
    }
    rows = [replace(result, perplexity=close.get(result.recipe, result.perplexity)) for result in rows]
    assert set(sweep.matched(rows, systems)) == set(close)
    unchanged = [replace(result, perplexity=5.1 if result.recipe in close else result.perplexity) for result in rows]
    assert not set(sweep.matched(unchanged, systems)) & set(close)


def test_the_goal_is_judged_by_upper_limits(sweep: ModuleType) -> None:
    plain = row("no-dp", 12.0, 5.0)
    there = row("there", 1.0, 5.1, exposure_interval=(0.5, 2.0), exposure_ratio_interval=(0.5, 1.9))
    assert sweep.reached(there, [plain, there])["reached"]
    for changed in (
        {"exposure_interval": (0.5, 2.01)},
        {"exposure_ratio_interval": (0.5, 2.01)},
        {"perplexity": 5.11},
    ):
        assert not sweep.reached(replace(there, **changed), [plain, there])["reached"]
    table = sweep.goals([plain, there])
    assert [line.count("|") for line in table.splitlines()[:4]] == [8] * 4
    assert "| there | 2.00, 1.90 |" in table


def test_the_tradeoff_has_a_curve_for_each_recipe(sweep: ModuleType) -> None:
    systems = sweep.many(3.0)
    rows = [row(system.name, 2.0, 5.0 + place / 10) for place, system in enumerate(systems)]
    drawn = sweep.tradeoff(rows, systems)
    for part in (*sweep.COMPARED, "decoys", "fitted-decoys"):
        assert drawn.count(f">{part}<") == 2
    assert drawn.count("<circle") == 2 * sum(
        sweep._rate_alone(system) and system.name in {actual.recipe for actual in rows} for system in systems
    )
