"""The scopes of guarantees: which a ledger supports, between which corpora, and at what ε."""

import math
from dataclasses import dataclass
from typing import Literal

from atdp_cli.errors import BudgetError
from atdp_cli.privacy.accountant import epsilon_group, epsilon_pld
from atdp_cli.privacy.adjacency import Adjacency
from atdp_cli.privacy.ledger import (
    DeclaredTraining,
    DecoyedText,
    GaussianRelease,
    Ledger,
    PlainTraining,
    ReadModel,
    SubsampledGaussian,
    private_events,
)
from atdp_cli.privacy.relation import Neighbours, Relation, detectors_disagree, intersect

Scope = Literal["end_to_end", "selective", "declared", "uncounted", "increment"]

UNKNOWN_PAST = "the starting model's past is unknown"
UNKNOWN_REFERENCE = "the past of the reference model is unknown"
UNFLAGGED_TEXT = "text that is not flagged stands in the copies with decoys as it is"


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """An (ε, δ) guarantee for a scope.

    Attributes:
        scope: `end_to_end` (the records, whatever a stage read), `selective` (flagged characters only), `declared` (the
            same, of a model whose training its user declares), `uncounted` (those of them that no release counts), or
            `increment` (only what the DP stages add).
        epsilon: At least 0, `inf`, or None where no DP stage ran.
        delta: 0 where the model has the same distribution for all neighbours; then it holds for any number of records.
        adjacency: `zero-out` or `replace-one`.
        neighbours: The corpora between which it holds; None where a record may change in any way.
        accountant: The method and its grid; None where none computed ε, as it is infinite or nothing was spent.
        assumptions: Sentences; ε holds only if all of them do.
    """

    scope: Scope
    epsilon: float | None
    delta: float
    adjacency: Adjacency
    neighbours: Neighbours | None
    accountant: str | None
    assumptions: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether the model has the same distribution for all neighbours, however many records they differ in."""
        return self.epsilon == 0 and self.delta == 0


def scope_adjacency(scope: Scope) -> Adjacency:
    """The adjacency of a scope: replace-one between corpora that differ in flagged characters, else zero-out."""
    return "replace-one" if scope in ("selective", "declared", "uncounted") else "zero-out"


def is_declared(ledger: Ledger) -> bool:
    """Whether a model of the ledger was trained where atdp did not see it, so that nothing is more than declared."""
    return any(isinstance(event, DeclaredTraining) for event in ledger.events)


def is_chosen_on_raw(ledger: Ledger) -> bool:
    """Whether settings of a stage were chosen by true values of the records."""
    return any(isinstance(event, PlainTraining) and event.chosen_on == "raw" for event in ledger.events)


def is_of_text(ledger: Ledger) -> bool:
    """Whether the ledger is of decoyed text alone, on which atdp knows of no model."""
    kinds = {type(event) for event in ledger.events}
    return DecoyedText in kinds and kinds <= {DecoyedText, GaussianRelease}


def scope_epsilon(ledger: Ledger, scope: Scope, records: int = 1) -> float | None:
    """ε of a scope that the ledger supports with a finite ε, by PLD, for `records` records that change together.

    None where nothing was spent under noise.

    Raises:
        BudgetError: It is in the thousands.
    """
    private, adjacency = private_events(ledger.events), scope_adjacency(scope)
    if scope == "uncounted":
        return 0.0
    if not private:
        return 0.0 if scope in ("selective", "declared") else None
    if records == 1:
        return epsilon_pld(private, ledger.delta, grid=ledger.grid, adjacency=adjacency)
    return epsilon_group(private, ledger.delta, records=records, grid=ledger.grid, adjacency=adjacency)


def group_epsilon(ledger: Ledger, scope: Scope, records: int) -> float | None:
    """`scope_epsilon`, but infinite where it is in the thousands, as is usual for many records."""
    try:
        return scope_epsilon(ledger, scope, records)
    except BudgetError:
        return math.inf


PERSON_RECORDS = (1, 2, 3, 5, 10, 30)
"""How many records of one person ε is given for."""


def no_end_to_end(ledger: Ledger) -> str | None:
    """Why no finite ε holds end to end, as a clause; None where one does."""
    if plain := [event for event in ledger.events if isinstance(event, PlainTraining)]:
        names = list(dict.fromkeys(event.stage for event in plain))
        stages = "stages" if len(names) > 1 else "stage"
        return f"the model was trained on the corpus without protection ({stages} {', '.join(names)})"
    return UNFLAGGED_TEXT if _plain(ledger) else _unknown(ledger) or flags_moved(ledger)


def selective_void(ledger: Ledger) -> str | None:
    """Why no selective guarantee holds, as a clause; None where one does."""
    neighbours = selective_neighbours(ledger)
    return neighbours if isinstance(neighbours, str) else None


def selective_neighbours(ledger: Ledger) -> Neighbours | str:
    """The corpora between which all training without noise is stable; or why there are none, as a clause.

    Events with noise bound any change of a record, so they put no condition on it; but where others have a say in the
    flags that they read, one record can change more than itself.
    """
    plain = _plain(ledger)
    if not plain:
        return "no stage was trained on redacted text or decoys"
    if reason := _unprotected(ledger) or _unknown(ledger) or flags_moved(ledger):
        return reason
    if reason := detectors_disagree(_relations(ledger)):
        return reason
    return intersect([(event.stage, event.relation) for event in plain])


def others_flag(ledger: Ledger) -> str | None:
    """What else than a record has a say in its flags, where events with noise read them; None where nothing has."""
    flags = (event.relation.flags for event in private_events(ledger.events))
    return next((each.others for each in flags if each is not None and not each.by_record), None)


def public_lists(ledger: Ledger) -> tuple[str, ...]:
    """Why lists of terms that flagged records are public, as users declare, each reason once."""
    flags = (relation.flags for _, relation in _relations(ledger))
    return tuple(dict.fromkeys(each.public_lists for each in flags if each is not None and each.public_lists))


def flags_moved(ledger: Ledger) -> str | None:
    """By what one record can change what noise does not cover, as a clause; None by nothing."""
    others = others_flag(ledger)
    return others and f"what is flagged depends on {others}, by which one {ledger.unit} can change it in others"


def _unprotected(ledger: Ledger) -> str | None:
    """The stage that read flagged characters without noise, as a clause; None if none did."""
    if any(event.text == "raw" for event in _plain(ledger)):
        return "a stage without protection read the raw text"
    return "a stage's learning rate was chosen by values of the records" if is_chosen_on_raw(ledger) else None


def uncounted_neighbours(ledger: Ledger) -> Neighbours | str:
    """The corpora between which every event is stable, also without its noise; or why there are none, as a clause."""
    neighbours = selective_neighbours(ledger)
    if isinstance(neighbours, str):
        return neighbours
    everything = intersect(_relations(ledger))
    if isinstance(everything, str):
        return everything
    return everything if "votes" in everything.shapes else "nothing is counted"


def _relations(ledger: Ledger) -> list[tuple[str, Relation]]:
    """The stage and the relation of each event that read records."""
    return [
        (event.stage, event.relation)
        for event in ledger.events
        if isinstance(event, PlainTraining | DecoyedText | SubsampledGaussian | GaussianRelease)
    ]


def _unknown(ledger: Ledger) -> str | None:
    """Which model's past is unknown, as a clause; None where all are known."""
    if ledger.checkpoint_history == "unknown":
        return UNKNOWN_PAST
    return UNKNOWN_REFERENCE if "unknown" in reference_pasts(ledger) else None


def _plain(ledger: Ledger) -> list[PlainTraining | DecoyedText]:
    """The events that read the records without noise."""
    return [event for event in ledger.events if isinstance(event, PlainTraining | DecoyedText)]


def reference_pasts(ledger: Ledger) -> set[str]:
    return {event.past for event in ledger.events if isinstance(event, ReadModel)}
