"""The tokens of a record, as training and audit both see them, and what identifies a tokenizer."""

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def encode_record(tokenizer: "PreTrainedTokenizerFast", text: str) -> list[int]:
    """Token ids of one whole record: the text's own tokens, after the beginning token if there is one.

    Training appends the end token; the audited sequence stops before it.

    Returns:
        Token ids, shape [tokens].
    """
    ids: list[int] = tokenizer(text, add_special_tokens=False).input_ids
    start = tokenizer.bos_token_id
    return ids if start is None else [start, *ids]


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
