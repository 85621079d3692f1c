"""Tokenizers and small random models that the audit's tests share."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

SHARED = Path(__file__).parents[3] / "shared" / "models"


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def bpe() -> Any:
    """A byte-level BPE tokenizer with tokens of one, two and three digits, so that candidates differ in length."""
    dice = random.Random(0)
    lines = [f"My ID is {dice.choice(('12', '345', '77', '9', '608', '41'))}{dice.randrange(100)}." for _ in range(600)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=340, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(lines, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


@pytest.fixture(scope="session")
def characters() -> Any:
    """A tokenizer of whole characters that knows few of them and folds case: many texts have the same tokens."""
    from tokenizers import normalizers

    vocabulary = {token: number for number, token in enumerate(["<unk>", *"0123abc My:"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")


@pytest.fixture(scope="session")
def gpt2_tokenizer() -> Any:
    return _shared("gpt2-tokenizer")


@pytest.fixture(scope="session")
def stories_tokenizer() -> Any:
    return _shared("stories15M")


def _shared(name: str) -> Any:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"needs {name}, which is not part of the repository")
    return AutoTokenizer.from_pretrained(folder)


def gpt2(vocabulary: int, *, seed: int = 0, **changes: Any) -> Any:
    """A GPT-2 of random weights, large enough for peaked distributions."""
    torch.manual_seed(seed)
    shape = {"n_layer": 2, "n_embd": 32, "n_head": 2, "n_positions": 64, "initializer_range": 0.2}
    return GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, **shape | changes)).eval()


def llama(vocabulary: int, *, seed: int = 0, **changes: Any) -> Any:
    """A Llama of random weights with grouped keys."""
    torch.manual_seed(seed)
    shape = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "initializer_range": 0.2,
    }
    return LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, **shape | changes)).eval()
