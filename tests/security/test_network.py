"""No command asks for a connection, and none needs one, unless it was given a server."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from atdp_cli.cli.app import COMMANDS
from atdp_cli.detection.crosscheck.client import Server, opened_server
from atdp_cli.errors import RunError
from tests.cli.badinput.case import line
from tests.llmserver import Reply, always, chat_server

CONNECTING = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg")

SCRIPT = f"""
import json, sys
from pathlib import Path
asked = []
def watch(event, given):
    # A path is the address of another process of this machine.
    if event in {CONNECTING} and not isinstance(given[-1], (str, bytes)):
        asked.append(f"{{event}} {{given[1:]}}")
sys.addaudithook(watch)
from atdp_cli.cli.app import run
codes = [run(command) for command in json.loads(sys.argv[1])]
routes = Path("/proc/net/route").read_text().splitlines()[1:] if Path("/proc/net/route").exists() else []
Path("ended.json").write_text(json.dumps({{"codes": codes, "asked": asked, "routes": routes}}))
"""

COMMAND_LINES = (
    line("plant-canary corpus.txt -o planted.txt --manifest m.json --tokenizer model --template ID{digits:2}"),
    line("detect planted.txt -o spans.jsonl --review queue.jsonl"),
    line("review queue.jsonl"),
    line("redact planted.txt -o redacted.txt"),
    line("decoy planted.txt -o decoyed --epochs 1"),
    line("harden model --data planted.txt -o out --epochs 1 --manifest m.json"),
    line("harden model --data planted.txt -o dp --recipe atdp --epochs 1"),
    line("audit-canary out --manifest m.json"),
    line("audit-corpus out --data planted.txt --harden-split"),
    line("account out"),
    line("report dp --html report.html"),
)


@pytest.mark.ci
def test_no_command_asks_for_a_connection(tmp_path: Path, checkpoint_folder: Path, lines: list[str]) -> None:
    """Also where there is no way out: in a network namespace without routes, where the system allows one."""
    assert {command[0] for command in COMMAND_LINES} == set(COMMANDS)
    shutil.copytree(checkpoint_folder, tmp_path / "model")
    (tmp_path / "corpus.txt").write_text("\n".join(lines) + "\n")
    alone = ["unshare", "-rn"] if shutil.which("unshare") else []
    allowed = bool(alone) and subprocess.run([*alone, "true"], capture_output=True, check=False).returncode == 0
    # The command line sets HF_HUB_OFFLINE; here nothing but the code itself keeps from asking.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    ended = subprocess.run(
        [*(alone if allowed else []), sys.executable, "-c", SCRIPT, json.dumps(COMMAND_LINES)],
        cwd=tmp_path,
        env=environment,
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    reported = json.loads((tmp_path / "ended.json").read_text())
    for (name, *_), code in zip(COMMAND_LINES, reported["codes"], strict=True):
        assert code in ((0, 1, 4) if name == "audit-canary" else (0,)), (name, ended.stderr)
    assert reported["asked"] == []
    if not allowed:
        pytest.skip("no connection was asked for; network namespaces are not permitted here, so it ran with routes")
    assert reported["routes"] == []


def test_a_redirect_is_not_followed() -> None:
    """Who may answer is who was named, and nobody else sees a sentence or the key."""
    with chat_server(always(Reply())) as other:
        away = Reply(status=307, headers={"Location": f"{other.url}/chat/completions"}, body=b"")
        with chat_server(always(away)) as named:
            asked = Server(model="tiny", url=named.url, key="sk-secret")
            with opened_server(asked, masked=True) as ask, pytest.raises(RunError):
                ask("hello there")
        assert len(named.requests) == 1
        assert other.requests == []
