"""Ranks of flagged values among decoys: what they are, what chance gives, and that memory is seen."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binom
from transformers import PreTrainedModel

from atdp_cli.corpus.edits import EditedText
from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.memorisation.ranks import DECOYS, FlaggedValue, compare_ranks, tokenise_values, value_ranks
from atdp_cli.model.checkpoint import Checkpoint, load_checkpoint
from atdp_cli.replacement.decoys import Choose, uniformly
from atdp_cli.replacement.draw import decoy_text


@pytest.fixture
def checkpoint(checkpoint_folder: Path) -> Checkpoint:
    loaded = load_checkpoint(checkpoint_folder)
    loaded.model.eval()
    return loaded


def values(count: int, seed: int) -> list[FlaggedValue]:
    """Numbers of six digits, each in a short record."""
    dice = random.Random(seed)
    texts = [f"The account of the shipping order is {dice.randrange(10**6):06} for now." for _ in range(count)]
    return [FlaggedValue(text=text, span=Span(37, 43, "NUMBER", "pattern", Tier.LOW_ENTITY)) for text in texts]


def draws(seed: int) -> Choose:
    return uniformly(random.Random(seed).randrange)


def log_p(checkpoint: Checkpoint, text: str) -> float:
    """Of a text after the start token, token by token."""
    tokenizer = checkpoint.tokenizer
    own = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]
    ids = torch.tensor([own])
    with torch.no_grad():
        chances = torch.log_softmax(checkpoint.model(ids).logits[0, :-1].double(), -1)
    return float(chances.gather(1, ids[0, 1:, None]).sum())


def up_to_value(changed: EditedText) -> str:
    """The text before a decoy, and the decoy."""
    [(_, end)] = changed.places
    return changed.text[:end]


def learn(model: PreTrainedModel, checkpoint: Checkpoint, texts: Sequence[str]) -> None:
    """By heart."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(100):
        for text in texts:
            ids = torch.tensor([checkpoint.tokenizer(text)["input_ids"]])
            model(ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def ranks_of(checkpoint: Checkpoint, given: Sequence[FlaggedValue], choose: Choose) -> tuple[float, ...]:
    return value_ranks(checkpoint.model, tokenise_values(checkpoint.tokenizer, given, choose))


def test_a_rank_is_the_share_of_decoys_that_are_likelier(checkpoint: Checkpoint) -> None:
    given = values(5, 1)
    choose = draws(3)
    for value, rank in zip(given, ranks_of(checkpoint, given, draws(3)), strict=True):
        others = [up_to_value(decoy_text(value.text, (value.span,), choose)) for _ in range(DECOYS)]
        true = log_p(checkpoint, value.text[: value.span.end])
        assert rank == pytest.approx(np.mean([log_p(checkpoint, other) > true for other in others]))


def test_a_value_that_nothing_precedes_has_no_rank(checkpoint: Checkpoint) -> None:
    at_start = FlaggedValue(text="123456 is its number.", span=Span(0, 6, "NUMBER", "pattern", Tier.LOW_ENTITY))
    given = [at_start, *values(1, 1)]
    assert len(ranks_of(checkpoint, given, draws(1))) == 2
    checkpoint.tokenizer.bos_token = None
    assert len(ranks_of(checkpoint, given, draws(1))) == 1


def test_a_model_that_prefers_nothing_ranks_all_in_the_middle(checkpoint: Checkpoint) -> None:
    with torch.no_grad():
        for parameter in checkpoint.model.parameters():
            parameter.zero_()
    given = [FlaggedValue(text="abc 12 de", span=Span(4, 6, "NUMBER", "pattern", Tier.LOW_ENTITY))] * 3
    ranks = ranks_of(checkpoint, given, draws(1))
    lengths = {len(checkpoint.tokenizer(f"abc {number:02} de")["input_ids"]) for number in range(100)}
    assert len(lengths) > 1 or ranks == (0.5, 0.5, 0.5)


@pytest.mark.deep
def test_what_was_learnt_by_heart_ranks_first_and_the_rest_as_before(checkpoint: Checkpoint) -> None:
    training, held_out = values(12, 1), values(40, 2)
    learn(checkpoint.model, checkpoint, [value.text for value in training])
    checkpoint.model.eval()
    ranks = [ranks_of(checkpoint, each, draws(5)) for each in (training, held_out)]
    compared = compare_ranks(*ranks)
    assert compared.training < 0.2 < compared.held_out
    assert compared.p_value < 1e-4
    assert (compared.training_values, compared.held_out_values) == (12, 40)


def test_where_neither_was_read_small_p_values_are_as_rare_as_they_say(checkpoint: Checkpoint) -> None:
    """However the values are split into training and held-out records."""
    ranks = list(ranks_of(checkpoint, values(60, 7), draws(2)))
    dice, splits = random.Random(4), 400
    p_values = []
    for _ in range(splits):
        dice.shuffle(ranks)
        p_values.append(compare_ranks(ranks[:40], ranks[40:]).p_value)
    for level in (0.01, 0.05, 0.2):
        assert sum(p <= level for p in p_values) <= binom.ppf(1 - 1e-4, splits, level)


def test_a_context_that_is_too_short_for_what_precedes_a_value_reads_less_of_it(checkpoint: Checkpoint) -> None:
    """The small model has 64 positions, and up to 64 tokens before a value are read."""
    before = "a z " * 60
    span = Span(len(before), len(before) + 6, "NUMBER", "pattern", Tier.LOW_ENTITY)
    [rank] = ranks_of(checkpoint, [FlaggedValue(text=before + "123456", span=span)], draws(1))
    assert 0 <= rank <= 1
