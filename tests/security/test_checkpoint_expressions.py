"""Regular expressions of a checkpoint: those of its tokenizer and of its adapter are bounded before they are used."""

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, pre_tokenizers

from atdp_cli.errors import InputError
from atdp_cli.model.adapter import add_adapter
from atdp_cli.model.checkpoint import load_checkpoint, load_tokenizer
from atdp_cli.model.sandbox import TIMEOUT, ends_in_time
from atdp_cli.model.tokenizer import KNOWN
from atdp_cli.model.windows import encode_record

Json = dict[str, Any]


def split(pattern: str) -> Json:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def replace(pattern: str) -> Json:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": "x"}


def with_parts(folder: Path, **parts: Any) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer | parts))


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}

SLOW = (
    r"(a+)+$",
    r"(a|aa)+$",
    r"(?:\w+\s?)*\d$",
    r"(x+x+)+y",
    r"\s+x",
    r"(?i)([a-z]+)*!",
    r"(ab|abab)+$",
    r"(?=(\p{L}+)+\d)",
    r"\p{N}*\p{N}*\p{N}*;",
    r"((one)+)+;",
)
SLOW_PARTS: dict[str, Json] = {
    **{f"split by {pattern}": {"pre_tokenizer": split(pattern)} for pattern in SLOW},
    "in a sequence": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [split(SLOW[0]), BYTES]}},
    "a normaliser": {"normalizer": replace(SLOW[1])},
    "a normaliser in a sequence": {"normalizer": {"type": "Sequence", "normalizers": [replace(SLOW[3])]}},
    "a decoder": {"decoder": replace(SLOW[0])},
    "a pattern that is none": {"pre_tokenizer": split("(((")},
    "a pattern of any memory": {"pre_tokenizer": split("(?:(?:(?:a{999}){999}){999}){999}")},
    "a lookbehind": {"pre_tokenizer": split(r"(?<=a|aa|aaa)(?:a+)+\z!")},
}


@pytest.fixture
def folder(tmp_path: Path, checkpoint_folder: Path) -> Path:
    return shutil.copytree(checkpoint_folder, tmp_path / "model")


@pytest.mark.ci
@pytest.mark.parametrize("name", SLOW_PARTS)
def test_a_slow_pattern_of_a_tokenizer_is_refused(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with_parts(folder, **SLOW_PARTS[name])
    began = time.monotonic()
    with pytest.raises(InputError, match="the tokenizer fails on an ordinary text, or takes too"):
        load_tokenizer(folder)
    assert time.monotonic() - began < TIMEOUT["tokenizer"] + 3
    assert capfd.readouterr().err == ""


def test_a_normaliser_sees_the_added_tokens_before_anything_is_loaded(folder: Path) -> None:
    """No other text has the words that this pattern begins with."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["added_tokens"].append(
        tokenizer["added_tokens"][0]
        | {"id": 400, "content": "zq" * 40 + "x" * 40, "normalized": True, "special": False}
    )
    tokenizer["normalizer"] = replace(r"\A(?:[z][q]){40}(x+)+$!")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(InputError, match="the tokenizer fails on an ordinary text"):
        load_tokenizer(folder)


PUBLISHED = (
    *sorted(KNOWN),
    r" ?[^(\s|[.,!?…。，、।۔،])]+",  # BLOOM
    r"\p{N}{1,3}",  # DeepSeek
    r"[一-龥぀-ゟ゠-ヿ]+",  # DeepSeek
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",  # GPT-4o
)


@pytest.mark.parametrize("pattern", PUBLISHED)
def test_published_patterns_pass(pattern: str) -> None:
    """Also by the check in a process, which those that are known do not take."""
    assert ends_in_time("tokenizer", {"parts": {"pre_tokenizer": split(pattern)}, "patterns": [pattern], "texts": []})


def test_known_patterns_take_no_check(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere")
    with_parts(folder, pre_tokenizer={"type": "Sequence", "pretokenizers": [*map(split, sorted(KNOWN)), BYTES]})
    assert encode_record(load_tokenizer(folder), "Emma wrote 12345")


def test_a_panic_while_a_text_is_encoded_is_one_line(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And standard error is everybody's again once it is over."""
    tokenizer = load_tokenizer(folder)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"(a+)+$"), "isolated")
    with pytest.raises(InputError, match="the tokenizer cannot be read"):
        encode_record(tokenizer, "a" * 60 + "b")
    os.write(2, b"the end")
    assert capfd.readouterr().err == "the end"


def test_an_error_while_a_text_is_encoded_is_one_line(folder: Path) -> None:
    words = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "b"}
    with_parts(folder, model=words, pre_tokenizer=None, decoder=None, post_processor=None, added_tokens=[])
    with pytest.raises(InputError, match="the tokenizer cannot be read"):
        encode_record(load_tokenizer(folder), "Emma")


@pytest.fixture(scope="module")
def adapter_folder(tmp_path_factory: pytest.TempPathFactory, checkpoint_folder: Path) -> Path:
    place = tmp_path_factory.mktemp("adapter")
    shutil.copytree(checkpoint_folder, place / "base")
    add_adapter(load_checkpoint(place / "base").model, 2).save_pretrained(place / "adapter")
    return place


EVIL = r"(([a-z_0-9]+)*\.?)*!"
SLOW_NAMES: dict[str, Json] = {
    "target_modules": {"target_modules": EVIL},
    "target_modules with a name": {"target_modules": f"c_attn|{EVIL}"},
    "exclude_modules": {"exclude_modules": EVIL},
    "layers_pattern": {"target_modules": ["c_attn"], "layers_to_transform": [0], "layers_pattern": EVIL},
    "layers_pattern in a list": {"target_modules": ["c_attn"], "layers_to_transform": [0], "layers_pattern": [EVIL]},
    "modules_to_save": {"modules_to_save": [EVIL]},
    "rank_pattern": {"rank_pattern": {EVIL: 4}},
    "alpha_pattern": {"alpha_pattern": {EVIL: 4}},
    "no pattern": {"target_modules": "((("},
    "a deep pattern": {"target_modules": "(" * 5_000 + "c_attn" + ")" * 5_000},
}


@pytest.mark.ci
@pytest.mark.parametrize("name", SLOW_NAMES)
def test_a_slow_pattern_of_an_adapter_is_refused(name: str, adapter_folder: Path, tmp_path: Path) -> None:
    place = shutil.copytree(adapter_folder, tmp_path / "place")
    file = place / "adapter" / "adapter_config.json"
    settings = json.loads(file.read_text()) | {"base_model_name_or_path": str(place / "base")}
    file.write_text(json.dumps(settings | SLOW_NAMES[name]))
    began = time.monotonic()
    with pytest.raises(InputError, match=r"a pattern in its adapter_config\.json fails or takes too long"):
        load_checkpoint(place / "adapter")
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("pattern", [r".*\.(c_attn|c_proj|c_fc)", r"(?:.*?(?:attn|mlp).*?(?:c_attn|c_fc|c_proj).*?)"])
def test_an_ordinary_pattern_of_an_adapter_loads(pattern: str, adapter_folder: Path, tmp_path: Path) -> None:
    place = shutil.copytree(adapter_folder, tmp_path / "place")
    file = place / "adapter" / "adapter_config.json"
    known = json.loads(file.read_text())
    file.write_text(json.dumps(known | {"target_modules": pattern, "base_model_name_or_path": str(place / "base")}))
    assert load_checkpoint(place / "adapter").model.peft_config["default"].target_modules == pattern
