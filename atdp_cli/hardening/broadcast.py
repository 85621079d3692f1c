"""What the processes of one run agree on before they train: the same run, and the same point to resume from."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from pydantic import TypeAdapter
from transformers import PreTrainedModel

from atdp_cli.errors import RunError
from atdp_cli.hardening.budget import Cursor
from atdp_cli.hardening.checkpoint import is_model_tensor, load_tensors, read_state, restore_state
from atdp_cli.hardening.fingerprint import Fingerprint, first_difference
from atdp_cli.hardening.progress import Progress, deserialize_progress, progress_tensors, serialize_progress
from atdp_cli.hardening.resume import ResumePoint
from atdp_cli.training.parallel.collectives import all_reduce_any, broadcast_, broadcast_bytes
from atdp_cli.training.parallel.fsdp import full_tensor
from atdp_cli.training.parallel.ranks import Ranks


@dataclass(frozen=True, kw_only=True)
class RunState:
    """Where a run starts or resumes, as every process has to know it.

    Attributes:
        progress: What is done.
        end: Where it has to end, as `allowance` has it; None where it may go to its end.
        session: How often it was interrupted before.
    """

    progress: Progress
    end: Cursor | None = None
    session: int = 0


_CURSOR: TypeAdapter[Cursor | None] = TypeAdapter(Cursor | None)


def check_same_run(ranks: Ranks, fingerprint: Fingerprint) -> None:
    """Refuse to train if the processes were given different runs.

    Raises:
        RunError: Names the first thing in which this process differs from the first.
    """
    if ranks.size == 1:
        return
    first = json.loads(broadcast_bytes(ranks, json.dumps(dict(fingerprint)).encode()))
    difference = first_difference(first, fingerprint)
    (differs,) = all_reduce_any(ranks, (difference is not None,))
    if difference is not None:
        raise RunError(
            f"Process {ranks.rank} was given another run than process 0: {difference}.", "Give all the same."
        )
    if differs:
        raise RunError("Another process was given another run than process 0.", "Give all the same.")


def restore_run(ranks: Ranks, resume_from: ResumePoint, session: int, model: PreTrainedModel) -> RunState:
    """The state from which a run starts or resumes, its parameters in the model: in every process, as the first has it.

    Args:
        resume_from, session: Of the first process; what the others pass does not count.

    Raises:
        InputError: A file of the checkpoint cannot be read any more, or is of another model.
    """
    saved = resume_from.state
    if ranks.size == 1:
        progress = Progress() if saved is None else restore_state(saved, model)
        return RunState(progress=progress, end=resume_from.end, session=session)
    progress, parameters = (Progress(), {}) if saved is None else read_state(saved)
    return _broadcast(ranks, RunState(progress=progress, end=resume_from.end, session=session), parameters, model)


def _broadcast(
    ranks: Ranks, state: RunState, parameters: Mapping[str, torch.Tensor], model: PreTrainedModel
) -> RunState:
    tensors = {**progress_tensors(state.progress), **parameters} if ranks.first else {}
    header = {
        "progress": serialize_progress(state.progress).decode(),
        "end": _CURSOR.dump_json(state.end).decode(),
        "session": state.session,
        "tensors": {
            name: [str(tensor.dtype).removeprefix("torch."), list(tensor.shape)] for name, tensor in tensors.items()
        },
    }
    header = json.loads(broadcast_bytes(ranks, json.dumps(header).encode()))
    if not ranks.first:
        tensors = {
            name: torch.empty(shape, dtype=getattr(torch, dtype)) for name, (dtype, shape) in header["tensors"].items()
        }
    broadcast_(ranks, list(tensors.values()))
    load_tensors(model, {name: tensor for name, tensor in tensors.items() if is_model_tensor(name)})
    return RunState(
        progress=deserialize_progress(header["progress"].encode(), tensors),
        end=_CURSOR.validate_json(header["end"]),
        session=header["session"],
    )


def gather_tensors(ranks: Ranks, tensors: Iterable[tuple[str, torch.Tensor]]) -> tuple[tuple[str, torch.Tensor], ...]:
    """Whole tensors on the CPU of the first process, of which each process has a shard; the others get none."""
    complete = ((name, full_tensor(tensor.detach())) for name, tensor in tensors)
    return tuple((name, tensor.cpu()) for name, tensor in complete if ranks.first)


def broadcast_flag(ranks: Ranks, flag: bool) -> bool:
    """The flag of the first process."""
    return all_reduce_any(ranks, (flag and ranks.first,))[0]


@contextmanager
def main_process_first(ranks: Ranks) -> Iterator[None]:
    """Run the block in the first process, then in the others, so that they find what the first stored."""
    if not ranks.first:
        all_reduce_any(ranks, ())
    yield
    if ranks.first:
        all_reduce_any(ranks, ())
