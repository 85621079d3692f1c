"""Saved states of a run: what it needs to go on after a crash, whole or not there. No key of a stream is among it.

`OUT.partial/state-7/` holds tensors as safetensors and everything else as JSON, with a SHA-256 of each file. It is
written under another name and renamed. The one before it stays, for where the last turns out to be damaged.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from transformers import PreTrainedModel

from atdp_cli.errors import InputError
from atdp_cli.events import FellBack, Notify
from atdp_cli.files.fsync import sync_folder
from atdp_cli.runs.budget import Cursor
from atdp_cli.text.redaction.frequencies import Frequencies
from atdp_cli.training.distributed.fsdp import local_shard, shard_like
from atdp_cli.training.objective import Weighing
from atdp_cli.training.state import StageResult, StageState

STATE = "state-"
STATE_FILE = "state.json"
DIGEST = "digest"

SHARD_BYTES = 512 * 2**20
"""Of tensors in a file: so much is in memory a second time while it is written."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Progress:
    """Where a run stands, besides its model.

    Attributes:
        stage: The position of the stage that runs or comes next; the number of stages where all are done.
        results: Of the stages before it.
        underway: Where in it; None at its beginning.
        alpha: The corpus' share of sensitive tokens as the stage released it; None where it did not.
        frequencies: What the stage released to fit decoys; None where it did not.
        seconds: That the run had taken, by the clock.
    """

    stage: int = 0
    results: tuple[tuple[StageResult, Weighing], ...] = ()
    underway: StageState | None = None
    alpha: float | None = None
    frequencies: Frequencies | None = None
    seconds: float = 0.0


