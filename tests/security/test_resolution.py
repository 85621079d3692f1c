"""An audit that cannot tell one candidate from another gives no verdict: a model's scores can be made to tie.

Every attack leaves what the model says as it was: the likeliest token is the same.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.cli.conftest import Atdp, Leaky, atdp, fixed_manifest, leaky

__all__ = ["atdp", "fixed_manifest", "leaky"]

Tensors = dict[str, torch.Tensor]


def scaled(factor: float) -> Callable[[Tensors], None]:
    """The last norm's output, and so every logit."""

    def attack(tensors: Tensors) -> None:
        for name in ("transformer.ln_f.weight", "transformer.ln_f.bias"):
            tensors[name] = tensors[name] * factor

    return attack


def scaled_embedding(tensors: Tensors) -> None:
    """The head, which is tied to the embedding; positions along with it, so that the first norm sees the same."""
    for name in ("transformer.wte.weight", "transformer.wpe.weight"):
        tensors[name] = tensors[name] * 1e-17


def zeros(tensors: Tensors) -> None:
    scaled(0.0)(tensors)


TIED: dict[str, Callable[[Tensors], None]] = {
    "a layer by 1e-14": scaled(1e-14),
    "a layer by 1e-15": scaled(1e-15),
    "a layer by 1e-16": scaled(1e-16),
    "a layer by 1e-20": scaled(1e-20),
    "a layer by 1e-37": scaled(1e-37),
    "a layer by -1e-16": scaled(-1e-16),
    "no logits at all": zeros,
    "the embedding": scaled_embedding,
}


def attacked(leaky: Leaky, folder: Path, attack: Callable[[Tensors], None]) -> Path:
    shutil.copytree(leaky.model, folder)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    attack(tensors)
    save_file({name: tensor.clone() for name, tensor in tensors.items()}, path, metadata={"format": "pt"})
    return folder


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", TIED)
@pytest.mark.parametrize("options", [(), ("--reference",)], ids=["alone", "with a reference"])
def test_scores_that_rounding_has_made_alike_pass_nothing(
    leaky: Leaky, atdp: Atdp, request: pytest.FixtureRequest, name: str, options: tuple[str, ...]
) -> None:
    base, tmp_path = (Path(request.getfixturevalue(fixture)) for fixture in ("checkpoint_folder", "tmp_path"))
    model = attacked(leaky, tmp_path / "model", TIED[name])
    more = (*options, base) if options else ()
    ended = atdp("audit-canary", model, "--manifest", leaky.manifest, *more, "--json")
    assert ended.code in (1, 4)
    [actual] = ended.json["models"]
    if ended.code == 4:
        assert any("cannot be told" in reason or "score the same" in reason for reason in actual["reasons"])


@pytest.mark.parametrize("factor", [1e-12, 1e-8, 1e-4, 1e2])
def test_a_leaking_model_fails_as_long_as_its_scores_can_be_told(
    leaky: Leaky, atdp: Atdp, tmp_path: Path, factor: float
) -> None:
    model = attacked(leaky, tmp_path / "model", scaled(factor))
    assert atdp("audit-canary", model, "--manifest", leaky.manifest).code == 1
