"""A sweep over recipes and settings: many of one seed, then the best again with canaries that they were not chosen by.

    python examples/sweep/run.py --model M --corpus C --out DIR

Every system starts at the base checkpoint M, which never saw the corpus C. All private stages of a system spend at most
--epsilon. DIR/explore has one seed of every system, DIR/confirm the --best of them with --seeds new ones. What both
found and how far the goal is: results.json, table.md, exposure.svg and tradeoff.svg. An interrupted sweep goes on
where it stopped.
"""

import argparse
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

# The experiments are beside this folder, and other distributions have a package of that name.
sys.path.insert(0, str(Path(__file__).parents[2]))

from atdp_cli.report.charts import Curve, Panel, chart
from atdp_cli.text.detection.spans import Tier
from examples.experiments.experiment import Experiment
from examples.experiments.figures import Row, exposure_figure, markdown, results
from examples.experiments.script import exit_code, parser_for, progress, write_results
from examples.experiments.systems import Step, System
from examples.experiments.table import measure

NO_DP = "no-dp"
EXPOSURE, PERPLEXITY = 2.0, 1.02
"""The goal: bits of mean exposure at most, by both scores, at this share of the perplexity of no-dp."""

POOL = 10**6
"""Alternatives of a canary."""

MOST_SHOWN = 4.0
"""Where the figure of exposure over perplexity ends."""

LINEAR = "annealing=linear"
NOISE = "noise-multiplier=1.247"
"""σ₀ of `atdp` at ε = 3 on the quickstart, for noise of the same size without a gradient."""

COMPARED = ("atdp", "noise", "anchored", "interpolate")
"""What is compared at one perplexity, after no-dp."""


def main() -> int:
    return exit_code(sweep, parser().parse_args())


def parser() -> argparse.ArgumentParser:
    options = parser_for(__doc__, seeds=3)
    options.add_argument("--held-out-every", type=int, default=20, help="of so many records one is held out")
    options.add_argument("--allow", type=Path, action="append", default=[], help="terms that are not sensitive")
    options.add_argument("--epsilon", type=float, default=3.0, help="what all private stages of a system may spend")
    options.add_argument("--few", action="store_true", help="twelve systems, for a checkpoint that takes long")
    options.add_argument("--match", default="", help="a regular expression: only systems in whose name it is found")
    options.add_argument("--best", type=int, default=5, help="how many to run again")
    return options


def step(part: str, *options: str, epsilon: float | None = None, lora: int | None = None) -> Step:
    """`step("anchored", "learning-rate=1e-3")`."""
    return Step(part=part, settings=tuple(f"{part}.{option}" for option in options), epsilon=epsilon, lora_rank=lora)


def alone(part: str, *options: str, epsilon: float | None = None) -> System:
    """One stage from the base, named by what is special about it."""
    return System(name=", ".join((part, *options)), steps=(step(part, *options, epsilon=epsilon),))


def after(first: str, part: str, *options: str, epsilon: float | None = None, lora: int | None = None) -> System:
    """One stage after a plain one, named by what is special about it."""
    special = [*options, *([] if lora is None else [f"lora-rank={lora}"])]
    name = f"{first}+{part}" + (f", {', '.join(special)}" if special else "")
    return System(name=name, steps=(step(first), step(part, *options, epsilon=epsilon, lora=lora)))


def few(epsilon: float) -> tuple[System, ...]:
    """One of each kind, and some rates for what comes nearest."""
    return (
        alone(NO_DP),
        alone("redacted"),
        alone("decoys"),
        after(NO_DP, "interpolate"),
        after(NO_DP, "atdp", epsilon=epsilon),
        after(NO_DP, "noise", NOISE),
        after(NO_DP, "anchored", epsilon=epsilon),
        *(fitted(NO_DP, rate, epsilon) for rate in ("5e-4", "1e-3", "2e-3")),
        *(fitted(None, rate, epsilon) for rate in ("1e-3", "2e-3")),
    )


