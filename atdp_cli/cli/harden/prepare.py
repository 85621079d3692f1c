"""From the options of `atdp harden` to a run that can begin; nothing is shown."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from atdp_cli.cli.harden.options import HardenOptions
from atdp_cli.cli.harden.plan import Needs
from atdp_cli.cli.harden.request import choose_recipe, make_request, sets_learning_rate, sets_noise
from atdp_cli.events import Notify, ignore
from atdp_cli.training.distributed.ranks import SINGLE_PROCESS, Ranks

if TYPE_CHECKING:
    from atdp_cli.jobs.harden.model import LoadedModel
    from atdp_cli.jobs.harden.request import HardenRequest, Planned


class Prepared(NamedTuple):
    """What is asked for, with what is chosen where nobody says; and whether the recipe is the default."""

    request: "HardenRequest"
    default: bool


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

    default = options.recipe is None
    options = choose_recipe(options)
    request = make_request(model, options).replace(ranks=ranks, **command or {})
    if request.recipe:
        request = request.replace(fixed_rate=sets_learning_rate(options, request.recipe[-1].name))
    if default:
        request = start_from_reference(request)
        request = with_tune(request)
        if not sets_noise(options):
            request = with_budget(request)
    tuned = request.tune is not None and tunable(request.recipe)
    if (default or tuned) and not request.fixed_rate:
        request = with_learning_rate(request)
    return Prepared(request, default)


def load_and_measure(planned: "Planned", options: HardenOptions, notify: Notify) -> "tuple[LoadedModel, Needs]":
    """Load the model and the detector, and say what the plan needs.

    Raises:
        InputError: The model or the reference cannot be used.
        UsageError: Options do not go with the model.
    """
    from atdp_cli.jobs.detector import flagged_share
    from atdp_cli.jobs.harden.model import load_model
    from atdp_cli.jobs.harden.preflight import estimate_bytes
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
    return model, Needs(memory=estimate_bytes(planned, model), flagged=flagged)
