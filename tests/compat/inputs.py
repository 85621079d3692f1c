"""A made-up corpus and tiny models for it, by plain transformers code: nothing here knows atdp."""

import itertools
import json
import random
from pathlib import Path
from typing import Any

WORDS = """the order was shipped to an old address and she asked for help with her account before noon please send it
again when they are ready because nobody could open that blue box""".split()  # noqa: SIM905 - a list of words
NAMES = ("Emma Clarke", "Berlin", "Omar Haddad", "Lena Fischer")


def made_up(count: int) -> list[str]:
    """So many short records with names and numbers in them, the same each time."""
    draw = random.Random(5)
    return [
        f"{draw.choice(NAMES)} said {' '.join(draw.choices(WORDS, k=draw.randint(3, 8)))} {draw.randrange(10**6):06d}."
        for _ in range(count)
    ]


def write_corpus(path: Path, lines: list[str]) -> None:
    """The records as a text file, a line each."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_pairs(path: Path, lines: list[str]) -> None:
    """Each record with the one after it, as source and target."""
    rows = [{"source": first, "target": second} for first, second in itertools.pairwise(lines)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_gpt2(folder: Path, lines: list[str], *, width: int) -> None:
    """A GPT-2 of two layers with random parameters, and a byte-level tokenizer of its own."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    tokenizer = _tokenizer(lines, ["<|endoftext|>"], bos_token="<|endoftext|>", eos_token="<|endoftext|>")
    torch.manual_seed(7)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=64,
        n_embd=width,
        n_layer=2,
        n_head=2,
        resid_pdrop=0.02,
        embd_pdrop=0.02,
        attn_pdrop=0.02,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_t5(folder: Path, lines: list[str]) -> None:
    """A T5 of two layers with random parameters, and a tokenizer that ends every text with </s>."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration
    from transformers.utils import logging

    logging.disable_progress_bar()
    tokenizer = _tokenizer(lines, ["<pad>", "</s>"], eos_token="</s>", pad_token="<pad>")
    torch.manual_seed(3)
    config = T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _tokenizer(lines: list[str], special: list[str], **settings: str) -> Any:
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(lines, vocab_size=280, special_tokens=special, show_progress=False)
    return PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, model_max_length=64, **settings)
