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
    return IntxWeightOnlyConfig(
        weight_dtype=getattr(torch, "int4"),  # noqa: B009 - unknown to its types
        granularity=PerGroup(32),
    )


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


def write_gguf(folder: Path, out: Path, kind: str, **settings: Any) -> Path:
    """A Llama as one GGUF file of this kind (F32, Q8_0, Q4_0), laid out as llama.cpp does, with its tokenizer."""
    import gguf
    import numpy as np
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder)
    config, wanted = model.config, gguf.GGMLQuantizationType[kind]
    out.mkdir()
    writer = gguf.GGUFWriter(str(out / "model.gguf"), "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_vocab_size(config.vocab_size)
    for name, value in settings.items():
        writer.add_float32(name.replace("__", "."), value)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        numbers = tensor.numpy()
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = numbers.reshape(config.num_attention_heads, 2, -1, numbers.shape[1])
            numbers = np.ascontiguousarray(heads.swapaxes(1, 2)).reshape(numbers.shape)
        whole = numbers.ndim == 1 or kind == "F32"
        stored = numbers if whole else gguf.quants.quantize(numbers, wanted)
        kept = names.get_name(name, try_suffixes=(".weight",))
        writer.add_tensor(kept, stored, raw_dtype=None if whole else wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / name, out)
    return out
