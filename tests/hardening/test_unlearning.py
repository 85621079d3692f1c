"""Runs of machine unlearning: what they write, what their ledger says, and that an interruption changes nothing."""

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from atdp_cli.errors import UsageError
from atdp_cli.hardening.plan import plan_request
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import Ledger, PlainTraining, ReadModel, read_ledger
from atdp_cli.training.parallel.ranks import Ranks
from atdp_cli.training.recipe import parse_recipe
from atdp_cli.training.stage_options import apply_settings, parse_setting
from tests.hardening.resumption import Place, broken_up, equal, finished, report, weights

METHODS = ("gradient-difference", "npo", "simnpo", "rmu")


def is_void(ledger: Ledger) -> bool:
    """Whether nothing finite holds for a record or for its flagged characters."""
    held = {guarantee.scope: guarantee.epsilon for guarantee in guarantees(ledger)}
    return held["end_to_end"] == math.inf and not {"selective", "declared", "uncounted"} & set(held)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_makes_a_model_that_promises_nothing(place: Place, method: str) -> None:
    done = finished(place.request(method, checkpoint_history="public"))
    ledger = read_ledger(Path(done.output) / "privacy_ledger.json")
    [event] = ledger.events
    assert isinstance(event, PlainTraining)
    assert (event.stage, event.text) == (method, "raw")
    assert is_void(ledger)
    assert not equal(weights(done), load_file(place.model / "model.safetensors"))
    assert "unlearning by" in str(report(done))


@pytest.mark.ci
@pytest.mark.parametrize("recipe", ["no-dp+npo", "no-dp+rmu", "simnpo"])
def test_an_interrupted_run_is_the_whole_one(place: Place, recipe: str) -> None:
    whole = finished(place.request(recipe, out="whole"))
    steps = 6 * len(parse_recipe(recipe))
    parts, sessions = broken_up(place.request(recipe, out="parts"), lambda session: 3 if session < 12 else None)
    assert sessions > steps // 4
    assert equal(weights(parts), weights(whole))


@pytest.mark.ci
def test_a_task_vector_is_negated(place: Place) -> None:
    """θ_ref − α(θ − θ_ref), bit by bit up to the rounding of one product and two sums."""
    recipe = parse_recipe("negated")
    recipe = apply_settings(recipe, [parse_setting(recipe, "negated.beta=-1.5")])
    origin = load_file(place.model / "model.safetensors")
    there = weights(finished(place.request(recipe[:1], out="forget")))
    actual = weights(finished(place.request(recipe, out="negated", reference=place.model)))
    assert not equal(there, origin)
    for name, value in actual.items():
        expected = origin[name].double() - 1.5 * (there[name].double() - origin[name].double())
        assert torch.allclose(value.double(), expected, rtol=1e-6, atol=1e-8), name


def pasts(request: Any) -> list[str]:
    return [event.past for event in plan_request(request).plan.ledger.events if isinstance(event, ReadModel)]


def test_who_names_the_model_itself_declares_nothing_of_its_past(place: Place, tmp_path: Path) -> None:
    copy = shutil.copytree(place.model, tmp_path / "copy")
    for folder in (place.model, copy):
        request = place.request("negated", reference=folder)
        assert pasts(request) == ["unknown"]
        assert is_void(plan_request(request).plan.ledger)
        assert pasts(request.replace(checkpoint_history="public")) == ["declared"]
        assert is_void(plan_request(request.replace(checkpoint_history="public")).plan.ledger)


def test_a_sharded_model_is_refused(place: Place) -> None:
    ranks = Ranks(rank=0, size=2, sharded=True)
    for method in METHODS:
        with pytest.raises(
            UsageError, match=rf"^Recipe {method} goes with whole models only\. Leave run.shard-model out\.$"
        ):
            plan_request(place.request(method, ranks=ranks))
