"""Entries of a report: perplexities, ranks, memory maps, tuning, and guarantees in JSON form."""

from collections.abc import Sequence
from typing import Literal

from atdp_cli.files.documents import Frozen, Number, copy_fields
from atdp_cli.memorisation.results import ComparedRanks, MapVerdict
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.privacy.scope import PERSON_RECORDS, Guarantee, group_epsilon
from atdp_cli.reporting.audit_entry import MODEL_NAMES, ScoreName


class PerplexityEntry(Frozen):
    """exp of the mean negative log-likelihood a token."""

    all: Number | None
    sensitive: Number | None
    other: Number | None


class BeforeAfter(Frozen):
    """Held-out perplexity of the checkpoint as given and of the file as written."""

    before: PerplexityEntry
    after: PerplexityEntry


LEAST_VALUES = 20
"""The fewest repeated values by which models are compared. Of ten, a model that gets 90 % says 7 to 10 right."""


class UsefulnessEntry(Frozen):
    """What a model can do on held-out records with fresh values, in which equal values are equal.

    Attributes:
        of: One of `MODEL_NAMES`, or the model's folder.
        values, whole: Later mentions of a value in a record, and those that greedy decoding would say after the text
            before them.
        tokens, right: Their tokens, and those that are the likeliest.
        perplexity, raw: Of the records with fresh values, and as they are.
    """

    of: str
    values: int
    whole: int
    tokens: int
    right: int
    perplexity: PerplexityEntry
    raw: PerplexityEntry

    @property
    def model(self) -> str:
        """What people read."""
        return {str(of): name for of, name in MODEL_NAMES.items()}.get(self.of, self.of)

    @property
    def within(self) -> tuple[float, float] | None:
        """The 95 % interval of the share of values that are said right (Wilson 1927); None where there are too few."""
        if self.values < LEAST_VALUES:
            return None
        from scipy.stats import binomtest  # takes half a second to load

        interval = binomtest(self.whole, self.values).proportion_ci(method="wilson")
        return float(interval.low), float(interval.high)


class RanksBeforeAfter(Frozen):
    """The ranks by the checkpoint as given and by the file as written."""

    before: ComparedRanks
    after: ComparedRanks


class MemoryEntry(Frozen):
    """The findings of a memory map, without its places.

    Attributes:
        of: One of `MODEL_NAMES`.
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


class TunedEntry(Frozen):
    """The choice of trials, all of which train on decoyed text.

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


class NeighboursEntry(Frozen):
    """Between which corpora a guarantee for flagged characters holds.

    Attributes:
        records: Whether they differ in one record or in any number.
        shapes: What they have in common in the flagged places, as the ledger names it.
        detector, tier: What flags them.
        kept: Which of its flags count, in words; empty for all.
    """

    records: Literal["one", "any"]
    shapes: tuple[str, ...]
    detector: str | None
    tier: str
    kept: str = ""


class GroupFigure(Frozen):
    """ε of a group of records that change together; null in a scope where one record has no finite ε."""

    records: int
    epsilon: Number | None


class GuaranteeEntry(Frozen):
    """One guarantee as the JSON shows it.

    Attributes:
        epsilon: null where nothing was spent.
        accountant: null where none computed ε, as it is infinite or nothing was spent.
        neighbours: null where a record may change in any way.
    """

    scope: Literal["end_to_end", "selective", "declared", "uncounted", "increment"]
    epsilon: Number | None
    delta: float
    adjacency: Literal["zero-out", "replace-one"]
    accountant: str | None
    assumptions: tuple[str, ...]
    neighbours: NeighboursEntry | None = None


def person_figures(ledger: Ledger, guarantee: Guarantee) -> tuple[GroupFigure, ...]:
    """ε of a guarantee with a finite ε for several records of one person."""

    def epsilon(records: int) -> float | None:
        one = guarantee.exact or records == 1
        return guarantee.epsilon if one else group_epsilon(ledger, guarantee.scope, records)

    return tuple(GroupFigure(records=records, epsilon=epsilon(records)) for records in PERSON_RECORDS)


def guarantee_entries(guarantees: Sequence[Guarantee]) -> tuple[GuaranteeEntry, ...]:
    """Guarantees in the form of the JSON."""
    return tuple(copy_fields(GuaranteeEntry, each, neighbours=_neighbours(each)) for each in guarantees)


def _neighbours(guarantee: Guarantee) -> NeighboursEntry | None:
    neighbours = guarantee.neighbours
    if neighbours is None or neighbours.flags is None:
        return None
    records, shapes = "any" if guarantee.exact else "one", tuple(sorted(neighbours.shapes))
    return copy_fields(NeighboursEntry, neighbours.flags, records=records, shapes=shapes)
