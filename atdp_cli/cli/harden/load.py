"""From the first word of `atdp harden` to its plan: what it will do, the model and the detector, what it needs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from atdp_cli.cli.harden.options import HardenOptions
from atdp_cli.cli.harden.plan import plan_summary, show_effect, show_plan
from atdp_cli.cli.harden.prepare import load_and_measure
from atdp_cli.cli.terminal.console import write_json
from atdp_cli.events import Notify

Notifying = Callable[[], AbstractContextManager[Notify]]
"""Shows progress, as long as the context lasts."""

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.jobs.harden.model import LoadedModel
    from atdp_cli.jobs.harden.request import Planned


class Notice(NamedTuple):
    """The notice shown first, and whether the recipe is the default, on which advice depends."""

    text: str
    default: bool


def load_and_plan(
    planned: "Planned",
    notice: Notice,
    console: "Console",
    notifying: Notifying,
    options: HardenOptions,
) -> "LoadedModel":
    """Say what will be done, load the model and show the plan."""
    from atdp_cli.jobs.harden.auto import plan_hints

    show_effect(planned, notice.text, console)
    with notifying() as notify:
        model, needs = load_and_measure(planned, options, notify)
    hints = plan_hints(planned, default=notice.default)
    show_plan(planned, model.engine.name, needs, hints, console)
    if options.dry_run and options.as_json and planned.request.ranks.first:
        write_json(plan_summary(planned, notice.text, model.engine.name, needs, hints).model_dump(mode="json"))
    return model
