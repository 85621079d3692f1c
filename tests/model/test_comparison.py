"""Every parameter that was loaded is compared with the file that was checked."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from atdp_cli.errors import InputError
from atdp_cli.model.checkpoint import load_checkpoint
from atdp_cli.model.comparison import check_base
from atdp_cli.model.folder import weight_files
from tests.training.clipping.models import build

ARCHITECTURES = ["Llama", "GPT-2", "Gemma-3", "OPT", "Bloom", "T5"]


def files_of(model: Any, folder: Path) -> list[Path]:
    model.save_pretrained(folder)
    return list(weight_files(folder))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_a_model_as_it_was_saved_passes_and_with_any_other_number_does_not(
    architecture: str, tied: bool, tmp_path: Path
) -> None:
    model = build(architecture, tied=tied)
    files = files_of(model, tmp_path)
    check_base(tmp_path, model, files)
    for parameter in model.parameters():
        place = parameter.data.view(-1)[-1:]
        before = place.clone()
        place.copy_(torch.nextafter(before, torch.tensor(9.0)))
        with pytest.raises(InputError, match="is not what the checked files have"):
            check_base(tmp_path, model, files)
        place.copy_(before)
    check_base(tmp_path, model, files)


def test_a_parameter_that_no_file_has_does_not_pass(tmp_path: Path) -> None:
    model = build("Llama", tied=False)
    [file] = files_of(model, tmp_path)
    stored = load_file(file)
    for missing in stored:
        save_file({name: tensor for name, tensor in stored.items() if name != missing}, file)
        with pytest.raises(InputError, match=missing):
            check_base(tmp_path, model, [file])


def test_the_experts_of_a_layer_are_compared_as_they_were_stored(tmp_path: Path) -> None:
    """transformers joins them as it loads."""
    from transformers import AutoModelForCausalLM, MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        num_local_experts=3,
    )
    files = files_of(MixtralForCausalLM(config), tmp_path)
    assert any(".experts.1." in name for name in load_file(files[0]))
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    check_base(tmp_path, model, files)
    with torch.no_grad():
        experts = next(parameter for name, parameter in model.named_parameters() if "experts" in name)
        experts[1, 0, 0] += 1
    with pytest.raises(InputError, match="experts"):
        check_base(tmp_path, model, files)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("body", [False, True], ids=["whole", "body"])
def test_a_file_in_another_dtype_or_of_the_body_alone_is_compared_as_it_is_converted(
    checkpoint_folder: Path, tmp_path: Path, dtype: torch.dtype, body: bool
) -> None:
    """As GPT-2 was published."""
    shutil.copytree(checkpoint_folder, tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    stored = {name: tensor.to(dtype) for name, tensor in load_file(path).items()}
    if body:
        stored = {name.removeprefix("transformer."): tensor for name, tensor in stored.items()}
    save_file(stored, path, metadata={"format": "pt"})
    assert load_checkpoint(tmp_path / "model").model.dtype == torch.float32
