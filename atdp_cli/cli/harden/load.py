"""From the first word of `atdp harden` to its plan: what it will do, the model and the detector, what it needs."""

from typing import TYPE_CHECKING, NamedTuple

from atdp_cli.cli.harden.options import HardenOptions
from atdp_cli.cli.harden.plan import Needs, advise, plan_json, show_effect, show_plan
from atdp_cli.cli.terminal.console import progress, write_json
from atdp_cli.cli.terminal.json_lines import ProgressOption
from atdp_cli.events import ignore

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.jobs.harden.auto import ChosenBy
    from atdp_cli.jobs.harden.model import LoadedModel
    from atdp_cli.jobs.harden.request import Planned


class Said(NamedTuple):
    """What is said first, and who chose the recipe, on which advice depends."""

    notice: str
    chosen_by: "ChosenBy"


def load_and_plan(
    planned: "Planned", said: Said, console: "Console", options: HardenOptions, minutes: float | None
) -> "tuple[Planned, LoadedModel]":
    """Say what will be done, load the model and show the plan, with as many epochs as fit into `minutes`."""
    show_effect(planned, said.notice, console)

    from atdp_cli.jobs.detector import flagged_share
    from atdp_cli.jobs.harden.auto import fit_epochs
    from atdp_cli.jobs.harden.model import load_model
    from atdp_cli.jobs.harden.preflight import estimate_bytes, estimate_seconds
    from atdp_cli.model.device import training_threads, use_threads

    request, flagged = planned.request, None
    use_threads(options.threads)
    with progress(console, options.progress if request.ranks.first else ProgressOption.AUTO) as notify:
        model = load_model(request, notify)
        if request.ranks.first and request.spans is None:
            # A run hears of the detector's warnings when it flags all records.
            hear = notify if options.dry_run else ignore
            flagged = flagged_share(planned.split.records, request.detector, model.pipeline, hear)
        if options.threads is None:
            use_threads(training_threads(model.checkpoint.model.num_parameters()))
        seconds = estimate_seconds(planned, model)
        if minutes is not None:
            planned = fit_epochs(planned, seconds, minutes)
            seconds = estimate_seconds(planned, model)
        needs = Needs(seconds=seconds, memory=estimate_bytes(planned, model), flagged=flagged)
    hints = advise(planned, said.chosen_by, needs)
    show_plan(planned, model.engine.name, needs, hints, console)
    if options.dry_run and options.as_json and request.ranks.first:
        write_json(plan_json(planned, said.notice, model.engine.name, needs, hints))
    return planned, model
