"""Windows: a record's tokens cut to the model's context, each with its marks."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import LONE_SURROGATE
from atdp_cli.model.chat import ChatTemplate
from atdp_cli.model.rendered import Rendered
from atdp_cli.model.tokenizer import without_panic

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


NO_CHARACTERS = (0, 0)
"""The character range of a token that the text does not contain."""


def length_batches(lengths: Sequence[int], tokens: float) -> Iterator[list[int]]:
    """Positions of similar lengths together, so that there is little padding, the shortest first.

    Args:
        tokens: Of a batch with its padding at most, where it has more than one.
    """
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
        if batch and (len(batch) + 1) * lengths[place] > tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def align_record(
    tokenizer: "PreTrainedTokenizerFast", text: str, *, with_end: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    """Token ids of one record and the characters that each covers.

    The start token comes first and, with `with_end`, the end token last, where the tokenizer has them. Training
    reads the end token; the audited sequence stops before it.

    Returns:
        Token ids, shape [tokens], and (start, end) in code points, shape [tokens].

    Raises:
        InputError: The tokenizer fails on the text.
    """
    with without_panic(tokenizer.name_or_path):
        encoding = tokenizer(_encodable(text), add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    ids: list[int] = list(encoding["input_ids"])
    offsets: list[tuple[int, int]] = [tuple(pair) for pair in encoding["offset_mapping"]]
    if tokenizer.bos_token_id is not None:
        ids, offsets = [tokenizer.bos_token_id, *ids], [NO_CHARACTERS, *offsets]
    if with_end and tokenizer.eos_token_id is not None:
        ids, offsets = [*ids, tokenizer.eos_token_id], [*offsets, NO_CHARACTERS]
    return ids, offsets


def _encodable(text: str) -> str:
    """The text with lone surrogates, which have no UTF-8, replaced one for one, so that positions do not change."""
    return LONE_SURROGATE.sub("\ufffd", text)


def encode_record(tokenizer: "PreTrainedTokenizerFast", text: str) -> list[int]:
    """Token ids of one record without the end token, as the audit scores it; shape [tokens]."""
    return align_record(tokenizer, text, with_end=False)[0]


def tokenizer_fingerprint(tokenizer: "PreTrainedTokenizerFast") -> str:
    """SHA-256 (hex) of the settings that determine the ids of `encode_record` for text without special tokens.

    Normaliser, pre-tokeniser, vocabulary, merges, ordinary added tokens and the start token are included.
    Padding, truncation, decoder, post-processor and special tokens (a `[PAD]` added before fine-tuning) are
    not: they do not change the ids of such text, and differ from one save to the next.
    """
    backend: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    settings = {
        "model": backend["model"],
        "normalizer": backend["normalizer"],
        "pre_tokenizer": backend["pre_tokenizer"],
        "added_tokens": [token for token in backend["added_tokens"] if not token["special"]],
        "start": tokenizer.bos_token_id,
    }
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


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
    tokenizer: "PreTrainedTokenizerFast", record: int, text: str, marks: Marks, *, context: int, max_windows: int
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
    return tuple(_cut(uncut, cut) for cut in cuts[:max_windows])


def encode_rendered(
    chat: ChatTemplate,
    record: int,
    rendered: Rendered,
    marks: Marks,
    *,
    learnt: Collection[int],
    context: int,
    max_windows: int,
) -> tuple[Window, ...]:
    """A conversation's windows: the tokens that its template gives, of which those of some messages are targets.

    A message's targets are the tokens of its texts, its calls and what ends its turn; what the template writes before
    it, and all of other messages, is context. Windows hold whole turns; one that is longer than the context is cut
    inside, and the parts overlap by one token. Each target is one exactly once, up to `max_windows` windows with
    targets.

    Args:
        marks: Ranges of the rendered text.
        learnt: The messages that are learnt, by number.
        context: The longest window, at least 2 tokens.

    Returns:
        No window without a target.

    Raises:
        InputError: The tokenizer does not tell which characters its tokens cover.
    """
    ids, offsets = align_record(chat.tokenizer, rendered.text, with_end=False)
    turns = [turn for turn in rendered.turns if turn.turn in learnt]
    target = _overlapping(offsets, len(rendered.text), ((turn.start, turn.stop) for turn in turns))
    uncut = _window(record, ids, offsets, rendered.text, marks)
    uncut = replace(uncut, ignored=uncut.ignored | ~target)
    begins = np.searchsorted([start for start, _ in offsets], [turn.next for turn in rendered.turns]).tolist()
    windows = (_cut(uncut, cut) for cut in _turn_cuts(uncut.targets, begins, context))
    return tuple(islice((window for window in windows if window.targets.any()), max_windows))


def _turn_cuts(targets: Mask, begins: Sequence[int], context: int) -> Iterator[slice]:
    """Cuts of at most `context` tokens that end where a turn begins, if one does in reach; no target is only context.

    Args:
        begins: The first token of each turn, sorted.
    """
    start, stop = 0, 0
    while stop < len(targets):
        stop = min(start + context, len(targets))
        if stop < len(targets):
            stop = max((begin for begin in begins if start + 1 < begin <= stop), default=stop)
        yield slice(start, stop)
        # The first token of a window is no target: one that is to be has the token before it for context.
        start = stop - 1 if stop < len(targets) and targets[stop] else stop


def _cut(window: Window, cut: slice) -> Window:
    return Window(
        window.record, window.token_ids[cut], window.sensitive[cut], window.function[cut], window.ignored[cut]
    )


def encode_pair(
    tokenizer: "PreTrainedTokenizerFast",
    record: int,
    source: str,
    target: str,
    marks: Marks,
    *,
    start: int,
    context: int,
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


def check_alignment(tokenizer: "PreTrainedTokenizerFast") -> None:
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
