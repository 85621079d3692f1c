"""The guarantees that a ledger supports. Each ε has a scope, an adjacency and assumptions, and is never one number."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from atdp_cli.errors import BudgetError
from atdp_cli.privacy.accountant import accountant_name, epsilon_group, epsilon_pld
from atdp_cli.privacy.adjacency import Adjacency
from atdp_cli.privacy.claims import (
    CHOSEN_ON_RAW,
    COPIES,
    DECLARED,
    DECLARED_TRAINING,
    INCREMENT_ONLY,
    INSECURE,
    POISSON,
    PUBLIC_REFERENCE,
    PUBLIC_START,
    UNFLAGGED_TEXT,
    UNKNOWN_PAST,
    UNKNOWN_REFERENCE,
    neighbour_sentences,
    released_models,
    say_sentence,
)
from atdp_cli.privacy.ledger import (
    DeclaredTraining,
    DecoyedText,
    GaussianRelease,
    Ledger,
    PlainTraining,
    PrivateEvent,
    ReadModel,
    SubsampledGaussian,
    private_events,
)
from atdp_cli.privacy.relation import Neighbours, Relation, detectors_disagree, intersect

Scope = Literal["end_to_end", "selective", "declared", "uncounted", "increment"]

EXACT = "exact: the distribution of the model is the same"


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


def guarantees(ledger: Ledger, *, models: int = 1) -> tuple[Guarantee, ...]:
    """Every guarantee that the ledger supports, the strongest scope first.

    Args:
        models: The number of models whose ledgers were composed into this one.
    """
    release = COPIES if is_of_text(ledger) else released_models(models)
    supported = [_end_to_end(ledger, release)]
    if isinstance(neighbours := selective_neighbours(ledger), Neighbours):
        supported.append(_selective(ledger, neighbours, release))
    if isinstance(neighbours := _uncounted_neighbours(ledger), Neighbours) and not is_declared(ledger):
        supported.append(_exact(ledger, "uncounted", neighbours, release))
    increment = scope_epsilon(ledger, "increment")
    chosen = (CHOSEN_ON_RAW,) if is_chosen_on_raw(ledger) else ()
    supported.append(_guarantee(ledger, "increment", increment, None, INCREMENT_ONLY, *chosen, *_sampling(ledger)))
    return tuple(supported)


def scope_adjacency(scope: Scope) -> Adjacency:
    """The adjacency of a scope: replace-one between corpora that differ in flagged characters, else zero-out."""
    return "replace-one" if scope in ("selective", "declared", "uncounted") else "zero-out"


def is_declared(ledger: Ledger) -> bool:
    """Whether a model of the ledger was trained where atdp did not see it, so that nothing is more than declared."""
    return any(isinstance(event, DeclaredTraining) for event in ledger.events)


def is_chosen_on_raw(ledger: Ledger) -> bool:
    """Whether settings of a stage were chosen by true values of the records."""
    return any(isinstance(event, PlainTraining) and event.chosen_on == "raw" for event in ledger.events)


def check_seen(ledger: Ledger) -> None:
    """Refuse to hold a limit of ε against what somebody declared.

    Raises:
        BudgetError: The training of a model was declared.
    """
    if is_declared(ledger):
        raise BudgetError(
            f"A model's training was {DECLARED}, so no --max-epsilon holds.",
            "Add --accept-declared if whoever declared it is to be believed.",
        )


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


def _guarantee(
    ledger: Ledger,
    scope: Scope,
    epsilon: float | None,
    neighbours: Neighbours | None,
    *assumptions: str,
) -> Guarantee:
    return Guarantee(
        scope=scope,
        epsilon=epsilon,
        delta=ledger.delta,
        adjacency=scope_adjacency(scope),
        neighbours=neighbours,
        accountant=accountant_name(ledger.grid) if epsilon is not None and math.isfinite(epsilon) else None,
        assumptions=(INSECURE, *assumptions) if ledger.insecure_seed else assumptions,
    )


def no_end_to_end(ledger: Ledger) -> str | None:
    """Why no finite ε holds end to end, as a clause; None where one does."""
    if plain := [event for event in ledger.events if isinstance(event, PlainTraining)]:
        names = list(dict.fromkeys(event.stage for event in plain))
        stages = "stages" if len(names) > 1 else "stage"
        return f"the model was trained on the corpus without protection ({stages} {', '.join(names)})"
    return UNFLAGGED_TEXT if _plain(ledger) else _unknown(ledger)


def selective_void(ledger: Ledger) -> str | None:
    """Why no selective guarantee holds, as a clause; None where one does."""
    neighbours = selective_neighbours(ledger)
    return neighbours if isinstance(neighbours, str) else None


def selective_neighbours(ledger: Ledger) -> Neighbours | str:
    """The corpora between which all training without noise is stable; or why there are none, as a clause.

    Events with noise bound any change of a record, so they put no condition on it.
    """
    plain = _plain(ledger)
    if not plain:
        return "no stage was trained on redacted text or decoys"
    if reason := _unprotected(ledger) or _unknown(ledger):
        return reason
    if reason := detectors_disagree(_relations(ledger)):
        return reason
    return intersect([(event.stage, event.relation) for event in plain])


def _unprotected(ledger: Ledger) -> str | None:
    """What looked at flagged characters and has no noise, as a clause; None where nothing did."""
    if any(event.text == "raw" for event in _plain(ledger)):
        return "a stage without protection read the raw text"
    return "a stage's learning rate was chosen by values of the records" if is_chosen_on_raw(ledger) else None


def _uncounted_neighbours(ledger: Ledger) -> Neighbours | str:
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
    if ledger.prior == "unknown":
        return UNKNOWN_PAST
    return UNKNOWN_REFERENCE if "unknown" in _reference_pasts(ledger) else None


def _plain(ledger: Ledger) -> list[PlainTraining | DecoyedText]:
    """What read the records without noise."""
    return [event for event in ledger.events if isinstance(event, PlainTraining | DecoyedText)]


def _reference_pasts(ledger: Ledger) -> set[str]:
    return {event.past for event in ledger.events if isinstance(event, ReadModel)}


def _starts(ledger: Ledger) -> tuple[str, ...]:
    """The assumptions about the models that a run starts from or reads, and about training that nobody saw."""
    if is_of_text(ledger):
        return ()
    declared = (DECLARED_TRAINING,) if is_declared(ledger) else ()
    references = (PUBLIC_REFERENCE,) if "declared" in _reference_pasts(ledger) else ()
    return (*declared, PUBLIC_START, *references)


def _sampling(ledger: Ledger) -> tuple[str, ...]:
    """How records are drawn, where steps draw any."""
    return (POISSON,) if any(isinstance(event, SubsampledGaussian) for event in ledger.events) else ()


def flag_assumptions(ledger: Ledger) -> tuple[str, ...]:
    """What ε takes for granted about the flags that events with noise read, a sentence each."""
    private: Sequence[PrivateEvent] = private_events(ledger.events)
    flags = [event.relation.flags for event in private if event.relation.flags]
    return tuple(dict.fromkeys(say_sentence(each, ledger.unit) for each in flags if not each.by_record))


def _conditions(ledger: Ledger) -> tuple[str, ...]:
    """The assumptions about the flags and the draws of events with noise."""
    return (*flag_assumptions(ledger), *_sampling(ledger))


def _end_to_end(ledger: Ledger, release: str) -> Guarantee:
    if reason := no_end_to_end(ledger):
        return _guarantee(ledger, "end_to_end", math.inf, None, f"No finite ε: {reason}.")
    bound = scope_epsilon(ledger, "end_to_end")
    starts = _starts(ledger) if bound is not None or _reference_pasts(ledger) else ()
    return _guarantee(ledger, "end_to_end", bound, None, *starts, *_conditions(ledger), release)


def _selective(ledger: Ledger, neighbours: Neighbours, release: str) -> Guarantee:
    # Redacted text is the same for both neighbours, and decoys have the same distribution, so only the private stages
    # can tell them apart.
    scope: Scope = "declared" if is_declared(ledger) else "selective"
    if not private_events(ledger.events):
        return _exact(ledger, scope, neighbours, release)
    stated = (
        *neighbour_sentences(neighbours),
        *_starts(ledger),
        *_conditions(ledger),
        release,
    )
    return _guarantee(ledger, scope, scope_epsilon(ledger, scope), neighbours, *stated)


def _exact(ledger: Ledger, scope: Scope, neighbours: Neighbours, release: str) -> Guarantee:
    """ε = 0 and δ = 0: what the stages read, or the distribution that it is drawn from, is the same."""
    stated = (*neighbour_sentences(neighbours, exact=True), *_starts(ledger), release)
    return Guarantee(
        scope=scope,
        epsilon=0.0,
        delta=0.0,
        adjacency=scope_adjacency(scope),
        neighbours=neighbours,
        accountant=EXACT,
        assumptions=(INSECURE, *stated) if ledger.insecure_seed else stated,
    )
