"""Composition of ledgers: what their models spent together, with shared ancestors counted once."""

from collections.abc import Sequence

from atdp_cli.errors import InputError, UsageError
from atdp_cli.privacy.accountant import grid_for
from atdp_cli.privacy.ledger import Ledger, LedgerEvent, private_events


def compose_ledgers(ledgers: Sequence[Ledger]) -> Ledger:
    """The ledger of releasing, or reading, all the models of `ledgers`.

    Each event names the run that spent it, as `write_ledger` has it: those of a run that several ledgers list count
    once. Events without a run always count. δ is the smallest of all, and the past is public only where it is so for
    every ledger.

    Args:
        ledgers: At least one.

    Raises:
        UsageError: The ledgers protect different units, or have different adjacencies.
        InputError: Two ledgers list different events for the same run.
    """
    first = ledgers[0]
    if len(ledgers) == 1:
        return first
    for other in ledgers[1:]:
        _check_alike(first, other)
    events = _events(ledgers)
    return Ledger(
        unit=first.unit,
        adjacency=first.adjacency,
        checkpoint_history="public" if all(ledger.checkpoint_history == "public" for ledger in ledgers) else "unknown",
        records=max(ledger.records for ledger in ledgers),
        delta=min(ledger.delta for ledger in ledgers),
        grid=grid_for(private_events(events)),
        events=events,
        insecure_seed=any(ledger.insecure_seed for ledger in ledgers),
    )


def _check_alike(first: Ledger, other: Ledger) -> None:
    for field in ("unit", "adjacency"):
        if getattr(first, field) != getattr(other, field):
            raise UsageError(
                f"The ledgers have different privacy guarantees: {field} {getattr(first, field)} and {field} "
                f"{getattr(other, field)}.",
                "Only ledgers that protect the same thing compose; account for them one by one.",
            )


def _events(ledgers: Sequence[Ledger]) -> tuple[LedgerEvent, ...]:
    """All events, in the order of the ledgers, those of a run once."""
    events: list[LedgerEvent] = []
    spent_by: dict[str, tuple[LedgerEvent, ...]] = {}
    for ledger in ledgers:
        by_run: dict[str | None, list[LedgerEvent]] = {}
        for event in ledger.events:
            by_run.setdefault(event.run, []).append(event)
        for run, spent in by_run.items():
            if run is None or run not in spent_by:
                events += spent
            elif spent_by[run] != tuple(spent):
                raise InputError(
                    f"Two ledgers list different events for the same run, {run}.",
                    "Give the ledgers as the tool wrote them.",
                )
            if run is not None:
                spent_by[run] = tuple(spent)
    return tuple(events)
