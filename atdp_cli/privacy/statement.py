"""What a ledger guarantees, in sentences for a first-time reader."""

import math
from collections.abc import Sequence

from atdp_cli.privacy.claims import (
    CHOSEN_ON_RAW,
    COUNTED,
    DECLARED,
    INCREMENT_ONLY,
    INSECURE,
    UNKNOWN_PAST,
    epsilon_delta,
    other_values,
    tier_words,
)
from atdp_cli.privacy.guarantee import (
    Guarantee,
    flag_assumptions,
    is_chosen_on_raw,
    is_of_text,
    no_end_to_end,
    selective_void,
)
from atdp_cli.privacy.ledger import DecoyedText, Ledger, PlainTraining


def guarantee_sentences(ledger: Ledger, supported: Sequence[Guarantee]) -> tuple[str, ...]:
    """The guarantees in words, the strongest scope first."""
    by_scope = {guarantee.scope: guarantee for guarantee in supported}
    whole, increment = by_scope["end_to_end"], by_scope["increment"]
    lines = [_end_to_end_sentence(ledger, whole)]
    finite = math.isfinite(whole.epsilon or 0)
    if selective := by_scope.get("selective") or by_scope.get("declared"):
        finite = True
        lines.append(_selective_sentence(selective))
        if uncounted := by_scope.get("uncounted"):
            lines.append(uncounted_sentence(uncounted))
    elif any(isinstance(event, PlainTraining | DecoyedText) and event.text != "raw" for event in ledger.events):
        lines.append(f"For the flagged characters alone: no guarantee, because {selective_void(ledger)}.")
    if finite and whole.epsilon is not None:
        lines += flag_assumptions(ledger)
    if math.isinf(whole.epsilon or 0):
        lines += _increment_sentence(ledger, increment)
    if ledger.insecure_seed:
        lines.append(INSECURE)
    return tuple(lines)


def _increment_sentence(ledger: Ledger, increment: Guarantee) -> tuple[str, ...]:
    """What noise adds; of copies, which no checkpoint has a part in, only where there is a release."""
    copies = is_of_text(ledger)
    if increment.epsilon is None:
        return () if copies else ("No stage read the corpus under noise.",)
    added = epsilon_delta(increment.epsilon, increment.delta)
    if copies:
        return (f"The release adds at most {added}, which is no guarantee for any {ledger.unit}.",)
    left_out = f" {CHOSEN_ON_RAW}" if is_chosen_on_raw(ledger) else ""
    return (f"Stages and releases with noise add at most {added}. {INCREMENT_ONLY}{left_out}",)


def _end_to_end_sentence(ledger: Ledger, guarantee: Guarantee) -> str:
    if reason := no_end_to_end(ledger):
        return f"End to end: no finite ε, because {reason}."
    if guarantee.epsilon is None:
        return "End to end: nothing was spent, since no stage read the corpus."
    return f"End to end, for each {ledger.unit}: {epsilon_delta(guarantee.epsilon, guarantee.delta)}."


def _selective_sentence(guarantee: Guarantee) -> str:
    if guarantee.neighbours is None or guarantee.epsilon is None:
        raise ValueError("a selective guarantee has neighbours and an ε")
    unit = guarantee.neighbours.unit
    where = f"for any number of {unit}s" if guarantee.exact else f"for each {unit}"
    declared = f", {DECLARED}" if guarantee.scope == "declared" else ""
    return (
        f"For the flagged characters alone{declared}, {where}, {epsilon_delta(guarantee.epsilon, guarantee.delta)} "
        f"(replace-one), against {other_values(guarantee.neighbours)}{tier_words(guarantee.neighbours)}."
    )


def uncounted_sentence(guarantee: Guarantee) -> str:
    """What holds for flagged characters that no release counts."""
    if guarantee.neighbours is None:
        raise ValueError("an uncounted guarantee has neighbours")
    unit, tier = guarantee.neighbours.unit, tier_words(guarantee.neighbours)
    linked = "pattern" in guarantee.neighbours.shapes
    left_open = f" Which words and numbers of a {unit} are equal is left open." if linked else ""
    return (
        f"For the letters and digits flagged{tier} that the release does not count, as those of IDs, keys, card "
        f"numbers and canaries, for any number of {unit}s, ε = 0 and δ = 0. It counts {COUNTED}.{left_open}"
    )


def advice(ledger: Ledger) -> str | None:
    """How a user could get a finite ε; for the terminal, not for published files."""
    if UNKNOWN_PAST in (no_end_to_end(ledger), selective_void(ledger)):
        return "If the model never saw private data: --prior public."
    return None
