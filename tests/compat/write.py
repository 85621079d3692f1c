"""Writes the fixtures of this folder: files that a commit wrote, and what it said of them.

    python -m tests.compat.write FOLDER [COMMIT]

Without COMMIT the working tree writes them. FOLDER must not be there. Canaries, names of runs and times are drawn anew
each time, so no two folders are the same.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.compat import figures
from tests.compat.checkouts import atdp, check_imported, checkout, command, environment, name_of
from tests.compat.commands import (
    AGAIN,
    AUDIT,
    DETECT,
    FIRST_STAGE,
    HARDEN,
    KILLED,
    LEAK,
    LEDGERS,
    PLANT,
    PRIVATE,
    STOPPED,
    account,
    halved,
    words,
)
from tests.compat.inputs import made_up, write_corpus, write_gpt2

HERE = Path()
"""The fixtures' folder, in which all commands run: no file shall hold the path of this machine."""

PATIENCE = 300.0
"""Seconds after which a run that is still there is taken to hang."""

KEPT = {
    "leaky": ("config.json", "model.safetensors", "privacy_ledger.json", "tokenizer.json", "tokenizer_config.json"),
    "out": ("privacy_ledger.json", "privacy_report.json", "recipe.toml"),
    "out.private": ("privacy_report.json", "run.json"),
    "private": ("privacy_ledger.json",),
}
"""Of each folder that a run wrote; the others that are not named here are whole."""


def write(folder: Path, root: Path) -> None:
    """Write the fixtures into a new folder by the commands of the checkout at `root`."""
    folder.mkdir(parents=True)
    check_imported(root, folder)

    def run(arguments: Sequence[object], accepted: Sequence[int] = (0,)) -> str:
        return atdp(root, arguments, folder, accepted=accepted)

    lines = made_up(60)
    write_corpus(folder / "corpus.txt", lines)
    write_gpt2(folder / "model", lines, width=8)
    for line in (PLANT, DETECT, LEAK, HARDEN, PRIVATE):
        run(words(line, HERE))
    audit = words(AUDIT, HERE)
    failed = run([*audit, "--write-baseline", "baseline.json"], (1,))
    (folder / "audit.json").write_text(failed, encoding="utf-8")
    (folder / "audits.json").write_text(run([*audit, "out"], (1,)), encoding="utf-8")
    run(["report", "out", "--audit", "audits.json"])
    _interrupt(folder, root)
    expected = {
        "commit": name_of(root),
        "account": {ledger: figures.accounted(json.loads(run(account(HERE, ledger)))) for ledger in LEDGERS},
        "together": figures.accounted(json.loads(run(account(HERE, *LEDGERS)))),
        "plan": figures.planned(json.loads(run(words(AGAIN, HERE)))),
        "audit": figures.audited(json.loads(run([*audit, "--baseline", "baseline.json"]))),
        "resumed": {name: _resumed(folder, root, name) for name in (STOPPED, KILLED)},
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    _clear(folder)


def _interrupt(folder: Path, root: Path) -> None:
    """Leave `stopped.partial` and `killed.partial`, as an interrupted run left them."""
    partial, journal, log = (folder / name for name in ("run.partial", "run.partial/journal.jsonl", "log"))
    line = halved(HERE, "run")

    def steps() -> int:
        return journal.read_bytes().count(b'"subsampled_gaussian"') if journal.exists() else 0

    def trains() -> bool:
        said = figures.events(log.read_text(encoding="utf-8").rpartition("\n")[0], "step_done")
        return any(event["stage"] == FIRST_STAGE and event["step"] > 1 for event in said)

    _break_off(folder, root, line, trains, signal.SIGTERM)
    shutil.copytree(partial, folder / f"{STOPPED}.partial")
    _break_off(folder, root, [*line, "--resume"], lambda: steps() >= 20, signal.SIGTERM)
    saved = steps()
    _break_off(folder, root, [*line, "--resume"], lambda: steps() >= saved + 5, signal.SIGKILL)
    partial.rename(folder / f"{KILLED}.partial")
    for name in (STOPPED, KILLED):
        (folder / f"{name}.partial" / "lock").unlink()  # It names the machine, and nobody holds it.


def _break_off(
    folder: Path, root: Path, arguments: Sequence[object], come: Callable[[], bool], stop: signal.Signals
) -> None:
    """Start a run, and send it a signal as soon as something is so."""
    with (folder / "log").open("wb") as log:
        run = subprocess.Popen(
            command(arguments), env=environment(root), cwd=folder, stdout=subprocess.DEVNULL, stderr=log
        )
        until = time.monotonic() + PATIENCE
        while run.poll() is None and not come() and time.monotonic() < until:
            time.sleep(1e-3)
        run.send_signal(stop)
        code = run.wait(PATIENCE)
    if code != (-signal.SIGKILL if stop is signal.SIGKILL else 130):
        raise SystemExit(f"The run was not interrupted but ended with {code}:\n{(folder / 'log').read_text()[-3000:]}")


def _resumed(folder: Path, root: Path, name: str) -> dict[str, Any]:
    """What the commit itself makes of an interrupted run, in a copy."""
    shutil.copytree(folder / f"{name}.partial", folder / "resumed.partial")
    arguments = [*halved(HERE, "resumed"), "--resume"]
    done = subprocess.run(
        command(arguments), env=environment(root), cwd=folder, capture_output=True, text=True, check=True
    )
    [gone_on] = figures.events(done.stderr, "gone_on")
    if (gone_on["stage"], gone_on["again"] > 0) != ((1, False) if name == STOPPED else (2, True)):
        raise SystemExit(f"{name}.partial is not where it should be: {gone_on}")
    out = folder / "resumed"
    actual = {
        "gone on": gone_on,
        "steps": json.loads(done.stdout)["steps"],
        "finished": figures.finished(out),
        "measured": figures.measured(out),
    }
    shutil.rmtree(out)
    shutil.rmtree(folder / "resumed.private")
    return actual


def _clear(folder: Path) -> None:
    """Remove what no test needs: renderings, and weights that nothing reads."""
    (folder / "corpus.txt").unlink()
    (folder / "log").unlink()
    for name in ("leaky.private", "private.private"):
        shutil.rmtree(folder / name)
    for name, kept in KEPT.items():
        for path in (folder / name).iterdir():
            if path.name not in kept:
                path.unlink()


def main(arguments: Sequence[str]) -> None:
    """The program."""
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        raise SystemExit("usage: python -m tests.compat.write FOLDER [COMMIT]")
    with checkout(arguments[1] if len(arguments) == 2 else None) as root:
        write(Path(arguments[0]).resolve(), root)


if __name__ == "__main__":
    main(sys.argv[1:])
