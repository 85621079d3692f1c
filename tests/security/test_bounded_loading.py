"""Configurations and tokenizers that would fill the memory, abort the process or never end are refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.errors import InputError
from atdp_cli.model.checkpoint import load_checkpoint
from tests.security.test_unread_tensors import edit, write_model


def growing(*pairs: tuple[str, str]) -> dict[str, Any]:
    parts = [{"type": "Replace", "pattern": {"String": old}, "content": new} for old, new in pairs]
    return {"type": "Sequence", "normalizers": parts}


def tokenizer(**parts: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "tokenizer.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | parts))

    return change


def settings(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: edit(folder, **changes)


HUGE = 3_000_000_000
PADDING = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "!"}

UNBOUNDED: dict[str, Callable[[Path], None]] = {
    "labels": settings(num_labels=HUGE),
    "layers of attention": settings(model_type="gpt_neo", attention_types=[[["global"], HUGE]]),
    "classes in a nested configuration": settings(text_config={"num_labels": HUGE}),
    "a list of windows": settings(window_sizes=[1, HUGE]),
    "a context that is no whole number": settings(max_position_embeddings=1e300),
    "a context of -1": settings(max_position_embeddings=-1),
    "a context below 0": settings(max_position_embeddings=-5),
    "a normaliser that doubles": tokenizer(normalizer=growing(*[("a", "aa")] * 37)),
    "a normaliser that grows a rare character": tokenizer(normalizer=growing(*[("ø", "ø" * 100)] * 6)),
    "a normaliser that grows a little": tokenizer(normalizer=growing(("ø", "ø" * 1000))),
    "a normaliser of empty matches": tokenizer(normalizer=growing(*[("", "x")] * 37)),
    "a normaliser of known patterns": tokenizer(
        normalizer={"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "x" * 100_000}
    ),
    "a decoder that doubles": tokenizer(
        decoder={"type": "Sequence", "decoders": growing(*[("a", "aa")] * 37)["normalizers"]}
    ),
    "a normaliser by steps": tokenizer(normalizer=growing(*((chr(945 + i), chr(946 + i) * 100) for i in range(6)))),
    "padding to any length": tokenizer(padding={"strategy": {"Fixed": HUGE}, **PADDING}),
    "padding to a multiple": tokenizer(padding={"strategy": "BatchLongest", **PADDING, "pad_to_multiple_of": HUGE}),
}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory, checkpoint_folder: Path) -> Path:
    return write_model(tmp_path_factory.mktemp("bounded") / "llama", checkpoint_folder, "Llama")


@pytest.mark.parametrize("name", UNBOUNDED)
def test_what_would_fill_the_memory_is_refused_in_one_line(llama: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(llama, tmp_path / "model"))
    UNBOUNDED[name](folder)
    with pytest.raises(InputError) as caught:
        load_checkpoint(folder)
    assert "\n" not in str(caught.value)
