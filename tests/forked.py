"""Commands in processes of their own, forked from a server that has imported the libraries, so that none has to start.

What they may take of memory and have taken of processor time is theirs alone.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.crashing import server


@dataclass(frozen=True, kw_only=True)
class ForkedRun:
    """How a command ended.

    Attributes:
        seconds: Of processor time, its own processes included.
    """

    code: int
    out: str
    err: str
    seconds: float


def run_forked(command: Sequence[str], cwd: Path, files: Path, *, memory: int, patience: float) -> ForkedRun:
    """Run a command line to its end.

    Args:
        files: An empty folder, for what it prints.
        memory: Bytes of address space that it may take beyond what its libraries have.
        patience: Seconds by the clock after which it is taken to hang.

    Raises:
        TimeoutExpired: It hangs, and was killed.
    """
    process = server().Process(target=_run, args=(tuple(command), str(cwd), str(files), memory))
    process.start()
    process.join(patience)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise subprocess.TimeoutExpired(list(command), patience)
    out, err, took = ((files / name).read_text() if (files / name).exists() else "" for name in ("out", "err", "took"))
    return ForkedRun(code=process.exitcode, out=out, err=err, seconds=float(took or "inf"))


def _run(command: tuple[str, ...], cwd: str, files: str, memory: int) -> None:
    from atdp_cli.cli.app import main

    for number, name in ((1, "out"), (2, "err")):
        opened = os.open(f"{files}/{name}", os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.chdir(cwd)
    # A GPU's driver maps far more than it uses.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + memory, held + memory))
    sys.argv = ["atdp", *command]
    code: object = None
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    sys.stdout.flush()
    sys.stderr.flush()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    Path(files, "took").write_text(str(sum(usage.ru_utime + usage.ru_stime for usage in used)))
    os._exit(code if isinstance(code, int) else 70)
