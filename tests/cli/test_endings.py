"""How a command ends where it was not the user's mistake, and what it loads before it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from atdp_cli.cli.app import run
from tests.cli.badinput.case import SECRET
from tests.cli.conftest import Atdp

SOLVED = "--recipe redacted+atdp --records 5000 --solve noise --target-epsilon 3"


def test_a_defect_of_ours_never_looks_like_a_failed_audit(
    atdp: Atdp, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong inside, the exit code is 3 and no library's message, which may quote a record, is shown."""
    from atdp_cli.detection import run as text

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(text, "run_over", broken)
    ended = atdp("detect", corpus)
    assert ended.code == 3
    assert "ZeroDivisionError" in ended.err
    assert SECRET not in ended.err


def test_an_interruption_ends_with_130(atdp: Atdp, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from atdp_cli.detection import run as text

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(text, "run_over", interrupted)
    assert atdp("detect", corpus).code == 130


@pytest.mark.parametrize(
    ("command", "unloaded"),
    [
        (["--help"], ("torch", "spacy", "transformers", "dp_accounting", "numpy")),  # options are models of pydantic
        (["harden", "--help"], ("torch", "spacy", "transformers")),
        (
            ["account", "--sampling-probability", "0.1", "--noise-multiplier", "1", "--steps", "2"],
            ("torch", "spacy", "opacus"),
        ),
        (["account", *SOLVED.split()], ("torch", "spacy")),
        (["harden", "--list-recipes"], ("torch", "spacy")),
    ],
)
def test_heavy_libraries_stay_unloaded(command: list[str], unloaded: tuple[str, ...]) -> None:
    code = (
        "import sys; from atdp_cli.cli.app import run\n"
        "if run(sys.argv[2:]): sys.exit('failed')\n"
        "sys.exit(' '.join(name for name in sys.argv[1].split() if name in sys.modules) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, " ".join(unloaded), *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    from atdp_cli import __version__

    assert run(["--version"]) == 0
    assert capfd.readouterr().out == f"atdp {__version__}\n"
