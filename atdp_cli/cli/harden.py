"""`atdp harden`: a checkpoint and a corpus in, a hardened checkpoint with its privacy report out."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atdp_cli.cli.console import figure, people, progress, write_json
from atdp_cli.cli.options import (
    Allow,
    Deny,
    Force,
    Jobs,
    Json,
    Quiet,
    TextField,
    Threads,
    TierOption,
    UnitOption,
)
from atdp_cli.errors import UsageError
from atdp_cli.text.spans import Tier

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.jobs.harden import Hardened
    from atdp_cli.jobs.request import Planned

LONG_RUN_SECONDS = 30 * 60
DATA, PRIVACY, TRAINING, DETECTION, OUTPUT = "Data", "Privacy", "Training", "Detection", "Output"


class PriorOption(StrEnum):
    """What is known of the checkpoint's past."""

    PUBLIC = "public"
    UNKNOWN = "unknown"


def harden(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Folder of a causal language model, as save_pretrained writes it.")
    ],
    data: Annotated[
        list[Path],
        typer.Option(
            help="Corpus: .txt, .jsonl, .csv, .tsv (also .gz or .zst) or .parquet. Repeatable.", rich_help_panel=DATA
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write. Default: MODEL-hardened.", rich_help_panel=OUTPUT),
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="Stages, joined by +: atdp, no-dp, dp-sgd, redacted.", rich_help_panel=TRAINING)
    ] = "atdp",
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the corpus. Default: 3.", rich_help_panel=TRAINING)
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="η. Default: 5e-4.", rich_help_panel=TRAINING)] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(help="B, expected records a step. Default: min(256, ⌈N/4⌉).", rich_help_panel=TRAINING),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            help="w of tokens without a flag: a number, record (from the record's own share of flagged tokens) or "
            "released (from the corpus' share, released with noise). Default: 0.2.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    target_share: Annotated[
        float | None,
        typer.Option(
            help="Share of the weight that flagged tokens should carry, for record and released. Default: 0.5.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="STAGE.OPTION=VALUE",
            help="An option of one stage; without it options act on the last DP stage. Repeatable.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    noise_multiplier: Annotated[
        float | None,
        typer.Option(help="σ₀: noise over clip norm in the first epoch. Default: 1.", rich_help_panel=PRIVACY),
    ] = None,
    target_epsilon: Annotated[
        float | None,
        typer.Option(help="Choose σ₀ so that all DP stages spend at most this ε.", rich_help_panel=PRIVACY),
    ] = None,
    max_epsilon: Annotated[
        float | None,
        typer.Option(
            help="Refuse a plan whose DP stages, or a stage without noise, spend more than this ε.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="δ of the guarantees; below 1/N.", rich_help_panel=PRIVACY)] = 1e-6,
    clip_norm: Annotated[
        float | None,
        typer.Option(help="C: largest norm of a record's gradient. Default: 0.1.", rich_help_panel=PRIVACY),
    ] = None,
    escalation: Annotated[
        float | None, typer.Option(help="γ: rise of σ an epoch. Default: 1.2.", rich_help_panel=PRIVACY)
    ] = None,
    jitter: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH", help="Range of the rise's random factor. Default: 0.9,1.1.", rich_help_panel=PRIVACY
        ),
    ] = None,
    sigma_max: Annotated[
        float | None,
        typer.Option(help="Ceiling of σ; above it σ returns to σ₀. Default: 4·σ₀.", rich_help_panel=PRIVACY),
    ] = None,
    jitter_seed: Annotated[
        int, typer.Option(help="Seed of the jitter; public, and part of the plan.", rich_help_panel=PRIVACY)
    ] = 0,
    prior: Annotated[
        PriorOption,
        typer.Option(
            help="public: the first checkpoint, before any run that its ledger lists, never saw the corpus.",
            rich_help_panel=PRIVACY,
        ),
    ] = PriorOption.UNKNOWN,
    reference: Annotated[
        Path | None,
        typer.Option(help="A public base model, for recipes that read one.", rich_help_panel=TRAINING),
    ] = None,
    unit: UnitOption = "line",
    text_field: TextField = "text",
    max_records: Annotated[
        int | None, typer.Option(help="Take the first so many records.", rich_help_panel=DATA)
    ] = None,
    valid: Annotated[
        Path | None,
        typer.Option(
            help="Held-out corpus. Default: every twentieth record of --data, at most 500.", rich_help_panel=DATA
        ),
    ] = None,
    max_windows: Annotated[
        int,
        typer.Option(
            "--max-windows-per-unit", help="Windows of a long record; the rest is left out.", rich_help_panel=DATA
        ),
    ] = 8,
    manifest: Annotated[
        Path | None,
        typer.Option(
            help="Canaries of plant-canary: check that they are trained on, token for token.", rich_help_panel=DATA
        ),
    ] = None,
    tier: TierOption = Tier.HIGH_CONTEXTUAL,
    spans: Annotated[
        Path | None, typer.Option(help="Spans of atdp detect, in place of the detector.", rich_help_panel=DETECTION)
    ] = None,
    allow: Allow = None,
    deny: Deny = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="float32, float16 or bfloat16. Default: as the checkpoint.", rich_help_panel=OUTPUT),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and its ε, and stop.", rich_help_panel=OUTPUT)
    ] = False,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
    jobs: Jobs = 1,
    threads: Threads = None,
    insecure_seed: Annotated[
        int | None,
        typer.Option(help="Tests only: reproducible noise, which protects nobody.", rich_help_panel="Running"),
    ] = None,
) -> None:
    """Harden MODEL on its corpus: reweigh, clip, add noise, and account for every step.

    Writes OUT/ (model, report, ledger) and OUT.private/ (spans, perplexities, journal), which stays with you.
    """
    from atdp_cli.jobs.request import HardenRequest, plan_request
    from atdp_cli.jobs.workplace import check_output
    from atdp_cli.training.recipe import parse_recipe
    from atdp_cli.training.settings import apply_settings, bare, parse_setting

    stages = parse_recipe(recipe)
    if reference is not None:
        raise UsageError(f"No stage of recipe {recipe} reads a reference model.", "Leave --reference out.")
    if target_epsilon is not None and noise_multiplier is not None:
        raise UsageError("--target-epsilon chooses the noise that --noise-multiplier sets.", "Leave one of them out.")
    bare_options = {
        "epochs": epochs,
        "learning-rate": learning_rate,
        "batch-size": batch_size,
        "weight": weight,
        "target-share": target_share,
        "noise-multiplier": noise_multiplier,
        "clip-norm": clip_norm,
        "escalation": escalation,
        "jitter": jitter,
        "sigma-max": sigma_max,
    }
    settings = [bare(stages, option, value) for option, value in bare_options.items() if value is not None]
    settings += [parse_setting(stages, text) for text in set_ or ()]
    request = HardenRequest(
        model=model,
        data=tuple(data),
        output=output or default_output(model),
        recipe_name=recipe,
        recipe=apply_settings(stages, settings),
        unit=unit,
        text_field=text_field,
        delta=delta,
        prior=prior.value,
        target_epsilon=target_epsilon,
        max_epsilon=max_epsilon,
        tier=tier,
        spans=spans,
        allow=allow,
        deny=deny,
        manifest=manifest,
        max_records=max_records,
        valid=valid,
        max_windows=max_windows,
        dtype=dtype,
        jobs=jobs,
        jitter_seed=jitter_seed,
        insecure_seed=insecure_seed,
        force=force,
    )
    console = people(quiet=quiet)
    planned = plan_request(request)
    if not dry_run:
        check_output(request.output, force=force)
    _run(planned, console, dry_run=dry_run, as_json=as_json, threads=threads)


