"""What several processes of one run agree on before they train: that it is one run, and where it stands."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from pydantic import TypeAdapter
from transformers import PreTrainedModel

from atdp_cli.errors import RunError
from atdp_cli.runs.budget import Cursor
from atdp_cli.runs.checkpoint import (
    Progress,
    deserialize_progress,
    is_model_tensor,
    load_tensors,
    progress_tensors,
    serialize_progress,
)
from atdp_cli.runs.fingerprint import first_difference
from atdp_cli.training.distributed.collectives import all_reduce_any, broadcast_, broadcast_bytes
from atdp_cli.training.distributed.fsdp import full_tensor
from atdp_cli.training.distributed.ranks import Ranks


@dataclass(frozen=True, kw_only=True)
class RunState:
    """Where a run goes on, as every process of it has to know.

    Attributes:
        progress: Where it stands.
        end: Before what it ends, as `allowance` has it; None where it may go to its end.
        session: How often it was interrupted before.
    """

    progress: Progress
    end: Cursor | None = None
    session: int = 0


_PLACE: TypeAdapter[Cursor | None] = TypeAdapter(Cursor | None)


def check_same_run(ranks: Ranks, identity: Mapping[str, str]) -> None:
    """Refuse to train with processes that were given something else.

    Raises:
        RunError: Names the first thing in which this process differs from the first.
    """
    if ranks.size == 1:
        return
    first = json.loads(broadcast_bytes(ranks, json.dumps(dict(identity)).encode()))
    found = first_difference(first, identity)
    (differs,) = all_reduce_any(ranks, (found is not None,))
    if found is not None:
        raise RunError(f"Process {ranks.rank} was given another run than process 0: {found}.", "Give all the same.")
    if differs:
        raise RunError("Another process was given another run than process 0.", "Give all the same.")


def broadcast_state(
    ranks: Ranks, begun: RunState, parameters: Mapping[str, torch.Tensor], model: PreTrainedModel
) -> RunState:
    """Where the first process says the run stands, in all of them, and the model with it.

    Args:
        begun, parameters: What the others give does not count.
        parameters: As `read_state` has them; none where the model is as it was loaded.

    Raises:
        InputError: They are of another model.
    """
    if ranks.size == 1:
        load_tensors(model, parameters)
        return begun
    tensors = {**progress_tensors(begun.progress), **parameters} if ranks.first else {}
    told = {
        "progress": serialize_progress(begun.progress).decode(),
        "end": _PLACE.dump_json(begun.end).decode(),
        "session": begun.session,
        "tensors": {name: [str(one.dtype).removeprefix("torch."), list(one.shape)] for name, one in tensors.items()},
    }
    said = json.loads(broadcast_bytes(ranks, json.dumps(told).encode()))
    if not ranks.first:
        tensors = {name: torch.empty(shape, dtype=getattr(torch, kind)) for name, (kind, shape) in _named(said)}
    broadcast_(ranks, list(tensors.values()))
    load_tensors(model, {name: one for name, one in tensors.items() if is_model_tensor(name)})
    return replace(
        begun,
        progress=deserialize_progress(said["progress"].encode(), tensors),
        end=_PLACE.validate_json(said["end"]),
        session=said["session"],
    )


def _named(said: Mapping[str, Mapping[str, tuple[str, list[int]]]]) -> Iterator[tuple[str, tuple[str, list[int]]]]:
    yield from said["tensors"].items()


def gather_tensors(ranks: Ranks, tensors: Iterable[tuple[str, torch.Tensor]]) -> tuple[tuple[str, torch.Tensor], ...]:
    """Tensors whole on the CPU of the first process, where each has a part of them; the others get none."""
    found = ((name, full_tensor(tensor.detach())) for name, tensor in tensors)
    return tuple((name, one.cpu()) for name, one in found if ranks.first)


def broadcast_flag(ranks: Ranks, said: bool) -> bool:
    """What the first process answers."""
    return all_reduce_any(ranks, (said and ranks.first,))[0]


@contextmanager
def main_process_first(ranks: Ranks) -> Iterator[None]:
    """The first process goes ahead, the others follow when it has done: what it has found is then in the store."""
    if not ranks.first:
        all_reduce_any(ranks, ())
    yield
    if ranks.first:
        all_reduce_any(ranks, ())
