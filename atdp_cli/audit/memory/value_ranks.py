"""How likely a model finds the flagged values of records, among decoys of their shape in their own context.

True values are likelier than decoys anyway. So those of training records are compared with those of held-out records,
which the model never read: that is what chance looks like here.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from scipy.stats import mannwhitneyu
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from atdp_cli.audit.memory.decoy_scores import Tails, score_tails, tokenise_tails
from atdp_cli.text.detection.spans import Span, merge
from atdp_cli.text.redaction.decoys import Choose, decoy_text

DECOYS = 15
"""That each value is ranked among."""


@dataclass(frozen=True, kw_only=True)
class FlaggedValue:
    """A flagged value in its record."""

    text: str
    span: Span


@dataclass(frozen=True, kw_only=True)
class ComparedRanks:
    """Ranks of values in training and held-out records: the share of decoys that the model finds likelier, ties half.

    Attributes:
        training, held_out: The mean share, in [0, 1]; 0 where each value is likelier than all its decoys.
        training_values, held_out_values: How many, each at least 1.
        p_value: That training values rank as high by chance, if the model had read neither: one-sided, of the
            Mann–Whitney U test, exact up to ties. Source: Mann and Whitney 1947.
    """

    training: float
    held_out: float
    training_values: int
    held_out_values: int
    p_value: float


def spread(count: int, most: int) -> list[int]:
    """At most so many of `count` positions, evenly apart."""
    return [number * count // most for number in range(most)] if count > most else list(range(count))


def pick_values(records: Sequence[tuple[str, Sequence[Span]]], *, most: int) -> tuple[FlaggedValue, ...]:
    """One value of each of at most so many texts that have a span: the first, the second, … in turn."""
    flagged = [(text, merge(spans)) for text, spans in records if spans]
    some = [flagged[place] for place in spread(len(flagged), most)]
    return tuple(FlaggedValue(text=text, span=spans[turn % len(spans)]) for turn, (text, spans) in enumerate(some))


def pick_alike(
    records: Sequence[tuple[str, Sequence[Span]]], like: Sequence[FlaggedValue], *, most: int
) -> tuple[FlaggedValue, ...]:
    """One value of each of at most so many texts, each label as often among them as among others, as far as they go."""
    left = {label: ceil(count * most / len(like)) for label, count in Counter(v.span.label for v in like).items()}
    values: list[FlaggedValue] = []
    for turn, (text, spans) in enumerate((text, merge(spans)) for text, spans in records if spans):
        # A later value is often told by those before it, so the place in the record takes turns here too.
        wanted = [span for span in spans if left.get(span.label, 0) > 0]
        if wanted and len(values) < most:
            span = wanted[turn % len(wanted)]
            left[span.label] -= 1
            values.append(FlaggedValue(text=text, span=span))
    return tuple(values)


def compare_ranks(training: Sequence[float], held_out: Sequence[float]) -> ComparedRanks:
    """The ranks of values of training records beside those of held-out records, at least one of each."""
    return ComparedRanks(
        training=float(np.mean(training)),
        held_out=float(np.mean(held_out)),
        training_values=len(training),
        held_out_values=len(held_out),
        p_value=float(mannwhitneyu(training, held_out, alternative="less").pvalue),
    )


@dataclass(frozen=True, kw_only=True)
class TokenisedValue:
    """A flagged value with the tokens of what it is ranked among: itself and its decoys, after the text before it."""

    value: FlaggedValue
    tails: Tails


def tokenise_values(
    tokenizer: PreTrainedTokenizerFast, values: Sequence[FlaggedValue], choose: Choose
) -> tuple[TokenisedValue, ...]:
    """The values that have a rank. Those at the start of a record have none for a tokenizer without a start token.

    Args:
        choose: Draws the decoys, from their shapes alone.
    """
    tokenised = [
        (value, tokenise_tails(tokenizer, value.text[: value.span.start], list(_surfaces(value, choose))))
        for value in values
    ]
    return tuple(TokenisedValue(value=value, tails=tails) for value, tails in tokenised if tails is not None)


def value_ranks(model: PreTrainedModel, values: Sequence[TokenisedValue]) -> tuple[float, ...]:
    """For each value the share of its decoys that the model finds likelier, ties half; the model must be in eval mode.

    What is compared is the log-probability of the value after the characters before it.
    """
    scores = score_tails(model, [value.tails for value in values])
    return tuple(float(np.mean((own[1:] > own[0]) + (own[1:] == own[0]) / 2)) for own in scores)


def _surfaces(value: FlaggedValue, choose: Choose) -> Iterator[str]:
    """The true value, and then its decoys there."""
    yield value.text[value.span.start : value.span.end]
    for _ in range(DECOYS):
        changed = decoy_text(value.text, (value.span,), choose)
        [(start, end)] = changed.places
        yield changed.text[start:end]
