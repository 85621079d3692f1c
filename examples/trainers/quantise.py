"""Save a model's int8 and int4 versions, as they would ship: python examples/trainers/quantise.py MODEL

MODEL is a model folder; MODEL-int8 and MODEL-int4 are written beside it. It needs torchao.
"""

import shutil
import sys
from pathlib import Path

import torch
from torchao.quantization import Int8WeightOnlyConfig, IntxWeightOnlyConfig
from torchao.quantization.granularity import PerGroup
from transformers import AutoModelForCausalLM, TorchAoConfig

VERSIONS = {
    "int8": Int8WeightOnlyConfig(),
    "int4": IntxWeightOnlyConfig(weight_dtype=getattr(torch, "int4"), granularity=PerGroup(32)),  # noqa: B009
}


def save_versions(folder: Path) -> None:
    """Each version with the tokenizer of the model."""
    for name, config in VERSIONS.items():
        out = folder.with_name(f"{folder.name}-{name}")
        settings = TorchAoConfig(config)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, quantization_config=settings)
        model.save_pretrained(out)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(folder / file, out / file)


if __name__ == "__main__":
    save_versions(Path(sys.argv[1]))