def fitted(first: str | None, rate: str, epsilon: float) -> System:
    """Fitted decoys with a rate that falls to 0, after a plain stage or from the base."""
    options = (f"learning-rate={rate}", LINEAR)
    part = "fitted-decoys"
    return alone(part, *options, epsilon=epsilon) if first is None else after(first, part, *options, epsilon=epsilon)


def many(epsilon: float) -> tuple[System, ...]:
    """Each setting varied by itself around `no-dp+anchored`, orders, starts at the base, kinds of decoys."""
    anchored = (
        ("learning-rate=1e-3",),
        ("learning-rate=2e-3",),
        ("learning-rate=5e-3",),
        ("batch-size=128",),
        ("batch-size=512", "epochs=6"),
        ("epochs=1",),
        ("clip-norm=1",),
        ("sigma-growth=1", "jitter=1,1"),
        ("optimizer=sgd", "learning-rate=0.5"),
    )
    tier = replace(step("anchored", epsilon=epsilon), tier=Tier.HIGH_ENTITY)
    return (
        *few(epsilon),
        *(alone(NO_DP, f"learning-rate={rate}") for rate in ("1e-3", "2e-3")),
        alone(NO_DP, "learning-rate=1e-3", LINEAR),
        *(after(NO_DP, "anchored", *options, epsilon=epsilon) for options in anchored),
        after(NO_DP, "anchored", "learning-rate=5e-3", epsilon=epsilon, lora=4),
        System(name=f"{NO_DP}+anchored, tier=high-entity", steps=(step(NO_DP), tier)),
        *(after(NO_DP, "atdp", f"learning-rate={rate}", epsilon=epsilon) for rate in ("2e-3", "5e-3")),
        *(after(NO_DP, "noise", NOISE, f"learning-rate={rate}") for rate in ("2e-3", "3e-3", "5e-3")),
        *(after(NO_DP, "interpolate", f"beta={beta}") for beta in ("0.5", "0.75")),
        in_order(epsilon, "interpolate", "anchored"),
        in_order(epsilon, "anchored", "interpolate"),
        alone("dp-sgd", epsilon=epsilon),
        after("redacted", "atdp", epsilon=epsilon),
        after("redacted", "anchored", epsilon=epsilon),
        System(name="jft, epochs=30", steps=(step("redacted"), step("dp-sgd", "epochs=30", epsilon=epsilon))),
        after(NO_DP, "decoys"),
        after(NO_DP, "decoys", "learning-rate=2e-3", LINEAR),
        *(fitted(NO_DP, rate, epsilon) for rate in ("4e-3", "8e-3", "1.2e-2")),
        *(fitted(None, rate, epsilon) for rate in ("4e-3", "8e-3")),
        alone("fitted-decoys", "learning-rate=2e-3", LINEAR, "batch-size=8", epsilon=epsilon),
        alone("fitted-decoys", "learning-rate=1.5e-3", LINEAR, "batch-size=4", epsilon=epsilon),
        after(NO_DP, "fitted-decoys", "learning-rate=2e-3", "annealing=none", epsilon=epsilon),
        after(NO_DP, "fitted-decoys", "learning-rate=4e-3", LINEAR, "epochs=1", epsilon=epsilon),
        System(
            name="fitted-decoys+atdp",
            steps=(
                step("fitted-decoys", "learning-rate=2e-3", LINEAR, "release-noise=4"),
                step("atdp", epsilon=epsilon),
            ),
        ),
    )


def in_order(epsilon: float, *parts: str) -> System:
    """Stages after no-dp, interpolation half-way."""
    steps = {"interpolate": step("interpolate", "beta=0.5"), "anchored": step("anchored", epsilon=epsilon)}
    return System(name="+".join((NO_DP, *parts)), steps=(step(NO_DP), *(steps[part] for part in parts)))


