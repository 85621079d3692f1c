"""The guarantees that a ledger supports. Each ε has a scope, an adjacency and assumptions, and is never one number."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
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
MANY_MODELS = "It covers the release of these {models} models; further models from the same records compose with it."
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
    """An (ε, δ) guarantee for a scope.

    Attributes:
        scope: `end_to_end` (the records, whatever a stage read), `selective` (flagged characters only), or
            `increment` (only what the DP stages add).
        epsilon: At least 0, `inf`, or None where no DP stage ran.
        adjacency: `zero-out` or `replace-one`.
        accountant: The method and its grid.
        assumptions: Sentences; ε holds only if all of them do.
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
        models: The number of models whose ledgers were composed into this one.
    """
    private = private_events(ledger.events)
    bound = epsilon_pld(private, ledger.delta, grid=ledger.grid) if private else None
    release = ONE_MODEL if models == 1 else MANY_MODELS.format(models=models)
    supported = [_end_to_end(ledger, bound, release)]
    if selective_void(ledger) is None:
        supported.append(_selective(ledger, release))
    supported.append(_guarantee(ledger, "increment", bound, INCREMENT_ONLY, POISSON))
    return tuple(supported)


def _guarantee(
    ledger: Ledger, scope: Scope, epsilon: float | None, *assumptions: str, adjacency: Adjacency = "zero-out"
) -> Guarantee:
    return Guarantee(
        scope=scope,
        epsilon=epsilon,
        delta=ledger.delta,
        adjacency=adjacency,
        accountant=accountant_name(ledger.grid),
        assumptions=(INSECURE, *assumptions) if ledger.insecure_seed else assumptions,
    )


def no_end_to_end(ledger: Ledger) -> str | None:
    """Why no finite ε holds end to end, as a clause; None where one does."""
    if plain := _plain(ledger):
        names = list(dict.fromkeys(event.stage for event in plain))
        stages = "stages" if len(names) > 1 else "stage"
        return f"the model was trained on the corpus without protection ({stages} {', '.join(names)})"
    return _unknown(ledger)


def selective_void(ledger: Ledger) -> str | None:
    """Why no selective guarantee holds, as a clause; None where one does."""
    plain = _plain(ledger)
    if not plain:
        return "no stage was trained on redacted text or decoys"
    if any(event.text == "raw" for event in plain):
        return "a stage without protection read the raw text"
    return _unknown(ledger) or _leaking({event.masks for event in plain})


def _unknown(ledger: Ledger) -> str | None:
    """Which model's past is unknown, as a clause; None where all are known."""
    if ledger.prior == "unknown":
        return UNKNOWN_PAST
    return UNKNOWN_REFERENCE if "unknown" in _reference_pasts(ledger) else None


def _plain(ledger: Ledger) -> list[PlainTraining]:
    return [event for event in ledger.events if isinstance(event, PlainTraining)]


def _reference_pasts(ledger: Ledger) -> set[str]:
    return {event.past for event in ledger.events if isinstance(event, ReadModel)}


def _leaking(masks: Collection[Masks | None]) -> str | None:
    """How redacted text can depend on what it hides, as a clause; None where it can't."""
    if not {"stable", "linked"}.issuperset(masks):
        return "masks of a contextual tier, of lists taken from the data or of a cross-check can move with the secret"
    if "linked" in masks:
        return "numbered placeholders and pseudonyms tell which flagged texts are equal"
    return None


def _starts(ledger: Ledger) -> tuple[str, ...]:
    """The assumptions about the models that a run starts from or reads."""
    return (PUBLIC_START, PUBLIC_REFERENCE) if "declared" in _reference_pasts(ledger) else (PUBLIC_START,)


def guarantee_sentences(ledger: Ledger, supported: Sequence[Guarantee]) -> tuple[str, ...]:
    """The guarantees in words, for a first-time reader."""
    by_scope = {guarantee.scope: guarantee for guarantee in supported}
    lines = [_end_to_end_sentence(ledger, by_scope["end_to_end"])]
    if selective := by_scope.get("selective"):
        lines.append(f"For the flagged characters alone, {_pair(selective)} (replace-one).")
    elif any(event.text != "raw" for event in _plain(ledger)):
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
    """How a user could get a finite ε; for the terminal, not for published files."""
    if no_end_to_end(ledger) == UNKNOWN_PAST:
        return "If the model never saw private data: --prior public."
    return None


def rounded_up(epsilon: float) -> str:
    """ε to three significant digits; it is an upper bound, so it is never rounded down.

    >>> rounded_up(5.6211), rounded_up(0.00123), rounded_up(12.0), rounded_up(math.inf)
    ('5.63', '0.00123', '12.0', '∞')
    """
    if math.isinf(epsilon):
        return "∞"
    # repr is the shortest decimal that reads back as this float, so 0.00123 stays 0.00123.
    exact = Decimal(repr(epsilon))
    step = Decimal(1).scaleb(exact.adjusted() - 2) if exact else Decimal("0.01")
    return f"{exact.quantize(step, rounding=ROUND_CEILING):f}"


def _end_to_end_sentence(ledger: Ledger, guarantee: Guarantee) -> str:
    if reason := no_end_to_end(ledger):
        return f"End to end: no finite ε, because {reason}."
    if guarantee.epsilon is None:
        return "End to end: nothing was spent, since no stage read the corpus."
    return f"End to end, for each {ledger.unit}: {_pair(guarantee)}."


def _pair(guarantee: Guarantee) -> str:
    return f"ε = {rounded_up(guarantee.epsilon or 0.0)} at δ = {guarantee.delta:g}"


def _end_to_end(ledger: Ledger, bound: float | None, release: str) -> Guarantee:
    if reason := no_end_to_end(ledger):
        return _guarantee(ledger, "end_to_end", math.inf, f"No finite ε: {reason}.")
    spent = bound is not None or bool(_reference_pasts(ledger))
    return _guarantee(ledger, "end_to_end", bound, *(_starts(ledger) if spent else ()), POISSON, release)


def _selective(ledger: Ledger, release: str) -> Guarantee:
    private = private_events(ledger.events)
    # Redacted text is the same for both neighbours, and decoys have the same distribution, so only the private stages
    # can tell them apart.
    epsilon = epsilon_pld(private, ledger.delta, grid=ledger.grid, adjacency="replace-one") if private else 0.0
    decoys = any(event.text == "decoy" for event in _plain(ledger))
    return _guarantee(
        ledger,
        "selective",
        epsilon,
        "Neighbouring corpora differ in one record, only in characters that the detector flagged, and redact to "
        "the same bytes; what the detector missed is not covered.",
        *((SAME_SHAPE,) if decoys else ()),
        *_starts(ledger),
        POISSON,
        release,
        adjacency="replace-one",
    )
