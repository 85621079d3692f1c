"""The tokens of a record, as training and audit both see them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

NOWHERE = (0, 0)
"""The character range of a token that the text does not contain."""


def encode_record(
    tokenizer: "PreTrainedTokenizerFast", text: str, *, with_end: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    """Token ids of one whole record and the characters that each covers.

    The start token comes first and, on request, the end token last, where the tokenizer has them. Training
    asks for the end; the audited sequence stops before it.

    Returns:
        Token ids, shape [tokens], and (start, end) in code points, shape [tokens].
    """
    encoding = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    ids: list[int] = list(encoding["input_ids"])
    offsets: list[tuple[int, int]] = [tuple(pair) for pair in encoding["offset_mapping"]]
    if tokenizer.bos_token_id is not None:
        ids, offsets = [tokenizer.bos_token_id, *ids], [NOWHERE, *offsets]
    if with_end and tokenizer.eos_token_id is not None:
        ids, offsets = [*ids, tokenizer.eos_token_id], [*offsets, NOWHERE]
    return ids, offsets
