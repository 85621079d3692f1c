"""How likely a model finds the flagged values of records, among decoys of their shape in their own context.

True values are likelier than decoys anyway. So those of training records are compared with those of held-out records,
which the model never read: that is what chance looks like here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import mannwhitneyu

from atdp_cli.model.checkpoint import Checkpoint, context_length
from atdp_cli.model.forward import pad
from atdp_cli.model.perplexity import token_losses
from atdp_cli.model.windows import Marks, Window, encode_windows
from atdp_cli.text.detection.spans import Span, merge
from atdp_cli.text.redaction.decoys import Choose, decoy

DECOYS = 15
"""That each value is ranked among."""

BEFORE, AFTER = 160, 40
"""Characters of a record before and after a value that the model reads."""

TOKENS_PER_BATCH = 4096


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


def compare_ranks(training: Sequence[float], held_out: Sequence[float]) -> ComparedRanks:
    """The ranks of values of training records beside those of held-out records, at least one of each."""
    return ComparedRanks(
        training=float(np.mean(training)),
        held_out=float(np.mean(held_out)),
        training_values=len(training),
        held_out_values=len(held_out),
        p_value=float(mannwhitneyu(training, held_out, alternative="less").pvalue),
    )


@torch.inference_mode()
def value_ranks(checkpoint: Checkpoint, values: Sequence[FlaggedValue], choose: Choose) -> tuple[float, ...]:
    """For each value the share of its decoys that the model finds likelier, ties half; the model must be in eval mode.

    What is compared is the log-probability of the value with the characters around it.

    Args:
        choose: Draws the decoys, from their shapes alone.
    """
    model = checkpoint.model
    ranks = []
    for value in values:
        windows = [_window(checkpoint, text) for text in _excerpts(value, choose)]
        scores: list[float] = []
        per_batch = max(1, TOKENS_PER_BATCH // max(len(window.token_ids) for window in windows))
        for first in range(0, len(windows), per_batch):
            batch = windows[first : first + per_batch]
            losses = token_losses(model, pad(batch)).double().cpu()
            scores += [
                -float(row[: len(window.token_ids) - 1].sum()) for row, window in zip(losses, batch, strict=True)
            ]
        true, others = scores[0], scores[1:]
        ranks.append(sum((other > true) + (other == true) / 2 for other in others) / len(others))
    return tuple(ranks)


def _excerpts(value: FlaggedValue, choose: Choose) -> Iterator[str]:
    """The true value between the characters around it, and then its decoys there."""
    start, end = value.span.start, value.span.end
    before, after = value.text[max(0, start - BEFORE) : start], value.text[end : end + AFTER]
    yield before + value.text[start:end] + after
    for _ in range(DECOYS):
        changed = decoy(value.text, (value.span,), choose)
        [(begin, stop)] = changed.places
        yield before + changed.text[begin:stop] + after


def _window(checkpoint: Checkpoint, text: str) -> Window:
    context = context_length(checkpoint.model)
    [window] = encode_windows(checkpoint.tokenizer, 0, text, Marks(), context=context, max_windows=1)
    return window
