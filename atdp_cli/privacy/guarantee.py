"""What a ledger lets one say. ε is never one number: each guarantee has a scope, an adjacency and assumptions."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Literal

from atdp_cli.privacy.accountant import accountant_name, epsilon_pld
from atdp_cli.privacy.adjacency import Adjacency
from atdp_cli.privacy.ledger import Ledger, Masks, PlainTraining, ReadModel, private_events

Scope = Literal["end_to_end", "selective", "increment"]

UNKNOWN_PAST = "the starting model's past is unknown"
UNKNOWN_REFERENCE = "the past of the reference model is unknown"
PUBLIC_START = "The first checkpoint never saw the corpus, as --prior public states."
PUBLIC_REFERENCE = "The reference model never saw the corpus, as --reference states."
POISSON = "Each step draws its records by Poisson sampling, and the sample stays secret."
ONE_MODEL = "It covers the release of this one model; other models from the same records compose with it."
INSECURE = "The run used --insecure-seed: its noise can be subtracted, so none of this protects anyone."
SAME_SHAPE = (
    "As a stage read decoys, the flagged spans of the two have the same shapes: digits where digits are; in names, "
    "places, dates and amounts, words of the same case where words are, abbreviations of the same length; elsewhere "
    "letters of the same case where letters are; all other characters the same, but for domains of e-mail addresses."
)
INCREMENT_ONLY = (
    "It bounds only what the DP stages add; it says nothing about what the starting checkpoint already memorised, "
    "and is not a guarantee for any record."
)


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """(ε, δ) within a scope.

    Attributes:
        scope: `end_to_end` (the records, whatever a stage read), `selective` (flagged characters only), or
            `increment` (only what the DP stages add).
        epsilon: At least 0, `inf`, or None where no DP stage ran.
        adjacency: `zero-out` or `replace-one`.
        accountant: The method and its grid.
        assumptions: Sentences without which ε does not hold.
    """

    scope: Scope
    epsilon: float | None
    delta: float
    adjacency: Adjacency
    accountant: str
    assumptions: tuple[str, ...]


def guarantees(ledger: Ledger, *, models: int = 1) -> tuple[Guarantee, ...]:
    """Every guarantee that the ledger supports, the strongest scope first.

    Args:
        models: How many models' ledgers were put together in it.
    """
    private = private_events(ledger.events)
    bound = epsilon_pld(private, ledger.delta, grid=ledger.grid) if private else None
    found = [_end_to_end(ledger, bound)]
    if selective_void(ledger) is None:
        found.append(_selective(ledger))
    found.append(_increment(ledger, bound))
    if models > 1:
        found = [replace(one, assumptions=tuple(_of_many(text, models) for text in one.assumptions)) for one in found]
    if ledger.insecure_seed:
        found = [replace(one, assumptions=(INSECURE, *one.assumptions)) for one in found]
    return tuple(found)


def no_end_to_end(ledger: Ledger) -> str | None:
    """Why no finite ε holds end to end, as a clause; None where one does."""
    plain = [event for event in ledger.events if isinstance(event, PlainTraining)]
    if plain:
        names = list(dict.fromkeys(event.stage for event in plain))
        stages = "stages" if len(names) > 1 else "stage"
        return f"the model was trained on the corpus without protection ({stages} {', '.join(names)})"
    return _unknown(ledger)


def selective_void(ledger: Ledger) -> str | None:
    """Why no selective guarantee holds, as a clause; None where one does."""
    plain = [event for event in ledger.events if isinstance(event, PlainTraining)]
    if not plain:
        return "no stage was trained on redacted text or decoys"
    if any(event.text == "raw" for event in plain):
        return "a stage without protection read the raw text"
    return _unknown(ledger) or _telling({event.masks for event in plain})


def _unknown(ledger: Ledger) -> str | None:
    """Of which model the past is unknown, as a clause; None where all are known."""
    if ledger.prior == "unknown":
        return UNKNOWN_PAST
    return UNKNOWN_REFERENCE if any(one.past == "unknown" for one in _references(ledger)) else None


def _references(ledger: Ledger) -> list[ReadModel]:
    return [event for event in ledger.events if isinstance(event, ReadModel)]


def _telling(masks: Collection[Masks | None]) -> str | None:
    """How redacted text can tell of what it hides, as a clause; None where it can't."""
    if not {"stable", "linked"}.issuperset(masks):
        return "masks of a contextual tier, of lists taken from the data or of a cross-check can move with the secret"
    if "linked" in masks:
        return "numbered placeholders and pseudonyms tell which flagged texts are equal"
    return None


