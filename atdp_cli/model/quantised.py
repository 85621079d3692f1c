"""Checkpoints with quantised weights: read and dequantised to plain numbers for an audit, without their library.

A parameter of torchao's in safetensors is three tensors, `_weight_qdata`, `_weight_scale` and `_weight_zero_point`, and
a JSON object in the file's metadata. Its numbers are (q − z)·s, blockwise, which is what the quantised model multiplies
with; they are computed here in fp32, written to a temporary file, and loaded and checked as any checkpoint. What
rounds activations too, or packs its numbers for one kernel, is refused.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, PreTrainedModel

from atdp_cli.errors import InputError, RunError, require_package
from atdp_cli.files.checkpoint_names import CONFIG, GENERATION, WEIGHTS
from atdp_cli.files.documents import parse_json
from atdp_cli.model.adapter import no_warnings
from atdp_cli.model.config_checks import QUANTISED
from atdp_cli.model.folder import gguf_of, is_quantised, read_settings, weight_files
from atdp_cli.model.staging import staged

LLAMA = "llama"

READ = frozenset(
    f"{LLAMA}.{setting}"
    for setting in (
        *("context_length", "block_count", "feed_forward_length", "embedding_length", "vocab_size"),
        *("rope.dimension_count", "rope.freq_base", "attention.head_count", "attention.head_count_kv"),
        "attention.layer_norm_rms_epsilon",
    )
)
"""The settings of a model that transformers takes from a file."""

WITHOUT_EFFECT = ("general.", "tokenizer.", "GGUF.", "quantize.")
"""The beginnings of settings that change no number: the tokenizer is read from tokenizer.json."""


def load_gguf(file: Path) -> PreTrainedModel:
    """The model of a GGUF file in fp32.

    Raises:
        UsageError: The package gguf is not installed.
        InputError: The file is damaged, of another architecture, or has settings or tensors that are not read.
    """
    stored = _stored_digests(file)
    with staged({file.name: file}) as place:
        try:
            with no_warnings():
                model, info = AutoModelForCausalLM.from_pretrained(
                    place,
                    gguf_file=file.name,
                    dtype=torch.float32,
                    local_files_only=True,
                    trust_remote_code=False,
                    output_loading_info=True,
                )
        except Exception as error:  # many kinds for a file that it cannot read
            raise _unreadable(file) from error
    loaded = {_digest(parameter.detach().numpy()) for parameter in model.parameters()}
    if info.get("missing_keys") or loaded != stored:
        raise InputError(
            f"{file}: what was loaded is not what the file has.", "Convert the model again, without changes to tensors."
        )
    typed_model: PreTrainedModel = model
    return typed_model


def _stored_digests(file: Path) -> set[str]:
    """The digest of every tensor of the file."""
    require_package(str(file), "gguf", "gguf")
    from gguf import GGUFReader, dequantize

    try:
        reader = GGUFReader(file)
        architecture = str(reader.fields["general.architecture"].contents())
        unread = _unread(reader.fields)
        digests = set() if unread or architecture != LLAMA else set(_digests(reader.tensors, dequantize))
    except Exception as error:  # its reader raises what numpy does on bytes that are none of a model
        raise _unreadable(file) from error
    if architecture != LLAMA:
        raise InputError(f"{file} is a model of the architecture {architecture}.", f"Only {LLAMA} is audited as GGUF.")
    if unread:
        raise InputError(
            f"{file} has a setting that transformers does not read, {unread[0]}.", "Audit the model before conversion."
        )
    return digests


def _unread(settings: Iterable[str]) -> list[str]:
    return sorted(name for name in settings if name not in READ and not name.startswith(WITHOUT_EFFECT))


def _digests(tensors: Iterable[Any], dequantize: Any) -> Iterable[str]:
    return (_digest(dequantize(tensor.data, tensor.tensor_type)) for tensor in tensors)


def _digest(numbers: npt.NDArray[np.float32]) -> str:
    """A digest of a tensor's numbers, whatever their order."""
    # 0 and -0 compare alike, and their order would be left to chance.
    ordered = np.sort(np.asarray(numbers, dtype=np.float32) + np.float32(0), axis=None)
    return hashlib.sha256(ordered.tobytes()).hexdigest()


def _unreadable(file: Path) -> InputError:
    return InputError(f"{file} is not a whole GGUF file of a language model.", "Copy or convert it again.")


PLAIN_LAYOUTS = {"Int8Tensor": "act_quant_kwargs", "IntxUnpackedToInt8Tensor": "activation_quantization"}
"""torchao's layouts of one number a byte, each with the setting that says how activations are rounded."""

PARTS = ("qdata", "scale", "zero_point")

TORCH_TENSOR = "Tensor"

_REMEDY = "Save it by transformers and torchao with Int8WeightOnlyConfig or IntxWeightOnlyConfig."


