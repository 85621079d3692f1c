"""The options of `atdp harden` that are about the command and not about the run."""

from typing import Annotated

from atdp_cli.cli.harden.list_recipes import show_recipes
from atdp_cli.cli.options.generate import Eager
from atdp_cli.cli.options.shared import ProgressOptions
from atdp_cli.options import Option
from atdp_cli.text.options import OUTPUT
from atdp_cli.training.options import TRAINING


class HardenCommandOptions(ProgressOptions):
    """What is shown, and whether it is run."""

    dry_run: Annotated[bool, Option(OUTPUT, main=True, fingerprint=False)] = False
    """Print the plan and its ε, and stop."""

    list_recipes: Annotated[bool, Option(TRAINING), Eager(show_recipes)] = False
    """Print the recipes with what each guarantees, and stop."""
