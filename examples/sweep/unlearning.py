"""Machine unlearning after `no-dp`: what it leaves of memorised canaries, at which perplexity.

    python examples/sweep/unlearning.py --model M --corpus C --out DIR

`no-dp` trains M, a checkpoint that never saw the corpus C, on it with canaries. Then each method of unlearning follows
with twelve settings, one epoch each, and the default of `harden` beside them. Every model is attacked too. None of them
has an ε. `--first N` tries N settings of each method, the middle ones first; `--match` runs some rows only; `--harder`
fine-tunes each model ten times as long too, and rounds it to int8. results.json and table.md have what was found. A run
that was interrupted goes on where it stopped.
"""

import argparse
import re
import sys
from itertools import product
from pathlib import Path

# The experiments are beside this folder, and other distributions have a package of that name.
sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.experiments.attack_table import attack_row, attack_table
from examples.experiments.experiment import Experiment
from examples.experiments.figures import markdown, results
from examples.experiments.script import exit_code, parser_for, progress, write_results
from examples.experiments.systems import Step, System, default_step, tuned_no_dp
from examples.experiments.table import measure, measured

NO_DP, DEFAULT = "no-dp", "no-dp, then the default"

SCALES = (0.3, 0.1, 1.0, 0.03)
"""η of a method, over that of `no-dp`."""

METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "gradient-difference": ("strength", ("0.3", "0.1", "1")),
    "npo": ("beta", ("0.1", "0.5", "2.5")),
    "simnpo": ("strength", ("10", "3", "30")),
    "rmu": ("steering", ("20", "6.5", "60")),
    "negated": ("beta", ("-0.5", "-0.25", "-1")),
}
"""The setting of each method that is varied beside η, its values, the middle one first."""


def main() -> int:
    return exit_code(compare, parser().parse_args())


def parser() -> argparse.ArgumentParser:
    options = parser_for(__doc__, seeds=1)
    options.add_argument("--valid", type=Path, help="plain text that is held out; without it some records are")
    options.add_argument("--rate", default="4e-3", help="the learning rate of no-dp")
    options.add_argument("--first", type=int, default=12, help="settings of each method")
    options.add_argument("--match", default="", help="rows whose name has this regular expression")
    options.add_argument("--harder", action="store_true", help="five hundred steps of relearning, and int8")
    return options


def systems(arguments: argparse.Namespace) -> tuple[System, ...]:
    """`no-dp`, the default after it, and the methods after it with their settings."""
    plain = tuned_no_dp(arguments.rate)
    rows = [System(name=NO_DP, steps=(plain,)), System(name=DEFAULT, steps=(plain, default_step()))]
    for method, (option, values) in METHODS.items():
        trained = "forget" if method == "negated" else method
        for scale, value in list(product(SCALES, values))[: arguments.first]:
            rate = f"{float(arguments.rate) * scale:.2g}"
            settings = (f"{method}.{option}={value}", f"{trained}.learning-rate={rate}", f"{trained}.epochs=1")
            name = f"{NO_DP}, then {method}, {option} {value}, η = {rate}"
            rows.append(System(name=name, steps=(plain, Step(part=method, settings=settings))))
    return tuple(row for row in rows if row.name == NO_DP or re.search(arguments.match, row.name))


def compare(arguments: argparse.Namespace) -> None:
    """Run, audit and write the table."""
    experiment = Experiment(
        model=arguments.model,
        corpus=arguments.corpus,
        valid=arguments.valid,
        out=arguments.out,
        records=arguments.records,
        canaries=arguments.canaries,
        seeds=arguments.seeds,
        held_out_every=10,
        attacked=True,
        attacked_harder=arguments.harder,
    )
    compared = systems(arguments)
    rows = measure(experiment, compared, workers=arguments.jobs, say=progress())
    names = ("rate", "records", "first", "match", "seeds", "canaries")
    settings = {name: getattr(arguments, name) for name in names}
    if not arguments.harder:
        write_results(arguments.out, results(rows, settings=settings), markdown(rows))
        return
    runs = {each.name: [measured(experiment, each, seed + 1) for seed in range(arguments.seeds)] for each in compared}
    attacked = [attack_row(name, found, runs[NO_DP]) for name, found in runs.items()]
    document = results(rows, settings=settings, attacked=attacked)
    write_results(arguments.out, document, f"{markdown(rows)}\n{attack_table(attacked)}")


if __name__ == "__main__":
    sys.exit(main())
