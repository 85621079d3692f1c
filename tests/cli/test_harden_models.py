"""`atdp harden` on encoder-decoder models and on adapters."""

import itertools
import json
import random
from pathlib import Path

import pytest
import torch

from atdp_cli.model.checkpoint import load_checkpoint
from atdp_cli.privacy.ledger import SubsampledGaussian, read_verified
from atdp_cli.reporting.verify import verify
from tests.cli.badinput.case import line
from tests.cli.conftest import Atdp

QUICK = ["--epochs", "2", "--tier", "low-entity", "--set", "run.store=none", "-q"]
FEW = [*QUICK, "--set", "run.max-records=60"]
PAPER = ["--recipe", "atdp"]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> Path:
    """Each line with the line after it, as source and target."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    rows = [{"source": first, "target": second} for first, second in itertools.pairwise(lines)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def t5_folder(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> Path:
    """A T5 of random parameters with a tokenizer that ends every text with </s>."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    folder = tmp_path_factory.mktemp("t5") / "tiny"
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(lines, vocab_size=350, special_tokens=["<pad>", "</s>"], show_progress=False)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, eos_token="</s>", pad_token="<pad>")
    torch.manual_seed(3)
    config = T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def private_steps(folder: Path) -> int:
    return sum(event.steps for event in read_verified(folder).events if isinstance(event, SubsampledGaussian))


@pytest.mark.ci
def test_an_encoder_decoder_model_trains_on_pairs(atdp: Atdp, t5_folder: Path, pairs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = [*line("--set run.source-field=source --text-field target --noise-multiplier 0.5"), *PAPER, *QUICK]
    planned = atdp("harden", t5_folder, "--data", pairs, *options, "--dry-run", "--json").json
    ended = atdp("harden", t5_folder, "--data", pairs, "-o", out, *options, "--json")
    assert ended.code == 0
    assert ended.json["guarantees"] == planned["guarantees"]
    assert planned["engine"] == "ghost"
    assert private_steps(out) == planned["steps"] == ended.json["steps"]
    before, after = load_checkpoint(t5_folder).model, load_checkpoint(out).model
    names = dict(before.named_parameters())
    moved = {name for name, tensor in after.named_parameters() if not torch.equal(tensor, names[name])}
    assert any("relative_attention_bias" in name for name in moved)
    assert any("encoder" in name for name in moved)
    assert any("decoder" in name for name in moved)
    perplexity = ended.json["perplexity"]
    assert perplexity["after"]["all"] < perplexity["before"]["all"]


def test_an_encoder_decoder_model_needs_to_know_what_to_read(
    atdp: Atdp, t5_folder: Path, pairs: Path, tmp_path: Path
) -> None:
    for options, words in (
        (("--text-field", "target"), "run.source-field"),
        (("--set", "run.source-field=source"), "text"),
    ):
        ended = atdp("harden", t5_folder, "--data", pairs, "-o", tmp_path / "out", *options, *QUICK)
        assert ended.code == 2
        assert words in ended.err
        assert not (tmp_path / "out").exists()


def test_a_causal_model_has_no_use_for_a_source(
    atdp: Atdp, checkpoint_folder: Path, pairs: Path, tmp_path: Path
) -> None:
    fields = ("--set", "run.source-field=source", "--text-field", "target")
    ended = atdp("harden", checkpoint_folder, "--data", pairs, "-o", tmp_path / "out", *fields, *QUICK)
    assert ended.code == 2
    assert "no encoder" in ended.err


@pytest.mark.ci
def test_an_adapter_is_trained_written_and_hardened_again(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    lora = ("--lora-rank", "2", "--learning-rate", "0.01", *PAPER)
    assert atdp("harden", checkpoint_folder, "--data", corpus, "-o", first, *lora, *FEW).code == 0
    assert (first / "adapter_model.safetensors").is_file()
    assert not (first / "model.safetensors").exists()
    assert atdp("harden", first, "--data", corpus, "-o", second, *PAPER, *FEW).code == 0
    assert private_steps(second) == 2 * private_steps(first) > 0
    assert [verify(first), verify(second)] == [(), ()]
    base, hardened = load_checkpoint(checkpoint_folder), load_checkpoint(second)
    ids = torch.arange(8)[None]
    assert not torch.allclose(base.model(ids).logits, hardened.model(ids).logits, atol=1e-4)
    ended = atdp("harden", first, "--data", corpus, "-o", tmp_path / "third", "--lora-rank", "2", *FEW)
    assert ended.code == 2
    assert "adapter already" in ended.err


@pytest.mark.ci
def test_a_merged_adapter_is_a_whole_model_that_says_the_same(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    apart, whole = tmp_path / "apart", tmp_path / "whole"
    options = ("--lora-rank", "2", "--learning-rate", "0.01", "--set", "run.insecure-seed=4", *FEW)
    assert atdp("harden", checkpoint_folder, "--data", corpus, "-o", apart, *options).code == 0
    assert (
        atdp(
            "harden", checkpoint_folder, "--data", corpus, "-o", whole, "--set", "run.merge-adapter=true", *options
        ).code
        == 0
    )
    assert (whole / "model.safetensors").is_file()
    assert not (whole / "adapter_config.json").exists()
    ids = torch.tensor([random.Random(0).sample(range(300), 12)])
    logits, other = load_checkpoint(apart).model(ids).logits, load_checkpoint(whole).model(ids).logits
    assert torch.allclose(logits, other, atol=1e-4)


@pytest.mark.ci
@pytest.mark.parametrize("recipe", ["no-dp", "dp-sgd"])
def test_layers_may_compute_in_bfloat16(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path, recipe: str
) -> None:
    start = flat(checkpoint_folder)
    moved = {}
    for precision in ("float32", "bfloat16"):
        out = tmp_path / precision
        options = (
            "--recipe",
            recipe,
            "--set",
            f"run.compute-dtype={precision}",
            "--set",
            "run.insecure-seed=9",
            "--set",
            "run.save-dtype=float32",
            *FEW,
        )
        assert atdp("harden", checkpoint_folder, "--data", corpus, "-o", out, *options).code == 0
        check = json.loads((out / "privacy_report.json").read_text())["engine_check"]
        if recipe == "dp-sgd":
            assert ("layers compute in bfloat16" in check) == (precision == "bfloat16")
        moved[precision] = flat(out) - start
    apart = (moved["bfloat16"] - moved["float32"]).norm() / moved["float32"].norm()
    assert 0 < apart < 0.2


def flat(folder: Path) -> torch.Tensor:
    """All weights of a checkpoint, one after the other."""
    return torch.cat([parameter.detach().flatten() for parameter in load_checkpoint(folder).model.parameters()])