class _Underway(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    step: int
    result: StageResult
    seed: int | None


class _State(BaseModel):
    """What `state.json` says. `journal` is the journal's size in bytes at the time."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    schema_version: Literal[1] = 1
    kind: Literal["atdp-state"] = "atdp-state"
    stage: int
    results: tuple[tuple[StageResult, Weighing], ...]
    underway: _Underway | None
    alpha: float | None
    frequencies: dict[str, tuple[int, ...]] | None
    seconds: float
    journal: int
    files: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class SavedState:
    """A state on the disk that was found whole."""

    folder: Path
    said: _State

    @property
    def journal(self) -> int:
        """The journal's size in bytes when the state was saved; it only grows."""
        return self.said.journal

    @property
    def place(self) -> Cursor:
        """Where in the plan it is."""
        said = self.said
        step = 0 if said.underway is None else said.underway.step
        return Cursor(stage=said.stage, step=step, released=said.alpha is not None or said.frequencies is not None)


def checkpoint_numbers(root: Path) -> list[int]:
    """Of the saved states in a folder, the newest first."""
    names = (path.name.removeprefix(STATE) for path in root.glob(f"{STATE}*"))
    return sorted((int(name) for name in names if name.isdecimal()), reverse=True)


def newest_cursor(root: Path) -> Cursor | None:
    """Where in the plan the newest state is whose description can be read; None where there is none."""
    for number in checkpoint_numbers(root):
        folder = root / f"{STATE}{number}"
        said = _said(folder)
        if isinstance(said, _State):
            return SavedState(folder=folder, said=said).place
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
    """Write a state as the newest in a folder; of those before it the newest stays.

    Args:
        parameters: Names of those that the run may change.
        journal: The journal's size in bytes.
        complete: What `state_tensors` gave, put together; None where no process but this has a part of it.

    Raises:
        OSError: It cannot be written; those before it are as they were, or the newest of them is.
    """
    found = checkpoint_numbers(root)
    for older in found[1:]:
        shutil.rmtree(root / f"{STATE}{older}")
    number = found[0] + 1 if found else 1
    part, place = root / f".{STATE}{number}.part", root / f"{STATE}{number}"
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(mode=0o700)
        files = {}
        for count, shard in enumerate(_shards(complete or state_tensors(progress, model, parameters))):
            name = f"tensors-{count:03}.safetensors"
            files[name] = _write(part / name, save(shard))
        _write(part / STATE_FILE, _document(progress, journal, files))
        sync_folder(part)
        part.rename(place)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        raise
    sync_folder(root)


def _document(progress: Progress, journal: int, files: Mapping[str, str]) -> bytes:
    said = _state(progress, journal, files).model_dump_json()
    return json.dumps({DIGEST: hashlib.sha256(said.encode()).hexdigest(), "said": said}).encode()


def serialize_progress(progress: Progress) -> bytes:
    """Where a run stands, without the tensors."""
    return _state(progress, 0, {}).model_dump_json().encode()


def deserialize_progress(description: bytes, tensors: Mapping[str, torch.Tensor]) -> Progress:
    """What `serialize_progress` and `progress_tensors` were made of."""
    return _progress(_State.model_validate_json(description), tensors)


def _state(progress: Progress, journal: int, files: Mapping[str, str]) -> _State:
    underway = progress.underway
    return _State(
        stage=progress.stage,
        results=progress.results,
        underway=None
        if underway is None
        else _Underway(step=underway.step, result=underway.result, seed=underway.seed),
        alpha=progress.alpha,
        frequencies=None
        if progress.frequencies is None
        else {name: tuple(found) for name, found in progress.frequencies.items()},
        seconds=progress.seconds,
        journal=journal,
        files=dict(files),
    )


def state_tensors(
    progress: Progress, model: PreTrainedModel, parameters: Sequence[str]
) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of a state, by name; of parameters that are parted the part."""
    wanted, stored = set(parameters), set(model.state_dict())
    yield from ((f"model.{name}", one) for name, one in model.named_parameters() if name in wanted)
    yield from ((f"buffer.{name}", one.clone()) for name, one in model.named_buffers() if name in stored)
    yield from progress_tensors(progress).items()


def progress_tensors(progress: Progress) -> dict[str, torch.Tensor]:
    """The tensors of where a run stands, by name: the optimizer's, what weight decay draws towards, generators."""
    if (underway := progress.underway) is None:
        return {}
    found = {f"optimizer.{name}": one for name, one in underway.optimizer.items()}
    found |= {f"start.{place}": one for place, one in enumerate(underway.start)}
    return found | {f"generator.{name}": one for name, one in underway.generators.items()}


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
    """Write a new file through to the disk; its SHA-256."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    return hashlib.sha256(content).hexdigest()


def latest_state(root: Path, notify: Notify) -> SavedState | None:
    """The newest state that is whole; None where none was saved. A damaged one is told of.

    Raises:
        InputError: States were saved, and none of them is whole.
    """
    found = checkpoint_numbers(root)
    for number in found:
        folder = root / f"{STATE}{number}"
        said = _said(folder)
        problem = said if isinstance(said, str) else _damage(folder, said)
        if isinstance(said, _State) and problem is None:
            return SavedState(folder=folder, said=said)
        notify(FellBack(what=folder.name, reason=f"{problem}; the one before it is tried"))
    if found:
        raise InputError(
            f"No saved state in {root} is whole.", "Start again with --force; nothing of that run was released."
        )
    return None


def _said(folder: Path) -> _State | str:
    """What a state's description says; else what is wrong with it."""
    try:
        document = json.loads((folder / STATE_FILE).read_bytes())
        said = str(document["said"])
        if document[DIGEST] != hashlib.sha256(said.encode()).hexdigest():
            return f"{STATE_FILE} is not what was written"
        return _State.model_validate_json(said)
    except OSError as error:
        return f"{STATE_FILE} cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, ValidationError):
        return f"{STATE_FILE} is damaged or of another version"


def _damage(folder: Path, state: _State) -> str | None:
    """What is wrong with a state's files; None where each is what was written."""
    for name, digest in state.files.items():
        try:
            with (folder / name).open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
                    return f"{name} is not what was written"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
    return None


@torch.no_grad()
def restore_state(state: SavedState, model: PreTrainedModel) -> Progress:
    """Put a state's parameters into the model; where the run stood.

    Raises:
        InputError: A file cannot be read any more, or is of another model.
    """
    rest: dict[str, torch.Tensor] = {}
    for tensors in _read(state):
        load_tensors(model, {key: one for key, one in tensors.items() if is_model_tensor(key)})
        rest |= {key: one for key, one in tensors.items() if not is_model_tensor(key)}
    return _progress(state.said, rest)


def read_state(state: SavedState) -> tuple[Progress, dict[str, torch.Tensor]]:
    """Where the run stood, and what `load_tensors` puts into its model; all of it in memory at once.

    Raises:
        InputError: A file cannot be read any more.
    """
    found = {key: one for tensors in _read(state) for key, one in tensors.items()}
    return _progress(state.said, found), {key: one for key, one in found.items() if is_model_tensor(key)}


@torch.no_grad()
def load_tensors(model: PreTrainedModel, tensors: Mapping[str, torch.Tensor]) -> None:
    """Put a state's parameters and buffers into the model.

    Raises:
        InputError: They are of another model.
    """
    into = {f"model.{name}": one for name, one in model.named_parameters()}
    into |= {f"buffer.{name}": one for name, one in model.named_buffers()}
    for key, tensor in tensors.items():
        if key not in into or into[key].shape != tensor.shape:
            raise InputError("The saved state is of another model.", "Start again with --force.")
        local_shard(into[key]).copy_(local_shard(shard_like(into[key], tensor)))


def is_model_tensor(key: str) -> bool:
    """Whether a state's tensor is the model's, not the optimizer's."""
    return key.startswith(("model.", "buffer."))


def _read(state: SavedState) -> Iterator[dict[str, torch.Tensor]]:
    """A state's tensors, a file at a time."""
    for name in state.said.files:
        try:
            yield load((state.folder / name).read_bytes())
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"{state.folder} cannot be read ({type(error).__name__}).", "Try again, or start again with --force."
            ) from error


def _progress(said: _State, tensors: Mapping[str, torch.Tensor]) -> Progress:
    underway = said.underway
    return Progress(
        stage=said.stage,
        results=said.results,
        underway=None
        if underway is None
        else StageState(
            step=underway.step,
            result=underway.result,
            optimizer=_under("optimizer.", tensors),
            start=tuple(one for _, one in sorted(_under("start.", tensors).items(), key=lambda item: int(item[0]))),
            seed=underway.seed,
            generators=_under("generator.", tensors),
        ),
        alpha=said.alpha,
        frequencies=said.frequencies,
        seconds=said.seconds,
    )


def _under(prefix: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)}
