"""The ε that a model's ledger states for all records of a canary together, and which canaries can test it.

It is for replacing a canary's records by those of another secret (replace-one adjacency). The selective one is for
replacing them by neighbours, records that differ from them only in flagged characters and whose decoys have one law, so
canaries can test it whose candidates are all neighbours.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Literal

import numpy as np

from atdp_cli.audit.results import GroupEpsilon
from atdp_cli.errors import BudgetError, InputError
from atdp_cli.files.documents import copy_fields, file_sha256
from atdp_cli.privacy.accountant import epsilon_group
from atdp_cli.privacy.adjacency import Adjacency
from atdp_cli.privacy.ledger import Ledger, PrivateEvent, private_events, read_beside
from atdp_cli.privacy.scope import is_declared, no_end_to_end, selective_void
from atdp_cli.privacy.wording import DECLARED

DELTA = 1e-6
"""δ of the bounds on a model whose ledger states no ε."""

NO_LEDGER = "no ledger that fits the weights lies beside the model"
ONLY_DECLARED = f"the training was {DECLARED}"
BEYOND = "the claim for so many records is beyond all figures"


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorInvariance:
    """Whether all candidates of a template are alike in what the selective guarantee does not hide.

    Attributes:
        unlike: Why they are not, or cannot be known to be, as a clause; None where they are.
        voted: Whether any character in which they differ has votes in the release of frequencies.
    """

    unlike: str | None
    voted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedEpsilon:
    """An (ε, δ) that holds for all records of a canary together.

    Attributes:
        epsilon: None where the ledger states none.
        delta: Its δ; where there is none, that of the bounds.
        scope: The scope of the statement; None where there is none.
        missing: Why the ledger states none, as a clause; None where it states one.
    """

    epsilon: float | None
    delta: float
    scope: Literal["end_to_end", "selective"] | None = None
    missing: str | None = None


def ledger_of(folder: Path, loaded: Mapping[str, str]) -> Ledger | None:
    """The ledger beside the weights; None if it does not fit them.

    Args:
        loaded: SHA-256 of each file as it was loaded, by its name.
    """
    try:
        return read_beside(folder, lambda path: loaded.get(path.name) or file_sha256(path))
    except InputError:
        return None


def stated_epsilon(
    ledger: Ledger | None, *, repeats: int, invariance: Callable[[], DetectorInvariance]
) -> StatedEpsilon:
    """The ε that a ledger states: end to end where that is finite, else selectively where the canaries can test it.

    Args:
        repeats: Records of the most repeated canary.
        invariance: Looks at the candidates; called only where the selective ε depends on it.
    """
    if ledger is None:
        return StatedEpsilon(epsilon=None, delta=DELTA, missing=NO_LEDGER)
    if no_end_to_end(ledger) is None:
        return _stated(ledger, private_events(ledger.events), "end_to_end", "replace-one", repeats)
    if is_declared(ledger):
        return StatedEpsilon(epsilon=None, delta=ledger.delta, missing=ONLY_DECLARED)
    if selective_void(ledger):
        return StatedEpsilon(epsilon=None, delta=ledger.delta, missing=no_end_to_end(ledger))
    looked = invariance()
    if looked.unlike is not None:
        return StatedEpsilon(epsilon=None, delta=ledger.delta, missing=looked.unlike)
    return _selective(ledger, repeats, looked)


def group_epsilons(ledger: Ledger | None, repeats: Iterable[int]) -> tuple[GroupEpsilon, ...]:
    """The ε that a ledger states end to end for records that are left out together, the fewest first.

    Args:
        repeats: How many records canaries have.
    """
    return tuple(_group_epsilon(ledger, records) for records in sorted(set(repeats)))


def _group_epsilon(ledger: Ledger | None, records: int) -> GroupEpsilon:
    if ledger is None:
        return GroupEpsilon(records=records, epsilon=None, delta=DELTA, missing=NO_LEDGER)
    if reason := no_end_to_end(ledger):
        return GroupEpsilon(records=records, epsilon=None, delta=ledger.delta, missing=reason)
    stated = _stated(ledger, private_events(ledger.events), "end_to_end", "zero-out", records)
    return copy_fields(GroupEpsilon, stated, records=records)


def _selective(ledger: Ledger, repeats: int, invariance: DetectorInvariance) -> StatedEpsilon:
    """The selective ε for `repeats` records of a canary that are replaced together."""
    events = private_events(ledger.events)
    if not invariance.voted:
        events = tuple(event for event in events if event.relation.shape != "votes")
    return _stated(ledger, events, "selective", "replace-one", repeats)


def _stated(
    ledger: Ledger,
    events: Sequence[PrivateEvent],
    scope: Literal["end_to_end", "selective"],
    adjacency: Adjacency,
    repeats: int,
) -> StatedEpsilon:
    if not events:  # nothing that any of the records could move
        return StatedEpsilon(epsilon=0.0, delta=0.0, scope=scope)
    try:
        with np.errstate(over="ignore"):  # of a privacy loss beyond all bounds, which gives inf
            epsilon = epsilon_group(events, ledger.delta, records=repeats, grid=ledger.grid, adjacency=adjacency)
    except BudgetError:  # in the thousands
        epsilon = float("inf")
    if not isfinite(epsilon):
        return StatedEpsilon(epsilon=None, delta=ledger.delta, missing=BEYOND)
    return StatedEpsilon(epsilon=epsilon, delta=ledger.delta, scope=scope)