def _starts(ledger: Ledger) -> tuple[str, ...]:
    """The assumptions about the models that a run starts from or reads."""
    declared = any(one.past == "declared" for one in _references(ledger))
    return (PUBLIC_START, PUBLIC_REFERENCE) if declared else (PUBLIC_START,)


def guarantee_sentences(ledger: Ledger, found: Sequence[Guarantee]) -> tuple[str, ...]:
    """The guarantees in words, for a first-time reader."""
    by_scope = {guarantee.scope: guarantee for guarantee in found}
    lines = [_end_to_end_sentence(ledger, by_scope["end_to_end"])]
    if selective := by_scope.get("selective"):
        lines.append(f"For the flagged characters alone, {_pair(selective)} (replace-one).")
    elif any(isinstance(event, PlainTraining) and event.text != "raw" for event in ledger.events):
        lines.append(f"For the flagged characters alone: no guarantee, because {selective_void(ledger)}.")
    increment = by_scope["increment"]
    if math.isinf(by_scope["end_to_end"].epsilon or 0):
        if increment.epsilon is None:
            lines.append("No stage read the corpus under noise.")
        else:
            lines.append(f"Stages and releases with noise add at most {_pair(increment)}. {INCREMENT_ONLY}")
    if ledger.insecure_seed:
        lines.append(INSECURE)
    return tuple(lines)


def advice(ledger: Ledger) -> str | None:
    """What a user could say to get a finite ε; for the terminal, not for what is published."""
    if no_end_to_end(ledger) == UNKNOWN_PAST:
        return "If the model never saw private data: --prior public."
    return None


def rounded_up(epsilon: float) -> str:
    """ε to three significant digits; it bounds from above, so it is never rounded down.

    >>> rounded_up(5.6211), rounded_up(0.00123), rounded_up(12.0), rounded_up(math.inf)
    ('5.63', '0.00123', '12.0', '∞')
    """
    if math.isinf(epsilon):
        return "∞"
    # repr is the shortest decimal that reads back as this float, so 0.00123 stays what it looks like.
    exact = Decimal(repr(epsilon))
    step = Decimal(1).scaleb(exact.adjusted() - 2) if exact else Decimal("0.01")
    return f"{exact.quantize(step, rounding=ROUND_CEILING):f}"


def _of_many(assumption: str, models: int) -> str:
    if assumption != ONE_MODEL:
        return assumption
    return f"It covers the release of these {models} models; further models from the same records compose with it."


def _end_to_end_sentence(ledger: Ledger, guarantee: Guarantee) -> str:
    if reason := no_end_to_end(ledger):
        return f"End to end: no finite ε, because {reason}."
    if guarantee.epsilon is None:
        return "End to end: nothing was spent, since no stage read the corpus."
    return f"End to end, for each {ledger.unit}: {_pair(guarantee)}."


def _pair(guarantee: Guarantee) -> str:
    return f"ε = {rounded_up(guarantee.epsilon or 0.0)} at δ = {guarantee.delta:g}"


def _end_to_end(ledger: Ledger, bound: float | None) -> Guarantee:
    reason = no_end_to_end(ledger)
    spent = bound is not None or bool(_references(ledger))
    return Guarantee(
        scope="end_to_end",
        epsilon=math.inf if reason else bound,
        delta=ledger.delta,
        adjacency="zero-out",
        accountant=accountant_name(ledger.grid),
        assumptions=(f"No finite ε: {reason}.",)
        if reason
        else (*(_starts(ledger) if spent else ()), POISSON, ONE_MODEL),
    )


def _selective(ledger: Ledger) -> Guarantee:
    private = private_events(ledger.events)
    # Redacted text is the same for both neighbours, and decoys have the same distribution, so only the private stages
    # can tell them apart.
    epsilon = epsilon_pld(private, ledger.delta, grid=ledger.grid, adjacency="replace-one") if private else 0.0
    decoys = any(isinstance(event, PlainTraining) and event.text == "decoy" for event in ledger.events)
    return Guarantee(
        scope="selective",
        epsilon=epsilon,
        delta=ledger.delta,
        adjacency="replace-one",
        accountant=accountant_name(ledger.grid),
        assumptions=(
            "Neighbouring corpora differ in one record, only in characters that the detector flagged, and redact to "
            "the same bytes; what the detector missed is not covered.",
            *((SAME_SHAPE,) if decoys else ()),
            *_starts(ledger),
            POISSON,
            ONE_MODEL,
        ),
    )


def _increment(ledger: Ledger, bound: float | None) -> Guarantee:
    return Guarantee(
        scope="increment",
        epsilon=bound,
        delta=ledger.delta,
        adjacency="zero-out",
        accountant=accountant_name(ledger.grid),
        assumptions=(INCREMENT_ONLY, POISSON),
    )
