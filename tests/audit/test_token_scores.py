"""Scores of tokens and of decoys beside whole sequences through the model one by one."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from atdp_cli.errors import RunError
from atdp_cli.events import ignore
from atdp_cli.memorisation.ranks import Tails, score_tails, tokenise_tails
from atdp_cli.memorisation.scores import score_tokens
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from tests.audit.test_trie import mamba, neox, opt, sliding

from .conftest import gpt2, llama


@pytest.fixture
def checkpoint(checkpoint_folder: Path) -> Checkpoint:
    loaded = load_checkpoint(checkpoint_folder)
    loaded.model.eval()
    return loaded


def log_probabilities(model: Any, ids: list[int]) -> torch.Tensor:
    """Of every next token, shape [T − 1, V], in fp64."""
    with torch.no_grad():
        return torch.log_softmax(model(torch.tensor([ids]), use_cache=False).logits[0, :-1].double(), -1)


def test_every_token_is_scored_after_those_before_it(checkpoint: Checkpoint, lines: list[str]) -> None:
    texts = [*lines[:7], "", "a", " ".join(lines[:9])]  # the last one has several windows
    scores = score_tokens(checkpoint, texts, name="model", notify=ignore)
    start = checkpoint.tokenizer.bos_token_id
    for text, own in zip(texts, scores, strict=True):
        ids = [start, *checkpoint.tokenizer(text, add_special_tokens=False)["input_ids"]]
        assert own.ids.tolist() == ids
        assert own.log_p[0] == 0
        for first in range(0, len(ids) - 1, 63):  # the context has 64 tokens
            window = ids[first : first + 64]
            expected = log_probabilities(checkpoint.model, window)
            chosen = expected.gather(1, torch.tensor(window[1:])[:, None])[:, 0].numpy()
            covered = slice(first + 1, first + len(window))
            assert own.log_p[covered] == pytest.approx(chosen, abs=1e-4)
            assert (own.greedy[covered] == (expected.argmax(1).numpy() == window[1:])).all()
    assert len(scores[-1].ids) > 128


def test_offsets_say_which_characters_a_token_covers(checkpoint: Checkpoint, lines: list[str]) -> None:
    [own] = score_tokens(checkpoint, lines[:1], name="model", notify=ignore)
    covered = "".join(lines[0][start:end] for start, end in own.offsets.tolist())
    assert covered == lines[0]


def test_weights_that_are_no_numbers_are_an_error(checkpoint: Checkpoint, lines: list[str]) -> None:
    with torch.no_grad():
        checkpoint.model.get_input_embeddings().weight[5:] = torch.nan
    with pytest.raises(RunError, match="not a number"):
        score_tokens(checkpoint, lines[:3], name="model", notify=ignore)


@pytest.mark.parametrize("family", [gpt2, llama, neox, opt, sliding, mamba])
def test_tails_score_as_in_whole_sequences(family: Any) -> None:
    model, dice = family(50), random.Random(4)

    def tokens(least: int, most: int) -> tuple[int, ...]:
        return tuple(dice.randrange(50) for _ in range(dice.randint(least, most)))

    values = [Tails(prefix=tokens(1, 9), tails=tuple(tokens(1, 5) for _ in range(6))) for _ in range(20)]
    for value, own in zip(values, score_tails(model, values), strict=True):
        for tail, score in zip(value.tails, own, strict=True):
            ids = [*value.prefix, *tail]
            chances = log_probabilities(model, ids).gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
            assert score == pytest.approx(float(chances[len(value.prefix) - 1 :].sum()), abs=1e-4)


def test_what_all_surfaces_share_is_read_once(checkpoint: Checkpoint) -> None:
    before, surfaces = "the order of ", ["483920", "483911", "12"]
    tails = tokenise_tails(checkpoint.tokenizer, before, surfaces)
    assert tails is not None
    whole = [checkpoint.tokenizer.decode([*tails.prefix, *tail], skip_special_tokens=True) for tail in tails.tails]
    assert whole == [before + surface for surface in surfaces]
    assert len({tail[0] for tail in tails.tails}) > 1


def test_nothing_precedes_a_value_at_the_start_without_a_start_token(checkpoint: Checkpoint) -> None:
    assert tokenise_tails(checkpoint.tokenizer, "", ["48", "57"]) is not None
    checkpoint.tokenizer.bos_token = None
    assert tokenise_tails(checkpoint.tokenizer, "", ["48", "57"]) is None


def test_scores_are_finite(checkpoint: Checkpoint, lines: list[str]) -> None:
    scores = score_tokens(checkpoint, lines, name="model", notify=ignore)
    assert all(np.isfinite(own.log_p).all() and (own.log_p <= 0).all() for own in scores)
