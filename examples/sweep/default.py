"""The default of `harden` beside fine-tuning with the same settings: what leaks, perplexity, seconds.

    python examples/sweep/default.py --model M --corpus C --valid V --rate 5e-4 --out DIR

M is a checkpoint that never saw the corpus C; V has records of conversations or documents that are not in C. For each
seed, with canaries of its own: `no-dp` with --rate, the default from M, and the default after that `no-dp`, which is
what somebody gets who has the leaking checkpoint alone. The default finds its own learning rate. --parts has in place
of them the default with one part changed: equal decoys for equal values of a record, and frequencies that are nearly
exact, which tell the price of ε from the price of decoys. Every model is attacked too. Shares are over `no-dp` in the
same seed. What was found: results.json, with every seed's measurements, and table.md. --match runs some rows only,
--pool adds the seeds of earlier results.json, whose canaries are others. A run that was interrupted goes on where it
stopped.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

# The experiments are beside this folder, and other distributions have a package of that name.
sys.path.insert(0, str(Path(__file__).parents[2]))

from atdp_cli.audit.exposure import bootstrap
from atdp_cli.errors import UsageError
from examples.experiments.experiment import Experiment
from examples.experiments.figures import Row, markdown, results
from examples.experiments.script import exit_code, parser_for, progress, write_results
from examples.experiments.shares import perplexity_share, share, with_interval
from examples.experiments.systems import Step, System, default_step, tuned_no_dp
from examples.experiments.table import Measured, measure, measured, rows_from

Seed = dict[str, Measured]
"""What one repetition measured, by the name of the system."""

SEEDS = TypeAdapter(list[Seed])

NO_DP, DEFAULT, AFTER = "no-dp", "the default", "no-dp, then the default"
EXACT = "release-noise=0.05"
"""Frequencies nearly as they are, ε in the hundreds."""

GOAL = {"bits": 2.0, "unflagged": 1.02, "all": 1.05, "over_exact": 1.01, "seconds": 1.5}


def main() -> int:
    return exit_code(compare, parser().parse_args())


def parser() -> argparse.ArgumentParser:
    options = parser_for(__doc__, seeds=9)
    options.add_argument("--valid", type=Path, required=True, help="plain text that is held out")
    options.add_argument("--rate", required=True, help="the learning rate of no-dp, best on other records")
    options.add_argument("--repeats", type=int, default=10, help="records of each canary")
    options.add_argument("--parts", action="store_true", help="the default with one part changed, and as it is")
    options.add_argument("--match", default="", help="rows whose name has this regular expression")
    options.add_argument("--pool", type=Path, nargs="*", default=(), help="results.json of earlier seeds")
    return options


def systems(arguments: argparse.Namespace) -> tuple[System, ...]:
    """What is compared; `no-dp` first."""
    plain = tuned_no_dp(arguments.rate)
    rows = [System(name=NO_DP, steps=(plain,)), System(name=DEFAULT, steps=(bare(),))]
    if arguments.parts:
        rows.append(System(name=f"{DEFAULT}, equal values drawn apart", steps=(bare("decoy-equality=none"),)))
        rows.append(System(name=f"{DEFAULT}, exact frequencies", steps=(bare(EXACT),)))
    else:
        rows.append(System(name=AFTER, steps=(plain, bare())))
    return tuple(row for row in rows if row.name == NO_DP or re.search(arguments.match, row.name))


def bare(*options: str) -> Step:
    """The step that `harden` takes without --recipe, with these settings."""
    settings = [f"fitted-decoys.{option}" for option in options]
    return default_step(settings, epsilon=None) if EXACT in options else default_step(settings)


def compare(arguments: argparse.Namespace) -> None:
    """Run, audit and write the table."""
    experiment = Experiment(
        model=arguments.model,
        corpus=arguments.corpus,
        valid=arguments.valid,
        out=arguments.out,
        canaries=arguments.canaries,
        repeats=arguments.repeats,
        seeds=arguments.seeds,
        records=arguments.records,
        attacked=True,
    )
    compared = systems(arguments)
    settings = {name: getattr(arguments, name) for name in ("rate", "records", "canaries", "repeats")}
    seeds = [seed for file in arguments.pool for seed in earlier(file, settings)]
    measure(experiment, compared, workers=arguments.jobs, say=progress())
    for seed in range(1, arguments.seeds + 1):
        seeds.append({each.name: measured(experiment, each, seed) for each in compared})
    write_results(arguments.out, *tables(seeds, settings))


def earlier(file: Path, settings: dict[str, Any]) -> list[Seed]:
    """The seeds of a results.json.

    Raises:
        UsageError: They were measured with other settings.
    """
    document = json.loads(file.read_text(encoding="utf-8"))
    if {name: document["settings"][name] for name in settings} != settings:
        raise UsageError(f"{file} was measured with other settings.", "Pool runs with the same settings.")
    return SEEDS.validate_python(document["measured"])


def tables(seeds: Sequence[Seed], settings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """results.json and table.md over all seeds; a system is beside `no-dp` in the seeds that have it."""
    names = dict.fromkeys(name for seed in seeds for name in seed)
    runs = {name: [seed[name] for seed in seeds if name in seed] for name in names}
    plain = {name: [seed[NO_DP] for seed in seeds if name in seed] for name in names}
    rows = rows_from(runs)
    reached = [over(row, runs[row.recipe], plain[row.recipe]) for row in rows]
    document = results(
        rows,
        goal=GOAL,
        settings={**settings, "seeds": len(seeds)},
        reached=reached,
        measured=SEEDS.dump_python(list(seeds), mode="json"),
    )
    return document, f"{markdown(rows)}\n{table(reached)}"


def over(row: Row, runs: list[Measured], plain: list[Measured]) -> dict[str, Any]:
    """A row beside the goal: upper 95 % limits in bits, before and after relearning, and shares of `no-dp`."""
    scores = {
        "log_p": [run.exposures for run in runs],
        "ratio": [run.ratios for run in runs],
        "relearnt_log_p": [run.resurfaced for run in runs],
        "relearnt_ratio": [run.resurfaced_ratios for run in runs],
    }
    upper = {name: round(bootstrap([np.array(bits) for bits in by_seed])[1], 3) for name, by_seed in scores.items()}
    return {
        "recipe": row.recipe,
        "upper": upper,
        "unflagged": perplexity_share(runs, plain, "other"),
        "all": perplexity_share(runs, plain, "all"),
        "seconds": share([run.seconds for run in runs], [run.seconds for run in plain]),
        "failed": row.failed,
        "seeds": row.seeds,
    }


def table(reached: list[dict[str, Any]]) -> str:
    """The goal's table."""
    lines = [
        "## Beside the goal",
        "",
        "| system | upper limits, bits | relearnt | unflagged tokens | all tokens | seconds | audits failed |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in reached:
        upper = row["upper"]
        cells = (
            row["recipe"],
            f"{upper['log_p']:.2f}, {upper['ratio']:.2f}",
            f"{upper['relearnt_log_p']:.2f}, {upper['relearnt_ratio']:.2f}",
            *(with_interval(row[name], 3) for name in ("unflagged", "all")),
            f"{row['seconds']['mean']:.2f}",
            f"{row['failed']} of {row['seeds']}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    foot = (
        "Upper limits of 95 % intervals, by log p and by its ratio to the base, as audited and after fifty steps on "
        "held-out text. Perplexity of held-out records and seconds are over those of `no-dp` in the same seed, with 95 "
        f"% intervals. The goal: {GOAL['bits']} bits, {GOAL['unflagged']}, {GOAL['all']}, and {GOAL['seconds']}."
    )
    return "\n".join((*lines, "", foot, ""))


if __name__ == "__main__":
    sys.exit(main())
