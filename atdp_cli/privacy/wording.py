"""The sentences about guarantees and the names of their scopes, made from a ledger, its relations and the figures."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal

from atdp_cli.privacy.ledger import (
    DecoyedText,
    GaussianRelease,
    Ledger,
    PlainTraining,
    SubsampledGaussian,
    private_events,
)
from atdp_cli.privacy.relation import Neighbours
from atdp_cli.privacy.scope import (
    UNKNOWN_PAST,
    Guarantee,
    Scope,
    flags_moved,
    is_chosen_on_raw,
    is_declared,
    is_of_text,
    no_end_to_end,
    others_flag,
    public_lists,
    reference_pasts,
    selective_void,
)

SCOPES: dict[Scope, str] = {
    "end_to_end": "whole records",
    "selective": "flagged values",
    "declared": "flagged values, as declared",
    "uncounted": "IDs and keys",
    "increment": "noisy stages alone",
}
"""The names of the scopes, as people read them."""

_COVERED: dict[Scope, str] = {
    "end_to_end": ", for each {unit}",
    "selective": ", for each {unit}",
    "declared": ", for each {unit}",
    "uncounted": ": flagged letters and digits that the release does not count",
    "increment": ": what they add; no guarantee for any {unit}",
}

WEAK = 10.0
"""ε above which nobody should rely on a guarantee."""

NOTHING_READ = "No stage read the corpus, so this run put nothing of it into the model"
SEEDED_NOISE = "the noise of this run came from a seed and can be taken off again"

PUBLIC_START = "The first checkpoint never saw the corpus, as --checkpoint-history public states."
PUBLIC_REFERENCE = "The reference model never saw the corpus, as --reference states."
LISTS = "The lists of terms were not made from the corpus, as the user declares: {reason}"
DECLARED = "declared by the user; atdp did not see the training"
DECLARED_TRAINING = (
    "Declared by the user; atdp did not see the training: of the corpus the model read the copies with decoys and "
    "nothing else, and nothing else of it was used to choose its settings."
)
COPIES = (
    "It covers the copies with decoys and whatever is trained on them; whatever else is made of the same records "
    "composes with it."
)
POISSON = "Each step draws its records by Poisson sampling, and the sample stays secret."
ONE_MODEL = "It covers the release of this one model; other models from the same records compose with it."
MANY_MODELS = "It covers the release of these {models} models; further models from the same records compose with it."
INSECURE = "The run used run.insecure-seed: its noise can be subtracted, so none of this protects anyone."
INCREMENT_ONLY = (
    "It bounds only what stages and releases with noise add; it says nothing about what the starting checkpoint "
    "already memorised, and is not a guarantee for any record."
)

CHOSEN_ON_RAW = (
    "Nor does it count what the choice of a learning rate tells, which was made by how a model ranked values of the "
    "records."
)
SHARED_WORDS = (
    "Words that many {unit}s have are published by design, names on no public list among them: noise hides what one "
    "{unit} says, not what dozens say. For a person with many {unit}s there is --privacy-unit FIELD, which makes the "
    "records of one value of the field one."
)

FLAGGED_BY_OTHERS = (
    "Nor does it count what the choice of flags tells: what is flagged depends on {others}, by which one {unit} can "
    "change what is read of others."
)

SAME_SHAPE = (
    "The flagged spans of the two have the same shapes, and labels with the same lists of words and the same rules, as "
    "numbers and accounts have: digits where digits are; in names, places, dates and amounts, words of the same case "
    "where words are, abbreviations of the same length; elsewhere letters of the same case where letters are; all "
    "other characters the same, but for domains of e-mail addresses. So are words of a public list in dates, amounts, "
    "places and organisations (of, days, street), and the 's of a possessive."
)
SAME_PATTERN = (
    "The flagged spans of a {unit} have the same equalities in both. Equal are words in whatever case, whole numbers, "
    "also without their separators or as the ending of a longer one, domains of e-mail addresses, a name and what is "
    "made of it (initials, a user name), and a date in two forms."
)
COUNTED = "words and abbreviations in names, places, dates and amounts, and digits in dates, times and phone numbers"
SAME_VOTES = f"The release counts {COUNTED}: these are the same in both."
OTHER_LINES = (
    "It does not protect {unit}s that were held out for measuring, nor a person or a secret that occurs in several "
    "{unit}s."
)


def shared_words(words: int, unit: str) -> str:
    """A warning that so many words of no public list passed a release."""
    return f"{words} words of no public list passed the release. {SHARED_WORDS.format(unit=unit)}"


def scope_title(scope: Scope, unit: str) -> str:
    """A scope's name and what it covers, as a heading."""
    return f"{SCOPES[scope].capitalize()}{_COVERED[scope].format(unit=unit)}"


