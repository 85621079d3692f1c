"""A learning rate that a search chose, as the report lists it."""

from typing import Literal

from atdp_cli.report.numbers import Frozen


class TunedEntry(Frozen):
    """What trials chose, all of which train on decoyed text.

    Attributes:
        learning_rate: η.
        chosen_on: What they were judged by: their loss on `decoy` text, or how they ranked values of the `raw` text.
        trials: How many there were.
        steps: Their optimizer steps in all, which are not among the stage's.
    """

    learning_rate: float
    chosen_on: Literal["decoy", "raw"] = "decoy"
    trials: int
    steps: int
