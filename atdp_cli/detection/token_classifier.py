"""A token classifier of transformers that finds entities, on the CPU."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForTokenClassification, PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from atdp_cli.detection.entities import EntityMatch, TextWords
from atdp_cli.detection.token_classifier_folder import Tag, TaggedToken, classifier_labels, parse_tag, tagged_entities
from atdp_cli.errors import InputError
from atdp_cli.model.adapter import no_warnings
from atdp_cli.model.checkpoint import check_weights, context_length, load_tokenizer
from atdp_cli.model.comparison import check_base
from atdp_cli.model.folder import model_files, weight_files
from atdp_cli.model.staging import staged
from atdp_cli.model.tokenizer import without_panic

LONGEST_WINDOW = 512
"""Tokens of a window, special ones included, where the model's own context is not shorter."""

LENGTHS = (32, 64, 128, 256)
"""To one of these, or to the longest, a window is padded: the shape of its batch depends on no other text."""

TOKENS = 1024
"""Of a batch; they bound its memory."""

FEWEST = 8
"""The fewest tokens of text that a window must have room for."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Token ids of a part of a text, without special ones, and which of them to keep what is said of."""

    text: int
    ids: Sequence[int]
    kept: range
    start: int


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenClassifier:
    """Finds entities; the `FindEntities` of a model. It can be sent to other processes.

    Attributes:
        name: For messages.
        model: In fp32 and eval mode.
        tokenizer: The tokenizers library's.
        tags: What each class says.
        before, after: The special tokens around a window.
        room: The most tokens of text in a window.
        padding: The token that fills a window up.
        process: Where it was loaded. In any other it computes in one thread: those of the first do not survive a fork,
            and there are several such processes.
    """

    name: str
    model: Any
    tokenizer: Any
    tags: tuple[Tag, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    room: int
    padding: int
    process: int

    def __call__(self, texts: Sequence[TextWords]) -> list[list[EntityMatch]]:
        """The entities of each text, in order.

        Raises:
            InputError: The tokenizer fails on a text.
        """
        if os.getpid() != self.process:
            torch.set_num_threads(1)
        with without_panic(self.name):
            encodings = [self.tokenizer.encode(text, add_special_tokens=False) for text, _ in texts]
        said = [[(0, 0.0)] * len(encoding.ids) for encoding in encodings]
        windows = [window for at, encoding in enumerate(encodings) for window in self._windows(at, encoding.ids)]
        for window, results in self._read(windows):
            for at in window.kept:
                said[window.text][at] = results[at - window.start]
        return [
            tagged_entities(
                text,
                words,
                [
                    TaggedToken(start, end, self.tags[number], score)
                    for (start, end), (number, score) in zip(encoding.offsets, of_text, strict=True)
                ],
            )
            for (text, words), encoding, of_text in zip(texts, encodings, said, strict=True)
        ]

    def _windows(self, text: int, ids: Sequence[int]) -> Iterator[_Window]:
        """Windows over a text that overlap by a quarter; a token is kept where it has more tokens on both sides."""
        last = max(0, len(ids) - self.room)
        starts = [*range(0, last, self.room - self.room // 4), last]
        middles = ((second + first + self.room) // 2 for first, second in pairwise(starts))
        for start, kept in zip(starts, pairwise((0, *middles, len(ids))), strict=True):
            if ids:
                yield _Window(text, ids[start : start + self.room], range(*kept), start)

    def _read(self, windows: Sequence[_Window]) -> Iterator[tuple[_Window, list[tuple[int, float]]]]:
        """Each window with the likeliest class of its tokens and its probability, from batches of fixed shapes."""
        around = len(self.before) + len(self.after)
        longest = self.room + around
        for length in (*(length for length in LENGTHS if length < longest), longest):
            shorter = max((each for each in LENGTHS if each < length), default=0)
            fitting = [window for window in windows if shorter < len(window.ids) + around <= length]
            rows = max(1, TOKENS // length)
            for first in range(0, len(fitting), rows):
                batch = fitting[first : first + rows]
                best, scores = self._classes([window.ids for window in batch], rows, length)
                for row, window in enumerate(batch):
                    text = slice(len(self.before), len(self.before) + len(window.ids))
                    yield window, list(zip(best[row, text].tolist(), scores[row, text].tolist(), strict=True))

    @torch.inference_mode()
    def _classes(self, batch: Sequence[Sequence[int]], rows: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The likeliest class of each token and its probability, shape [rows, length]."""
        ids = torch.full((rows, length), self.padding)
        mask = torch.zeros(rows, length, dtype=torch.long)
        mask[:, 0] = 1  # a row that attends to nothing is not a number
        for row, of_text in enumerate(batch):
            whole = torch.tensor([*self.before, *of_text, *self.after])
            ids[row, : len(whole)] = whole
            mask[row, : len(whole)] = 1
        logits = self.model(input_ids=ids, attention_mask=mask).logits.float()
        if logits.shape != (rows, length, len(self.tags)) or not torch.isfinite(logits[: len(batch)]).all():
            raise InputError(f"{self.name}: the model's classes are not finite numbers.", "Give an undamaged model.")
        scores, best = logits.softmax(-1).max(-1)
        return best, scores


def load_token_classifier(folder: Path) -> TokenClassifier:
    """Load a folder's token classifier and its fast tokenizer. No pickle is opened, no code of the folder is run.

    Raises:
        InputError: The folder is no such model, or is damaged.
    """
    labels = classifier_labels(folder)
    tokenizer = load_tokenizer(folder)
    with staged(model_files(folder)) as place:
        model = _load_model(folder, place, tokenizer)
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    with without_panic(folder):
        special = backend.encode("a", add_special_tokens=True)
    text = [at for at, mask in enumerate(special.special_tokens_mask) if not mask]
    first, after_last = (text[0], text[-1] + 1) if text else (len(special.ids), len(special.ids))
    room = _context(model, tokenizer) - first - (len(special.ids) - after_last)
    if room < FEWEST:
        raise InputError(f"{folder}: the model reads fewer than {FEWEST} tokens at once.", "Give one for longer texts.")
    classifier = TokenClassifier(
        name=str(folder),
        model=model,
        tokenizer=backend,
        tags=tuple(map(parse_tag, labels)),
        before=tuple(special.ids[:first]),
        after=tuple(special.ids[after_last:]),
        room=room,
        padding=tokenizer.pad_token_id or 0,
        process=os.getpid(),
    )
    try:
        classifier([("a " * 2 * room, ())])
    except InputError:
        raise
    except Exception as error:  # an unfamiliar architecture can raise anything
        raise InputError(
            f"{folder}: the model cannot tag a text of {room} tokens ({type(error).__name__}).",
            "Give a token classifier for text.",
        ) from error
    return classifier


def _load_model(folder: Path, place: Path, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """The model of the files in `place`, which are those of `folder`."""
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        with no_warnings():
            model, info = AutoModelForTokenClassification.from_pretrained(
                place,
                dtype=torch.float32,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
            )
    except Exception as error:  # transformers raises many kinds here
        raise InputError(
            f"{folder} cannot be loaded as a token classifier ({type(error).__name__}).",
            "Check that transformers loads it: AutoModelForTokenClassification.from_pretrained.",
        ) from error
    check_weights(folder, model, info, tokenizer)
    check_base(folder, model, weight_files(place))
    loaded: PreTrainedModel = model.eval()
    return loaded


def _context(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> int:
    """The longest window. RoBERTa and its like number positions from behind the number of the padding."""
    unused = [
        module.padding_idx + 1
        for name, module in model.named_modules()
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None
    ]
    positions = context_length(model, LONGEST_WINDOW + max(unused, default=0)) - max(unused, default=0)
    return min(LONGEST_WINDOW, positions, int(tokenizer.model_max_length))
