"""Checkpoints of a run: all that it needs to resume after a crash, each whole or absent. They hold no key of a stream.

`OUT.partial/state-7/` holds tensors as safetensors and everything else as JSON, with a SHA-256 of each file. It is
written under another name and renamed. The one before it stays, in case the last turns out to be damaged.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from transformers import PreTrainedModel

from atdp_cli.errors import InputError
from atdp_cli.events import ChoiceWarning, Notify
from atdp_cli.files.atomic_write import sync_folder
from atdp_cli.hardening.budget import Cursor
from atdp_cli.hardening.progress import Progress, StateDocument, document_progress, progress_tensors, state_document
from atdp_cli.hardening.workspace import STATE, checkpoint_numbers
from atdp_cli.training.parallel.fsdp import local_shard, shard_like
from atdp_cli.training.state import StageResult

STATE_FILE = "state.json"

DIGEST = "digest"

SHARD_BYTES = 512 * 2**20
"""Of tensors in a file: so much is in memory a second time while it is written."""


@dataclass(frozen=True, kw_only=True)
class SavedState:
    """A checkpoint on disk.

    Attributes:
        document: Its `state.json`.
    """

    folder: Path
    document: StateDocument

    @property
    def journal(self) -> int:
        """The journal's size in bytes when the checkpoint was saved; it only grows."""
        return self.document.journal

    @property
    def results(self) -> tuple[StageResult, ...]:
        """Of the stages that were done."""
        return tuple(result for result, _ in self.document.results)

    @property
    def cursor(self) -> Cursor:
        """Its position in the plan."""
        document = self.document
        step = 0 if document.underway is None else document.underway.step
        released = document.frequencies is not None
        return Cursor(stage=document.stage, step=step, released=released)


def newest_cursor(root: Path) -> Cursor | None:
    """The position of the newest checkpoint whose `state.json` can be read; None where there is none."""
    for number in checkpoint_numbers(root):
        folder = root / f"{STATE}{number}"
        document = _read_document(folder)
        if isinstance(document, StateDocument):
            return SavedState(folder=folder, document=document).cursor
    return None


def save_state(
    root: Path,
    progress: Progress,
    model: PreTrainedModel,
    parameters: Sequence[str],
    *,
    journal: int,
    complete: Iterable[tuple[str, torch.Tensor]] | None = None,
) -> None:
    """Write a new checkpoint into a run's folder, and keep the newest of the earlier ones.

    Args:
        parameters: Names of those that the run may change.
        journal: The journal's size in bytes.
        complete: The whole tensors of `state_tensors`; None where the model is not sharded.

    Raises:
        OSError: It cannot be written; those before it are as they were, or the newest of them is.
    """
    numbers = checkpoint_numbers(root)
    for older in numbers[1:]:
        shutil.rmtree(root / f"{STATE}{older}")
    number = numbers[0] + 1 if numbers else 1
    part, folder = root / f".{STATE}{number}.part", root / f"{STATE}{number}"
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(mode=0o700)
        files = {}
        for count, shard in enumerate(_shards(complete or state_tensors(progress, model, parameters))):
            name = f"tensors-{count:03}.safetensors"
            files[name] = _write(part / name, save(shard))
        content = state_document(progress, journal, files).model_dump_json()
        _write(part / STATE_FILE, json.dumps({DIGEST: _sha256(content.encode()), "said": content}).encode())
        sync_folder(part)
        part.rename(folder)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        raise
    sync_folder(root)


def state_tensors(
    progress: Progress, model: PreTrainedModel, parameters: Sequence[str]
) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of a checkpoint by name; of a sharded parameter, this process's shard."""
    wanted, stored = set(parameters), set(model.state_dict())
    yield from ((f"model.{name}", parameter) for name, parameter in model.named_parameters() if name in wanted)
    yield from ((f"buffer.{name}", buffer.clone()) for name, buffer in model.named_buffers() if name in stored)
    yield from progress_tensors(progress).items()


def _shards(tensors: Iterable[tuple[str, torch.Tensor]]) -> Iterator[dict[str, torch.Tensor]]:
    shard: dict[str, torch.Tensor] = {}
    size = 0
    for name, tensor in tensors:
        size += tensor.numel() * tensor.element_size()
        if shard and size > SHARD_BYTES:
            yield shard
            shard, size = {}, tensor.numel() * tensor.element_size()
        shard[name] = tensor.detach().contiguous().cpu()
    yield shard


