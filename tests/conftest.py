"""What many tests need: a small real checkpoint, a corpus, and the shared material where it is at hand."""

import random
from pathlib import Path

import pytest
from hypothesis import settings

# A test's time says nothing on a machine that does other things as well.
settings.register_profile("atdp", deadline=None)
settings.load_profile("atdp")

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"

WORDS = """the order was shipped to an old address and she asked for help with her account before noon please send it
again when they are ready because nobody could open that blue box""".split()  # noqa: SIM905 - a list of words


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Tests run side by side; two threads each would make them wait for one another."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The shared corpora and models, or a skip that says what is missing."""
    if not SHARED.is_dir():
        pytest.skip("../shared is absent: the shared corpora and models")
    return SHARED


@pytest.fixture(scope="session")
def lines() -> list[str]:
    """Some 200 short records with names and numbers in them."""
    draw = random.Random(5)
    names = ("Emma Clarke", "Berlin", "Omar Haddad", "Lena Fischer")
    return [
        f"{draw.choice(names)} said {' '.join(draw.choices(WORDS, k=draw.randint(3, 9)))} {draw.randrange(10**6):06d}."
        for _ in range(200)
    ]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> Path:
    """The records as a text file, a line each."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def checkpoint_folder(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> Path:
    """A GPT-2 of some 50,000 random parameters with a byte-level BPE tokenizer of its own, in fp32."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("checkpoint") / "tiny"
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(lines, vocab_size=400, special_tokens=["<|endoftext|>"], show_progress=False)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>", model_max_length=64
    )
    torch.manual_seed(7)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=64,
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
