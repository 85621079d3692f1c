"""Records of two tokens that have little in common, and the smallest Llama that reads them."""

from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from atdp_cli.model.windows import Window
from atdp_cli.training.examples import Example, make_example
from atdp_cli.training.objectives import Objective

EMPTY = Example((), ())
"""What zero-out adjacency puts in a record's place."""


def llama(vocabulary: int, width: int, *, tied: bool = True) -> Any:
    """One layer, random weights. It has no learned positions, whose gradient all records would share."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=width,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=16,
        tie_word_embeddings=tied,
        bos_token_id=0,
        eos_token_id=0,
    )
    return LlamaForCausalLM(config).eval()


def pairs(records: int, vocabulary: int, objective: Objective, *, windows: int = 1) -> list[Example]:
    """Record i is a token that begins no other record and one that ends no other, in this many equal windows.

    So its gradient is large in rows of the embedding and of the head that the others hardly touch.
    """
    draw = np.random.default_rng(0)
    begin, end = draw.permutation(vocabulary)[:records], draw.permutation(vocabulary)[:records]
    nothing = np.zeros(2, dtype=np.bool_)
    secret = np.array([False, True])
    return [
        make_example((Window(row, np.array(ids), secret, nothing, nothing),) * windows, objective)
        for row, ids in enumerate(zip(begin, end, strict=True))
    ]