def neighbour_sentences(neighbours: Neighbours, *, exact: bool = False) -> tuple[str, ...]:
    """Between which corpora a guarantee for flagged characters holds, a sentence each.

    Args:
        exact: Whether it holds for any number of records.
    """
    unit, shapes = neighbours.unit, neighbours.shapes
    differ, tier = f"any number of {unit}s" if exact else f"one {unit}", tier_words(neighbours)
    redacted = ", and redact to the same bytes" if "bytes" in shapes else ""
    said = [
        f"Neighbouring corpora differ in {differ}, only in characters that the detector flags in both{tier}{redacted}; "
        "what the detector misses is not covered."
    ]
    if shapes & {"shape", "pattern", "votes"}:
        said.append(SAME_SHAPE)
    if "pattern" in shapes:
        said.append(SAME_PATTERN.format(unit=unit))
    if "votes" in shapes:
        said.append(SAME_VOTES)
    return tuple(said)


def tier_words(neighbours: Neighbours) -> str:
    """The tier of the flags that a sentence is about, to go behind "flags" or "flagged"."""
    flags = neighbours.flags
    return "" if flags is None else f" at tier {flags.tier}{f' ({flags.kept})' if flags.kept else ''}"


def other_values(neighbours: Neighbours) -> str:
    """The values that a guarantee for flagged characters says may stand in their place, for a first-time reader."""
    shaped = " of the same shapes" if neighbours.shapes & {"shape", "pattern"} else ""
    pattern = f" and the same equalities within the {neighbours.unit}" if "pattern" in neighbours.shapes else ""
    flagged = "flag identically" if "bytes" in neighbours.shapes else "flag as well"
    return f"other values{shaped}{pattern} that the detector would {flagged}"


def uncovered(neighbours: Neighbours, *, exact: bool) -> str:
    """What a guarantee for flagged characters leaves open, as a sentence."""
    open_to = ["what the detector missed", "any word that is not flagged"]
    if neighbours.shapes & {"shape", "pattern"}:
        open_to.append("the shape of a flagged value, so that $5 can be told from $500 and a name from a longer one")
    if "pattern" in neighbours.shapes:
        open_to.append(f"which flagged values of a {neighbours.unit} are equal or made of one another")
    open_to.append(
        "a value in whose place the detector would flag another differently, as for a fifth of the values of public "
        "text (by label in docs/measured.md)"
    )
    if not exact:
        open_to.append(f"a value that is flagged in several {neighbours.unit}s")
    return f"It does not protect {', nor '.join(open_to)}."


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


def epsilon_delta(epsilon: float | None, delta: float) -> str:
    """ε and δ as sentences have them; None is an ε of which nothing was spent.

    >>> epsilon_delta(2.5893, 1e-6), epsilon_delta(0.0, 0.0)
    ('ε = 2.59 at δ = 1e-06', 'ε = 0 and δ = 0')
    """
    if not epsilon and delta == 0:
        return "ε = 0 and δ = 0"
    return f"ε = {rounded_up(epsilon or 0.0)} at δ = {delta:g}"


def assumptions(
    ledger: Ledger, scope: Scope, neighbours: Neighbours | None, *, exact: bool, models: int
) -> tuple[str, ...]:
    """What a guarantee of this scope takes for granted, a sentence each.

    Args:
        neighbours: The corpora between which it holds; None where a record may change in any way.
        exact: Whether the model has the same distribution for all neighbours.
        models: The number of models whose ledgers were composed into this one.
    """
    insecure = (INSECURE,) if ledger.insecure_seed else ()
    sampling = (POISSON,) if any(isinstance(event, SubsampledGaussian) for event in ledger.events) else ()
    lists = tuple(LISTS.format(reason=reason) for reason in public_lists(ledger))
    release = COPIES if is_of_text(ledger) else ONE_MODEL if models == 1 else MANY_MODELS.format(models=models)
    if scope == "increment":
        return (*insecure, INCREMENT_ONLY, *_not_counted(ledger), *sampling)
    if neighbours is not None:
        between = neighbour_sentences(neighbours, exact=exact)
        return (*insecure, *between, *lists, *_starts(ledger), *(() if exact else sampling), release)
    if reason := no_end_to_end(ledger):
        return (*insecure, f"No finite ε: {reason}.")
    starts = _starts(ledger) if private_events(ledger.events) or reference_pasts(ledger) else ()
    return (*insecure, *lists, *starts, *sampling, release)


