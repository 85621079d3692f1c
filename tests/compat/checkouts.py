"""Checkouts of other commits, and the command line as they have it, each command in a process of its own."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]

SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "HF_HUB_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
}
"""One thread and no GPU: sums have one order."""

KEPT = ("PATH", "HOME", "VIRTUAL_ENV", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")


@contextmanager
def checkout(commit: str | None) -> Iterator[Path]:
    """A worktree of a commit, as long as this lasts; for None the working tree as it is."""
    if commit is None:
        yield ROOT
        return
    with tempfile.TemporaryDirectory(prefix="atdp-") as folder:
        place = Path(folder).resolve() / "checkout"
        _git("worktree", "add", "--detach", "--quiet", str(place), commit)
        try:
            yield place
        finally:
            _git("worktree", "remove", "--force", str(place))


def check_imported(root: Path, place: Path) -> None:
    """End the program if a command that runs in `place` would take the package from elsewhere than `root`."""
    code = "import atdp_cli; print(atdp_cli.__path__[0])"
    actual = subprocess.run(
        [sys.executable, "-c", code], env=environment(root), cwd=place, capture_output=True, text=True, check=True
    )
    if Path(actual.stdout.strip()).resolve() != (root / "atdp_cli").resolve():
        raise SystemExit(f"{actual.stdout.strip()} would be run, not {root / 'atdp_cli'}")


def environment(root: Path) -> dict[str, str]:
    """Of a command of the checkout at `root`."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT}
    return kept | SETTINGS | {"PYTHONPATH": str(root)}


def command(arguments: Sequence[object], *, processes: int = 1) -> list[str]:
    """The words that run `atdp` with these arguments, in several processes by torchrun."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return [sys.executable, *(torchrun if processes > 1 else []), "-m", "atdp_cli", *map(str, arguments)]


def atdp(
    root: Path, arguments: Sequence[object], place: Path, *, processes: int = 1, accepted: Sequence[int] = (0,)
) -> str:
    """Run `atdp` of the checkout at `root` in the folder `place`, and return its standard output.

    The program ends where the exit code is not an accepted one.
    """
    done = subprocess.run(
        command(arguments, processes=processes),
        env=environment(root),
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in accepted:
        raise SystemExit(f"atdp {' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def name_of(root: Path) -> str:
    """The commit that a checkout has, with `+` where files of it were changed since."""
    commit = _git("rev-parse", "--short", "HEAD", root=root).strip()
    return f"{commit}+" if _git("status", "--porcelain", "--", "atdp_cli", root=root) else commit


def _git(*arguments: str, root: Path = ROOT) -> str:
    return subprocess.run(["git", "-C", str(root), *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
