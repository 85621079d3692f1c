"""Guarantees in the form of the JSON."""

from collections.abc import Sequence
from typing import Literal

from atdp_cli.privacy.scope import Guarantee
from atdp_cli.report.numbers import Frozen, Number, json_number


class NeighboursEntry(Frozen):
    """Between which corpora a guarantee for flagged characters holds.

    Attributes:
        records: Whether they differ in one record or in any number.
        shapes: What they have in common in the flagged places, as the ledger names it.
        detector, tier: What flags them.
    """

    records: Literal["one", "any"]
    shapes: tuple[str, ...]
    detector: str | None
    tier: str


class GuaranteeEntry(Frozen):
    """One guarantee as the JSON shows it.

    Attributes:
        epsilon: null where nothing was spent.
        accountant: null where none computed ε, as it is infinite or nothing was spent.
        neighbours: null where a record may change in any way.
    """

    scope: Literal["end_to_end", "selective", "declared", "uncounted", "increment"]
    epsilon: Number
    delta: float
    adjacency: Literal["zero-out", "replace-one"]
    accountant: str | None
    assumptions: tuple[str, ...]
    neighbours: NeighboursEntry | None = None


def guarantee_entries(guarantees: Sequence[Guarantee]) -> tuple[GuaranteeEntry, ...]:
    """Guarantees in the form of the JSON."""
    return tuple(
        GuaranteeEntry(
            scope=guarantee.scope,
            epsilon=json_number(guarantee.epsilon),
            delta=guarantee.delta,
            adjacency=guarantee.adjacency,
            accountant=guarantee.accountant,
            assumptions=guarantee.assumptions,
            neighbours=_neighbours(guarantee),
        )
        for guarantee in guarantees
    )


def _neighbours(guarantee: Guarantee) -> NeighboursEntry | None:
    neighbours = guarantee.neighbours
    if neighbours is None or neighbours.flags is None:
        return None
    return NeighboursEntry(
        records="any" if guarantee.exact else "one",
        shapes=tuple(sorted(neighbours.shapes)),
        detector=neighbours.flags.detector,
        tier=neighbours.flags.tier,
    )
