"""A real checkpoint over real chats at the size that the README's reader would start with."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.cli.conftest import Atdp, atdp
from tests.cli.test_harden import pld, scopes

__all__ = ["atdp"]


@pytest.mark.deep
def test_stories15m_over_300_chats(atdp: Atdp, shared: Path, tmp_path: Path) -> None:
    model = shared / "models" / "stories15M"
    corpus = shutil.copy(shared / "data" / "abcd" / "valid.txt", tmp_path)
    options = ["--data", corpus, "--set", "run.max-records=300", "--epochs", "1", "-o", tmp_path / "o"]
    options += ["--recipe", "atdp", "--json"]
    planned = atdp("harden", model, *options, "--dry-run").json
    ended = atdp("harden", model, *options)
    assert ended.code == 0, ended.err
    assert ended.json["guarantees"] == planned["guarantees"]
    ledger = json.loads((tmp_path / "o" / "privacy_ledger.json").read_text())
    assert scopes(ended.json)["increment"] == pytest.approx(pld(ledger), abs=1e-6)
    assert ended.json["perplexity"]["after"]["all"] < ended.json["perplexity"]["before"]["all"]
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "o")
    tokens = AutoTokenizer.from_pretrained(tmp_path / "o")("Hello", return_tensors="pt")["input_ids"]
    written = loaded.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=5, do_sample=False)
    assert written.shape[1] == tokens.shape[1] + 5