def default_output(model: Path) -> Path:
    """MODEL-hardened, beside the model; also for `.` and for a link, which keeps its own name."""
    absolute = Path(os.path.abspath(model))  # noqa: PTH100 - resolve() would follow the link
    return (
        absolute.with_name(f"{absolute.name}-hardened")
        if model.name in ("", "..")
        else model.with_name(f"{model.name}-hardened")
    )


def _run(planned: "Planned", console: "Console", *, dry_run: bool, as_json: bool, threads: int | None) -> None:
    from atdp_cli.jobs.harden import estimate_seconds
    from atdp_cli.jobs.harden import harden as run
    from atdp_cli.model.checkpoint import load_checkpoint
    from atdp_cli.model.device import training_threads, use_threads

    use_threads(threads)
    checkpoint = load_checkpoint(planned.request.model)
    if threads is None:
        use_threads(training_threads(checkpoint.model.num_parameters()))
    seconds = estimate_seconds(planned, checkpoint)
    _show_plan(planned, seconds, console)
    if dry_run:
        if as_json:
            write_json(_plan_json(planned, seconds))
        return
    with progress(console) as notify:
        finished = run(planned, checkpoint, notify)
    _show_result(finished, console)
    if as_json:
        write_json(_result_json(planned, finished))
    else:
        typer.echo(str(finished.output))


