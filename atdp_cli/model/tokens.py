"""The tokens of a record, the same for training and audit, and a tokenizer's fingerprint."""

import hashlib
import json
from typing import TYPE_CHECKING, Any

from atdp_cli.files.corpus_file import LONE_SURROGATE
from atdp_cli.model.tokenizer import without_panic

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

NO_CHARACTERS = (0, 0)
"""The character range of a token that the text does not contain."""


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
