"""`harden` and `plan`: a hardened checkpoint with its privacy report, and what one would cost."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast

from atdp_cli.api.inputs import (
    Corpus,
    LoadedOrFolder,
    PathLike,
    SavesPretrained,
    Scratch,
    corpus_file,
    in_memory,
    model_folder,
    recipe_option,
    scratch,
    undisturbed,
)
from atdp_cli.api.keywords import HardenKeywords
from atdp_cli.api.options import check_keywords, parse_keywords
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify, ignore

if TYPE_CHECKING:
    from atdp_cli.cli.harden.prepare import Prepared
    from atdp_cli.jobs.harden.request import HardenRequest
    from atdp_cli.report.summary.harden import HardenPlan, HardenSummary
    from atdp_cli.training.recipe import Stage
    from atdp_cli.training.recipe_file import RecipeFile


class _Asked(NamedTuple):
    """What the two functions take, but for what they do with it."""

    model: LoadedOrFolder
    data: Corpus | list[Path]
    tokenizer: SavesPretrained | None
    valid: Corpus | None
    recipe: "str | RecipeFile | Sequence[Stage] | None"
    reference: LoadedOrFolder | None
    output: PathLike | None


def harden(
    model: LoadedOrFolder,
    data: Corpus | list[Path],
    *,
    tokenizer: SavesPretrained | None = None,
    valid: Corpus | None = None,
    recipe: "str | RecipeFile | Sequence[Stage] | None" = None,
    reference: LoadedOrFolder | None = None,
    output: PathLike | None = None,
    notify: Notify = ignore,
    **options: Unpack[HardenKeywords],
) -> "HardenSummary":
    """Harden a model on its corpus, as `atdp harden` does. The model that is given stays as it is.

    Args:
        model: A folder, or a model in memory, which is saved into a private temporary folder first.
        data: The path of a file, a list of `Path` for several, or records in memory.
        tokenizer: Of the models in memory.
        valid: A held-out corpus.
        recipe: Names joined by +, the path of a recipe file, a `RecipeFile`, or stages.
        reference: A public model that never saw the corpus.
        output: Folder to write; a model in memory needs one.
        notify: Called with each event of progress.
        options: Those of the command, with _ for -.

    Returns:
        What the command prints with --json. `failed` says why where perplexity rose above the limit.

    Raises:
        UsageError: Options contradict each other or lie out of range, or the output exists.
        InputError: A file or a model cannot be used.
        BudgetError: ε cannot be reached, or passes `max_epsilon`.
        RunError: The run did not complete.
    """
    check_keywords("harden", _command(), options)
    asked = _Asked(model, data, tokenizer, valid, recipe, reference, output)
    with scratch() as place, undisturbed():
        _, prepared = _prepared(place, asked, options)
        return place.document(_hardened(prepared, place.notify(notify)))


def plan(
    model: LoadedOrFolder,
    data: Corpus | list[Path],
    *,
    tokenizer: SavesPretrained | None = None,
    valid: Corpus | None = None,
    recipe: "str | RecipeFile | Sequence[Stage] | None" = None,
    reference: LoadedOrFolder | None = None,
    output: PathLike | None = None,
    estimate: bool = False,
    notify: Notify = ignore,
    **options: Unpack[HardenKeywords],
) -> "HardenPlan":
    """What `harden` with the same arguments would do, and its ε; nothing is run.

    Args:
        estimate: Load the model too, and say how long it takes and how much memory, as `atdp harden --dry-run`.

    Raises:
        UsageError: Options contradict each other or lie out of range.
        InputError: A file or a model cannot be used.
        BudgetError: ε cannot be reached, or passes `max_epsilon`.
    """
    check_keywords("plan", _command(), options)
    asked = _Asked(model, data, tokenizer, valid, recipe, reference, output)
    with scratch() as place, undisturbed() if estimate or in_memory(model) else nullcontext():
        folder, prepared = _prepared(place, asked, options)
        return place.document(_planned(folder, prepared, place.notify(notify), estimate=estimate))


def _command() -> Any:
    from atdp_cli.cli.harden.command import harden_command

    return harden_command


def _prepared(place: Scratch, asked: _Asked, options: HardenKeywords) -> "tuple[Path, Prepared]":
    """The model's folder, and the request."""
    from atdp_cli.cli.harden.prepare import prepare

    if in_memory(asked.model) and asked.output is None:
        raise UsageError("A model in memory has no folder to write beside.", "Give output.")
    data, valid = _data(place, asked, options)
    given: dict[str, Any] = {
        **options,
        "data": data,
        "valid": valid,
        "recipe": recipe_option(place, asked.recipe),
        "reference": None
        if asked.reference is None
        else model_folder(place, "reference", asked.reference, asked.tokenizer),
        "output": asked.output,
    }
    if data[0].parent == place.folder:
        given["no_store"] = options.get("store") is None
    chosen = parse_keywords(_command(), given)["options"]
    folder = model_folder(place, "model", asked.model, asked.tokenizer)
    prepared = prepare(folder, chosen)
    request = prepared.request
    if request.lora_rank is not None and not request.merge_adapter and request.model.parent == place.folder:
        raise UsageError(
            "An adapter needs the folder of its base, and this model is in memory.", "Add merge_adapter=True."
        )
    return folder, prepared