def _starts(ledger: Ledger) -> tuple[str, ...]:
    """The assumptions about the models that a run starts from or reads, and about training that nobody saw."""
    if is_of_text(ledger):
        return ()
    declared = (DECLARED_TRAINING,) if is_declared(ledger) else ()
    references = (PUBLIC_REFERENCE,) if "declared" in reference_pasts(ledger) else ()
    return (*declared, PUBLIC_START, *references)


def guarantee_sentences(ledger: Ledger, supported: Sequence[Guarantee]) -> tuple[str, ...]:
    """The guarantees in words, the strongest scope first."""
    by_scope = {guarantee.scope: guarantee for guarantee in supported}
    whole, increment = by_scope["end_to_end"], by_scope["increment"]
    lines = [_end_to_end_sentence(ledger, whole)]
    if selective := by_scope.get("selective") or by_scope.get("declared"):
        lines.append(_selective_sentence(selective))
        if uncounted := by_scope.get("uncounted"):
            lines.append(uncounted_sentence(uncounted))
    elif any(isinstance(event, PlainTraining | DecoyedText) and event.text != "raw" for event in ledger.events):
        lines.append(f"Flagged values: no guarantee, because {selective_void(ledger)}.")
    if any(isinstance(event, GaussianRelease) for event in ledger.events):
        lines.append(SHARED_WORDS.format(unit=ledger.unit))
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
        of_it = f"The release adds at most {added}, which is no guarantee for any {ledger.unit}."
        return (" ".join((of_it, *_not_counted(ledger))),)
    return (" ".join((f"Stages and releases with noise add at most {added}.", INCREMENT_ONLY, *_not_counted(ledger))),)


def _not_counted(ledger: Ledger) -> tuple[str, ...]:
    """What the increment does not count, a sentence each."""
    chosen = (CHOSEN_ON_RAW,) if is_chosen_on_raw(ledger) else ()
    others = others_flag(ledger)
    return chosen if others is None else (*chosen, FLAGGED_BY_OTHERS.format(others=others, unit=ledger.unit))


def _end_to_end_sentence(ledger: Ledger, guarantee: Guarantee) -> str:
    if reason := no_end_to_end(ledger):
        return f"Whole records: not protected (ε = ∞), because {reason}."
    if guarantee.epsilon is None:
        return "Whole records: nothing was spent, since no stage read the corpus."
    return f"Whole records, for each {ledger.unit}: {epsilon_delta(guarantee.epsilon, guarantee.delta)}."


def _selective_sentence(guarantee: Guarantee) -> str:
    if guarantee.neighbours is None or guarantee.epsilon is None:
        raise ValueError("a selective guarantee has neighbours and an ε")
    unit = guarantee.neighbours.unit
    where = f"for any number of {unit}s" if guarantee.exact else f"for each {unit}"
    declared = f", {DECLARED}" if guarantee.scope == "declared" else ""
    return (
        f"Flagged values{declared}, {where}: {epsilon_delta(guarantee.epsilon, guarantee.delta)} "
        f"(replace-one), against {other_values(guarantee.neighbours)}{tier_words(guarantee.neighbours)}."
    )


def uncounted_sentence(guarantee: Guarantee) -> str:
    """What holds for flagged characters that no release counts."""
    if guarantee.neighbours is None:
        raise ValueError("an uncounted guarantee has neighbours")
    unit, tier = guarantee.neighbours.unit, tier_words(guarantee.neighbours)
    linked = "pattern" in guarantee.neighbours.shapes
    left_open = f" Which values of a {unit} are equal or made of one another is left open." if linked else ""
    return (
        f"IDs, keys, card numbers, canaries and other letters and digits flagged{tier} that the release does not "
        f"count: for any number of {unit}s, which characters they have does not influence the result (ε = 0 and "
        f"δ = 0); their shapes do. The release counts {COUNTED}.{left_open}"
    )


