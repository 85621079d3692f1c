"""`atdp harden`: a checkpoint and a corpus in, a hardened checkpoint with its privacy report out."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atdp_cli.cli.harden.options import DataOptions, PrivacyOptions, RunningOptions, TrainingOptions
from atdp_cli.cli.harden.output import Needs, plan_json, result_json, show_plan, show_result
from atdp_cli.cli.options.command_line import fill_defaults, full_command, not_given, without_paths
from atdp_cli.cli.options.shared import DetectionOptions, ProgressOptions
from atdp_cli.cli.terminal.console import progress, stderr_console, write_json
from atdp_cli.cli.terminal.json_lines import ProgressOption
from atdp_cli.errors import AtdpError, UsageError
from atdp_cli.ranges import require_positive

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.jobs.harden.model import LoadedModel
    from atdp_cli.jobs.harden.request import HardenRequest, Planned
    from atdp_cli.jobs.harden.result import HardenResult
    from atdp_cli.training.distributed.ranks import Ranks
    from atdp_cli.training.recipe import Recipe
    from atdp_cli.training.recipe_file import RecipeFile

LIMIT_MISSED = 1


def harden_command(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Folder of a causal language model, as save_pretrained writes it.")
    ],
    data: DataOptions,
    training: TrainingOptions,
    privacy: PrivacyOptions,
    detecting: DetectionOptions,
    running: RunningOptions,
    saying: ProgressOptions,
) -> None:
    """Harden MODEL on its corpus: reweigh, clip, add noise, and account for every step.

    Writes OUT/ (model, report, ledger, recipe) and OUT.private/ (spans, perplexities, journal), which stays with you.
    Exit codes: 0 done; 1 perplexity rose above --max-perplexity-increase; 2 usage or unreadable input; 3 not completed.
    """
    from atdp_cli.training.distributed.torchrun import process_group

    with process_group(sharded=running.shard_model) as team:
        try:
            _harden(context, model, data, training, privacy, detecting, running, saying, team.ranks)
        except AtdpError as error:
            if team.first_to_fail():
                raise
            raise typer.Exit(error.exit_code) from None


def _harden(
    context: typer.Context,
    model: Path,
    data: DataOptions,
    training: TrainingOptions,
    privacy: PrivacyOptions,
    detecting: DetectionOptions,
    running: RunningOptions,
    saying: ProgressOptions,
    ranks: "Ranks",
) -> None:
    from atdp_cli.jobs.harden.auto import start_from_reference, start_notice, with_learning_rate, with_resumed_epochs
    from atdp_cli.jobs.harden.request import plan_request
    from atdp_cli.training.recipe_file import load_recipe

    if training.auto:
        training, privacy, detecting = _chosen(context, training, privacy, detecting)
    elif training.minutes is not None:
        raise UsageError("--minutes goes with --auto.", "Choose --epochs yourself, or add --auto.")
    if training.minutes is not None and ranks.size > 1:
        raise UsageError("--minutes goes with one process.", "Choose --epochs; --dry-run tells how long they take.")
    asked = load_recipe(training.recipe)
    beside_it = not_given(context, asked.run.said())
    data, training, privacy = (
        fill_defaults(data, beside_it),
        fill_defaults(training, beside_it),
        fill_defaults(privacy, beside_it),
    )
    request = _request(model, asked, data, training, privacy, fill_defaults(detecting, beside_it), running)
    request = replace(request, command=full_command(context), command_without_paths=without_paths(context), ranks=ranks)
    console = saying.console() if ranks.first else stderr_console(quiet=True)
    if training.auto:
        request = start_from_reference(request)
        if not _rate_given(context, training):
            request = with_learning_rate(request)
        console.print(start_notice(request, model))
    planned, minutes = plan_request(request), training.minutes
    if minutes is not None and (begun := with_resumed_epochs(planned)) is not None:
        planned, minutes = begun, None
    if running.dry_run:
        _load(planned, console, saying, minutes=minutes, dry_run=True, threads=running.threads)
    else:
        _run(planned, console, saying, minutes=minutes, threads=running.threads)


def _chosen(
    context: typer.Context, training: TrainingOptions, privacy: PrivacyOptions, detecting: DetectionOptions
) -> tuple[TrainingOptions, PrivacyOptions, DetectionOptions]:
    """The options of --auto, where the command line is silent."""
    from atdp_cli.jobs.harden.auto import EPSILON, RECIPE, TIER

    if not not_given(context, {"recipe": RECIPE}):
        raise UsageError("--auto chooses the recipe that --recipe names.", "Leave one of them out.")
    if training.minutes is not None:
        require_positive("minutes", training.minutes)
    values = not_given(context, {"recipe": RECIPE, "target_epsilon": EPSILON, "tier": TIER})
    return fill_defaults(training, values), fill_defaults(privacy, values), fill_defaults(detecting, values)


def _rate_given(context: typer.Context, training: TrainingOptions) -> bool:
    """Whether the command line sets a learning rate itself."""
    by_set = any(".learning-rate=" in text for text in training.set_ or ())
    return by_set or not not_given(context, {"learning_rate": None})


def _request(
    model: Path,
    asked: "RecipeFile",
    data: DataOptions,
    training: TrainingOptions,
    privacy: PrivacyOptions,
    detecting: DetectionOptions,
    running: RunningOptions,
) -> "HardenRequest":
    """The options as the jobs take them."""
    from atdp_cli.jobs.harden.request import HardenRequest

    return HardenRequest(
        model=model,
        data=tuple(data.data),
        output=running.output or default_output(model),
        recipe_name=asked.name,
        recipe=_with_settings(asked.recipe, training, privacy),
        detector=detecting.detector(data.data[0]),
        unit=data.unit,
        text_field=data.text_field,
        source_field=data.source_field,
        delta=privacy.delta,
        prior=privacy.prior.value,
        target_epsilon=privacy.target_epsilon,
        max_epsilon=privacy.max_epsilon,
        spans=data.spans,
        review=data.sample if data.review_each_epoch else None,
        style=data.style,
        manifest=data.manifest,
        max_records=data.max_records,
        valid=data.valid,
        max_windows=data.max_windows,
        dtype=running.dtype,
        engine=running.engine.value,
        microbatch=_microbatch(running.microbatch),
        precision=running.precision.value,
        device=running.device.value,
        lora_rank=training.lora_rank,
        reference=training.reference,
        until_exposure=training.until_exposure,
        max_increase=_share(training.max_increase),
        merge_adapter=running.merge_adapter,
        jitter_seed=privacy.jitter_seed,
        insecure_seed=running.insecure_seed,
        force=running.force,
        resume=running.resume,
        checkpoint_every=running.checkpoint_every,
    )


def _with_settings(recipe: "Recipe", training: TrainingOptions, privacy: PrivacyOptions) -> "Recipe":
    """The recipe with the options of its stages applied."""
    from atdp_cli.training.settings import apply_settings, parse_setting, stage_setting

    if privacy.target_epsilon is not None and privacy.noise_multiplier is not None:
        raise UsageError("--target-epsilon chooses the noise that --noise-multiplier sets.", "Leave one of them out.")
    settings = [
        stage_setting(recipe, option, value) for option, value in _bare(training, privacy).items() if value is not None
    ]
    settings += [parse_setting(recipe, text) for text in training.set_ or ()]
    return apply_settings(recipe, settings)


def _bare(training: TrainingOptions, privacy: PrivacyOptions) -> dict[str, Any]:
    """The options that act on the last DP stage."""
    return {
        "epochs": training.epochs,
        "learning-rate": training.learning_rate,
        "batch-size": training.batch_size,
        "weight": training.weight,
        "target-share": training.target_share,
        "noise-multiplier": privacy.noise_multiplier,
        "clip-norm": privacy.clip_norm,
        "escalation": privacy.escalation,
        "jitter": privacy.jitter,
        "sigma-max": privacy.sigma_max,
    }


def _share(text: str | None) -> float | None:
    """`3%` or 0.03."""
    if text is None:
        return None
    try:
        return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise UsageError(
            f"max-perplexity-increase is '{text}'.", "Give a percentage, as 3%, or a share, as 0.03."
        ) from None


def _microbatch(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"microbatch is '{text}'.", "Give auto or a number of tokens.")
    return int(text)


def default_output(model: Path) -> Path:
    """MODEL-hardened, beside the model; also for `.` and for a link, which keeps its own name."""
    absolute = Path(os.path.abspath(model))  # noqa: PTH100 - resolve() would follow the link
    return (
        absolute.with_name(f"{absolute.name}-hardened")
        if model.name in ("", "..")
        else model.with_name(f"{model.name}-hardened")
    )


def _run(
    planned: "Planned", console: "Console", saying: ProgressOptions, *, minutes: float | None, threads: int | None
) -> None:
    """Harden, unless the run to resume is over already; show the result."""
    from atdp_cli.jobs.harden.spec import open_run, with_plan
    from atdp_cli.runs.spec import RunSpec

    spec = open_run(planned)
    if spec is None:
        return
    if not isinstance(spec, RunSpec):
        _finish(planned, spec, console, saying)
        return
    fitted, model = _load(planned, console, saying, minutes=minutes, dry_run=False, threads=threads)
    if fitted is not planned:
        planned, spec = fitted, with_plan(spec, fitted)

    from atdp_cli.cli.terminal.signals import sigterm_interrupts, stop_on_interrupt
    from atdp_cli.jobs.harden.run import harden, harden_worker

    if not planned.request.ranks.first:
        with sigterm_interrupts():
            harden_worker(planned, spec, model, stop_on_interrupt)
        return
    with sigterm_interrupts(), progress(console, saying.progress) as notify:
        result = harden(planned, spec, model, notify, stop_on_interrupt)
    _finish(planned, result, console, saying)


def _load(
    planned: "Planned",
    console: "Console",
    saying: ProgressOptions,
    *,
    minutes: float | None,
    dry_run: bool,
    threads: int | None,
) -> "tuple[Planned, LoadedModel]":
    """Load the model and show the plan, with as many epochs as fit into `minutes`."""
    from atdp_cli.jobs.harden.auto import fit_epochs
    from atdp_cli.jobs.harden.model import load_model
    from atdp_cli.jobs.harden.preflight import estimate_bytes, estimate_seconds
    from atdp_cli.model.device import training_threads, use_threads

    first = planned.request.ranks.first
    use_threads(threads)
    with progress(console, saying.progress if first else ProgressOption.AUTO) as notify:
        model = load_model(planned.request, notify)
    if threads is None:
        use_threads(training_threads(model.checkpoint.model.num_parameters()))
    seconds = estimate_seconds(planned, model)
    if minutes is not None:
        planned = fit_epochs(planned, seconds, minutes)
        seconds = estimate_seconds(planned, model)
    needs = Needs(seconds=seconds, memory=estimate_bytes(planned, model) if dry_run else None)
    show_plan(planned, model.engine.name, needs, console)
    if dry_run and saying.as_json and first:
        write_json(plan_json(planned, model.engine.name, needs))
    return planned, model


def _finish(planned: "Planned", finished: "HardenResult", console: "Console", saying: ProgressOptions) -> None:
    """Show a finished run, and end with its verdict."""
    from atdp_cli.jobs.harden.auto import better_recipe

    show_result(finished, console)
    if advised := better_recipe(planned):
        console.print(advised)
    if saying.as_json:
        write_json(result_json(planned, finished))
    else:
        typer.echo(str(finished.output))
    if finished.failed is not None:
        raise typer.Exit(LIMIT_MISSED)