def _data(place: Scratch, asked: _Asked, options: HardenKeywords) -> tuple[tuple[Path, ...], Path | None]:
    """The files of the corpus, and of the held-out one."""
    named = (options.get("unit"), options.get("source_field"), options.get("holdout_by"))
    columns = (options.get("text_field") or "text", *filter(None, named))
    valid = None if asked.valid is None else corpus_file(place, "valid", asked.valid, columns)
    if isinstance(asked.data, list):
        files = tuple(each for each in asked.data if isinstance(each, Path))
        if files and len(files) == len(asked.data):
            return files, valid
    return (corpus_file(place, "data", cast("Corpus", asked.data), columns),), valid


def _hardened(prepared: "Prepared", notify: Notify) -> "HardenSummary":
    from atdp_cli.cli.harden.output import result_summary
    from atdp_cli.cli.harden.prepare import load_and_fit, plan_round
    from atdp_cli.cli.harden.rounds import Run, run_rounds
    from atdp_cli.cli.terminal.console import stderr_console
    from atdp_cli.jobs.harden.result import HardenResult
    from atdp_cli.jobs.harden.run import run_plan
    from atdp_cli.jobs.harden.spec import open_run, with_plan

    def run(request: "HardenRequest") -> Run | None:
        planned, minutes = plan_round(request, prepared.options)
        spec = open_run(planned)
        if spec is None or isinstance(spec, HardenResult):
            return None if spec is None else Run(planned, spec)
        fitted, model, _ = load_and_fit(planned, prepared.options, minutes, notify)
        if fitted is not planned:
            spec = with_plan(spec, fitted)
        return Run(fitted, run_plan(fitted, spec, model, notify))

    silent = stderr_console(quiet=True)
    finished, rounds = run_rounds(prepared.request, prepared.options, silent, lambda: nullcontext(notify), run)
    if finished is None:
        raise ValueError("only a process beside others has no result")
    return result_summary(*finished, rounds)


def _planned(folder: Path, prepared: "Prepared", notify: Notify, *, estimate: bool) -> "HardenPlan":
    from atdp_cli.cli.harden.plan import advise, plan_summary
    from atdp_cli.cli.harden.prepare import load_and_fit, plan_round
    from atdp_cli.jobs.harden.auto import first_line
    from atdp_cli.jobs.rounds import check_rounds

    options = prepared.options.replace(dry_run=True)
    if options.rounds is not None:
        check_rounds(prepared.request)
    planned, minutes = plan_round(prepared.request, options)
    notice, engine, needs = first_line(planned, folder, prepared.chosen_by), None, None
    if estimate:
        planned, model, needs = load_and_fit(planned, options, minutes, notify)
        engine = model.engine.name
    return plan_summary(planned, notice, engine, needs, advise(planned, prepared.chosen_by, needs))
