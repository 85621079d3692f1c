"""What guarantees say, in words. Every sentence about neighbours is made from the relation that the ledger states."""

import math
from decimal import ROUND_CEILING, Decimal

from atdp_cli.privacy.relation import Flags, Neighbours

UNKNOWN_PAST = "the starting model's past is unknown"
UNKNOWN_REFERENCE = "the past of the reference model is unknown"
PUBLIC_START = "The first checkpoint never saw the corpus, as --prior public states."
PUBLIC_REFERENCE = "The reference model never saw the corpus, as --reference states."
DECLARED = "declared by the user; atdp did not see the training"
DECLARED_TRAINING = (
    "Declared by the user; atdp did not see the training: of the corpus the model read the copies with decoys and "
    "nothing else, and nothing else of it was used to choose its settings."
)
UNFLAGGED_TEXT = "text that is not flagged stands in the copies with decoys as it is"
COPIES = (
    "It covers the copies with decoys and whatever is trained on them; whatever else is made of the same records "
    "composes with it."
)
POISSON = "Each step draws its records by Poisson sampling, and the sample stays secret."
ONE_MODEL = "It covers the release of this one model; other models from the same records compose with it."
MANY_MODELS = "It covers the release of these {models} models; further models from the same records compose with it."
INSECURE = "The run used --insecure-seed: its noise can be subtracted, so none of this protects anyone."
INCREMENT_ONLY = (
    "It bounds only what stages and releases with noise add; it says nothing about what the starting checkpoint "
    "already memorised, and is not a guarantee for any record."
)

CHOSEN_ON_RAW = (
    "Nor does it count what the choice of a learning rate tells, which was made by how a model ranked values of the "
    "records."
)

SAME_SHAPE = (
    "The flagged spans of the two have the same labels and shapes: digits where digits are; in names, places, dates "
    "and amounts, words of the same case where words are, abbreviations of the same length; elsewhere letters of the "
    "same case where letters are; all other characters the same, but for domains of e-mail addresses."
)
SAME_PATTERN = (
    "Words and whole numbers in the flagged spans of a {unit}, and domains of e-mail addresses, are equal, in whatever "
    "case, in one where they are in the other."
)
COUNTED = "words and abbreviations in names, places, dates and amounts, and digits in dates, times and phone numbers"
SAME_VOTES = f"The release counts {COUNTED}: these are the same in both."


def released_models(models: int) -> str:
    """Which release a guarantee covers."""
    return ONE_MODEL if models == 1 else MANY_MODELS.format(models=models)


def say_sentence(flags: Flags, unit: str) -> str:
    """What a guarantee takes for granted about flags in which people or a language model had a say."""
    named = [f"--{option}" for option in flags.human] + ["the cross-check"] * flags.crosscheck
    listed = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]
    return (
        f"What is flagged depends on {listed}: ε holds only if each {unit} is flagged the same, whatever the other "
        f"{unit}s say."
    )


def neighbour_sentences(neighbours: Neighbours, *, exact: bool = False) -> tuple[str, ...]:
    """Between which corpora a guarantee for flagged characters holds, a sentence each.

    Args:
        exact: Whether it holds for any number of records.
    """
    unit, shapes = neighbours.unit, neighbours.shapes
    differ, tier = f"any number of {unit}s" if exact else f"one {unit}", tier_words(neighbours)
    said = [
        f"Neighbouring corpora differ in {differ}, only in characters that the detector flags in both{tier}, and "
        "redact to the same bytes; what the detector misses is not covered."
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
    return "" if neighbours.flags is None else f" at tier {neighbours.flags.tier}"


def other_values(neighbours: Neighbours) -> str:
    """The values that a guarantee for flagged characters says may stand in their place, for a first-time reader."""
    shaped = " of the same shapes" if neighbours.shapes & {"shape", "pattern"} else ""
    pattern = ", with words and numbers equal where those have them equal," if "pattern" in neighbours.shapes else ""
    return f"other values{shaped}{pattern} that the detector would flag identically"


def uncovered(neighbours: Neighbours, *, exact: bool) -> str:
    """What a guarantee for flagged characters leaves open, as a sentence."""
    open_to = ["what the detector missed", "any word that is not flagged"]
    if neighbours.shapes & {"shape", "pattern"}:
        open_to.append("the shape of a flagged value, so that $5 can be told from $500 and a name from a longer one")
    if "pattern" in neighbours.shapes:
        open_to.append(f"which words and numbers in flagged texts of a {neighbours.unit} are equal")
    open_to.append("a value in whose place the detector would flag another differently")
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


def epsilon_delta(epsilon: float, delta: float) -> str:
    """ε and δ as sentences have them.

    >>> epsilon_delta(2.5893, 1e-6), epsilon_delta(0.0, 0.0)
    ('ε = 2.59 at δ = 1e-06', 'ε = 0 and δ = 0')
    """
    if epsilon == 0 and delta == 0:
        return "ε = 0 and δ = 0"
    return f"ε = {rounded_up(epsilon)} at δ = {delta:g}"