def sweep(arguments: argparse.Namespace) -> None:
    say = progress()
    every = (few if arguments.few else many)(arguments.epsilon)
    systems = tuple(system for system in every if system.name == NO_DP or re.search(arguments.match, system.name))
    everything = Experiment(
        model=arguments.model,
        corpus=arguments.corpus,
        out=arguments.out / "explore",
        canaries=arguments.canaries,
        seeds=1,
        records=arguments.records,
        held_out_every=arguments.held_out_every,
        allow=tuple(arguments.allow),
        attacked=True,
    )
    explored = measure(everything, systems, workers=arguments.jobs, say=lambda text: say(f"explore, {text}"))
    names = {NO_DP, *best(explored, systems, arguments.best), *matched(explored, systems)}
    chosen = [system for system in systems if system.name in names]
    again = replace(everything, out=arguments.out / "confirm", seeds=arguments.seeds)
    confirmed = measure(again, chosen, workers=arguments.jobs, say=lambda text: say(f"confirm, {text}"))
    extra = {
        "goal": {"exposure": EXPOSURE, "perplexity": PERPLEXITY, "epsilon": arguments.epsilon},
        "explored": results(explored)["rows"],
        "compared_at_one_perplexity": list(matched(explored, systems)),
        "reached": [reached(row, confirmed) for row in confirmed],
        "settings": {
            name: getattr(arguments, name)
            for name in ("few", "match", "canaries", "seeds", "records", "held_out_every")
        },
    }
    table = (
        f"{markdown(confirmed)}\n## The goal\n\n{goals(confirmed)}\n"
        f"## All of them, one seed\n\n{markdown(explored)}\n## How far they are\n\n{goals(explored)}"
    )
    pictures = {"exposure": exposure_figure(confirmed, POOL), "tradeoff": tradeoff(explored, systems)}
    for name, picture in pictures.items():
        (arguments.out / f"{name}.svg").write_text(picture, encoding="utf-8")
    write_results(arguments.out, results(confirmed, **extra), table)


def best(rows: Sequence[Row], systems: Sequence[System], count: int) -> tuple[str, ...]:
    """The `count` that come nearest to the goal, of those that hide or protect anything."""
    plain = {system.name for system in systems if all(step.part == NO_DP for step in system.steps)}
    ranked = sorted((row for row in rows if row.recipe not in plain), key=lambda row: distance(row, rows))
    return tuple(row.recipe for row in ranked[:count])


def matched(rows: Sequence[Row], systems: Sequence[System]) -> tuple[str, ...]:
    """Of each recipe of `COMPARED` after no-dp, the one nearest to a perplexity that all of them come near.

    It is the perplexity, at least a quarter above that of no-dp, from which the farthest of them is least far. None
    where a recipe was tried at one rate alone.
    """
    last = {
        system.name: system.steps[1].part
        for system in systems
        if len(system.steps) == 2 and system.steps[0].part == NO_DP
    }
    plain = next(row.perplexity for row in rows if row.recipe == NO_DP) or math.nan
    known = [row for row in rows if last.get(row.recipe) in COMPARED and (row.perplexity or 0) > 0]
    if any(sum(last[row.recipe] == part for row in known) < 2 for part in COMPARED):
        return ()
    candidates: list[tuple[float, tuple[str, ...]]] = []
    for centre in known:
        at = math.log(centre.perplexity or math.nan)
        if at < math.log(1.25 * plain):
            continue
        nearest = [
            min(
                (abs(math.log(row.perplexity or math.nan) - at), row.recipe)
                for row in known
                if last[row.recipe] == part
            )
            for part in COMPARED
        ]
        candidates.append((max(away for away, _ in nearest), tuple(name for _, name in nearest)))
    return min(candidates)[1]


def distance(row: Row, rows: Sequence[Row]) -> float:
    """How far from the goal, in doublings of exposure and of perplexity; 0 is there.

    What counts is the highest of the mean exposures by both scores, before and after resurfacing: who only hides is as
    far as what comes back.
    """
    plain = next(row.perplexity for row in rows if row.recipe == NO_DP)
    means = (row.exposure_mean, row.exposure_ratio_mean, row.resurfaced_mean, row.resurfaced_ratio_mean)
    bits = max(mean for mean in means if mean is not None)
    cost = (row.perplexity or math.inf) / (PERPLEXITY * (plain or math.nan))
    return _doublings(bits / EXPOSURE) + _doublings(cost)


