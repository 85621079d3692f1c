"""Stages that train some parameters: which they are, that all engines clip these alone, and that no other moves."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.errors import RunError, UsageError
from atdp_cli.training.clipping import ghost, opacus
from atdp_cli.training.clipping.engine import trainable
from atdp_cli.training.clipping.per_record import record_gradient
from atdp_cli.training.objectives.noise import NoLoss
from atdp_cli.training.plan import StagePlan
from atdp_cli.training.recipe import NO_DP, SGD, Recipe
from atdp_cli.training.trainable import selected, training_only
from atdp_cli.training.trainer import run_noise, run_plain
from tests.training.clipping.models import build, norm_error, oracle, record, relative, untouched
from tests.training.stages import stage_run, trained
from tests.training.test_clipping import CLIP, example, gpt2
from tests.training.test_trainer import STEEP, plan_for, private_recipe, run, streams, whole_noise

TOLERANCE = 1e-5
SUBSETS = {
    "GPT-2": {
        "embeddings": "wte|wpe",
        "norms": r"ln_\d|ln_f",
        "last block": r"\.h\.1\.",
        "last block and norm": r"h\.1\.|ln_f",
        "first block": r"\.h\.0\.",
        "biases": r"bias$",
        "one matrix": r"h\.0\.attn\.c_attn\.weight$",
    },
    "Llama": {
        "embeddings": "embed_tokens",
        "norms": "norm",
        "last block": r"layers\.1\.",
        "first block": r"layers\.0\.",
        "attention": "self_attn",
    },
    "T5": {
        "embeddings": "shared",
        "position biases": "relative_attention_bias",
        "norms": "layer_norm",
        "encoder": "^encoder",
        "last block": r"decoder\.block\.1\.",
    },
}
CASES = [(architecture, name) for architecture, subsets in SUBSETS.items() for name in subsets]


def records_for(architecture: str) -> list[Any]:
    lengths = [(11,), (6, 6, 4), (12,), (9, 3), (8, 8)]
    return [record(*length, seed=seed, architecture=architecture) for seed, length in enumerate(lengths)]


@pytest.mark.one_in(10)
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize(("architecture", "subset"), CASES)
def test_the_engines_clip_what_is_trained_alone(architecture: str, subset: str, tied: bool) -> None:
    model = build(architecture, tied=tied)
    records, pattern = records_for(architecture), SUBSETS[architecture][subset]
    # Opacus knows neither layers that share a matrix nor T5's.
    engines = [ghost.clipped_sum] if tied or architecture == "T5" else [ghost.clipped_sum, opacus.clipped_sum]
    with untouched(model), training_only(model, pattern):
        norms = oracle(model, records, 1e30).norms
        for clip_norm in (float(norms.median()), 1e30):
            expected = oracle(model, records, clip_norm)
            for engine in engines:
                actual = engine(model, records, clip_norm, tokens=60, positions=architecture == "GPT-2")
                assert len(actual.gradient) == len(trainable(model)) < len(list(model.parameters()))
                assert norm_error(actual, expected) <= TOLERANCE
                assert relative(actual.gradient, expected.gradient) <= TOLERANCE


@pytest.mark.one_in(4)
@pytest.mark.parametrize("target", ["attention", "all"])
@pytest.mark.parametrize("pattern", ["lora_A", r"(h|layers)\.1\..*lora_B"])
@pytest.mark.parametrize("architecture", ["GPT-2", "Llama"])
def test_of_an_adapter_too(architecture: str, pattern: str, target: Any) -> None:
    model = build(architecture, target=target)
    records = records_for(architecture)
    with untouched(model), training_only(model, pattern):
        names = [name for name, tensor in model.named_parameters() if tensor.requires_grad]
        assert all("lora_" in name and re.search(pattern, name) for name in names)
        clip_norm = float(oracle(model, records, 1e30).norms.median())
        expected = oracle(model, records, clip_norm)
        actual = ghost.clipped_sum(model, records, clip_norm, tokens=60, positions=architecture == "GPT-2")
        assert norm_error(actual, expected) <= TOLERANCE
        assert relative(actual.gradient, expected.gradient) <= TOLERANCE


@pytest.mark.parametrize("architecture", SUBSETS)
def test_the_gradient_of_some_parameters_is_a_part_of_that_of_all(architecture: str) -> None:
    model, two_windows = build(architecture), record(9, 6, seed=3, architecture=architecture)
    named = dict(model.named_parameters())
    whole = dict(zip(named, record_gradient(model, two_windows, trainable(model)), strict=True))
    for pattern in SUBSETS[architecture].values():
        expected = [part for name, part in whole.items() if re.search(pattern, name)]
        with training_only(model, pattern):
            actual = record_gradient(model, two_windows, trainable(model))
        assert len(actual) == len(expected) > 0
        assert relative(actual, expected) <= TOLERANCE


PATTERNS = st.sampled_from(["all", ".", "h", r"h\.1\.", "ln_f", "bias$", "wte", r"h\.[01]\.ln_1", "^transformer"])


@settings(deadline=None, max_examples=30)
@given(PATTERNS, PATTERNS)
def test_what_is_selected_is_what_a_name_matches_and_nested_selections_intersect(first: str, second: str) -> None:
    model = gpt2()
    names = {id(tensor): name for name, tensor in model.named_parameters()}

    def means(pattern: str, name: str) -> bool:
        return pattern == "all" or re.search(pattern, name) is not None

    assert [names[id(tensor)] for tensor in selected(model, first)] == [
        name for name in names.values() if means(first, name)
    ]
    both = [name for name in names.values() if means(first, name) and means(second, name)]
    with training_only(model, first):
        if both:
            with training_only(model, second):
                assert [name for name, tensor in model.named_parameters() if tensor.requires_grad] == both
        else:
            with pytest.raises(UsageError):
                selected(model, second)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_matrix_that_layers_share_counts_once_under_its_first_name() -> None:
    tied, untied = build("GPT-2"), build("GPT-2", tied=False)
    assert selected(tied, "wte") == [tied.lm_head.weight]
    assert len(selected(untied, "wte|lm_head")) == 2
    with pytest.raises(UsageError, match=r"Their names are like transformer\.wte\.weight, .*, transformer\.ln_f\.bias"):
        selected(tied, "lm_head")


def test_the_others_are_trainable_again_whatever_happens(tmp_path: Path) -> None:
    model = gpt2()
    frozen = model.transformer.ln_f.bias.requires_grad_(False)
    explosive = only(private_recipe(sigma=1e4, optimizer=SGD(learning_rate=1e38)), r"h\.0\.")
    with pytest.raises(RunError, match="finite"):
        run(model, [example(5)] * 10, explosive, tmp_path / "journal")
    assert [parameter is frozen for parameter in model.parameters()] == [
        not parameter.requires_grad for parameter in model.parameters()
    ]


def only(recipe: Recipe, pattern: str) -> Recipe:
    [stage] = trained(recipe)
    return (replace(stage, layers=pattern),)


@pytest.mark.parametrize("pattern", ["wte", r"h\.1\.|ln_f", "bias$"])
@pytest.mark.parametrize("kind", ["private", "noise", "plain"])
def test_a_stage_moves_what_its_layers_say_and_nothing_else(tmp_path: Path, kind: str, pattern: str) -> None:
    model, before = gpt2(), dict(gpt2().named_parameters())
    examples = [example(6, seed=seed) for seed in range(10)]
    if kind == "private":
        run(model, examples, only(private_recipe(), pattern), tmp_path / "journal")
    elif kind == "plain":
        run_plain(stage_run(model, plan_of(only(NO_DP, pattern)), examples=examples), seed=1)
    else:
        plan = plan_of(only(private_recipe(objective=NoLoss()), pattern))
        run_noise(stage_run(model, plan), noise=streams().noise)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]) == (re.search(pattern, name) is None)
        assert parameter.requires_grad


def plan_of(recipe: Recipe) -> StagePlan:
    return plan_for(recipe, 10).training[0]


def test_noise_falls_on_trained_parameters_alone() -> None:
    """Its normals are spent on them one by one: none is drawn for what stays."""
    pattern = r"ln_f|h\.0\.mlp"
    plan = plan_of(only(private_recipe(objective=NoLoss(), optimizer=SGD(learning_rate=0.5), schedule=STEEP), pattern))
    model, twin = gpt2(), gpt2()
    run_noise(stage_run(model, plan), noise=streams(4).noise)
    noise = streams(4).noise
    with torch.no_grad():
        for sigma in plan.noise_multipliers:
            for _ in range(plan.steps_per_epoch):
                for parameter in selected(twin, pattern):
                    drawn = whole_noise(noise, parameter.numel()).view(parameter.shape)
                    parameter.sub_((0.5 * sigma * CLIP * drawn / plan.batch).float())
    assert relative(selected(model, pattern), selected(twin, pattern)) < 1e-6


def test_layers_called_all_are_all(tmp_path: Path) -> None:
    examples = [example(6, seed=seed) for seed in range(10)]
    model, twin = gpt2(), gpt2()
    run(model, examples, only(private_recipe(), "all"), tmp_path / "all")
    run(twin, examples, only(private_recipe(), "."), tmp_path / "dot")
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))