def _show_plan(planned: "Planned", seconds: float, console: "Console") -> None:
    from rich.table import Table

    from atdp_cli.privacy.guarantee import advice, sentences

    table = Table("stage", "text", "epochs", "steps", "records a step", "σ", title="Plan", title_justify="left")
    for stage in planned.plan.stages:
        sigmas = stage.noise_multipliers
        table.add_row(
            stage.stage.name,
            stage.stage.text.value,
            str(stage.stage.epochs),
            str(stage.steps),
            str(stage.batch),
            f"{min(sigmas):.2f}–{max(sigmas):.2f}" if sigmas else "none",
        )
    console.print(table)
    split = planned.split
    console.print(
        f"{split.training:,} training records, one {planned.plan.ledger.unit} each; {len(split.held_out):,} held out. "
        f"About {_duration(seconds)} of training."
    )
    for line in sentences(planned.plan.ledger, planned.guarantees):
        console.print(line)
    if hint := advice(planned.plan.ledger):
        console.print(hint)
    if seconds > LONG_RUN_SECONDS:
        console.print("That is long: --max-records takes the first so many records.")


def _show_result(finished: "Hardened", console: "Console") -> None:
    from rich.table import Table

    from atdp_cli.jobs.workplace import PRIVATE, beside
    from atdp_cli.report.document import REPORT_FILE

    table = Table("held-out perplexity", "all", "sensitive", "other", title="Result", title_justify="left")
    for name, found in (("before", finished.before), ("after", finished.after)):
        cells = (found.all, found.sensitive, found.other)
        table.add_row(name, *(figure(cell) for cell in cells))
    console.print(table)
    console.print(f"{finished.steps} steps in {_duration(finished.seconds)}.")
    console.print(f"Report: {finished.output / REPORT_FILE}", soft_wrap=True)
    console.print(f"Keep private: {beside(finished.output, PRIVATE)}", soft_wrap=True)
    if any(one.epsilon == float("inf") for one in finished.guarantees if one.scope == "end_to_end"):
        console.print("Not to be called releasable: no finite ε holds end to end. Audit it with atdp audit-canary.")


def _plan_json(planned: "Planned", seconds: float) -> dict[str, Any]:
    from atdp_cli.report.document import guarantee_entries

    return {
        "schema_version": 1,
        "dry_run": True,
        "output": str(planned.request.output),
        "recipe": planned.request.recipe_name,
        "steps": sum(stage.steps for stage in planned.plan.stages),
        "stages": _stages(planned),
        "guarantees": [entry.model_dump(mode="json") for entry in guarantee_entries(planned.guarantees)],
        "insecure_seed": planned.plan.ledger.insecure_seed,
        "estimated_seconds": seconds,
    }


def _result_json(planned: "Planned", finished: "Hardened") -> dict[str, Any]:
    from dataclasses import asdict

    from atdp_cli.report.document import guarantee_entries, json_numbers

    return {
        "schema_version": 1,
        "dry_run": False,
        "output": str(finished.output),
        "recipe": planned.request.recipe_name,
        "steps": finished.steps,
        "stages": _stages(planned),
        "guarantees": [entry.model_dump(mode="json") for entry in guarantee_entries(finished.guarantees)],
        "insecure_seed": finished.ledger.insecure_seed,
        "perplexity": {"before": json_numbers(asdict(finished.before)), "after": json_numbers(asdict(finished.after))},
        "seconds": finished.seconds,
    }


def _stages(planned: "Planned") -> list[dict[str, Any]]:
    from atdp_cli.jobs.describe import stage_entry

    return [stage_entry(stage).model_dump(mode="json") for stage in planned.plan.stages]


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
