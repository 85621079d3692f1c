"""The model itself, in whatever form, is no public base: where a recipe starts from it, and where one reads it."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from atdp_cli.errors import UsageError
from atdp_cli.files.checkpoint_names import TOKENIZER_FILES
from atdp_cli.hardening.plan import plan_request
from atdp_cli.hardening.request import HardenRequest, settle
from atdp_cli.model.adapter import no_warnings
from atdp_cli.model.same_weights import same_weights
from atdp_cli.privacy.ledger import ReadModel

Made = Callable[[Path, Path], object]


def load(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def saved(change: Callable[[Any], Any], **how: Any) -> Made:
    return lambda model, folder: change(load(model)).save_pretrained(folder, **how)


def renamed(model: Path, folder: Path) -> None:
    """As a body's own save_pretrained names them."""
    load(model).transformer.save_pretrained(folder)


def twice(model: Path, folder: Path) -> None:
    from safetensors.torch import save_file

    shutil.copytree(model, folder)
    tensors = {name: tensor.clone() for name, tensor in load(model).state_dict().items()}
    tensors |= {f"{name}.copy": tensor.clone() for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt", "dtype": "F32"})


def moved(size: float, *, only: int = 0) -> Callable[[Any], Any]:
    """Noise of this size, relative to each tensor's norm; a tensor of zeros gets as much as one of weights."""

    def change(model: Any) -> Any:
        noise = torch.Generator().manual_seed(1)
        for parameter in model.parameters():
            if not only or parameter.ndim == only:
                scale = float(parameter.detach().square().mean().sqrt()) or 0.02
                parameter.data += size * scale * torch.randn(parameter.shape, generator=noise)
        return model

    return change


def trained(rate: float, steps: int) -> Callable[[Any], Any]:
    def change(model: Any) -> Any:
        optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=rate)
        draw = torch.Generator().manual_seed(3)
        for _ in range(steps):
            ids = torch.randint(0, 300, (4, 16), generator=draw)
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return model

    return change


def adapted(model: Any) -> Any:
    torch.manual_seed(5)
    with no_warnings():
        return get_peft_model(model, LoraConfig(r=2, lora_alpha=4, target_modules=["c_attn"], fan_in_fan_out=True))


def empty_adapter(model: Path, folder: Path) -> None:
    adapter = adapted(load(model))
    adapter.peft_config["default"].base_model_name_or_path = str(model)
    adapter.save_pretrained(folder)


ITSELF: dict[str, Made] = {
    "a copy": shutil.copytree,
    "a link": lambda model, folder: folder.symlink_to(model),
    "saved again": saved(lambda model: model),
    "in shards": saved(lambda model: model, max_shard_size="60KB"),
    "in bfloat16": saved(lambda model: model.bfloat16()),
    "in float16": saved(lambda model: model.half()),
    "in float64": saved(lambda model: model.double()),
    "by way of bfloat16": saved(lambda model: model.bfloat16().float()),
    "under other names": renamed,
    "stored twice": twice,
    "with noise of rounding": saved(moved(2**-9)),
    "with other norms and biases": saved(moved(0.5, only=1)),
    "with more tokens": saved(lambda model: model.resize_token_embeddings(450) and model),
    "a few steps later": saved(trained(1e-6, 3)),
    "with an empty adapter": empty_adapter,
    "with an empty adapter, merged": saved(lambda model: adapted(model).merge_and_unload()),
}

ANOTHER: dict[str, Made] = {
    "fine-tuned": saved(trained(5e-5, 60)),
    "fine-tuned and cast": saved(lambda model: trained(5e-5, 60)(model).bfloat16()),
    "an adapter, merged": saved(lambda model: trained(1e-3, 30)(adapted(model)).merge_and_unload()),
}


@pytest.fixture(params=[*ITSELF, *ANOTHER])
def pair(request: Any, checkpoint_folder: Path, tmp_path: Path) -> tuple[Path, Path, bool]:
    made = ITSELF.get(request.param) or ANOTHER[request.param]
    made(checkpoint_folder, tmp_path / "made")
    for name in TOKENIZER_FILES:
        if (checkpoint_folder / name).is_file() and not (tmp_path / "made" / name).exists():
            shutil.copy(checkpoint_folder / name, tmp_path / "made")
    return checkpoint_folder, tmp_path / "made", request.param in ITSELF


def test_no_form_of_a_model_is_its_public_base(pair: tuple[Path, Path, bool], corpus: Path) -> None:
    *folders, itself = pair
    for model, reference in (folders, folders[::-1]):
        asked = HardenRequest(model=model, data=(corpus,), output=corpus.parent / "none", reference=reference)
        if itself:
            with pytest.raises(UsageError, match="has the weights of"):
                settle(asked)
        else:
            assert plan_request(settle(asked)).plan.ledger.checkpoint_history == "public"
        read = asked.replace(recipe="anchored")
        events = plan_request(settle(read)).plan.ledger.events
        assert {event.past for event in events if isinstance(event, ReadModel)} == {"unknown" if itself else "declared"}
        stated = plan_request(settle(read.replace(checkpoint_history="public"))).plan.ledger.events
        assert {event.past for event in stated if isinstance(event, ReadModel)} == {"declared"}


def test_what_an_adapter_adds_is_compared(checkpoint_folder: Path, tmp_path: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(checkpoint_folder, base)
    adapter = trained(1e-3, 30)(adapted(load(base)))
    adapter.peft_config["default"].base_model_name_or_path = str(base)
    adapter.save_pretrained(tmp_path / "adapter")
    shutil.copytree(base, tmp_path / "merged")
    adapter.merge_and_unload().save_pretrained(tmp_path / "merged")
    assert same_weights(tmp_path / "adapter", tmp_path / "merged")
    assert not same_weights(tmp_path / "adapter", base)
