"""A model in one GGUF file, which is audited: its numbers in fp32, by transformers' loader, compared with the file's.

The file's settings must all be among those that the loader reads, and every tensor of the file must be one of the
model's, number for number up to their order, as the loader permutes the rows of queries and keys. So far that is held
for the architecture of Llama alone.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from atdp_cli.errors import InputError, UsageError
from atdp_cli.model.adapter import no_warnings
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
"""Where settings begin that change no number: the tokenizer is read from tokenizer.json."""


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
    """Of every tensor of the file."""
    try:
        from gguf import GGUFReader, dequantize
    except ImportError as error:
        raise UsageError(
            f"{file} is read by the package gguf, which is missing.", "pip install 'atdp[gguf]'"
        ) from error
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
    """Of a tensor's numbers, whatever their order."""
    # 0 and -0 compare alike, and their order would be left to chance.
    ordered = np.sort(np.asarray(numbers, dtype=np.float32) + np.float32(0), axis=None)
    return hashlib.sha256(ordered.tobytes()).hexdigest()


def _unreadable(file: Path) -> InputError:
    return InputError(f"{file} is not a whole GGUF file of a language model.", "Copy or convert it again.")
