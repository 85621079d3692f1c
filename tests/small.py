"""A small corpus and a small real checkpoint: the same for fixtures and for files made from the code."""

import random
from pathlib import Path

WORDS = """the order was shipped to an old address and she asked for help with her account before noon please send it
again when they are ready because nobody could open that blue box""".split()  # noqa: SIM905 - a list of words


def small_lines() -> list[str]:
    """Some 200 short records with names and numbers in them."""
    draw = random.Random(5)
    names = ("Emma Clarke", "Berlin", "Omar Haddad", "Lena Fischer")
    return [
        f"{draw.choice(names)} said {' '.join(draw.choices(WORDS, k=draw.randint(3, 9)))} {draw.randrange(10**6):06d}."
        for _ in range(200)
    ]


def write_corpus(path: Path, lines: list[str]) -> Path:
    """The records as a text file, a line each."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_checkpoint(folder: Path, lines: list[str], seed: int = 7, context: int = 64) -> Path:
    """A GPT-2 of some 50,000 random parameters with a byte-level BPE tokenizer of its own, in fp32."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(lines, vocab_size=400, special_tokens=["<|endoftext|>"], show_progress=False)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>", model_max_length=context
    )
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=context,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = GPT2LMHeadModel(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
