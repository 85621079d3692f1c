"""The paper's results table for any checkpoint, its controls and its figures.

    python examples/paper_table/run.py --model M --corpus C --canaries 10 --seeds 3 --out DIR

Every row starts at the base checkpoint M, which never saw the corpus C (plain text, a record a line). Rows that begin
alike share their runs. A run that was interrupted goes on where it stopped: give the same command again. DIR gets
results.json, table.md, exposure.svg and perplexity.svg; with --ablation NAME, NAME.json and NAME.md, and for cost its
figure.
"""

import argparse
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

# The experiments are beside this folder, and other distributions have a package of that name.
sys.path.insert(0, str(Path(__file__).parents[2]))

from atdp_cli.audit.canary import parse_template
from atdp_cli.corpus.spans import Tier
from atdp_cli.hardening.recipes import PAPER
from examples.experiments.experiment import Experiment
from examples.experiments.figures import Row, cost_figure, exposure_figure, markdown, perplexity_figure, results
from examples.experiments.script import exit_code, parser_for, progress, write_json
from examples.experiments.systems import ABLATIONS, CONTROLS, System, system_of
from examples.experiments.table import measure


def main() -> int:
    return exit_code(run, parser().parse_args())


def parser() -> argparse.ArgumentParser:
    options = parser_for(__doc__, seeds=3, canaries=10)
    options.add_argument("--repeats", type=int, default=10, help="records of each canary")
    options.add_argument("--tier", type=Tier, choices=list(Tier), default=Tier.LOW_ENTITY, help="what is sensitive")
    options.add_argument(
        "--setting",
        choices=["detected", "missed", "no-miss"],
        default="detected",
        help="whether the detector sees the canaries: as it does by itself, never, or always",
    )
    options.add_argument(
        "--rows", nargs="+", metavar="RECIPE", help="these recipes only; one named default is what harden runs"
    )
    options.add_argument("--set", action="append", default=[], metavar="STAGE.OPTION=VALUE", help="as of atdp harden")
    options.add_argument(
        "--lora-rank", type=int, help="train stages with noise as adapters of this rank, then merge them"
    )
    options.add_argument("--ablation", choices=list(ABLATIONS), help="one of these in place of the table")
    return options


def run(arguments: argparse.Namespace) -> None:
    started = time.monotonic()
    experiment = Experiment(
        model=arguments.model,
        corpus=arguments.corpus,
        out=arguments.out,
        canaries=arguments.canaries,
        repeats=arguments.repeats,
        seeds=arguments.seeds,
        tier=arguments.tier,
        setting=arguments.setting,
        records=arguments.records,
    )
    rows = measure(experiment, systems_of(arguments), workers=arguments.jobs, say=progress())
    write(arguments, experiment, rows, time.monotonic() - started)


def systems_of(arguments: argparse.Namespace) -> tuple[System, ...]:
    """The rows, in the table's order."""
    if arguments.ablation is not None:
        return (system_of("no-dp", arguments.set), *ABLATIONS[arguments.ablation](arguments.set))
    rows = arguments.rows or (*PAPER, *CONTROLS)
    return tuple(system_of(recipe, arguments.set, arguments.lora_rank) for recipe in rows)


def write(arguments: argparse.Namespace, experiment: Experiment, rows: Sequence[Row], seconds: float) -> None:
    """The results as data, as a table and as pictures."""
    name = arguments.ablation or "results"
    document = results(
        rows,
        command=command(arguments),
        canaries=experiment.canaries,
        repeats=experiment.repeats,
        seeds=experiment.seeds,
        tier=experiment.tier.value,
        setting=experiment.setting,
        seconds=round(seconds),
        python=platform.python_version(),
    )
    out = experiment.out
    write_json(out / f"{name}.json", document)
    (out / f"{arguments.ablation or 'table'}.md").write_text(markdown(rows), encoding="utf-8")
    if arguments.ablation == "cost":
        (out / "cost.svg").write_text(cost_figure(rows), encoding="utf-8")
    if arguments.ablation is None:
        pool = parse_template(experiment.template).pool
        (out / "exposure.svg").write_text(exposure_figure(rows, pool), encoding="utf-8")
        (out / "perplexity.svg").write_text(perplexity_figure(rows, experiment.sentence), encoding="utf-8")
    print(markdown(rows))


def command(arguments: argparse.Namespace) -> str:
    """What was asked for, without paths and with defaults, so that it can be asked for again."""
    parts = ["python examples/paper_table/run.py"]
    for option in ("canaries", "repeats", "seeds", "records", "tier", "setting", "lora_rank", "ablation", "jobs"):
        if (value := getattr(arguments, option)) is not None:
            parts.append(f"--{option.replace('_', '-')} {value}")
    parts += [f"--set {text}" for text in arguments.set]
    if arguments.rows:
        parts.append(f"--rows {' '.join(arguments.rows)}")
    return " ".join([*parts, f"--model {arguments.model.name}", f"--corpus {arguments.corpus.name}"])


if __name__ == "__main__":
    sys.exit(main())
