"""Tuning on other text: what it does to the copy, what it leaves alone, and what it brings back."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

from atdp_cli.audit.attacks.relearning import fine_tune_copy
from atdp_cli.audit.exposure import Rank, rank_of
from atdp_cli.audit.hypothesis_tests import fisher
from atdp_cli.audit.pool import Candidates
from atdp_cli.audit.trie import score_pool
from atdp_cli.errors import RunError, UsageError
from atdp_cli.events import Event, StepDone
from atdp_cli.model.adapter import add_adapter
from atdp_cli.model.perplexity import perplexity
from atdp_cli.model.windows import Window

from .conftest import gpt2, llama

VOCABULARY = 16  # ten digits, then words
PREFIX = [15, 12, 13]


def window(ids: Any, ignored: Any = None) -> Window:
    ids = np.asarray(ids, dtype=np.int64)
    none = np.zeros(len(ids), dtype=np.bool_)
    return Window(0, ids, none, none, none if ignored is None else np.asarray(ignored, dtype=np.bool_))


def other_text(seed: int, count: int = 400) -> list[Window]:
    """Random digits after words that no canary begins with."""
    dice = np.random.default_rng(seed)
    return [window([15, dice.choice([10, 11, 14]), *dice.integers(10, size=6)]) for _ in range(count)]


def weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def equal(tensors: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return tensors.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in tensors.items())


@pytest.mark.parametrize("family", [gpt2, llama])
@pytest.mark.parametrize("training", [False, True])
def test_the_original_stays_as_it_is(family: Any, training: bool) -> None:
    model = family(VOCABULARY).train(training)
    for number, parameter in enumerate(model.parameters()):
        parameter.requires_grad_(number % 2 == 0)
    before, flags = weights(model), [parameter.requires_grad for parameter in model.parameters()]
    random_state = torch.get_rng_state()
    tuned = fine_tune_copy(model, other_text(0), steps=3)
    assert equal(weights(model), before)
    assert [parameter.requires_grad for parameter in model.parameters()] == flags
    assert all(parameter.grad is None for parameter in (*model.parameters(), *tuned.parameters()))
    assert all(module.training == training for module in model.modules())
    assert torch.equal(torch.get_rng_state(), random_state)
    assert not any(module.training for module in tuned.modules())
    assert [parameter.requires_grad for parameter in tuned.parameters()] == flags
    moved = [not torch.equal(value, before[name]) for name, value in tuned.named_parameters()]
    assert all(moved), "frozen parameters too"


def test_tied_weights_stay_tied_and_other_models_can_be_tuned_in_an_adapter() -> None:
    model = gpt2(VOCABULARY)
    tuned: Any = fine_tune_copy(model, other_text(0), steps=2)
    assert tuned.lm_head.weight is tuned.transformer.wte.weight
    assert tuned.lm_head.weight is not model.lm_head.weight
    adapted = add_adapter(model, 2)
    before = weights(adapted)
    after = weights(fine_tune_copy(adapted, other_text(0), steps=2))
    assert equal(weights(adapted), before)
    assert not equal(after, before)


def test_the_seed_decides_and_dropout_is_off() -> None:
    model = gpt2(VOCABULARY, attn_pdrop=0.5, resid_pdrop=0.5, embd_pdrop=0.5).train()
    text = other_text(1, 40)
    first, again, other = (weights(fine_tune_copy(model, text, steps=4, seed=seed)) for seed in (1, 1, 2))
    assert equal(first, again)
    assert not equal(first, other)
    with torch.no_grad():
        assert equal(first, weights(fine_tune_copy(model, text, steps=4, seed=1)))


def test_each_window_is_used_once_before_any_is_used_again() -> None:
    text = [window(range(size)) for size in range(2, 12)]
    heard = list[Event]()
    fine_tune_copy(gpt2(VOCABULARY), text, steps=20, batch_size=1, name="mine", notify=heard.append)
    done = [event for event in heard if isinstance(event, StepDone)]
    assert [event.step for event in done] == list(range(1, 21))
    assert {(event.stage, event.steps, event.noise_multiplier) for event in done} == {("tuning mine", 20, None)}
    for part in (done[:10], done[10:]):
        assert sorted(event.tokens for event in part) == list(range(2, 12))


def test_steps_are_those_of_adamw_on_the_mean_loss_of_the_targets() -> None:
    """By hand, one window at a time: windows of unequal length, some tokens of which are no targets."""
    model = gpt2(VOCABULARY).double()
    text = [window([1, 2, 3, 4, 5], [0, 0, 1, 0, 0]), window([6, 7]), window([9, 8, 7], [1, 0, 0])]
    text.append(window([1, 1], [0, 1]))  # without a target
    tuned = fine_tune_copy(model, text, steps=3, batch_size=3, learning_rate=1e-2)
    targets = {(1, 2, 3, 4, 5): [1, 3, 4], (6, 7): [1], (9, 8, 7): [1, 2]}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0)
    for _ in range(3):
        optimizer.zero_grad()
        for ids, places in targets.items():
            log_p = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
            sum(-log_p[place - 1, ids[place]] / 6 for place in places).backward()
        optimizer.step()
    expected = weights(model)
    for name, value in tuned.state_dict().items():
        assert torch.allclose(value, expected[name], rtol=0, atol=1e-9), name


def test_the_loss_on_the_other_text_falls() -> None:
    model, text = gpt2(VOCABULARY), other_text(2)
    tuned = fine_tune_copy(model, text)
    before, after = perplexity(model, text).all, perplexity(tuned, text).all
    assert before is not None
    assert after is not None
    assert after < before


def state(model: Any, secret: Any) -> Rank:
    """Of the secret among all numbers of three digits after the prefix."""
    tails = np.stack(np.meshgrid(*[np.arange(10)] * 3, indexing="ij"), axis=-1).reshape(-1, 3).astype(np.int32)
    lengths = np.full(1000, 3, dtype=np.int32)
    pool = Candidates(prefix=np.array(PREFIX, dtype=np.int32), tails=tails, lengths=lengths)
    return rank_of(score_pool(model, pool), lengths, int(secret @ [100, 10, 1]))


def hidden(model: Any, digits: Any) -> Any:
    """A copy that says these digits less often wherever it is: one bias before the head, and no other change."""
    changed = copy.deepcopy(model)
    shift = torch.zeros(VOCABULARY)
    shift[torch.from_numpy(np.unique(digits))] = -8.0
    with torch.no_grad():
        changed.transformer.ln_f.bias += torch.linalg.lstsq(changed.lm_head.weight, shift[:, None]).solution[:, 0]
    return changed


@pytest.mark.parametrize("copies", [pytest.param(40, marks=pytest.mark.ci), pytest.param(0, marks=pytest.mark.ci)])
def test_a_hidden_secret_is_relearnt_and_one_that_was_never_seen_does_not(copies: int) -> None:
    """As the audit's own test sees three models, each with a secret of its own: trained, masked, and tuned on."""
    seen = []
    for seed in range(3):
        secret = np.random.default_rng(seed).integers(10, size=3)
        text = other_text(seed + 100) + [window([*PREFIX, *secret])] * copies
        model = gpt2(VOCABULARY, seed=seed, initializer_range=0.02, tie_word_embeddings=False)
        model = fine_tune_copy(model, text, steps=300, batch_size=16, learning_rate=3e-3)
        masked = hidden(model, secret)
        # A model of this size needs a higher rate than the default.
        tuned = fine_tune_copy(masked, other_text(seed + 500), learning_rate=1e-3)
        seen.append([state(audited, secret) for audited in (model, masked, tuned)])
    trained, masked, tuned = zip(*seen, strict=True)
    actual = [fisher([rank.p_value for rank in ranks]) < 1e-3 for ranks in (trained, masked, tuned)]
    if copies:
        assert actual == [True, False, True]
        assert np.mean([rank.exposure for rank in masked]) < 1.44, "bits, which is what chance gives"
        assert np.mean([rank.exposure for rank in tuned]) > 5
    else:
        assert not actual[0]
        assert not actual[2], "tuning makes up no memory"


def test_what_diverges_cannot_be_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = other_text(0, 20)
    damaged = gpt2(VOCABULARY)
    with torch.no_grad():
        damaged.transformer.wpe.weight[0, 0] = float("nan")
    with pytest.raises(RunError, match="diverged at step 1"):
        fine_tune_copy(damaged, text)

    def explode(optimizer: torch.optim.AdamW) -> None:
        with torch.no_grad():
            optimizer.param_groups[0]["params"][0].fill_(float("inf"))

    monkeypatch.setattr(torch.optim.AdamW, "step", explode)
    for steps, last in ((5, 2), (1, 1)):
        with pytest.raises(RunError, match=f"diverged at step {last} of {steps}"):
            fine_tune_copy(gpt2(VOCABULARY), text, steps=steps)


def test_what_cannot_be_tuned_is_refused() -> None:
    model, text = gpt2(VOCABULARY), other_text(0, 20)
    with pytest.raises(UsageError, match="no token"):
        fine_tune_copy(model, [window([1, 1], [0, 1])])
    assert equal(weights(fine_tune_copy(model, text, steps=0)), weights(model))