def _doublings(excess: float) -> float:
    """0 for what is not above 1."""
    return max(0.0, math.log2(excess))


def reached(row: Row, rows: Sequence[Row]) -> dict[str, Any]:
    """What the goal asks of a row, and whether it is there: both upper limits and the perplexity."""
    plain = next(row.perplexity for row in rows if row.recipe == NO_DP) or math.nan
    share = (row.perplexity or math.inf) / plain
    limits = [interval[1] for interval in (row.exposure_interval, row.exposure_ratio_interval) if interval is not None]
    return {
        "recipe": row.recipe,
        "exposure_upper": round(limits[0], 3),
        "exposure_ratio_upper": round(limits[-1], 3),
        "perplexity_share": round(share, 4),
        "reached": max(limits) <= EXPOSURE and share <= PERPLEXITY and row.recipe != NO_DP,
        "missed_by_doublings": round(_doublings(max(limits) / EXPOSURE) + _doublings(share / PERPLEXITY), 3),
    }


def goals(rows: Sequence[Row]) -> str:
    """A table of how far each row is, with what the attacks made of it."""
    lines = [
        "| system | upper limits, bits | resurfaced, bits | greedy | discoverable | perplexity over no-dp | goal |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        goal = reached(row, rows)
        cells = (
            row.recipe,
            f"{goal['exposure_upper']:.2f}, {goal['exposure_ratio_upper']:.2f}",
            f"{row.resurfaced_mean or math.nan:.2f}, {row.resurfaced_ratio_mean or math.nan:.2f}",
            f"{row.greedy} of {row.canaries}",
            f"{row.discoverable} of {row.canaries}",
            f"{goal['perplexity_share']:.2f}",
            "reached" if goal["reached"] else f"missed by {goal['missed_by_doublings']:.2f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    foot = "Upper limits are those of 95 % intervals; the goal is missed by so many doublings of bits and perplexity."
    return "\n".join(lines) + f"\n\n{foot}\n"


def tradeoff(rows: Sequence[Row], systems: Sequence[System]) -> str:
    """Exposure over perplexity as SVG, before and after resurfacing: a curve a recipe, over its rate alone."""
    plain = next(row.perplexity for row in rows if row.recipe == NO_DP) or math.nan
    by_name = {row.recipe: row for row in rows}

    def curves(scores: Sequence[str]) -> tuple[Curve, ...]:
        points: dict[str, list[tuple[float, float]]] = {}
        for system in systems:
            row = by_name.get(system.name)
            if row is None or not _rate_alone(system):
                continue
            share = (row.perplexity or math.inf) / plain
            if share <= MOST_SHOWN:
                points.setdefault(system.steps[1].part, []).append(
                    (share, max(getattr(row, score) for score in scores))
                )
        return tuple(Curve(name=part, points=sorted(found)) for part, found in points.items())

    titles = {
        "Exposure, the higher of both scores": ("exposure_mean", "exposure_ratio_mean"),
        "After 50 steps on other text": ("resurfaced_mean", "resurfaced_ratio_mean"),
    }
    panels = [
        Panel(title=title, x_label="perplexity over that of no-dp", y_label="bits", curves=curves(scores))
        for title, scores in titles.items()
    ]
    return chart("Exposure over perplexity", "A curve for each recipe after no-dp; chance is 1.44 bits.", panels)


def _rate_alone(system: System) -> bool:
    """Whether its second stage differs from others of its recipe by its rate alone."""
    if len(system.steps) != 2 or system.steps[0].part != NO_DP or system.steps[1].lora_rank or system.steps[1].tier:
        return False
    options = {text.partition(".")[2].partition("=")[0] for text in system.steps[1].settings}
    return options <= {"learning-rate", "beta", "annealing", "noise-multiplier"}


if __name__ == "__main__":
    sys.exit(main())
