"""What was measured on private text before and after a run, as the private report has it."""

from atdp_cli.report.numbers import Frozen, Number


class PerplexityEntry(Frozen):
    """exp of the mean negative log-likelihood a token."""

    all: Number
    sensitive: Number
    other: Number


class BeforeAfter(Frozen):
    """Held-out perplexity of the checkpoint as given and of the file as written."""

    before: PerplexityEntry
    after: PerplexityEntry


class RanksEntry(Frozen):
    """How a model ranks flagged values among decoys of their shape, as `audit/memory/value_ranks.py` has it.

    Attributes:
        training, held_out: The mean share of decoys that it finds likelier than the true value, in records that it was
            trained on and in held-out ones. They are equal where it remembers no training value.
        training_values, held_out_values: How many values, one a record.
        p_value: That training values rank as high by chance.
    """

    training: float
    held_out: float
    training_values: int
    held_out_values: int
    p_value: float


class RanksBeforeAfter(Frozen):
    """The ranks by the checkpoint as given and by the file as written."""

    before: RanksEntry
    after: RanksEntry
