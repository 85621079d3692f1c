"""What was measured on private text before and after a run, as the private report has it."""

from atdp_cli.memory_result import MapVerdict
from atdp_cli.report.audit_entry import ScoreName
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


class MemoryEntry(Frozen):
    """What a memory map found, without its places.

    Attributes:
        of: `after` for the model of the report, `before` for the checkpoint that the run started from, `other` else.
        weights: SHA-256 of each file of the model that was mapped.
        sentences: How much is memorised, and how sure that is.
        memorised: Of the `tested` groups of records, against `held_out` ones.
        texts: Different texts in their places.
        greedy: Those that greedy decoding says.
        labels: How many places have each label.
    """

    of: ScoreName
    weights: dict[str, str]
    verdict: MapVerdict | None
    sentences: tuple[str, ...]
    tested: int
    held_out: int
    calibrated: bool
    memorised: int
    texts: int
    greedy: int
    labels: tuple[tuple[str, int], ...]
