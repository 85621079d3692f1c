"""Runs of `atdp harden` that are killed from outside, at random moments and at those that matter, until one ends.

Each run is a process of its own, forked from a server that has imported everything, and is ended by SIGKILL: nothing
in it can clear away, flush or catch. What it has really spent is told by a witness: a byte in a file for every step
of an optimizer, written as the step ends.
"""

import json
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from atdp_cli.hardening.workspace import RECORD_FILE, checkpoint_numbers
from atdp_cli.privacy.journal import JOURNAL_FILE
from atdp_cli.privacy.ledger import LEDGER_FILE, read_verified

OUT = "out"
FOLDERS = {OUT, f"{OUT}.private", f"{OUT}.partial"}
PATIENCE = 300.0
"""Seconds after which a run that is still there is taken to hang."""


def run_here(arguments: Sequence[str], witness: str, log: str, room: int | None = None) -> None:
    """The body of a run's process.

    Args:
        room: No file may become larger, in bytes.
    """
    import resource

    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from atdp_cli.cli.app import run

    torch.set_num_threads(1)
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    counted = os.open(witness, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    register_optimizer_step_post_hook(lambda *_: count(counted))
    # Whoever runs the tests in the background may have them ignore the interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if room is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    os._exit(run(list(arguments)))


def count(witness: int) -> None:
    """A byte for a step."""
    os.write(witness, b".")


def server() -> "multiprocessing.context.ForkServerContext":
    """Where processes are forked from, with the libraries at hand."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.crashing_libraries"])
    return context


def started(
    arguments: Sequence[object], folder: Path, *, room: int | None = None
) -> "multiprocessing.process.BaseProcess":
    """A run that writes `out` in a folder.

    Args:
        room: No file may become larger, in bytes.
    """
    line = [str(argument) for argument in arguments] + ["-o", str(folder / OUT)]
    process = server().Process(target=run_here, args=(line, str(folder / "witness"), str(folder / "log"), room))
    process.start()
    return process


def ended(process: "multiprocessing.process.BaseProcess") -> int:
    """How a process ended."""
    process.join(PATIENCE)
    code = process.exitcode
    process.kill()
    process.join(PATIENCE)
    assert code is not None, "the run hangs"
    return code


def wait_for(come: Callable[[], bool]) -> None:
    """Return as soon as something is so."""
    until = time.monotonic() + PATIENCE
    while not come():
        assert time.monotonic() < until, "it never comes"
        time.sleep(1e-4)


@dataclass
class Killed:
    """What was seen of the runs.

    Attributes:
        moments: How often which moment was waited for, and met.
        left: What the kills left: how far the run was.
    """

    kills: int = 0
    runs: int = 0
    moments: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)


Moment = Callable[[Path, random.Random], bool]
"""(folder, dice) → whether it has come."""


def lines_of(root: Path) -> int:
    """Whole lines of the journal."""
    with suppress(OSError):
        return (root / JOURNAL_FILE).read_bytes().count(b"\n")
    return 0


def kill_until_done(
    arguments: Sequence[object], folder: Path, dice: random.Random, *, kills: int, seen: Killed, seconds: float
) -> None:
    """One run, killed so many times and then left alone; checked after every kill and at its end.

    Args:
        arguments: Of `atdp`, without `-o` and `--resume`; the output is `out` in the folder.
        seconds: That an undisturbed run takes.
    """
    root, witness = folder / f"{OUT}.partial", folder / "witness"
    seen.runs += 1
    lost = 0
    for attempt in range(kills + 1):
        process = started([*arguments, "--resume"], folder)
        if attempt == kills or not _wait_for_moment(process, root, dice, seen, seconds):
            assert ended(process) == 0, (folder / "log").read_text()[-3000:]
            break
        process.kill()
        ended(process)
        seen.kills += 1
        lost, before = _check_left(folder, witness), lost
        seen.left["a line without its step" if lost > before else _reached(folder)] += 1


def _wait_for_moment(
    process: "multiprocessing.process.BaseProcess", root: Path, dice: random.Random, seen: Killed, seconds: float
) -> bool:
    """Wait for a moment that is drawn; whether it came before the run had ended."""
    name = dice.choice(list(MOMENTS))
    come = MOMENTS[name](root, dice, seconds)
    until = time.monotonic() + PATIENCE
    while process.is_alive() and time.monotonic() < until:
        if come():
            seen.moments[name] += 1
            return True
        time.sleep(2e-5)
    assert not process.is_alive(), "the run hangs"
    return False


def _any_time(_: Path, dice: random.Random, seconds: float) -> Callable[[], bool]:
    until = time.monotonic() + dice.uniform(0, seconds)
    return lambda: time.monotonic() >= until


def _between_journal_and_step(root: Path, dice: random.Random, _: float) -> Callable[[], bool]:
    """Just after a line was written, whose step takes some milliseconds."""
    wanted = lines_of(root) + dice.randint(1, 6)
    return lambda: lines_of(root) >= wanted


def _inside_a_save(root: Path, dice: random.Random, _: float) -> Callable[[], bool]:
    count, later = dice.randint(1, 4), dice.uniform(0, 2e-3)
    before: set[str] = set()

    def come() -> bool:
        with suppress(OSError):
            before.update(entry.name for entry in os.scandir(root) if entry.name.startswith(".state-"))
        if len(before) >= count:
            time.sleep(later)
            return True
        return False

    return come


def _during_the_rename(root: Path, dice: random.Random, _: float) -> Callable[[], bool]:
    """Once the record says that all is written, and a little later."""
    later = dice.uniform(0, 2e-3)

    def come() -> bool:
        with suppress(OSError):
            if b'"folder"' in (root / RECORD_FILE).read_bytes() or root.with_name(OUT).exists():
                time.sleep(later)
                return True
        return False

    return come


def _while_the_model_is_written(root: Path, dice: random.Random, _: float) -> Callable[[], bool]:
    later = dice.uniform(0, 0.05)

    def come() -> bool:
        if (root / "model").exists():
            time.sleep(later)
            return True
        return False

    return come


MOMENTS = {
    "any time": _any_time,
    "between journal and step": _between_journal_and_step,
    "inside a save": _inside_a_save,
    "while the model is written": _while_the_model_is_written,
    "during the rename": _during_the_rename,
}


def spent_lines(root: Path) -> int:
    """Steps that a journal says were spent, a torn line among them."""
    content = (root / JOURNAL_FILE).read_bytes() if (root / JOURNAL_FILE).exists() else b""
    return sum(b'"subsampled_gaussian"' in line for line in content.splitlines())


def taken(witness: Path) -> int:
    """Steps that were really taken."""
    return witness.stat().st_size if witness.exists() else 0


def _check_left(folder: Path, witness: Path) -> int:
    """What must hold after a kill; how many lines have no step."""
    assert {path.name for path in folder.glob(f"{OUT}*")} <= FOLDERS
    root = folder / f"{OUT}.partial"
    lost = spent_lines(root if root.exists() else folder / f"{OUT}.private") - taken(witness)
    assert lost >= 0
    if (folder / OUT).exists():
        assert read_verified(folder / OUT / LEDGER_FILE).seal
    return lost


def _reached(folder: Path) -> str:
    """How far a run was that is gone."""
    root = folder / f"{OUT}.partial"
    if (folder / OUT).exists():
        return "the model has its name"
    if not root.exists():
        return "nothing was begun"
    if (root / RECORD_FILE).exists() and json.loads((root / RECORD_FILE).read_text())["finished"]:
        return "all was written"
    if any(path.name.startswith(".state-") for path in root.iterdir()):
        return "half a state"
    if (root / "model").exists():
        return "a part of the model"
    return "some states" if checkpoint_numbers(root) else "no state"
