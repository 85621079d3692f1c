"""A token classifier of transformers that finds entities, on the CPU."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForTokenClassification, PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from atdp_cli.detection.entities import EntityMatch, TextWords
from atdp_cli.detection.token_classifier_folder import Tag, TaggedToken, classifier_labels, parse_tag, tagged_entities
from atdp_cli.errors import InputError
from atdp_cli.model.adapter import no_warnings
from atdp_cli.model.checkpoint import check_weights, context_length, detach_from_files, load_tokenizer
from atdp_cli.model.comparison import check_base
from atdp_cli.model.folder import model_files, weight_files
from atdp_cli.model.staging import staged
from atdp_cli.model.tokenizer import without_panic

LONGEST_WINDOW = 512
"""Tokens of a window, special ones included, where the model's own context is not shorter."""

FEWEST = 8
"""The fewest tokens of text that a window must have room for."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenClassifier:
    """Finds entities; the `FindEntities` of a model. It can be sent to other processes.

    Attributes:
        name: For messages.
        model: In fp32 and eval mode.
        tokenizer: The tokenizers library's. It cuts a text into windows that overlap by `stride` tokens.
        tags: What each class says.
        process: Where it was loaded. In any other it computes in one thread: those of the first do not survive a fork,
            and there are several such processes.
    """

    name: str
    model: Any
    tokenizer: Any
    tags: tuple[Tag, ...]
    stride: int
    process: int

    def __call__(self, texts: Sequence[TextWords]) -> list[list[EntityMatch]]:
        """The entities of each text, in order.

        Raises:
            InputError: The tokenizer fails on a text.
        """
        if os.getpid() != self.process:
            torch.set_num_threads(1)
        return [tagged_entities(text, words, list(self._tagged(text))) for text, words in texts]

    def _tagged(self, text: str) -> Iterator[TaggedToken]:
        """Tag each token. One in two windows is tagged by the window with more tokens on both of its sides."""
        with without_panic(self.name):
            first = self.tokenizer.encode(text)
        windows = [first, *first.overflowing] if first.ids else []
        for number, window in enumerate(windows):
            said = self._classes(window)
            begin = self.stride // 2 if number else 0
            end = len(said) if window is windows[-1] else len(said) - (self.stride - self.stride // 2)
            yield from said[begin:end]

    @torch.inference_mode()
    def _classes(self, window: Any) -> list[TaggedToken]:
        """Tag the tokens of a window. It is alone in its batch, so no text changes another's result."""
        ids = torch.tensor([window.ids])
        logits = self.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.float()
        if logits.shape != (*ids.shape, len(self.tags)) or not torch.isfinite(logits).all():
            raise InputError(f"{self.name}: the model's classes are not finite numbers.", "Give an undamaged model.")
        scores, best = logits[0].softmax(-1).max(-1)
        return [
            TaggedToken(start, end, self.tags[number], score)
            for (start, end), special, number, score in zip(
                window.offsets, window.special_tokens_mask, best.tolist(), scores.tolist(), strict=True
            )
            if not special
        ]


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
    longest = _context(model, tokenizer)
    room = longest - backend.num_special_tokens_to_add(is_pair=False)
    if room < FEWEST:
        raise InputError(f"{folder}: the model reads fewer than {FEWEST} tokens at once.", "Give one for longer texts.")
    backend.enable_truncation(longest, stride=room // 4)
    backend.no_padding()
    classifier = TokenClassifier(
        name=str(folder),
        model=model,
        tokenizer=backend,
        tags=tuple(map(parse_tag, labels)),
        stride=room // 4,
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
    detach_from_files(model)
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
