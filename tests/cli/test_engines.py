"""`--run-on`: what is refused, before anything is read."""

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Atdp


@pytest.mark.parametrize(
    "command",
    [
        "detect c.txt",
        "redact c.txt -o out.txt",
        "audit-canary model --canary=1",
    ],
)
def test_without_ray_its_engine_is_refused_in_one_line(
    atdp: Atdp, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as good as not installed
    monkeypatch.chdir(tmp_path)
    ended = atdp(*command.split(), "--run-on", "ray")
    assert ended.code == 2
    assert ended.err.splitlines() == [
        "atdp: --run-on ray needs the package ray, which is not installed. Install the extra: pip install 'atdp[ray]'."
    ]