def _write(path: Path, content: bytes) -> str:
    """Write a new file through to the disk, and return its SHA-256."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    return _sha256(content)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def latest_state(root: Path, notify: Notify) -> SavedState | None:
    """The newest undamaged checkpoint; None where none was saved. Damaged ones are reported to `notify`.

    Raises:
        InputError: Checkpoints were saved, and all are damaged.
    """
    numbers = checkpoint_numbers(root)
    for number in numbers:
        folder = root / f"{STATE}{number}"
        document = _read_document(folder)
        problem = document if isinstance(document, str) else _damage(folder, document)
        if isinstance(document, StateDocument) and problem is None:
            return SavedState(folder=folder, document=document)
        notify(ChoiceWarning(what=folder.name, reason=f"{problem}; the one before it is tried"))
    if numbers:
        raise InputError(
            f"All saved states in {root} are damaged.", "Start again with --force; nothing of that run was released."
        )
    return None


def _read_document(folder: Path) -> StateDocument | str:
    """A checkpoint's `state.json`, or what is wrong with it."""
    try:
        envelope = json.loads((folder / STATE_FILE).read_bytes())
        content = str(envelope["said"])
        if envelope[DIGEST] != _sha256(content.encode()):
            return f"{STATE_FILE} is not what was written"
        return StateDocument.model_validate_json(content)
    except OSError as error:
        return f"{STATE_FILE} cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, ValidationError):
        return f"{STATE_FILE} is damaged or of another version"


def _damage(folder: Path, document: StateDocument) -> str | None:
    """What is wrong with a checkpoint's tensors; None where each file is what was written."""
    for name, digest in document.files.items():
        try:
            with (folder / name).open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
                    return f"{name} is not what was written"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
    return None


@torch.no_grad()
def restore_state(state: SavedState, model: PreTrainedModel) -> Progress:
    """Load a checkpoint's parameters into the model, file by file, and return the run's progress.

    Raises:
        InputError: A file cannot be read any more, or is of another model.
    """
    rest: dict[str, torch.Tensor] = {}
    for tensors in _read_tensors(state):
        load_tensors(model, {name: tensor for name, tensor in tensors.items() if is_model_tensor(name)})
        rest |= {name: tensor for name, tensor in tensors.items() if not is_model_tensor(name)}
    return document_progress(state.document, rest)


def read_state(state: SavedState) -> tuple[Progress, dict[str, torch.Tensor]]:
    """The run's progress, and the tensors that `load_tensors` loads; all in memory at once.

    Raises:
        InputError: A file cannot be read any more.
    """
    tensors = {name: tensor for part in _read_tensors(state) for name, tensor in part.items()}
    return document_progress(state.document, tensors), {
        name: tensor for name, tensor in tensors.items() if is_model_tensor(name)
    }


@torch.no_grad()
def load_tensors(model: PreTrainedModel, tensors: Mapping[str, torch.Tensor]) -> None:
    """Load a checkpoint's parameters and buffers into the model.

    Raises:
        InputError: They are of another model.
    """
    targets = {f"model.{name}": parameter for name, parameter in model.named_parameters()}
    targets |= {f"buffer.{name}": buffer for name, buffer in model.named_buffers()}
    for name, tensor in tensors.items():
        if name not in targets or targets[name].shape != tensor.shape:
            raise InputError("The saved state is of another model.", "Start again with --force.")
        local_shard(targets[name]).copy_(local_shard(shard_like(targets[name], tensor)))


def is_model_tensor(name: str) -> bool:
    """Whether a checkpoint's tensor is the model's, not the optimizer's."""
    return name.startswith(("model.", "buffer."))


def _read_tensors(state: SavedState) -> Iterator[dict[str, torch.Tensor]]:
    """A checkpoint's tensors, a file at a time."""
    for name in state.document.files:
        try:
            yield load((state.folder / name).read_bytes())
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"{state.folder} cannot be read ({type(error).__name__}).", "Try again, or start again with --force."
            ) from error