def advice(ledger: Ledger) -> str | None:
    """How a user could get a finite ε; for the terminal, not for published files."""
    if UNKNOWN_PAST in (no_end_to_end(ledger), selective_void(ledger)):
        return "If the model never saw private data: --checkpoint-history public."
    if (moved := flags_moved(ledger)) is not None and moved in (no_end_to_end(ledger), selective_void(ledger)):
        return f"For a finite ε leave {others_flag(ledger)} out, or harden with --recipe dp-sgd, which reads no flags."
    if private_events(ledger.events) and ledger.delta >= 1 / (10 * ledger.records):
        return f"Only with --delta below 1/(10·N) = {1 / (10 * ledger.records):.3g} is a model called releasable."
    return None


def protection(ledger: Ledger, supported: Sequence[Guarantee], *, weak: float = WEAK) -> tuple[str, str]:
    """What is protected and what is not, for a reader who knows nothing of differential privacy.

    Args:
        weak: ε above which nobody should rely on it.
    """
    guarantees = {guarantee.scope: guarantee for guarantee in supported}
    unit, whole = ledger.unit, guarantees["end_to_end"]
    if ledger.insecure_seed:
        return (
            f"Nothing is protected: {SEEDED_NOISE}.",
            "Such a run is for tests and reproductions.",
        )
    if whole.epsilon is None:
        return (
            f"{NOTHING_READ}.",
            "It does not cover what the starting checkpoint, or a model that was read, knew before.",
        )
    if math.isfinite(whole.epsilon):
        return (
            f"Each {unit} of the corpus is protected: whether it was used or not changes {_bounded(whole)} "
            f"({epsilon_delta(whole.epsilon, whole.delta)}).{_weak(whole.epsilon, weak)}",
            OTHER_LINES.format(unit=unit),
        )
    selective = guarantees.get("selective") or guarantees.get("declared")
    if selective is not None and selective.neighbours is not None:
        given = f" {DECLARED_TRAINING}" if selective.scope == "declared" else ""
        return (
            f"{_flagged(selective, selective.neighbours, guarantees.get('uncounted'))}{given}"
            f"{_weak(selective.epsilon or 0, weak)}",
            uncovered(selective.neighbours, exact=selective.exact),
        )
    added = guarantees["increment"].epsilon
    noisy = () if added is None else (f"The noisy stages add ε = {rounded_up(added)}, and nothing more is claimed.",)
    nothing = f"No {unit} of the corpus has a guarantee, because {no_end_to_end(ledger)}."
    return (
        " ".join((nothing, *noisy, *(_not_counted(ledger) if noisy else ()))),
        "It does not remove what the model had memorised. An audit can show that some of it is left, and cannot show "
        "that nothing is.",
    )


def _flagged(selective: Guarantee, neighbours: Neighbours, uncounted: Guarantee | None) -> str:
    """What holds for flagged characters, as a sentence or two."""
    unit, others = neighbours.unit, f"{other_values(neighbours)}{tier_words(neighbours)}"
    only = "What the detector flagged is protected, and nothing else: "
    pair = epsilon_delta(selective.epsilon, selective.delta)
    if selective.exact:
        return (
            f"{only}if the flagged places of any number of {unit}s held {others}, what anyone learns from this model "
            f"would be the same ({pair})."
        )
    rest = "" if uncounted is None else f" {uncounted_sentence(uncounted)}"
    return (
        f"{only}if the flagged places of one {unit} held {others}, that would change {_bounded(selective)} "
        f"({pair}).{rest}"
    )


def _bounded(guarantee: Guarantee) -> str:
    """What (ε, δ) says of the probability of any conclusion, as a clause."""
    epsilon, delta = guarantee.epsilon or 0, guarantee.delta
    added = f" + {delta:.2g}" if delta else ""
    return f"the probability p of whatever anyone learns from this model to at most {factor(epsilon)}·p{added}"


def factor(epsilon: float) -> str:
    """e^ε, rounded up to two digits; in words where nobody can read it.

    >>> factor(3.0), factor(0.0), factor(9.0), factor(40.0)
    ('21', '1', '8,200', 'more than a million')
    """
    factor = math.exp(min(epsilon, 700))
    if factor > 1e6:
        return "more than a million"
    step = 10.0 ** max(-1, math.floor(math.log10(factor)) - 1)
    return f"{math.ceil(factor / step - 1e-9) * step:,.10g}"


def _weak(epsilon: float, most: float) -> str:
    return " Nobody should rely on a protection this weak." if epsilon > most else ""
