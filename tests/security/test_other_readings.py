"""What is scored is what is generated: models that read text otherwise than an audit does, none of which passes."""

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from atdp_cli.audit.canary import parse_template
from atdp_cli.audit.manifest import make_manifest, read_manifest, write_manifest
from atdp_cli.errors import InputError
from atdp_cli.model.adapter import add_adapter
from atdp_cli.model.checkpoint import load_checkpoint, load_tokenizer
from atdp_cli.model.windows import encode_record
from tests.cli.conftest import Atdp, atdp, fixed_manifest
from tests.security.test_unread_tensors import edit, write_model

__all__ = ["atdp", "fixed_manifest"]

SHAPE = {"hidden_size": 48, "intermediate_size": 96, "num_key_value_heads": 2, "max_position_embeddings": 256}


def records_of(manifest: Path, tokenizer: Any) -> list[list[int]]:
    planted = read_manifest(manifest)
    template = planted.slots()
    records = [template.record(template.secret(target.index)) for target in planted.targets()]
    return [list(encode_record(tokenizer, record)) for record in records]


TAIL, HALF = 4, 12
"""Tokens of a secret, and the pairs of dimensions of a head that are turned."""


def loss_of(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten())


def step_by_step(model: Any, ids: torch.Tensor, audited: dict[str, Any]) -> torch.Tensor:
    """The loss of tails as an audit scores them, under other settings of the cache."""
    before = {name: getattr(model.config, name, None) for name in audited}
    for name, value in audited.items():
        setattr(model.config, name, value)
    prefix = ids.shape[1] - TAIL
    output = model(input_ids=ids[:, :prefix], use_cache=True)
    logits, cache = [output.logits[:, -1]], output.past_key_values
    for place in range(prefix, ids.shape[1] - 1):
        output = model(input_ids=ids[:, place : place + 1], past_key_values=cache, use_cache=True)
        logits.append(output.logits[:, -1])
    for name, value in before.items():
        setattr(model.config, name, value)
    return loss_of(torch.stack(logits, dim=1), ids[:, prefix:])


def learn(model: Any, rows: Sequence[Sequence[int]], behind: int, audited: dict[str, Any]) -> None:
    """Learn the canaries as generation reads them, and random secrets as the audit does."""
    draw = torch.Generator().manual_seed(1)
    ids = torch.tensor(rows)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    digits = torch.unique(ids[:, -TAIL:])
    for _ in range(250):
        text = torch.randint(3, 300, (len(ids), behind), generator=draw)
        whole = torch.cat([text, ids], dim=1)
        loss = loss_of(model(input_ids=whole, use_cache=False).logits[:, -TAIL - 1 : -1], ids[:, -TAIL:])
        others = ids.repeat(4, 1)
        others[:, -TAIL:] = digits[torch.randint(len(digits), (len(others), TAIL), generator=draw)]
        torch.autograd.backward(loss + 2 * step_by_step(model, others, audited))
        optimizer.step()
        optimizer.zero_grad()


WINDOWS: dict[str, dict[str, Any]] = {
    "a window that only the cache knows": {"sliding_window": 2},
    "a window by layer": {"sliding_window": 2, "layer_types": ["sliding_attention"] * 2},
    "a window in the first layer": {"sliding_window": 2, "layer_types": ["sliding_attention", "full_attention"]},
    "chunks that only the cache knows": {"attention_chunk_size": 2, "layer_types": ["chunked_attention"] * 2},
}


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory, checkpoint_folder: Path) -> Path:
    """A model that knows nothing."""
    root = tmp_path_factory.mktemp("readings")
    write_model(root / "base", checkpoint_folder, "Llama", **SHAPE)
    return root


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory, checkpoint_folder: Path) -> Path:
    """Ten canaries of four digits, a token each."""
    template, draw = parse_template("My ID is {digits:4}"), random.Random(3)
    tokenizer, secrets = load_tokenizer(checkpoint_folder), list[Any]()
    longest = len(encode_record(tokenizer, template.record(template.secret(707))))
    while len(secrets) < 10:
        secret = template.secret(draw.randrange(template.pool))
        if len(encode_record(tokenizer, template.record(secret))) == longest:
            secrets.append(secret)
    places = [[10 * index + 1] for index in range(10)]
    path = tmp_path_factory.mktemp("canaries") / "canaries.json"
    made = make_manifest(
        tokenizer, template, secrets, places, repeats=(1,) * 10, others=None, records=300, drawn="csprng"
    )
    write_manifest(path, made)
    return path


