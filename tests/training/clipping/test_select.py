"""Which engine `auto` takes for which architecture, what it refuses and what it says about it."""

import functools
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from atdp_cli.errors import InputError, RunError
from atdp_cli.events import ChoiceWarning, Event, ignore
from atdp_cli.model.windows import Window
from atdp_cli.training.clip import ghost, opacus, per_record
from atdp_cli.training.clip import select as selection
from atdp_cli.training.clip.batches import split
from atdp_cli.training.clip.engine import ClippedSum
from atdp_cli.training.clip.select import select_engine
from atdp_cli.training.clip.self_check import random_records
from atdp_cli.training.examples import Example
from tests.training.clipping.models import (
    CONTEXT,
    ISSUE,
    SHAPES,
    Target,
    build,
    norm_error,
    oracle,
    record,
    relative,
    untouched,
)
from tests.training.test_clipping import distance, norm

PAGE = Path(__file__).parents[3] / "docs" / "measured.md"
WAYS: tuple[tuple[str, bool, Target], ...] = (
    ("full, tied", True, "full"),
    ("full, untied", False, "full"),
    ("LoRA", True, "attention"),
    ("LoRA with embeddings", False, "all"),
)
OTHERS = tuple(name for name in SHAPES if name not in ISSUE)
WITHOUT_ATTENTION = ("Mamba",)


@functools.cache
def engine_of(architecture: str, tied: bool, target: Target) -> str:
    """What `auto` takes, once it was compared with `per-record` in fp64 on records of our own."""
    if architecture in WITHOUT_ATTENTION and target == "attention":
        return "–"
    model = build(architecture, tied=tied, target=target)
    with untouched(model):
        chosen = select_engine(model, "auto", ignore)
        lengths = ((10,), (5, 11, 3), (11,), (4,), (11, 10, 11), (11,))
        records = [record(*length, seed=seed, architecture=architecture) for seed, length in enumerate(lengths)]
        expected = oracle(model, records, 0.05)
        actual = chosen.run(model, records, 0.05)
    assert norm_error(actual, expected) <= 1e-5
    assert relative(actual.gradient, expected.gradient) <= 1e-5
    return chosen.name


def row_of(architecture: str) -> str:
    """An architecture's row of the table."""
    cells = [engine_of(architecture, tied, target) for _, tied, target in WAYS]
    return f"| {architecture} | " + " | ".join(cells) + " |"


def page() -> str:
    """The table as the page has it."""
    head = ["| architecture | " + " | ".join(way for way, _, _ in WAYS) + " |", "|---" * (len(WAYS) + 1) + "|"]
    return "\n".join([*head, *map(row_of, (*ISSUE, *OTHERS))]) + "\n"


@pytest.mark.deep
@pytest.mark.parametrize("architecture", ["GPT-2", "T5", "Mamba", "Mixtral"])
def test_the_page_says_which_engine_some_architectures_get(architecture: str) -> None:
    assert row_of(architecture) in PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.deep
def test_the_page_says_which_engine_each_architecture_gets() -> None:
    if os.environ.get("ATDP_WRITE_PAGES"):
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(text[: text.index("| architecture")] + page(), encoding="utf-8")  # the page ends with it
    assert PAGE.read_text(encoding="utf-8").endswith("\n\n" + page()), "run with ATDP_WRITE_PAGES=1"


@pytest.mark.ci
@pytest.mark.parametrize("architecture", ISSUE)
def test_none_of_the_common_architectures_falls_back(architecture: str) -> None:
    assert {engine_of(architecture, tied, target) for _, tied, target in WAYS} == {"ghost"}


@pytest.mark.ci
def test_a_fallback_is_reported_with_its_reason() -> None:
    reported: list[Event] = []
    chosen = select_engine(build("Mamba"), "auto", reported.append)
    assert chosen.name == "opacus"
    assert chosen.refused == ("ghost: a layer of type MambaRMSNorm",)
    assert reported == [ChoiceWarning(what="engine", reason="opacus; refused were ghost: a layer of type MambaRMSNorm")]


def test_experts_in_one_parameter_are_left_to_the_loop() -> None:
    reported: list[Event] = []
    assert select_engine(build("Mixtral"), "auto", reported.append).name == "per-record"
    assert isinstance(reported[0], ChoiceWarning)
    assert "ghost: a layer of type MixtralTopKRouter; opacus: " in reported[0].reason


@pytest.mark.ci
def test_nothing_is_reported_where_nothing_choice_warning() -> None:
    reported: list[Event] = []
    for wanted in ("auto", "ghost", "opacus", "per-record"):
        chosen = select_engine(build("Llama"), wanted, reported.append)
        assert chosen.name == ("ghost" if wanted == "auto" else wanted)
    assert not reported


def test_an_engine_asked_for_that_does_not_fit_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match=r"^Engine ghost does not fit this model: a layer of type") as caught:
        select_engine(build("Mixtral"), "ghost", ignore)
    assert "\n" not in str(caught.value)
    assert "ghost: " not in str(caught.value)


