"""Measurements of a model: perplexity and ranks on private text, and surprise on a made-up sentence.

The sentence is the same for every model, so that it reveals nothing of a corpus.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import torch

from atdp_cli.corpus.record import Record
from atdp_cli.detection.detect import detect_records
from atdp_cli.detection.detector import Detector
from atdp_cli.hardening.encode import Encoding, Windows, encode, flag
from atdp_cli.hardening.ranked_values import RankedValues, reported_ranks
from atdp_cli.memorisation.ranks import ComparedRanks
from atdp_cli.model.checkpoint import Checkpoint, context_length
from atdp_cli.model.forward import pad
from atdp_cli.model.perplexity import Perplexity, perplexity, token_losses
from atdp_cli.model.windows import Window
from atdp_cli.reporting.document import TokenEntry
from atdp_cli.reporting.entries import BeforeAfter, PerplexityEntry, RanksBeforeAfter, RanksEntry
from atdp_cli.reporting.from_ledger import as_entry
from atdp_cli.training.recipe import TextVariant


@dataclass(frozen=True, kw_only=True)
class Yardstick:
    """What models are measured on, the same in every run.

    Attributes:
        held_out: Windows of the held-out records as they are.
        decoyed: The same with decoys drawn uniformly; none where spans of a contextual tier have no decoys.
        ranked: None where raw text can't have been memorised, nothing reads decoys, or no training or no held-out
            record has a value with a rank.
    """

    held_out: Sequence[Window]
    decoyed: Sequence[Window]
    ranked: RankedValues | None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A model's figures on a yardstick: perplexities of held-out records, raw and with decoys, and ranks of values."""

    raw: Perplexity
    decoyed: Perplexity | None
    ranks: ComparedRanks | None


def measure(checkpoint: Checkpoint, on: Yardstick) -> Measured:
    """Measure a model, which must be in eval mode."""
    return Measured(
        raw=perplexity(checkpoint.model, on.held_out),
        decoyed=perplexity(checkpoint.model, on.decoyed) if on.decoyed else None,
        ranks=None if on.ranked is None else reported_ranks(checkpoint.model, on.ranked),
    )


def compared(before: Measured, after: Measured) -> tuple[BeforeAfter, BeforeAfter | None, RanksBeforeAfter | None]:
    """Two models on one yardstick, as reports list them: perplexity, perplexity with decoys, and ranks."""

    def perplexities(first: Perplexity | None, second: Perplexity | None) -> BeforeAfter | None:
        if first is None or second is None:
            return None
        return BeforeAfter(before=as_entry(PerplexityEntry, first), after=as_entry(PerplexityEntry, second))

    ranks = None
    if before.ranks is not None and after.ranks is not None:
        ranks = RanksBeforeAfter(before=RanksEntry(**vars(before.ranks)), after=RanksEntry(**vars(after.ranks)))
    raw = BeforeAfter(before=as_entry(PerplexityEntry, before.raw), after=as_entry(PerplexityEntry, after.raw))
    return raw, perplexities(before.decoyed, after.decoyed), ranks


@dataclass(frozen=True, kw_only=True)
class Surprise:
    """How surprising each token of a sentence is to a model, in bits, flagged as the detector would.

    Attributes:
        bits: -log₂ of each token's probability; None for the first one where nothing precedes it.
    """

    tokens: tuple[str, ...]
    sensitive: tuple[bool, ...]
    bits: tuple[float | None, ...]


def mark_sentence(text: str, detector: Detector, checkpoint: Checkpoint, pipeline: Any) -> Windows:
    """The windows of a sentence, with what the detector flags in it without term lists.

    Args:
        pipeline: From `load_pipeline`.
    """
    detections = detect_records(
        [Record(id="1", text=text)],
        pipeline=pipeline,
        speaker_labels=detector.speaker_labels,
        label_filter=detector.label_filter,
    )
    flagged = flag(detections, None, detector.tier)
    encoding = Encoding(tokenizer=checkpoint.tokenizer, context=context_length(checkpoint.model), windows=1)
    [windows] = encode(flagged, TextVariant.RAW, encoding)
    return windows


@torch.inference_mode()
def surprise(checkpoint: Checkpoint, windows: Windows) -> Surprise:
    """Bits of the text's tokens in the first window; start and end tokens are left out."""
    if not windows:
        return Surprise(tokens=(), sensitive=(), bits=())
    window = windows[0]
    losses = token_losses(checkpoint.model, pad([window]))[0].cpu().double() / log(2)
    special = set(checkpoint.tokenizer.all_special_ids)
    ids = window.token_ids.tolist()
    positions = [position for position, token in enumerate(ids) if token not in special]
    return Surprise(
        tokens=tuple(checkpoint.tokenizer.decode([ids[position]]) for position in positions),
        sensitive=tuple(bool(window.sensitive[position]) for position in positions),
        bits=tuple(float(losses[position - 1]) if position else None for position in positions),
    )


def compare_surprise(before: Surprise, after: Surprise) -> tuple[TokenEntry, ...]:
    """The surprise of both models, token by token."""
    return tuple(
        TokenEntry(text=text, sensitive=flagged, before=first, after=second)
        for text, flagged, first, second in zip(before.tokens, before.sensitive, before.bits, after.bits, strict=True)
    )
