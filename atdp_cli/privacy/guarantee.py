"""The guarantees that a ledger supports. Each ε has a scope, an adjacency and assumptions, and is never one number."""

import math

from atdp_cli.errors import BudgetError
from atdp_cli.privacy.accountant import accountant_name
from atdp_cli.privacy.ledger import Ledger, private_events
from atdp_cli.privacy.relation import Neighbours
from atdp_cli.privacy.scope import (
    Guarantee,
    Scope,
    is_declared,
    no_end_to_end,
    others_flag,
    scope_adjacency,
    scope_epsilon,
    selective_neighbours,
    uncounted_neighbours,
)
from atdp_cli.privacy.wording import DECLARED, assumptions

EXACT = "exact: the distribution of the model is the same"


def guarantees(ledger: Ledger, *, models: int = 1) -> tuple[Guarantee, ...]:
    """Every guarantee that the ledger supports, the strongest scope first.

    Args:
        models: The number of models whose ledgers were composed into this one.
    """
    scopes: list[tuple[Scope, Neighbours | None]] = [("end_to_end", None)]
    if isinstance(neighbours := selective_neighbours(ledger), Neighbours):
        scopes.append(("declared" if is_declared(ledger) else "selective", neighbours))
    if isinstance(neighbours := uncounted_neighbours(ledger), Neighbours) and not is_declared(ledger):
        scopes.append(("uncounted", neighbours))
    scopes.append(("increment", None))
    return tuple(_guarantee(ledger, scope, neighbours, models) for scope, neighbours in scopes)


def _guarantee(ledger: Ledger, scope: Scope, neighbours: Neighbours | None, models: int) -> Guarantee:
    infinite = scope == "end_to_end" and no_end_to_end(ledger) is not None
    # Redacted text is the same for both neighbours, and decoys have the same distribution, so only the private stages
    # can tell them apart; what no release counts is the same for those too.
    exact = neighbours is not None and (scope == "uncounted" or not private_events(ledger.events))
    epsilon = math.inf if infinite else scope_epsilon(ledger, scope)
    computed = epsilon is not None and not infinite
    return Guarantee(
        scope=scope,
        epsilon=epsilon,
        delta=0.0 if exact else ledger.delta,
        adjacency=scope_adjacency(scope),
        neighbours=neighbours,
        accountant=EXACT if exact else accountant_name(ledger.grid) if computed else None,
        assumptions=assumptions(ledger, scope, neighbours, exact=exact, models=models),
    )


def check_seen(ledger: Ledger) -> None:
    """Refuse to hold a limit of ε against what somebody declared.

    Raises:
        BudgetError: The training of a model was declared.
    """
    if is_declared(ledger):
        raise BudgetError(
            f"A model's training was {DECLARED}, so no --max-epsilon holds.",
            "Add --set run.accept-declared=true if whoever declared it is to be believed.",
        )


def check_own_flags(ledger: Ledger, option: str) -> None:
    """Refuse to hold ε at what an option says where others than a record have a say in its flags.

    Raises:
        BudgetError: They have, and noise does not cover what one record changes by them.
    """
    if others := others_flag(ledger):
        raise BudgetError(
            f"What is flagged depends on {others}, so no {option} holds.",
            f"Leave {others} out, or harden with --recipe dp-sgd, which reads no flags.",
        )
