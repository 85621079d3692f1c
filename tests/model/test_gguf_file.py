"""GGUF files: the numbers that they stand for, and files that a loader would not read as they are."""

import random
from pathlib import Path

import pytest
import torch

from atdp_cli.errors import AtdpError, InputError
from atdp_cli.model.checkpoint import load_checkpoint
from atdp_cli.model.hashes import seal_of
from tests.quantised import write_gguf, write_llama

gguf = pytest.importorskip("gguf", reason="gguf is not installed: pip install atdp[gguf]")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> Path:
    return write_llama(tmp_path_factory.mktemp("llama") / "fp32", lines)


@pytest.mark.parametrize("kind", ["F32", "Q8_0", "Q4_0"])
def test_what_is_loaded_has_the_numbers_that_the_file_stands_for(llama: Path, tmp_path: Path, kind: str) -> None:
    """The oracle is the model itself, its matrices rounded and read back by the format's own functions."""
    actual = load_checkpoint(write_gguf(llama, tmp_path / kind, kind), audited=True)
    expected = load_checkpoint(llama).model
    wanted = gguf.GGMLQuantizationType[kind]
    if kind != "F32":
        with torch.no_grad():
            for tensor in expected.parameters():
                if tensor.ndim == 2:
                    rounded = gguf.quants.dequantize(gguf.quants.quantize(tensor.numpy(), wanted), wanted)
                    tensor.copy_(torch.from_numpy(rounded))
    ids = torch.randint(0, 400, (4, 60), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        torch.testing.assert_close(actual.model(ids).logits, expected(ids).logits, rtol=1e-4, atol=1e-5)
    assert set(seal_of(tmp_path / kind)) == {"model.gguf", "tokenizer.json", "tokenizer_config.json"}


def test_nothing_but_an_audit_loads_it(llama: Path, tmp_path: Path) -> None:
    folder = write_gguf(llama, tmp_path / "q8", "Q8_0")
    with pytest.raises(InputError, match="GGUF, which is audited and never trained"):
        load_checkpoint(folder)
    (folder / "other.gguf").write_bytes((folder / "model.gguf").read_bytes())
    with pytest.raises(InputError, match="holds 2 files"):
        load_checkpoint(folder, audited=True)
    (folder / "other.gguf").unlink()
    (folder / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"has no tokenizer\.json"):
        load_checkpoint(folder, audited=True)


def test_a_setting_that_the_loader_passes_over_is_refused(llama: Path, tmp_path: Path) -> None:
    """Positions scaled by it, or scores capped, would be another model than the one that ships."""
    scaled = write_gguf(llama, tmp_path / "scaled", "F32", llama__rope__scaling__factor=8.0)
    with pytest.raises(InputError, match=r"does not read, llama\.rope\.scaling\.factor"):
        load_checkpoint(scaled, audited=True)


def test_another_architecture_is_refused(llama: Path, tmp_path: Path) -> None:
    folder = write_gguf(llama, tmp_path / "other", "F32")
    path = folder / "model.gguf"
    path.write_bytes(path.read_bytes().replace(b"llama", b"qwen2"))
    with pytest.raises(InputError, match="architecture qwen2"):
        load_checkpoint(folder, audited=True)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_is_read_or_refused_in_one_line(llama: Path, tmp_path: Path, seed: int) -> None:
    folder = write_gguf(llama, tmp_path / "damaged", "Q8_0")
    path, draw = folder / "model.gguf", random.Random(seed)
    whole = bytearray(path.read_bytes())
    if seed % 4 == 0:
        path.write_bytes(whole[: draw.randrange(len(whole))])
    else:
        for _ in range(draw.randint(1, 6)):
            whole[draw.randrange(3000 if seed % 4 < 3 else len(whole))] = draw.randrange(256)
        path.write_bytes(whole)
    try:
        load_checkpoint(folder, audited=True)
    except AtdpError as error:
        assert "\n" not in str(error)  # noqa: PT017 - it need not raise
