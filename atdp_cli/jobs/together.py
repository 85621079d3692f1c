"""What several processes of one run agree on before they train: that it is one run, and where it stands."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from pydantic import TypeAdapter
from transformers import PreTrainedModel

from atdp_cli.errors import RunError
from atdp_cli.jobs.identity import difference
from atdp_cli.jobs.states import Progress, described, progress_tensors, revived
from atdp_cli.training.allowance import Place
from atdp_cli.training.collectives import any_of, from_first, take_first
from atdp_cli.training.ranks import Ranks


@dataclass(frozen=True, kw_only=True)
class Begun:
    """Where a run goes on, as every process of it has to know.

    Attributes:
        progress: Where it stands.
        end: Before what it ends, as `allowance` has it; None where it may go to its end.
        session: How often it was interrupted before.
    """

    progress: Progress
    end: Place | None = None
    session: int = 0


_PLACE: TypeAdapter[Place | None] = TypeAdapter(Place | None)


def check_same_run(ranks: Ranks, identity: Mapping[str, str]) -> None:
    """Refuse to train with processes that were given something else.

    Raises:
        RunError: Names the first thing in which this process differs from the first.
    """
    if ranks.size == 1:
        return
    first = json.loads(from_first(ranks, json.dumps(dict(identity)).encode()))
    found = difference(first, identity)
    (differs,) = any_of(ranks, (found is not None,))
    if found is not None:
        raise RunError(f"Process {ranks.rank} was given another run than process 0: {found}.", "Give all the same.")
    if differs:
        raise RunError("Another process was given another run than process 0.", "Give all the same.")


def everywhere(ranks: Ranks, begun: Begun, model: PreTrainedModel) -> Begun:
    """What the first process knows, and its parameters, in all of them.

    Args:
        begun: What the others give does not count.
    """
    if ranks.size == 1:
        return begun
    tensors = progress_tensors(begun.progress) if ranks.first else {}
    told = {
        "progress": described(begun.progress).decode(),
        "end": _PLACE.dump_json(begun.end).decode(),
        "session": begun.session,
        "tensors": {name: [str(one.dtype).removeprefix("torch."), list(one.shape)] for name, one in tensors.items()},
    }
    said = json.loads(from_first(ranks, json.dumps(told).encode()))
    if not ranks.first:
        tensors = {name: torch.empty(shape, dtype=getattr(torch, kind)) for name, (kind, shape) in _named(said)}
    with torch.no_grad():
        take_first(ranks, [tensor.detach() for tensor in tensors.values()])
        take_first(ranks, [one.detach() for one in (*model.parameters(), *model.buffers())])
    return replace(
        begun,
        progress=revived(said["progress"].encode(), tensors),
        end=_PLACE.validate_json(said["end"]),
        session=said["session"],
    )


def _named(said: Mapping[str, Mapping[str, tuple[str, list[int]]]]) -> Iterator[tuple[str, tuple[str, list[int]]]]:
    yield from said["tensors"].items()


def said_by_first(ranks: Ranks, said: bool) -> bool:
    """What the first process answers."""
    return any_of(ranks, (said and ranks.first,))[0]


@contextmanager
def first_ahead(ranks: Ranks) -> Iterator[None]:
    """The first process goes ahead, the others follow when it has done: what it has found is then in the store."""
    if not ranks.first:
        any_of(ranks, ())
    yield
    if ranks.first:
        any_of(ranks, ())
