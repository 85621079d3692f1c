"""Windows: a record's tokens, cut to the model's context, each with its marks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from transformers import PreTrainedTokenizerFast

from atdp_cli.errors import InputError
from atdp_cli.model.tokens import NO_CHARACTERS, align_record

Mask = npt.NDArray[np.bool_]
Range = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """At most one context of a record's tokens. The first token is only context; the later ones are targets.

    Attributes:
        record: The record's index in its corpus.
        token_ids: int64, shape [T], T ≥ 2.
        sensitive: The token overlaps a flagged character, shape [T].
        function: The token is a function word, or part of one, shape [T].
        ignored: The token overlaps a placeholder of the redaction and is no target, shape [T].
        source: What the encoder of an encoder-decoder model reads, int64, shape [S]; None for other models.
    """

    record: int
    token_ids: npt.NDArray[np.int64]
    sensitive: Mask
    function: Mask
    ignored: Mask
    source: npt.NDArray[np.int64] | None = None

    @property
    def targets(self) -> Mask:
        """Tokens that are predicted and counted, shape [T]."""
        targets = ~self.ignored
        targets[0] = False
        return targets


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Character ranges of a text, code points, end exclusive."""

    sensitive: Sequence[Range] = ()
    function: Sequence[Range] = ()
    ignored: Sequence[Range] = ()


def encode_windows(
    tokenizer: PreTrainedTokenizerFast, record: int, text: str, marks: Marks, *, context: int, max_windows: int
) -> tuple[Window, ...]:
    """A record's windows: start token if there is one, the text, end token if there is one.

    Windows overlap by one token, so that each token but the first is a target exactly once. Text beyond
    `max_windows` windows is left out.

    Args:
        context: The longest window, at least 2 tokens.

    Returns:
        No window for a text without tokens, or with nothing to predict.

    Raises:
        InputError: The tokenizer does not tell which characters its tokens cover.
    """
    ids, offsets = align_record(tokenizer, text, with_end=True)
    if all(offset == NO_CHARACTERS for offset in offsets):
        # Zero-out adjacency replaces a record by an empty one, whose gradient must be 0: no end token to predict.
        return ()
    uncut = _window(record, ids, offsets, text, marks)
    cuts = [slice(start, start + context) for start in range(0, max(len(ids) - 1, 0), context - 1)]
    return tuple(
        Window(record, uncut.token_ids[cut], uncut.sensitive[cut], uncut.function[cut], uncut.ignored[cut])
        for cut in cuts[:max_windows]
    )


def encode_pair(
    tokenizer: PreTrainedTokenizerFast, record: int, source: str, target: str, marks: Marks, *, start: int, context: int
) -> tuple[Window, ...]:
    """The one window of a record of an encoder-decoder model; source and target are cut to the context.

    Args:
        source: What the encoder reads.
        target: What the decoder is trained to write.
        marks: Of the target.
        start: The decoder's start token.
        context: The most tokens of each, at least 2.

    Returns:
        No window for a target without tokens.

    Raises:
        InputError: The tokenizer does not tell which characters its tokens cover.
    """
    ids, offsets = align_record(tokenizer, target, with_end=True)
    if all(offset == NO_CHARACTERS for offset in offsets):
        return ()
    read, _ = align_record(tokenizer, source, with_end=True)
    window = _window(record, [start, *ids][:context], [NO_CHARACTERS, *offsets][:context], target, marks)
    return (replace(window, source=np.asarray(read[:context], dtype=np.int64)),)


def _window(record: int, ids: Sequence[int], offsets: Sequence[Range], text: str, marks: Marks) -> Window:
    return Window(
        record,
        np.asarray(ids, dtype=np.int64),
        _overlapping(offsets, len(text), marks.sensitive),
        _function_tokens(offsets, text, marks.function),
        _overlapping(offsets, len(text), marks.ignored),
    )


def check_alignment(tokenizer: PreTrainedTokenizerFast) -> None:
    """Refuse a tokenizer whose offsets do not cover the text.

    Raises:
        InputError: They do not.
    """
    probe = "Ada moved to Paris in 1843."
    ids, offsets = align_record(tokenizer, probe, with_end=False)
    covered = {position for start, end in offsets for position in range(start, end)}
    if not ids or not covered >= {position for position, character in enumerate(probe) if not character.isspace()}:
        raise InputError(
            "The tokenizer does not tell which characters its tokens cover.", "Save the model's fast tokenizer."
        )


def _overlapping(offsets: Sequence[Range], length: int, ranges: Iterable[Range]) -> Mask:
    return _counts(offsets, _characters(length, ranges)) > 0


def _function_tokens(offsets: Sequence[Range], text: str, ranges: Iterable[Range]) -> Mask:
    """Tokens whose visible characters all belong to function words."""
    function = _characters(len(text), ranges)
    visible = np.fromiter((not character.isspace() for character in text), dtype=np.bool_, count=len(text))
    matched, other = _counts(offsets, function), _counts(offsets, visible & ~function)
    tokens: Mask = (matched > 0) & (other == 0)
    return tokens


def _characters(length: int, ranges: Iterable[Range]) -> Mask:
    mask = np.zeros(length, dtype=np.bool_)
    for start, end in ranges:
        mask[start:end] = True
    return mask


def _counts(offsets: Sequence[Range], mask: Mask) -> npt.NDArray[np.int64]:
    """The number of the mask's characters that each token covers, shape [tokens]."""
    total = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])
    bounds = np.asarray(offsets, dtype=np.int64).reshape(-1, 2)
    counts: npt.NDArray[np.int64] = total[bounds[:, 1]] - total[bounds[:, 0]]
    return counts
