"""From the options of `atdp harden` to a run that can begin; nothing is shown."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from atdp_cli.cli.harden.options import HardenOptions
from atdp_cli.cli.harden.plan import Needs
from atdp_cli.cli.harden.request import choose_recipe, make_request, sets_learning_rate, sets_noise
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify, ignore
from atdp_cli.training.distributed.ranks import SINGLE_PROCESS, Ranks

if TYPE_CHECKING:
    from atdp_cli.jobs.harden.auto import ChosenBy
    from atdp_cli.jobs.harden.model import LoadedModel
    from atdp_cli.jobs.harden.request import HardenRequest, Planned


class Prepared(NamedTuple):
    """What is asked for, with what is chosen where nobody says; and the options with the recipe, and who chose it."""

    request: "HardenRequest"
    options: HardenOptions
    chosen_by: "ChosenBy"


def prepare(
    model: Path, options: HardenOptions, ranks: Ranks = SINGLE_PROCESS, command: dict[str, Any] | None = None
) -> Prepared:
    """The request of a run.

    Args:
        command: Fields of the request: the command line as it was given, and without paths.

    Raises:
        UsageError: Options do not go together.
        InputError: A file cannot be read.
    """
    from atdp_cli.jobs.harden.auto import start_from_reference, with_budget, with_learning_rate, with_tune
    from atdp_cli.training.recipe import tunable

    options, chosen_by = choose_recipe(model, options)
    request = make_request(model, options).replace(ranks=ranks, **command or {})
    if request.recipe:
        request = request.replace(fixed_rate=sets_learning_rate(options, request.recipe[-1].name))
    if options.minutes is not None and ranks.size > 1:
        raise UsageError("--minutes goes with one process.", "Choose --epochs; --dry-run shows how long they take.")
    if chosen_by in ("default", "--auto"):
        request = start_from_reference(request)
        request = with_tune(request)
        if not sets_noise(options):
            request = with_budget(request)
    tuned = request.tune is not None and tunable(request.recipe)
    if (chosen_by in ("default", "--auto") or tuned) and not request.fixed_rate:
        request = with_learning_rate(request)
    return Prepared(request, options, chosen_by)


def plan_round(request: "HardenRequest", options: HardenOptions) -> "tuple[Planned, float | None]":
    """The plan of a run or a round, and the minutes to which its epochs are still to be fitted; None for none.

    Raises:
        InputError: Model, corpus or ledger cannot be used.
        UsageError: Options contradict each other.
        BudgetError: ε cannot be reached, or passes `max_epsilon`.
    """
    from atdp_cli.jobs.harden.auto import with_resumed_epochs
    from atdp_cli.jobs.harden.request import plan_request

    planned = plan_request(request)
    if options.minutes is not None and (resumed := with_resumed_epochs(planned)) is not None:
        return resumed, None
    return planned, options.minutes


def load_and_fit(
    planned: "Planned", options: HardenOptions, minutes: float | None, notify: Notify
) -> "tuple[Planned, LoadedModel, Needs]":
    """Load the model and the detector; the plan with as many epochs as fit into `minutes`, and what it needs.

    Raises:
        InputError: The model or the reference cannot be used.
        UsageError: Options do not go with the model, or not one epoch fits.
    """
    from atdp_cli.jobs.detector import flagged_share
    from atdp_cli.jobs.harden.auto import fit_epochs
    from atdp_cli.jobs.harden.model import load_model
    from atdp_cli.jobs.harden.preflight import estimate_bytes, estimate_seconds
    from atdp_cli.model.device import training_threads, use_threads

    request, flagged = planned.request, None
    use_threads(options.threads)
    model = load_model(request, notify)
    if request.ranks.first and request.spans is None:
        # A run hears of the detector's warnings when it flags all records.
        hear = notify if options.dry_run else ignore
        flagged, findings = flagged_share(planned.split.records, request.detector, model.pipeline, hear)
        model = replace(model, findings=findings)
    if options.threads is None:
        use_threads(training_threads(model.checkpoint.model.num_parameters()))
    seconds = estimate_seconds(planned, model)
    if minutes is not None:
        planned = fit_epochs(planned, seconds, minutes)
        seconds = estimate_seconds(planned, model)
    return planned, model, Needs(seconds=seconds, memory=estimate_bytes(planned, model), flagged=flagged)
