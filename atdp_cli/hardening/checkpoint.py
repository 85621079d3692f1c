"""Checkpoints of a run, and when they are saved. Each has all that a run needs to resume, but no key of a stream.

`OUT.partial/state-7/` holds tensors as safetensors and everything else as JSON, with a SHA-256 of each file. It is
written under another name and renamed. The one before it stays, in case the last turns out to be damaged.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from transformers import PreTrainedModel

from atdp_cli.errors import InputError, InterruptedRunError
from atdp_cli.events import ChoiceWarning, Notify, StateSaved
from atdp_cli.files.atomic_write import sync_folder
from atdp_cli.hardening.progress import Progress, take_tensors
from atdp_cli.hardening.workspace import STATE, Workspace, checkpoint_numbers
from atdp_cli.training.parallel.collectives import all_reduce_any
from atdp_cli.training.parallel.fsdp import full_tensor, local_shard, shard_like
from atdp_cli.training.parallel.ranks import SINGLE_PROCESS, Ranks

STATE_FILE = "state.json"

DIGEST = "digest"

SHARD_BYTES = 512 * 2**20
"""The most bytes of tensors in a file: so much is in memory a second time while it is written."""


class StateDocument(BaseModel):
    """The content of `state.json`.

    Attributes:
        progress: Of the run, without its tensors.
        journal: The journal's size in bytes when the checkpoint was saved; it only grows.
        files: The SHA-256 of each file of tensors, by name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, ser_json_inf_nan="constants")

    schema_version: Literal[1] = 1
    kind: Literal["atdp-state"] = "atdp-state"
    progress: Progress
    journal: int
    files: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class SavedState:
    """A checkpoint on disk, with its `state.json`."""

    folder: Path
    document: StateDocument


def save_state(root: Path, progress: Progress, tensors: Iterable[tuple[str, torch.Tensor]], *, journal: int) -> None:
    """Write a new checkpoint into a run's folder, and keep the newest of the earlier ones.

    Args:
        tensors: Those of `state_tensors`, whole.
        journal: The journal's size in bytes.

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
        for count, shard in enumerate(_shards(tensors)):
            name = f"tensors-{count:03}.safetensors"
            files[name] = _write(part / name, save(shard))
        bare, _ = take_tensors(progress)
        content = StateDocument(progress=bare, journal=journal, files=files).model_dump_json()
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
    yield from take_tensors(progress)[1].items()


def gather_tensors(ranks: Ranks, tensors: Iterable[tuple[str, torch.Tensor]]) -> tuple[tuple[str, torch.Tensor], ...]:
    """Whole tensors on the CPU of the first process, of which each process has a shard; the others get none."""
    complete = ((name, full_tensor(tensor.detach())) for name, tensor in tensors)
    return tuple((name, tensor.cpu()) for name, tensor in complete if ranks.first)


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
    """The damage of a checkpoint's tensors, in words; None where each file is what was written."""
    for name, digest in document.files.items():
        try:
            with (folder / name).open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
                    return f"{name} is not what was written"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
    return None


def read_tensors(state: SavedState) -> dict[str, torch.Tensor]:
    """A checkpoint's tensors by name.

    Raises:
        InputError: A file cannot be read any more.
    """
    tensors: dict[str, torch.Tensor] = {}
    for name in state.document.files:
        try:
            tensors |= load((state.folder / name).read_bytes())
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"{state.folder} cannot be read ({type(error).__name__}).", "Try again, or start again with --force."
            ) from error
    return tensors


@torch.no_grad()
def load_tensors(model: PreTrainedModel, tensors: Mapping[str, torch.Tensor]) -> None:
    """Load a checkpoint's parameters and buffers into the model; its other tensors are left aside.

    Raises:
        InputError: They are of another model.
    """
    targets = {f"model.{name}": parameter for name, parameter in model.named_parameters()}
    targets |= {f"buffer.{name}": buffer for name, buffer in model.named_buffers()}
    for name, tensor in tensors.items():
        if not name.startswith(("model.", "buffer.")):
            continue
        if name not in targets or targets[name].shape != tensor.shape:
            raise InputError("The saved state is of another model.", "Start again with --force.")
        local_shard(targets[name]).copy_(local_shard(shard_like(targets[name], tensor)))


StopRequested = Callable[[], bool]
"""Whether the run is requested to stop."""

StopSignal = Callable[[], AbstractContextManager[StopRequested]]
"""While its context is open, requests to stop are noticed, and the run ends after a step."""


class Checkpointer(Protocol):
    """A callback for each time that progress can be saved; it may save it, or end the run."""

    def __call__(self, progress: Callable[[], Progress], *, between: bool) -> None:
        """Save the progress if it is time to.

        Args:
            progress: Computes the progress, at some cost.
            between: Whether more than steps would be lost: a release, a stage, the whole training.
        """


def autosave(
    work: Workspace,
    model: PreTrainedModel,
    parameters: Sequence[str],
    *,
    minutes: float,
    elapsed: Callable[[], float],
    stop_requested: StopRequested,
    notify: Notify,
    ranks: Ranks = SINGLE_PROCESS,
    clock: Callable[[], float] = time.monotonic,
) -> Checkpointer:
    """Save checkpoints in a run's folder.

    A checkpoint that cannot be written does not end the run: the one before it stays, and the next is tried in time.

    Args:
        parameters: Names of those that the run may change.
        minutes: Between two checkpoints; with 0, one is saved only when the run is to stop.
        elapsed: Seconds that the run has taken.
        stop_requested: Whether the run is to save a checkpoint and end.
        ranks: Of several processes the first writes, and all end if one of them is requested to.
        clock: In seconds; no jump of the system's time may move it.

    Raises (what it returns):
        InterruptedRunError: The run was requested to stop.
    """
    last = clock()

    def checkpointer(progress: Callable[[], Progress], *, between: bool) -> None:
        nonlocal last
        due = minutes > 0 and (between or clock() - last >= 60 * minutes)
        stop, due = all_reduce_any(ranks, (stop_requested(), due and ranks.first))
        if not (stop or due):
            return
        now = replace(progress(), seconds=elapsed())
        tensors = state_tensors(now, model, parameters)
        if ranks.sharded:
            tensors = iter(gather_tensors(ranks, tensors))
        if ranks.first:
            try:
                save_state(work.root, now, tensors, journal=work.journal.stat().st_size)
            except OSError as error:
                notify(ChoiceWarning(what="state", reason=f"not saved ({error.strerror}); the one before it stays"))
            else:
                notify(StateSaved(stage=now.stage + 1, step=now.cursor.step))
        last = clock()
        if stop:
            raise InterruptedRunError("The run was interrupted.", "Nothing of it was saved.")

    return checkpointer
