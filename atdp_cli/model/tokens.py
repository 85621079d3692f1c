"""The tokens of a record, as training and audit both see them, and what identifies a tokenizer."""

import hashlib
import json
from typing import TYPE_CHECKING, Any

from atdp_cli.files.corpus_file import LONE_SURROGATE

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

NOWHERE = (0, 0)
"""The character range of a token that the text does not contain."""


def align_record(
    tokenizer: "PreTrainedTokenizerFast", text: str, *, with_end: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    """Token ids of one whole record and the characters that each covers.

    The start token comes first and, on request, the end token last, where the tokenizer has them. Training
    asks for the end; the audited sequence stops before it.

    Returns:
        Token ids, shape [tokens], and (start, end) in code points, shape [tokens].
    """
    encoding = tokenizer(_encodable(text), add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    ids: list[int] = list(encoding["input_ids"])
    offsets: list[tuple[int, int]] = [tuple(pair) for pair in encoding["offset_mapping"]]
    if tokenizer.bos_token_id is not None:
        ids, offsets = [tokenizer.bos_token_id, *ids], [NOWHERE, *offsets]
    if with_end and tokenizer.eos_token_id is not None:
        ids, offsets = [*ids, tokenizer.eos_token_id], [*offsets, NOWHERE]
    return ids, offsets


def _encodable(text: str) -> str:
    """The text with lone surrogates, which have no UTF-8, replaced one for one, so that positions stay."""
    return LONE_SURROGATE.sub("\ufffd", text)


def encode_record(tokenizer: "PreTrainedTokenizerFast", text: str) -> list[int]:
    """Token ids of one whole record without the end token, as the audit scores it; shape [tokens]."""
    return align_record(tokenizer, text, with_end=False)[0]


def tokenizer_fingerprint(tokenizer: "PreTrainedTokenizerFast") -> str:
    """SHA-256 (hex) over all that decides which ids `encode_record` gives for text without special tokens.

    Normaliser, pre-tokeniser, vocabulary, merges, ordinary added tokens and the beginning token count.
    Padding, truncation, decoder, post-processor and special tokens (a `[PAD]` added before fine-tuning) do
    not: they leave the ids of such text alone, and they change from one save to the next.
    """
    backend: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    deciding = {
        "model": backend["model"],
        "normalizer": backend["normalizer"],
        "pre_tokenizer": backend["pre_tokenizer"],
        "added_tokens": [token for token in backend["added_tokens"] if not token["special"]],
        "start": tokenizer.bos_token_id,
    }
    canonical = json.dumps(deciding, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
