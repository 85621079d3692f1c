"""Perplexity against one window at a time in fp64."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from atdp_cli.model.checkpoint import load_checkpoint
from atdp_cli.model.perplexity import perplexity
from atdp_cli.model.windows import Marks, Window, encode_windows


@pytest.fixture(scope="module")
def windows(checkpoint_folder: Path, lines: list[str]) -> list[Window]:
    tokenizer = load_checkpoint(checkpoint_folder).tokenizer
    return [
        window
        for record, line in enumerate(lines[:30])
        for window in encode_windows(
            tokenizer, record, line, Marks(sensitive=((0, 4),), ignored=((9, 12),)), context=12, max_windows=3
        )
    ]


def test_perplexity_is_that_of_each_window_alone(checkpoint_folder: Path, windows: list[Window]) -> None:
    model = load_checkpoint(checkpoint_folder).model
    actual = perplexity(model, windows, tokens_per_batch=100)
    double = load_checkpoint(checkpoint_folder).model.double()
    losses: dict[str, list[float]] = {"all": [], "sensitive": [], "other": []}
    for window in windows:
        ids = torch.from_numpy(window.token_ids)
        with torch.no_grad():
            log_p = torch.log_softmax(double(ids[None]).logits[0], dim=-1)
        for place in np.flatnonzero(window.targets):
            loss = -float(log_p[place - 1, ids[place]])
            losses["all"].append(loss)
            losses["sensitive" if window.sensitive[place] else "other"].append(loss)
    for name, values in losses.items():
        assert getattr(actual, name) == pytest.approx(math.exp(math.fsum(values) / len(values)), rel=1e-5)


def test_a_kind_without_tokens_has_no_perplexity(checkpoint_folder: Path) -> None:
    checkpoint = load_checkpoint(checkpoint_folder)
    actual = encode_windows(checkpoint.tokenizer, 0, "the order", Marks(), context=50, max_windows=1)
    assert perplexity(checkpoint.model, actual).sensitive is None
    assert perplexity(checkpoint.model, []).all is None
