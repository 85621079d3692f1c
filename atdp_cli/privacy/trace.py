"""The trace of a run: what its sampler, clip, noise and releases recorded of what they really used.

`trace.jsonl` lies beside the journal. The journal has what a step was about to spend, written before the step; the
trace has what the step then used, written after it by the code that used it. `hardening/verify_run.py` equates both at
the end of a run.

A line is flushed and not synced: a killed process loses none, and a machine that loses power loses at most lines of
steps that a resumed run counts as not verified. Sizes of samples and the length of the noise are in it, so it is as
private as the records.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from atdp_cli.errors import InputError

TRACE_FILE = "trace.jsonl"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Sampled(_Frozen):
    """The draws that the sampler used.

    Attributes:
        records: N, the records of which each had its own draw.
        sampling_rate: q, what each draw was compared with.
        drawn: The records that it took.
        start, end: Positions in its key stream before and after.
    """

    kind: Literal["sampled"] = "sampled"
    records: int
    sampling_rate: float
    drawn: int
    start: int
    end: int


class Clipped(_Frozen):
    """What the clipping engine was given, and what came back, in this process.

    Attributes:
        engine: The engine's own name for itself; empty where it has none.
        clip_norm: C.
        records: How many it clipped.
        coordinates: Numbers in the sum.
        length: L2 norm of the sum.
        batch_effect: η, by which the noise is larger; see `sensitivity`.
        longest: Σ min(C, ‖g‖) over the records' gradients g, the largest L2 norm that the sum can have.
        dtype, device: Of the sum.
    """

    kind: Literal["clipped"] = "clipped"
    engine: str
    clip_norm: float
    records: int
    coordinates: int
    length: float
    longest: float
    batch_effect: float
    dtype: str
    device: str


class Noised(_Frozen):
    """What noise was added to a sum, by all processes together.

    Attributes:
        standard_deviation: What standard normals were scaled by, in units of the sum.
        coordinates: Numbers that noise was added to.
        squares: Σ of the squares of what was added, each the difference of the sum after and before.
        start, end: Positions in the noise's key stream before and after.
        dtype, device: Of the sum.
        drawn_in: The dtype that the noise was drawn in.
    """

    kind: Literal["noised"] = "noised"
    standard_deviation: float
    coordinates: int
    squares: float
    start: int
    end: int
    dtype: str
    device: str
    drawn_in: str


class Released(_Frozen):
    """What a release added to its statistic.

    Attributes:
        standard_deviation: Of the noise, in units of the statistic.
        grid: The statistic and the noise are whole multiples of it.
        coordinates: Numbers that noise was added to.
        squares: Σ of the squares of what was added, each the difference of the statistic after and before.
        first: The first number as released, which is what a release of a single number is used by.
    """

    kind: Literal["released"] = "released"
    standard_deviation: float
    grid: float
    coordinates: int
    squares: float
    first: float


Used = Sampled | Clipped | Noised | Released

Observe = Callable[[Used], None]
"""Receives what was used, from the function that used it."""


def ignore_used(used: Used) -> None:
    """The `Observe` that keeps nothing."""


class StepTrace(_Frozen):
    """The entries of a step with noise, in the order of their use.

    Attributes:
        step: Counted from 1 over the whole stage.
    """

    kind: Literal["step"] = "step"
    stage: str
    epoch: int
    step: int
    uses: tuple[Annotated[Used, Field(discriminator="kind")], ...]


class ReleaseTrace(_Frozen):
    """The entry of a release."""

    kind: Literal["release"] = "release"
    stage: str
    statistic: str
    uses: tuple[Released, ...]


TraceEntry = StepTrace | ReleaseTrace

Trace = Callable[[TraceEntry], None]
"""Receives what a step or a release used."""


def ignore_trace(entry: TraceEntry) -> None:
    """The `Trace` that keeps nothing."""


class _SessionStart(_Frozen):
    """A process began here, when the journal had so many bytes."""

    kind: Literal["session"] = "session"
    journal: int
    rank: int
    processes: int


class _Placed(_Frozen):
    """An entry of the stage at a position of the recipe."""

    kind: Literal["placed"] = "placed"
    position: int
    entry: Annotated[TraceEntry, Field(discriminator="kind")]


_LINE: TypeAdapter[_SessionStart | _Placed] = TypeAdapter(
    Annotated[_SessionStart | _Placed, Field(discriminator="kind")]
)


@dataclass(frozen=True, kw_only=True)
class TracedSession:
    """What one process of a run recorded, from its start or resumption to its end.

    Attributes:
        journal: The journal's size in bytes when it began.
        rank, processes: Which process it was, from 0, of how many that trained together.
        entries: In order, each with the position of its stage in the recipe.
    """

    journal: int
    rank: int
    processes: int
    entries: tuple[tuple[int, TraceEntry], ...]


@contextmanager
def open_trace(path: Path, *, journal: int, rank: int, processes: int) -> Iterator[Callable[[int], Trace]]:
    """An append-only trace, private to its owner, to which a session is added: the stage's position → its `Trace`.

    Args:
        journal: The journal's size in bytes.
        rank, processes: As in `TracedSession`.
    """
    _drop_torn_line(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8") as lines:

        def write(line: _SessionStart | _Placed) -> None:
            lines.write(line.model_dump_json() + "\n")
            lines.flush()

        def trace_of(position: int) -> Trace:
            return lambda entry: write(_Placed(position=position, entry=entry))

        write(_SessionStart(journal=journal, rank=rank, processes=processes))
        yield trace_of


def _drop_torn_line(path: Path) -> None:
    if path.exists():
        whole, end, _ = path.read_bytes().rpartition(b"\n")
        os.truncate(path, len(whole + end))


def read_trace(path: Path) -> tuple[TracedSession, ...]:
    """The sessions in a trace, in order.

    Raises:
        InputError: The file cannot be read, or a line is none of a trace.
    """
    starts: list[_SessionStart] = []
    entries: list[list[tuple[int, TraceEntry]]] = []
    try:
        for content in path.read_bytes().splitlines():
            line = _LINE.validate_json(content)
            if isinstance(line, _SessionStart):
                starts.append(line)
                entries.append([])
            else:
                entries[-1].append((line.position, line.entry))
    except (OSError, ValidationError, IndexError) as error:
        raise InputError(
            f"{path} cannot be read as a trace, so it is not known what was used.", "Start again with --force."
        ) from error
    return tuple(
        TracedSession(journal=start.journal, rank=start.rank, processes=start.processes, entries=tuple(own))
        for start, own in zip(starts, entries, strict=True)
    )