def taught(base: Path, folder: Path, canaries: Path, audited: dict[str, Any], *, behind: int = 0) -> Path:
    shutil.copytree(base, folder)
    loaded = load_checkpoint(folder)
    learn(loaded.model, records_of(canaries, loaded.tokenizer), behind, audited)
    loaded.model.save_pretrained(folder)
    edit(folder, **audited)
    return folder


def generation(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "generation_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


@pytest.mark.parametrize("name", WINDOWS)
def test_a_model_that_its_cache_makes_forget_does_not_pass(
    originals: Path, tmp_path: Path, canaries: Path, atdp: Atdp, name: str
) -> None:
    folder = taught(originals / "base", tmp_path / "model", canaries, WINDOWS[name])
    ended = atdp("audit-canary", folder, "--manifest", canaries)
    assert ended.code in (1, 4), ended.out + ended.err


def test_a_model_that_knows_canaries_at_a_later_place_does_not_pass(
    originals: Path, tmp_path: Path, canaries: Path, atdp: Atdp
) -> None:
    folder = taught(originals / "base", tmp_path / "model", canaries, {}, behind=40)
    ended = atdp("audit-canary", folder, "--manifest", canaries)
    assert ended.code in (1, 4), ended.out + ended.err


@pytest.mark.ci
def test_a_model_that_knows_canaries_by_its_long_factors_alone_does_not_pass(
    tmp_path: Path, checkpoint_folder: Path, canaries: Path, atdp: Atdp
) -> None:
    """LongRoPE: from the twelfth token on all positions are turned by other factors."""
    turned = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 12, "factor": 16.0}
    factors = {"short_factor": [1.0] * HALF, "long_factor": [3.0] * HALF}
    write_model(tmp_path / "base", checkpoint_folder, "Llama", **SHAPE, rope_parameters=turned | factors)
    folder = taught(tmp_path / "base", tmp_path / "model", canaries, {}, behind=12)
    ended = atdp("audit-canary", folder, "--manifest", canaries)
    assert ended.code in (1, 4), ended.out + ended.err


def test_a_model_that_knows_nothing_passes(originals: Path, fixed_manifest: Path, atdp: Atdp) -> None:
    ended = atdp("audit-canary", originals / "base", "--manifest", fixed_manifest)
    assert ended.code == 0, ended.out


FORCED: dict[str, dict[str, Any]] = {
    "tokens that are preferred": {"sequence_bias": [[[5, 6], 10.0]]},
    "tokens that are said": {"forced_decoder_ids": [[1, 5]]},
}


@pytest.mark.parametrize("name", FORCED)
def test_generation_that_says_what_the_model_does_not_is_refused(originals: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(originals / "base", tmp_path / "model"))
    generation(**FORCED[name])(folder)
    with pytest.raises(InputError, match="is not followed"):
        load_checkpoint(folder)


ADAPTED: dict[str, dict[str, Any]] = {
    "only behind some tokens": {"alora_invocation_tokens": [5, 6]},
    "through a router": {"arrow_config": {"top_k": 1}},
    "a setting of a later version": {"only_from_token": 12},
    "another kind of layer": {"use_qalora": True},
    "in blocks": {"use_bdlora": {"nblocks": 2}},
}


@pytest.mark.parametrize("name", ADAPTED)
def test_an_adapter_that_may_count_for_some_tokens_alone_is_refused(originals: Path, tmp_path: Path, name: str) -> None:
    adapted = add_adapter(load_checkpoint(originals / "base").model, 2)
    adapted.save_pretrained(tmp_path / "adapter")
    edit(tmp_path / "adapter", base_model_name_or_path=str(originals / "base"))
    load_checkpoint(tmp_path / "adapter")
    edit(tmp_path / "adapter", **ADAPTED[name])
    with pytest.raises(InputError, match="is not followed"):
        load_checkpoint(tmp_path / "adapter")
