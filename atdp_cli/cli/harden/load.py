"""From the first word of `atdp harden` to its plan: what it will do, the model and the detector, what it needs."""

from typing import TYPE_CHECKING, NamedTuple

from atdp_cli.cli.harden.options import HardenOptions
from atdp_cli.cli.harden.plan import advise, plan_summary, show_effect, show_plan
from atdp_cli.cli.harden.prepare import load_and_fit
from atdp_cli.cli.harden.rounds import Notifying
from atdp_cli.cli.terminal.console import write_json

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.jobs.harden.auto import ChosenBy
    from atdp_cli.jobs.harden.model import LoadedModel
    from atdp_cli.jobs.harden.request import Planned


class Notice(NamedTuple):
    """What is notice first, and who chose the recipe, on which advice depends."""

    text: str
    chosen_by: "ChosenBy"


def load_and_plan(
    planned: "Planned",
    notice: Notice,
    console: "Console",
    notifying: Notifying,
    options: HardenOptions,
    minutes: float | None,
) -> "tuple[Planned, LoadedModel]":
    """Say what will be done, load the model and show the plan, with as many epochs as fit into `minutes`."""
    show_effect(planned, notice.text, console)
    with notifying() as notify:
        planned, model, needs = load_and_fit(planned, options, minutes, notify)
    hints = advise(planned, notice.chosen_by, needs)
    show_plan(planned, model.engine.name, needs, hints, console)
    if options.dry_run and options.as_json and planned.request.ranks.first:
        write_json(plan_summary(planned, notice.text, model.engine.name, needs, hints).model_dump(mode="json"))
    return planned, model
