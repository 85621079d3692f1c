"""What is tried before a run: an engine only where one clips, and of a large model a part of a batch."""

from pathlib import Path
from typing import Any

import pytest
import torch

from atdp_cli.events import Event, ignore
from atdp_cli.hardening.model import load_model
from atdp_cli.model.checkpoint import load_checkpoint, save_checkpoint
from tests.hardening.resumption import Place, finished


@pytest.mark.parametrize(
    ("recipe", "engine"), [("no-dp", "per-record"), ("redacted", "per-record"), ("dp-sgd", "ghost"), ("jft", "ghost")]
)
def test_engines_are_compared_only_where_one_clips(place: Place, recipe: str, engine: str) -> None:
    """`per-record` is what the others are compared with, and takes no time to choose."""
    heard = list[Event]()
    loaded = load_model(place.request(recipe), heard.append)
    assert loaded.engine.name == engine
    assert not heard


@pytest.mark.parametrize(
    ("settings", "half"),
    [
        ({"lora_rank": 2, "compute_dtype": "bfloat16"}, True),
        ({"lora_rank": 2, "compute_dtype": "bfloat16", "merge_adapter": True}, False),
        ({"lora_rank": 2}, False),
        ({"compute_dtype": "bfloat16"}, False),
    ],
)
def test_weights_that_only_an_adapter_reads_stay_as_they_are_stored(
    place: Place, tmp_path: Path, settings: dict[str, Any], half: bool
) -> None:
    stored = load_checkpoint(place.model)
    save_checkpoint(stored.model, stored.tokenizer, tmp_path / "half", dtype="bfloat16")
    loaded = load_model(place.request("dp-sgd", model=tmp_path / "half", **settings), ignore).checkpoint.model
    trained, read = (
        {parameter.dtype for parameter in loaded.parameters() if parameter.requires_grad == trains}
        for trains in (True, False)
    )
    assert trained == {torch.float32}
    assert read <= {torch.bfloat16 if half else torch.float32}


@pytest.mark.parametrize("recipe", ["dp-sgd", "fitted-decoys"])
def test_an_adapter_beside_weights_in_half_is_trained_and_loads_again(
    place: Place, tmp_path: Path, recipe: str
) -> None:
    stored = load_checkpoint(place.model)
    save_checkpoint(stored.model, stored.tokenizer, tmp_path / "half", dtype="bfloat16")
    settings = {"model": tmp_path / "half", "lora_rank": 2, "compute_dtype": "bfloat16"}
    finished(place.request(recipe, "out", **settings))
    after = load_checkpoint(place.folder / "out").model
    trained = [value for name, value in after.named_parameters() if "lora_B" in name]
    assert trained
    assert any(bool(value.any()) for value in trained)