@pytest.mark.parametrize("architecture", ["GPT-2", "Llama", "Mamba"])
@pytest.mark.parametrize("tokens", [1, 4096])
def test_opacus_is_exact_too(architecture: str, tokens: int) -> None:
    model = build(architecture)
    records = [record(10, seed=1), record(5, 11, 3, seed=2), record(11, seed=3), record(9, seed=4, scale=float("inf"))]
    expected = oracle(model, records, 0.05)
    with untouched(model):
        actual = opacus.clipped_sum(model, records, 0.05, tokens=tokens, positions=architecture == "GPT-2")
    assert torch.isfinite(actual.norms).tolist() == [True, True, True, False]
    assert norm_error(actual, expected) <= 1e-5
    assert relative(actual.gradient, expected.gradient) <= 1e-5


def test_the_probe_has_several_records_in_a_batch_and_padding() -> None:
    """Of one window and of several; and no number of windows equals a number of positions."""
    batches = list(split(random_records(build("Llama")), selection.PROBE_TOKENS, CONTEXT))
    shared = [batch for batch in batches if len(batch.records) > 1 and batch.attention_mask is not None]
    assert {batch.windows > len(batch.records) for batch in shared} == {False, True}
    assert all(batch.windows != batch.input_ids.shape[1] for batch in shared)


def test_a_wrong_engine_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is off by a factor, in one record or in one parameter."""

    def wrong(model: Any, records: Any, clip_norm: float, **_: Any) -> ClippedSum:
        actual = per_record.clipped_sum(model, records, clip_norm)
        spoil(actual)
        return actual

    model = build("Llama")
    spoiled: dict[str, Callable[[ClippedSum], object]] = {
        "norm": lambda actual: actual.norms[2:3].mul_(1.001),
        "sum": lambda actual: actual.gradient[1].mul_(1.1),
        "not a number": lambda actual: actual.gradient[1].fill_(float("nan")),
        "norm not a number": lambda actual: actual.norms[2:3].fill_(float("nan")),
    }
    for name, spoil in spoiled.items():  # noqa: B007 - used by `wrong`
        monkeypatch.setitem(selection._BATCHED, "ghost", wrong)
        with pytest.raises(InputError, match="its gradients are not those of single records"):
            pytest.fail(f"{name} was accepted: {select_engine(model, 'ghost', ignore)}")


@pytest.fixture
def crowded() -> Any:
    """A model that runs out of memory where a forward pass has more than 16 tokens."""
    model = build("Llama")

    def refuse(_: Any, inputs: tuple[Any, ...]) -> None:
        if inputs[0].numel() > 16:
            raise torch.OutOfMemoryError("out of memory")

    model.model.embed_tokens.register_forward_pre_hook(refuse)
    return model


@pytest.mark.ci
def test_batches_shrink_when_memory_runs_out(crowded: Any) -> None:
    records = [record(7, seed=1), record(5, 3, seed=2), *(record(8, seed=seed) for seed in (3, 4, 5))]
    undisturbed = ghost.clipped_sum(build("Llama"), records, 0.05, tokens=4096, positions=False)
    reported: list[Event] = []
    chosen = select_engine(crowded, "auto", reported.append, tokens=64)
    assert chosen.name != "ghost" or not reported
    run = selection.shrink_on_out_of_memory(partial(ghost.clipped_sum, positions=False), 64, reported.append)
    reported.clear()
    for _ in range(2):
        actual = run(crowded, records, 0.05)
        assert actual.norms.tolist() == pytest.approx(undisturbed.norms.tolist(), rel=1e-6)
        assert distance(actual.gradient, undisturbed.gradient) <= 1e-6 * norm(undisturbed.gradient)
    # The sample has 39 tokens, and half of them fit.
    assert reported == [ChoiceWarning(what="max-batch-tokens", reason="out of memory; 19 tokens at a time from now on")]


def test_a_single_record_that_memory_does_not_hold_is_an_error(crowded: Any) -> None:
    run = selection.shrink_on_out_of_memory(partial(ghost.clipped_sum, positions=False), 64, ignore)
    with pytest.raises(RunError, match="does not hold the gradient of a single record") as caught:
        run(crowded, [record(17, seed=1)], 0.05)
    assert "\n" not in str(caught.value)


def test_another_error_is_not_taken_for_one_of_memory() -> None:
    def fail(*_: Any, **__: Any) -> ClippedSum:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        selection.shrink_on_out_of_memory(fail, 64, ignore)(build("Llama"), [], 0.05)


def test_packed_rows_are_refused() -> None:
    nothing = np.zeros(4, dtype=np.bool_)
    windows = tuple(Window(row, np.arange(4), nothing, nothing, nothing) for row in (0, 1))
    with pytest.raises(ValueError, match="several records"):
        Example(windows, tuple(np.ones(4, np.float32) for _ in windows))
