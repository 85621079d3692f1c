"""What is loaded is what was hashed, whoever writes into its files meanwhile; no ledger speaks for other weights."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from transformers import AutoModelForCausalLM

from atdp_cli.audit.stated_epsilon import ledger_of
from atdp_cli.cli import audit_canary
from atdp_cli.errors import AtdpError, InputError, RunError
from atdp_cli.events import ignore
from atdp_cli.files.documents import file_sha256
from atdp_cli.hardening.model import load_model
from atdp_cli.hardening.plan import plan_request
from atdp_cli.model.checkpoint import load_checkpoint
from atdp_cli.model.hashes import ledger_beside, seal_of, verified_ledger
from atdp_cli.privacy.ledger import LEDGER_FILE, write_ledger
from tests.cli.conftest import Atdp, atdp
from tests.hardening.conftest import bpe, fixed_manifest, place
from tests.hardening.resumption import Place
from tests.privacy.ledgers import ledger, steps
from tests.small import write_checkpoint

__all__ = ["atdp", "bpe", "fixed_manifest", "place"]

WEIGHTS = "model.safetensors"

Swap = Callable[[Path, Path], None]


def renamed(model: Path, other: Path) -> None:
    shutil.copy(other, model.with_name("new"))
    model.with_name("new").replace(model)


def overwritten(model: Path, other: Path) -> None:
    content = other.read_bytes()
    with model.open("r+b") as stream:
        stream.write(content)


def overwritten_in_secret(model: Path, other: Path) -> None:
    about = model.stat()
    overwritten(model, other)
    os.utime(model, ns=(about.st_atime_ns, about.st_mtime_ns))


def moved_away(model: Path, other: Path) -> None:
    model.parent.rename(model.parent.with_name("aside"))
    shutil.copytree(other.parent, model.parent)


def put_back(model: Path, other: Path) -> None:
    aside = model.parent.with_name("aside")
    if aside.exists():
        shutil.rmtree(model.parent)
        aside.rename(model.parent)


SWAPS: dict[str, tuple[Swap | None, Swap | None]] = {
    "another file before they are read": (renamed, None),
    "another file after": (None, renamed),
    "other bytes before": (overwritten, None),
    "other bytes after": (None, overwritten),
    "other bytes and the old time before": (overwritten_in_secret, None),
    "other bytes and the old time after": (None, overwritten_in_secret),
    "another folder before": (moved_away, None),
    "another folder while they are read": (moved_away, put_back),
    "other bytes while they are read": (overwritten, lambda model, other: overwritten(model, other.with_name("first"))),
}


@pytest.fixture
def two(checkpoint_folder: Path, tmp_path: Path, lines: list[str]) -> tuple[Path, Path]:
    """A model and another one of the same size."""
    shutil.copytree(checkpoint_folder, tmp_path / "model")
    shutil.copytree(checkpoint_folder, tmp_path / "other")
    made = write_checkpoint(tmp_path / "made", lines, seed=8)
    shutil.copy(made / WEIGHTS, tmp_path / "other" / WEIGHTS)
    shutil.copy(checkpoint_folder / WEIGHTS, tmp_path / "other" / "first")
    return tmp_path / "model", tmp_path / "other"


def numbers(model: Any) -> float:
    return float(sum(parameter.detach().double().abs().sum() for parameter in model.parameters()))


@pytest.mark.parametrize("swap", SWAPS)
def test_the_hash_is_of_the_weights_in_memory(
    swap: str, two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An audit reports `seal`; in memory are then the weights of that hash, or the model was refused."""
    model, other = two
    known = {file_sha256(folder / WEIGHTS): numbers(load_checkpoint(folder).model) for folder in two}
    read, (before, after) = AutoModelForCausalLM.from_pretrained, SWAPS[swap]

    def from_pretrained(*arguments: Any, **options: Any) -> Any:
        if before is not None:
            before(model / WEIGHTS, other / WEIGHTS)
        loaded = read(*arguments, **options)
        if before is not None and after is not None:
            after(model / WEIGHTS, other / WEIGHTS)
        return loaded

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", from_pretrained)
    try:
        checkpoint = load_checkpoint(model)
    except AtdpError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        return
    if before is None and after is not None:
        after(model / WEIGHTS, other / WEIGHTS)
    assert numbers(checkpoint.model) == known[checkpoint.seal[WEIGHTS]]