@contextmanager
def plain_files(folder: Path, held: Path) -> Iterator[Path]:
    """The folder that a checked model is loaded from; of a quantised one its numbers in fp32, which exist meanwhile.

    Args:
        held: A folder with the model's files as they were opened.

    Raises:
        InputError: It is quantised in a way that is not audited, or is damaged.
        RunError: There is no room for the numbers.
    """
    if not is_quantised(folder):
        yield held
        return
    with ExitStack() as stack:
        try:
            place = Path(stack.enter_context(TemporaryDirectory(prefix="atdp-")))
            _write_out(folder, place)
            if (held / GENERATION).exists():
                (place / GENERATION).symlink_to(held / GENERATION)
        except OSError as error:
            raise RunError(
                f"The numbers of {folder} cannot be written out: {error.strerror}.", "Free some space, or set TMPDIR."
            ) from error
        yield place


def _write_out(folder: Path, place: Path) -> None:
    if (file := gguf_of(folder)) is not None:
        model = load_gguf(file)
        numbers = {name: parameter.detach() for name, parameter in model.named_parameters()}
        settings = json.loads(model.config.to_json_string())
    else:
        numbers, settings = dequantised(folder), read_settings(folder / CONFIG)
    save_file(numbers, place / WEIGHTS, {"format": "pt"})
    plain = {name: value for name, value in settings.items() if name != QUANTISED}
    (place / CONFIG).write_text(json.dumps(plain), encoding="utf-8")


def dequantised(folder: Path) -> dict[str, torch.Tensor]:
    """Every parameter of a quantised checkpoint in fp32, by its name.

    Raises:
        InputError: A parameter is stored in another layout, with rounded activations, or not as its settings say.
    """
    parameters: dict[str, torch.Tensor] = {}
    with ExitStack() as stack:
        files = [stack.enter_context(safe_open(path, framework="pt")) for path in weight_files(folder)]
        holder = {name: file for file in files for name in file.keys()}  # noqa: SIM118 - a handle, not a mapping
        stored = {name: text for file in files for name, text in (file.metadata() or {}).items() if "." in name}
        unread = set(holder)
        for name, text in stored.items():
            settings = _settings(folder, name, text)
            if settings.get("_type") == TORCH_TENSOR:
                continue
            parts = _parts(folder, name, settings)
            if name in holder or not unread >= set(parts.values()):
                raise _damaged(folder, name)
            unread -= set(parts.values())
            tensors = {part: holder[tensor].get_tensor(tensor) for part, tensor in parts.items()}
            parameters[name] = _numbers(folder, name, tensors, settings)
        parameters |= {name: holder[name].get_tensor(name) for name in sorted(unread)}
    return parameters


def _settings(folder: Path, name: str, text: str) -> dict[str, Any]:
    try:
        settings = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(folder, name) from error
    if not isinstance(settings, dict):
        raise _damaged(folder, name)
    return settings


def _parts(folder: Path, name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """The tensors of a parameter, by their role.

    Raises:
        InputError: The layout is none of ours, or activations are rounded or scaled.
    """
    layout, data = str(settings.get("_type")), settings.get("_data")
    if layout not in PLAIN_LAYOUTS:
        raise InputError(f"{folder} stores {name} as {layout}, packed for one kernel.", _REMEDY)
    names = settings.get("_tensor_data_names")
    if not isinstance(data, dict) or not isinstance(names, list) or not {"qdata", "scale"} <= set(map(str, names)):
        raise _damaged(folder, name)
    if data.get(PLAIN_LAYOUTS[layout]) is not None or not set(names) <= set(PARTS):
        raise InputError(f"{folder} rounds activations before {name}, which an audit does not repeat.", _REMEDY)
    module, _, parameter = name.rpartition(".")
    return {part: f"{module}._{parameter}_{part}" for part in names}


def _numbers(folder: Path, name: str, parts: Mapping[str, torch.Tensor], settings: Mapping[str, Any]) -> torch.Tensor:
    """(q − z)·s with one s and z a block, in fp32."""
    quantised, block = parts["qdata"], settings["_data"].get("block_size")
    whole = isinstance(block, list) and all(type(size) is int and size > 0 for size in block)
    if quantised.dtype != torch.int8 or not whole or len(block) != quantised.ndim:
        raise _damaged(folder, name)
    if any(length % size for length, size in zip(quantised.shape, block, strict=True)):
        raise _damaged(folder, name)
    blocks = torch.Size(length // size for length, size in zip(quantised.shape, block, strict=True))
    if any(part.numel() != blocks.numel() for label, part in parts.items() if label != "qdata"):
        raise _damaged(folder, name)

    def spread(part: torch.Tensor) -> torch.Tensor:
        values = part.float().reshape(blocks)
        for axis, size in enumerate(block):
            values = values.repeat_interleave(size, axis)
        return values

    zero = spread(parts["zero_point"]) if "zero_point" in parts else 0.0
    return (quantised.float() - zero) * spread(parts["scale"])


def _damaged(folder: Path, name: str) -> InputError:
    return InputError(f"{folder} has no readable quantised {name}.", "Copy or save the model again.")
