"""The losses of machine unlearning: what they are, what they do to a model, and what they refuse."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from atdp_cli.errors import UsageError
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.training.clip.batches import collate
from atdp_cli.training.clip.engine import trainable
from atdp_cli.training.examples import Example, make_example
from atdp_cli.training.gradients import check_stage, own_sum
from atdp_cli.training.objectives import NPO, RMU, FlaggedOnly, GradientDifference, SimNPO, Uniform, Unlearning
from atdp_cli.training.plan import CorpusFacts, Plan, StagePlan, make_plan
from atdp_cli.training.recipe import RECIPES, AdamW, Recipe, TextVariant, Train, parse_recipe
from atdp_cli.training.stage_options import apply_settings, parse_setting
from atdp_cli.training.state import StageState
from atdp_cli.training.trainer import run_plain
from atdp_cli.training.unlearning import control_vector, steered_layer, unlearning_loss
from tests.training.clipping.models import build, record, relative
from tests.training.stages import stage_run
from tests.training.test_state import kept

SETTINGS: dict[str, Unlearning] = {
    "gradient-difference": GradientDifference(strength=0.7),
    "npo": NPO(strength=0.7, beta=0.3),
    "simnpo": SimNPO(strength=0.7, beta=1.5, margin=0.4),
    "rmu": RMU(strength=0.7, layer=1, steering=3.0, retain=0.6),
}
METHODS = tuple(SETTINGS)
SEED = 11


def flagged(*lengths: int, share: float = 0.4, seed: int = 0) -> Example:
    """A record with this share of its tokens flagged."""
    draw = np.random.default_rng(seed + 100)
    windows = tuple(
        replace(window, sensitive=draw.random(len(window.token_ids)) < share)
        for window in record(*lengths, seed=seed).windows
    )
    return make_example(windows, Uniform())


RECORDS = (flagged(9, seed=0), flagged(6, 11, 4, seed=1), flagged(7, share=0.0, seed=2), flagged(5, share=1.0, seed=3))


def moved(model: Any, scale: float = 0.05) -> Any:
    """The model some steps later."""
    actual, draw = copy.deepcopy(model), torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in actual.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=draw))
    return actual


def summed(
    model: Any, records: Sequence[Example], start: Any, objective: Unlearning, *, tokens: int = 100
) -> tuple[torch.Tensor, ...]:
    """The gradient of a stage that started from another model."""
    before = [parameter.detach().clone() for parameter in trainable(start)]
    return own_sum(model, records, objective=objective, tokens=tokens, start=before, seed=SEED)


def loss_of(model: Any, records: Sequence[Example], start: Any, objective: Unlearning) -> torch.Tensor:
    before = [parameter.detach().clone() for parameter in trainable(start)]
    batch = collate(records, range(len(records)))
    return unlearning_loss(objective, model, records, batch, start=before, seed=SEED)


def double() -> tuple[Any, Any]:
    """A model in fp64, and where it started."""
    start = build("GPT-2").double()
    return moved(start), start


def log_probabilities(model: Any, ids: Sequence[int]) -> list[torch.Tensor]:
    """log p of each token but the first, a window at a time and without padding."""
    raised = model(input_ids=torch.tensor([list(ids)])).logits[0].exp()
    return [(raised[place - 1][token] / raised[place - 1].sum()).log() for place, token in enumerate(ids) if place]


def by_hand(model: Any, start: Any, example: Example, objective: Unlearning) -> torch.Tensor:
    """The loss of one record, token by token, as the papers write it."""
    forget: list[tuple[torch.Tensor, torch.Tensor]] = []
    loss = torch.zeros((), dtype=torch.float64)
    strength, layer, control = objective.strength, 0, None
    if isinstance(objective, RMU):
        layer, control = objective.layer or 0, control_vector(objective, model.config.n_embd, SEED)
    for window in example.windows:
        ids = window.token_ids.tolist()
        ours, theirs = log_probabilities(model, ids), log_probabilities(start, ids)
        states, before = (
            each(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states[layer][0]
            for each in (model, start)
        )
        for place in range(1, len(ids)):
            is_flagged = bool(window.sensitive[place])
            if isinstance(objective, RMU) and control is not None:
                goal, weight = (control, strength) if is_flagged else (before[place - 1].detach(), objective.retain)
                loss = loss + weight * ((states[place - 1] - goal) ** 2).sum() / len(goal)
            elif is_flagged:
                forget.append((ours[place - 1], theirs[place - 1].detach()))
            else:
                loss = loss - ours[place - 1]
    if not forget:
        return loss
    log_pi, log_start = (torch.stack(parts).sum() for parts in zip(*forget, strict=True))
    if isinstance(objective, NPO):
        beta = objective.beta
        return loss + strength * 2 / beta * (1 + (log_pi.exp() / log_start.exp()) ** beta).log()
    if isinstance(objective, SimNPO):
        inner = -objective.beta / len(forget) * log_pi - objective.margin
        return loss - strength * 2 / objective.beta * (1 / (1 + (-inner).exp())).log()
    return loss + strength * log_pi


@pytest.mark.parametrize("method", METHODS)
def test_a_loss_is_that_of_its_paper(method: str) -> None:
    """Of records that share a padded batch, with one window or several."""
    (model, start), objective = double(), SETTINGS[method]
    actual = loss_of(model, RECORDS, start, objective)
    expected = torch.stack([by_hand(model, start, record, objective) for record in RECORDS]).sum()
    assert actual.dtype == torch.float64
    assert actual.item() == pytest.approx(expected.item(), rel=1e-12)
    parameters = trainable(model)
    mine, theirs = (torch.autograd.grad(loss, parameters, materialize_grads=True) for loss in (actual, expected))
    assert relative(mine, theirs) < 1e-10


@pytest.mark.parametrize("method", METHODS)
def test_neither_order_nor_batch_matters_and_the_model_stays_as_it_was(method: str) -> None:
    model, start = double()
    values = copy.deepcopy(model.state_dict())
    model.train()
    together = summed(model, RECORDS, start, SETTINGS[method], tokens=4096)
    apart = summed(model, RECORDS[::-1], start, SETTINGS[method], tokens=1)
    assert relative(apart, together) < 1e-10
    assert model.training
    assert all(torch.equal(values[name], value) for name, value in model.state_dict().items())


def plan_of(recipe: Recipe, *, epochs: int = 20, rate: float = 1e-3, records: int = len(RECORDS)) -> StagePlan:
    stage = recipe[0]
    sized = replace(stage, epochs=epochs, optimizer=AdamW(learning_rate=rate, weight_decay=0.0))
    corpus = CorpusFacts(records=records, relation=hypothetical("line"))
    return make_plan((sized,), corpus, delta=1e-6, checkpoint_history="public").training[0]


@torch.no_grad()
def surprises(model: Any, *, sensitive: bool) -> float:
    """The mean −log p of flagged or of other tokens."""
    actual = [
        -float(value)
        for record in RECORDS
        for window in record.windows
        for value, flag in zip(
            log_probabilities(model, window.token_ids.tolist()), window.sensitive[1:].tolist(), strict=True
        )
        if flag is sensitive
    ]
    return sum(actual) / len(actual)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("method", "strength"), [("gradient-difference", 1), ("npo", 1), ("simnpo", 10)])
def test_a_stage_forgets_what_is_flagged_and_keeps_the_rest(method: str, strength: float) -> None:
    """From a model that remembers: SimNPO leaves alone what is unlikely already."""
    model = build("GPT-2")
    run_plain(stage_run(model, plan_of(RECIPES["no-dp"], epochs=60, rate=1e-2), examples=RECORDS), seed=1)
    before = [surprises(model, sensitive=flag) for flag in (True, False)]
    assert max(before) < 0.5
    recipe = reported(method, f"{method}.strength={strength}")
    run_plain(stage_run(model, plan_of(recipe), examples=RECORDS), seed=1)
    forgotten, retained = (surprises(model, sensitive=flag) for flag in (True, False))
    assert forgotten > before[0] + 1
    assert retained - before[1] < (forgotten - before[0]) / 2


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupted_stage_has_the_start_and_the_control_vector_that_it_had(method: str) -> None:
    check_resumption(plan_of(RECIPES[method], epochs=4), RECORDS)


def check_resumption(plan: StagePlan, records: Sequence[Example]) -> None:
    """A stage that is interrupted after any step, and goes on from its state, ends as the uninterrupted one."""
    whole, model = build("GPT-2"), build("GPT-2")
    run_plain(stage_run(whole, plan, examples=records), seed=3)
    saved: list[tuple[StageState, Any]] = []

    def after_step(state: Any) -> None:
        saved.append((kept(state()), copy.deepcopy(model.state_dict())))

    run_plain(stage_run(model, plan, examples=records, after_step=after_step), seed=3)
    for state, values in saved[:-1]:
        model.load_state_dict(values)
        # Another seed: the state has its own.
        run_plain(stage_run(model, plan, examples=records, resume_from=state), seed=4)
        assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), model.parameters(), strict=True))


def test_flagged_tokens_alone_have_weight() -> None:
    window = RECORDS[0].windows[0]
    marked = replace(window, function=~window.sensitive)
    (weights,) = make_example((marked,), FlaggedOnly()).weights
    assert weights.tolist() == (window.sensitive & window.targets).astype(float).tolist()
    (own,) = make_example((marked,), NPO()).weights
    assert own.tolist() == window.targets.astype(float).tolist()


def reported(recipe: str, setting: str) -> Recipe:
    actual = parse_recipe(recipe)
    return apply_settings(actual, [parse_setting(actual, setting)])


def planned(recipe: Recipe) -> Plan:
    return make_plan(recipe, CorpusFacts(records=9, relation=hypothetical()), delta=1e-6, checkpoint_history="unknown")


def stage_with(**settings: Any) -> Train:
    return replace(RECIPES["npo"][0], **settings)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: reported("npo", "npo.margin=1"), "Stage npo has no margin."),
        (lambda: reported("rmu", "rmu.beta=1"), "Stage rmu has no beta."),
        (lambda: reported("npo", "npo.beta=0"), "Choose a number above 0."),
        (lambda: reported("simnpo", "simnpo.strength=-1"), "Choose a number above 0."),
        (lambda: reported("simnpo", "simnpo.margin=-1"), "Choose a number of at least 0."),
        (lambda: reported("negated", "negated.beta=-5"), "Choose a number of at least -4."),
        (lambda: reported("interpolate", "interpolate.beta=1.5"), "Choose a number of at most 1."),
        (lambda: reported("interpolate", "interpolate.epochs=2"), "Stage interpolate has no epochs."),
        (lambda: stage_with(text=TextVariant.DECOY), "stage npo has to read raw text for its objective, npo."),
        (lambda: stage_with(mechanism=RECIPES["dp-sgd"][0].mechanism), "has to train without noise"),
        (lambda: check_stage(build("T5"), RECIPES["npo"][0]), "not for encoder-decoder models"),
        (lambda: steered_layer(RMU(layer=3), build("GPT-2")), "layer is 3; the model has 2."),
        (lambda: planned(RECIPES["negated"]), "Stage negated reads a public model. Name it: --reference"),
    ],
)
def test_what_does_not_go_together_is_refused(make: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
