"""`atdp harden`: a checkpoint and a corpus in, a hardened checkpoint with its privacy report out."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atdp_cli.cli.commandline import spelt_out, without_paths
from atdp_cli.cli.console import people, progress, write_json
from atdp_cli.cli.eventlines import ProgressOption
from atdp_cli.cli.harden_options import Data, Privacy, Running, Training
from atdp_cli.cli.harden_shown import Needs, plan_json, result_json, show_plan, show_result
from atdp_cli.cli.options import Detecting, Telling
from atdp_cli.cli.sources import filled, left_open
from atdp_cli.errors import AtdpError, UsageError
from atdp_cli.ranges import require_positive

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.jobs.hardened import Hardened
    from atdp_cli.jobs.request import HardenRequest, Planned
    from atdp_cli.training.ranks import Ranks
    from atdp_cli.training.recipe import Recipe
    from atdp_cli.training.recipefile import RecipeFile

LIMIT_MISSED = 1


def harden(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Folder of a causal language model, as save_pretrained writes it.")
    ],
    data: Data,
    training: Training,
    privacy: Privacy,
    detecting: Detecting,
    running: Running,
    saying: Telling,
) -> None:
    """Harden MODEL on its corpus: reweigh, clip, add noise, and account for every step.

    Writes OUT/ (model, report, ledger, recipe) and OUT.private/ (spans, perplexities, journal), which stays with you.
    Exit codes: 0 done; 1 perplexity rose above --max-perplexity-increase; 2 usage or unreadable input; 3 not completed.
    """
    from atdp_cli.jobs.joining import joined

    with joined(sharded=running.shard_model) as team:
        try:
            _harden(context, model, data, training, privacy, detecting, running, saying, team.ranks)
        except AtdpError as error:
            if team.first_to_fail():
                raise
            raise typer.Exit(error.exit_code) from None


def _harden(
    context: typer.Context,
    model: Path,
    data: Data,
    training: Training,
    privacy: Privacy,
    detecting: Detecting,
    running: Running,
    saying: Telling,
    ranks: "Ranks",
) -> None:
    from atdp_cli.jobs.automatic import begun_with, from_public_start, started, with_rate
    from atdp_cli.jobs.request import plan_request
    from atdp_cli.training.recipefile import asked_recipe

    if training.auto:
        training, privacy, detecting = _chosen(context, training, privacy, detecting)
    elif training.minutes is not None:
        raise UsageError("--minutes goes with --auto.", "Choose --epochs yourself, or add --auto.")
    if training.minutes is not None and ranks.size > 1:
        raise UsageError("--minutes goes with one process.", "Choose --epochs; --dry-run tells how long they take.")
    asked = asked_recipe(training.recipe)
    beside_it = left_open(context, asked.run.said())
    data, training, privacy = filled(data, beside_it), filled(training, beside_it), filled(privacy, beside_it)
    request = _request(model, asked, data, training, privacy, filled(detecting, beside_it), running)
    request = replace(request, command=spelt_out(context), command_without_paths=without_paths(context), ranks=ranks)
    console = saying.console() if ranks.first else people(quiet=True)
    if training.auto:
        request = from_public_start(request)
        if not _rate_given(context, training):
            request = with_rate(request)
        console.print(started(request, model))
    planned, minutes = plan_request(request), training.minutes
    if minutes is not None and (begun := begun_with(planned)) is not None:
        planned, minutes = begun, None
    if not running.dry_run and _over(planned, console, saying):
        return
    _run(planned, console, saying, minutes=minutes, dry_run=running.dry_run, threads=running.threads)


def _over(planned: "Planned", console: "Console", saying: Telling) -> bool:
    """Whether the run is over already, as --resume may find; then it is shown. Otherwise it has room to begin."""
    from atdp_cli.jobs.hardened import completed
    from atdp_cli.jobs.places import FAILED, beside
    from atdp_cli.jobs.together import said_by_first
    from atdp_cli.jobs.workplace import check_output

    request = planned.request
    before = completed(planned) if request.resume and request.ranks.first else None
    over = said_by_first(request.ranks, before is not None) if request.resume else False
    if before is not None:
        _finish(planned, before, console, saying)
    if not over and request.ranks.first:
        check_output(request.output, force=request.force, resume=request.resume)
        if request.max_increase is not None:
            check_output(beside(request.output, FAILED), force=request.force)
    return over


def _chosen(
    context: typer.Context, training: Training, privacy: Privacy, detecting: Detecting
) -> tuple[Training, Privacy, Detecting]:
    """The options of --auto, where the command line is silent."""
    from atdp_cli.jobs.automatic import EPSILON, RECIPE, TIER

    if not left_open(context, {"recipe": RECIPE}):
        raise UsageError("--auto chooses the recipe that --recipe names.", "Leave one of them out.")
    if training.minutes is not None:
        require_positive("minutes", training.minutes)
    values = left_open(context, {"recipe": RECIPE, "target_epsilon": EPSILON, "tier": TIER})
    return filled(training, values), filled(privacy, values), filled(detecting, values)


def _rate_given(context: typer.Context, training: Training) -> bool:
    """Whether the command line sets a learning rate itself."""
    by_set = any(".learning-rate=" in text for text in training.set_ or ())
    return by_set or not left_open(context, {"learning_rate": None})


def _request(
    model: Path,
    asked: "RecipeFile",
    data: Data,
    training: Training,
    privacy: Privacy,
    detecting: Detecting,
    running: Running,
) -> "HardenRequest":
    """The options as the jobs take them."""
    from atdp_cli.jobs.request import HardenRequest

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


def _with_settings(recipe: "Recipe", training: Training, privacy: Privacy) -> "Recipe":
    """The recipe with the options of its stages applied."""
    from atdp_cli.training.settings import apply_settings, bare, parse_setting

    if privacy.target_epsilon is not None and privacy.noise_multiplier is not None:
        raise UsageError("--target-epsilon chooses the noise that --noise-multiplier sets.", "Leave one of them out.")
    settings = [bare(recipe, option, value) for option, value in _bare(training, privacy).items() if value is not None]
    settings += [parse_setting(recipe, text) for text in training.set_ or ()]
    return apply_settings(recipe, settings)


def _bare(training: Training, privacy: Privacy) -> dict[str, Any]:
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
    planned: "Planned",
    console: "Console",
    saying: Telling,
    *,
    minutes: float | None,
    dry_run: bool,
    threads: int | None,
) -> None:
    from atdp_cli.cli.signals import listening, terminable
    from atdp_cli.jobs.automatic import within
    from atdp_cli.jobs.harden import follow
    from atdp_cli.jobs.harden import harden as run
    from atdp_cli.jobs.memory import estimate_bytes
    from atdp_cli.jobs.opening import open_model
    from atdp_cli.jobs.timing import estimate_seconds
    from atdp_cli.model.device import training_threads, use_threads

    use_threads(threads)
    with progress(console, saying.progress if planned.request.ranks.first else ProgressOption.AUTO) as notify:
        opened = open_model(planned.request, notify)
    if threads is None:
        use_threads(training_threads(opened.checkpoint.model.num_parameters()))
    seconds = estimate_seconds(planned, opened)
    if minutes is not None:
        planned = within(planned, seconds, minutes)
        seconds = estimate_seconds(planned, opened)
    needs = Needs(seconds=seconds, memory=estimate_bytes(planned, opened) if dry_run else None)
    show_plan(planned, opened.engine.name, needs, console)
    first = planned.request.ranks.first
    if dry_run:
        if saying.as_json and first:
            write_json(plan_json(planned, opened.engine.name, needs))
        return
    if not first:
        with terminable():
            follow(planned, opened, listening)
        return
    with terminable(), progress(console, saying.progress) as notify:
        finished = run(planned, opened, notify, listening)
    _finish(planned, finished, console, saying)


def _finish(planned: "Planned", finished: "Hardened", console: "Console", saying: Telling) -> None:
    """Show a finished run, and end with its verdict."""
    from atdp_cli.jobs.automatic import better

    show_result(finished, console)
    if advised := better(planned):
        console.print(advised)
    if saying.as_json:
        write_json(result_json(planned, finished))
    else:
        typer.echo(str(finished.output))
    if finished.failed is not None:
        raise typer.Exit(LIMIT_MISSED)
