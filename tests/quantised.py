"""A small Llama, whose layers torchao quantises, and its versions as transformers and torchao save them."""

import shutil
from pathlib import Path
from typing import Any, Literal

from tests.small import write_checkpoint

Width = Literal["int8", "int4"]
WIDTHS: tuple[Width, ...] = ("int8", "int4")


def write_llama(folder: Path, lines: list[str], seed: int = 7) -> Path:
    """A Llama of some 60,000 random parameters with the tokenizer of the small GPT-2."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    write_checkpoint(folder, lines)
    torch.manual_seed(seed)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    tokens = {"vocab_size": 400, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    LlamaForCausalLM(LlamaConfig(**shape, **tokens, max_position_embeddings=64)).save_pretrained(folder)
    return folder


def weight_only(width: Width) -> Any:
    """torchao's settings: a scale for each row, or for each 32 numbers of a row."""
    import torch
    from torchao.quantization import Int8WeightOnlyConfig, IntxWeightOnlyConfig
    from torchao.quantization.granularity import PerGroup

    if width == "int8":
        return Int8WeightOnlyConfig()
    return IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32))


def quantise(folder: Path, out: Path, config: Any) -> Any:
    """Save a model's quantised version with its tokenizer; the model as its library runs it."""
    import torch
    from transformers import AutoModelForCausalLM, TorchAoConfig

    settings = TorchAoConfig(config)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, quantization_config=settings)
    model.save_pretrained(out)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / name, out)
    return model.eval()
