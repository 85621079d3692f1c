"""Several ledgers as one: what the models that they belong to spent together, shared ancestors counted once."""

from collections.abc import Sequence

from atdp_cli.errors import InputError, UsageError
from atdp_cli.privacy.accountant import grid_for
from atdp_cli.privacy.ledger import Ledger, LedgerEvent, private_events


def compose_ledgers(ledgers: Sequence[Ledger]) -> Ledger:
    """The ledger of releasing, or reading, all the models of `ledgers`.

    Events are told apart by the run that spent them, which `read_ledger` writes into each: those of a run that
    several ledgers list count once. Events without a run always count. δ is the smallest of all, and the past is
    public only where it is for every ledger.

    Args:
        ledgers: At least one.

    Raises:
        UsageError: The ledgers protect different units, or have different adjacencies.
        InputError: Two ledgers say different things of the same run.
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
        prior="public" if all(one.prior == "public" for one in ledgers) else "unknown",
        records=max(one.records for one in ledgers),
        delta=min(one.delta for one in ledgers),
        grid=grid_for(private_events(events)),
        events=events,
        insecure_seed=any(one.insecure_seed for one in ledgers),
    )


def _check_alike(first: Ledger, other: Ledger) -> None:
    for what, one, two in (("unit", first.unit, other.unit), ("adjacency", first.adjacency, other.adjacency)):
        if one != two:
            raise UsageError(
                f"The ledgers have different privacy guarantees: {what} {one} and {what} {two}.",
                "Only ledgers that protect the same thing compose; account for them one by one.",
            )


def _events(ledgers: Sequence[Ledger]) -> tuple[LedgerEvent, ...]:
    """All events, in the order of the ledgers, those of a run once."""
    events: list[LedgerEvent] = []
    told: dict[str, tuple[LedgerEvent, ...]] = {}
    for ledger in ledgers:
        by_run: dict[str | None, list[LedgerEvent]] = {}
        for event in ledger.events:
            by_run.setdefault(event.run, []).append(event)
        for run, spent in by_run.items():
            if run is None or run not in told:
                events += spent
            elif told[run] != tuple(spent):
                raise InputError(
                    f"Two ledgers say different things of the same run, {run}.",
                    "Give the ledgers as the tool wrote them.",
                )
            if run is not None:
                told[run] = tuple(spent)
    return tuple(events)
