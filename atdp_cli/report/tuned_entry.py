"""A learning rate that a search chose, as the report lists it."""

from atdp_cli.report.numbers import Frozen


class TunedEntry(Frozen):
    """What trials on decoyed text chose.

    Attributes:
        learning_rate: η.
        trials: How many there were.
        steps: Their optimizer steps in all, which are not among the stage's.
    """

    learning_rate: float
    trials: int
    steps: int
