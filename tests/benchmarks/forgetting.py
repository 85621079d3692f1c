"""Which learning rate the default takes after training without protection, beside whole stages at several of them.

    python -m tests.benchmarks.forgetting --json

On the quickstart: for each seed, canaries are planted, `no-dp` memorises them, and the default, whose range test never
looks at a canary, follows it; so does `fitted-decoys` at four fixed η. Each row has the mean exposures of the seeds by
log p and by the ratio, the audits that failed, perplexities of held-out records, and the processor seconds over those
of `no-dp`; that of the default also the η that were taken and the p-values of each level.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from atdp_cli.files.private import PRIVATE, beside
from atdp_cli.report.document import REPORT_FILE
from examples.experiments.experiment import Experiment, Node, folder_of
from examples.experiments.systems import Step, System, default_step, tuned_no_dp
from examples.experiments.table import measure, measured
from tests.benchmarks.stages import QUICKSTART

RATE = 4e-3
"""Of `no-dp`, and by the width of the model that of the default from a public start."""

FACTORS = tuple(2.0 ** (power / 2) for power in range(4))
"""The fixed η over that one. The range test takes one of the last two."""

NO_DP, DEFAULT = "no-dp", "the default"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--canaries", type=int, default=17, help="of each seed")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each")
    parser.add_argument("--out", type=Path, help="folder that keeps the runs, to go on from")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = compare(arguments, arguments.out or Path(folder) / "runs")
    if arguments.json:
        settings = {name: getattr(arguments, name) for name in ("seeds", "canaries")}
        sys.stdout.write(json.dumps(settings | {"load": os.getloadavg()[0], "rows": rows}) + "\n")


def systems() -> tuple[System, ...]:
    """`no-dp`, and what follows it."""
    plain = tuned_no_dp(f"{RATE:g}")
    rates = [f"{RATE * factor:.3g}" for factor in FACTORS]
    at_rate = [
        Step(part="fitted-decoys", settings=(f"fitted-decoys.learning-rate={each}",), epsilon=3) for each in rates
    ]
    return (
        System(name=NO_DP, steps=(plain,)),
        System(name=DEFAULT, steps=(plain, default_step())),
        *(System(name=f"η = {rate}", steps=(plain, step)) for rate, step in zip(rates, at_rate, strict=True)),
    )


def compare(arguments: argparse.Namespace, out: Path) -> list[dict[str, Any]]:
    """A row of each system."""
    experiment = Experiment(
        model=QUICKSTART[0],
        corpus=QUICKSTART[1],
        out=out,
        canaries=arguments.canaries,
        seeds=arguments.seeds,
        held_out_every=10,
    )
    compared = systems()
    measure(experiment, compared, workers=arguments.jobs, say=lambda text: print(text, file=sys.stderr, flush=True))
    return [row(experiment, system) for system in compared]


def row(experiment: Experiment, system: System) -> dict[str, Any]:
    """What the seeds of a system measured."""
    seeds = range(1, experiment.seeds + 1)
    runs = [measured(experiment, system, seed) for seed in seeds]
    plain = [measured(experiment, systems()[0], seed) for seed in seeds]
    figures: dict[str, Any] = {
        "system": system.name,
        "log_p": [round(statistics.mean(run.exposures), 2) for run in runs],
        "ratio": [round(statistics.mean(run.ratios), 2) for run in runs],
        "failed": sum(run.verdict == "FAIL" for run in runs),
        "perplexity": [round(run.perplexity.all or 0, 3) for run in runs],
        "unflagged": [round(run.perplexity.other or 0, 3) for run in runs],
        "seconds": [round(run.seconds / base.seconds, 2) for run, base in zip(runs, plain, strict=True)],
    }
    if system.name == DEFAULT:
        last = [_last_stage(experiment, system, seed) for seed in seeds]
        figures["rates"] = [public["tuned"]["learning_rate"] for public, _ in last]
        figures["p_values"] = [private["trial_p_values"] for _, private in last]
    return figures


def _last_stage(experiment: Experiment, system: System, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of the public report, and of the private one."""
    folder = folder_of(experiment, Node(seed=seed, steps=system.steps))
    reports = (json.loads((each / REPORT_FILE).read_text()) for each in (folder, beside(folder, PRIVATE)))
    public, private = (report["stages"][-1] for report in reports)
    return public, private


if __name__ == "__main__":
    main()
