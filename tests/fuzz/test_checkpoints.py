"""What is read of a checkpoint's folder before anything of it is loaded."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.model.folder import check_folder, hidden_width, stored_dtype, stored_tensors, weight_files
from tests.fuzz.damage import altered, damaged, json_of, node_of, noise, text_of
from tests.fuzz.survival import INPUTS, Choices, Make, survive

CONFIG = json.dumps({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "auto_map": None, "text_config": {"n_head": 2}})
TOKENIZER = json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64, "added": [{"a": 1}]})
ADAPTER = json.dumps(
    {"peft_type": "LORA", "base_model_name_or_path": "elsewhere/base", "r": 8, "target_modules": ["a"]}
)
HEADER: dict[str, Any] = {
    "__metadata__": {"format": "pt"},
    "transformer.h.0.a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    "transformer.h.1.b": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]},
}
DATA = bytes(32)


def packed(header: bytes, length: int | None = None) -> bytes:
    """A safetensors file."""
    return struct.pack("<Q", len(header) if length is None else length) + header + DATA


WEIGHTS = packed(json.dumps(HEADER).encode())
SHARDS = {"a.safetensors": "transformer.h.0.a", "b.safetensors": "transformer.h.1.b"}
INDEX = json.dumps({"metadata": {"total_size": 32}, "weight_map": {name: file for file, name in SHARDS.items()}})


def shard(name: str) -> bytes:
    """A safetensors file of one of the tensors."""
    begin, end = HEADER[name]["data_offsets"]
    header = json.dumps({name: HEADER[name] | {"data_offsets": [0, end - begin]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(end - begin)


def altered_header(choices: Choices) -> bytes:
    """Weights whose header has up to two places changed, and sometimes another length than it says."""
    node = node_of(HEADER)
    for _ in range(1 + choices.below(2)):
        node = altered(choices, node)
    header = text_of(node).encode("utf-8", "surrogatepass")
    lengths = (
        None,
        None,
        None,
        0,
        1,
        len(header) - 1,
        len(header) + 1,
        len(header) + len(DATA),
        1 << 26,
        (1 << 64) - 1,
    )
    return packed(header, choices.of(lengths))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with all that is looked at; beside it the model that an adapter adapts."""
    for place in (tmp_path / "model", tmp_path / "base"):
        place.mkdir()
        (place / "config.json").write_text(CONFIG)
        (place / "model.safetensors").write_bytes(WEIGHTS)
        (place / "tokenizer.json").write_text("{}")
        (place / "tokenizer_config.json").write_text(TOKENIZER)
    return tmp_path / "model"


def check_all(folder: Path) -> None:
    """All that is read without torch."""
    check_folder(folder)
    weight_files(folder)
    stored_dtype(folder)
    list(stored_tensors(folder))
    hidden_width(folder)


def ways(valid: str) -> list[Make[bytes]]:
    """Ways to break a JSON file."""
    return [json_of(valid), json_of(valid), damaged(valid.encode()), noise]


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_configurations(name: str, inputs: int, folder: Path) -> None:
    valid = (folder / name).read_text()

    def read(content: bytes) -> None:
        (folder / name).write_bytes(content)
        check_all(folder)

    survive(inputs, ways(valid), read, valid=[valid.encode()])


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_weights(inputs: int, folder: Path) -> None:
    def read(content: bytes) -> None:
        (folder / "model.safetensors").write_bytes(content)
        check_all(folder)

    survive(inputs, [altered_header, altered_header, damaged(WEIGHTS), noise], read, valid=[WEIGHTS])


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_indices(inputs: int, folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    for file, name in SHARDS.items():
        (folder / file).write_bytes(shard(name))

    def read(content: bytes) -> None:
        (folder / "model.safetensors.index.json").write_bytes(content)
        check_all(folder)

    survive(inputs, ways(INDEX), read, valid=[INDEX.encode()])


@pytest.mark.ci
@pytest.mark.parametrize("inputs", INPUTS)
def test_adapters(inputs: int, folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")

    def read(content: bytes) -> None:
        (folder / "adapter_config.json").write_bytes(content)
        check_all(folder)

    survive(inputs, ways(ADAPTER), read, valid=[ADAPTER.encode()])