FILES = {
    "weights": WEIGHTS,
    "configuration": "config.json",
    "generation settings": "generation_config.json",
    "tokenizer": "tokenizer.json",
    "settings of the tokenizer": "tokenizer_config.json",
}


@pytest.mark.parametrize("which", ["model", "reference"])
@pytest.mark.parametrize("name", FILES.values(), ids=FILES)
def test_what_is_trained_is_what_was_planned_with(name: str, which: str, two: tuple[Path, Path], place: Place) -> None:
    model, other = two
    shutil.copy(other / "first", model.parent / "first")
    request = place.request("anchored", model=model, reference=other)
    planned = plan_request(request)
    seal_of(model, planned.sha256), seal_of(other, planned.sha256)
    changed = model if which == "model" else other
    if name == WEIGHTS:
        shutil.copy((other if which == "model" else model) / WEIGHTS, changed / name)
    else:
        (changed / name).write_text((changed / name).read_text() + "\n")
    with pytest.raises(RunError, match=f"{which if which == 'model' else 'other'} was changed while it was read"):
        load_model(request, ignore, planned.sha256)


def test_the_model_in_memory_is_no_view_of_its_file(two: tuple[Path, Path]) -> None:
    model, other = two
    checkpoint = load_checkpoint(model)
    before = [parameter.detach().clone() for parameter in checkpoint.model.parameters()]
    overwritten(model / WEIGHTS, other / WEIGHTS)
    assert all(map(torch.equal, before, checkpoint.model.parameters()))
    head = checkpoint.model.get_output_embeddings().weight
    assert head.data_ptr() == checkpoint.model.get_input_embeddings().weight.data_ptr()


UNSEALED = ("a.gguf", "A.GGUF", "pytorch_model.bin", "model.pt", "model.pth", "model.ckpt", "model.pkl", "B.BIN")


@pytest.mark.parametrize("beside", ["", "a.safetensors"])
@pytest.mark.parametrize("name", UNSEALED)
def test_no_ledger_speaks_for_weights_that_it_did_not_seal(name: str, beside: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"GGUF")
    sealed = {}
    if beside:
        (tmp_path / beside).write_bytes(b"sealed")
        sealed = {beside: file_sha256(tmp_path / beside)}
    write_ledger(tmp_path / LEDGER_FILE, ledger(steps(0.1, 1.0, 9)).model_copy(update={"seal": sealed}))
    for read in (verified_ledger, ledger_beside):
        with pytest.raises(InputError, match="is not what it sealed"):
            read(tmp_path)
    assert ledger_of(tmp_path, {}) is None


def test_a_copy_in_another_format_beside_a_sealed_model_does_no_harm(two: tuple[Path, Path]) -> None:
    model, _ = two
    write_ledger(model / LEDGER_FILE, ledger(steps(0.1, 1.0, 9)).model_copy(update={"seal": seal_of(model)}))
    for name in UNSEALED:
        (model / name).write_bytes(b"GGUF")
    assert ledger_beside(model) is not None
    assert ledger_of(model, seal_of(model)) is not None
    assert ledger_of(model, seal_of(model) | {WEIGHTS: "0" * 64}) is None


HELD = {
    "a model": "config.json",
    "an adapter": "adapter_config.json",
    "weights": "model.safetensors",
    "GGUF": "a.gguf",
    "a pickle": "pytorch_model.bin",
    "no folder": None,
    "a file": ".",
}


@pytest.mark.parametrize("suffix", [".private", ".partial"])
@pytest.mark.parametrize("held", HELD)
def test_no_model_is_skipped_by_its_name(held: str, suffix: str, tmp_path: Path) -> None:
    named, name = tmp_path / f"leaky{suffix}", HELD[held]
    if name == ".":
        named.write_text("")
    elif name is not None:
        named.mkdir()
        (named / name).write_text("{}")
    (tmp_path / "model.private" / "review").mkdir(parents=True)
    (tmp_path / "model.private" / "journal.jsonl").write_text("")
    console = Console(quiet=True)
    assert audit_canary._folders([tmp_path, named, tmp_path / "model.private"], console) == (tmp_path, named)


@pytest.mark.ci
def test_a_damaged_model_of_such_a_name_is_no_pass(atdp: Atdp, two: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "model.private").mkdir()
    audit = ("audit-canary", two[0], tmp_path / "model.private", "--canary", "My ID is 49", "-q")
    assert atdp(*audit).code == 4
    (tmp_path / "model.private" / "config.json").write_text("{}")
    assert atdp(*audit).code == 3
