"""A line where a command would be silent, and none where it is not."""

import re
import threading
import time

from atdp_cli.cli.terminal.heartbeat import heartbeat
from tests.cli.conftest import Atdp


def test_silence_is_broken_again_and_again_until_the_work_is_over() -> None:
    said: list[str] = []
    thrice = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 3:
            thrice.set()

    with heartbeat(lambda: 0.0, say, silence=0.01):
        assert thrice.wait(60)
    assert all(re.fullmatch(r"Still at work after \d+ s\.", line) for line in said)
    assert not [thread for thread in threading.enumerate() if thread.name == "atdp-heartbeat"]


def test_nothing_is_said_while_something_else_is_printed() -> None:
    said: list[str] = []
    with heartbeat(time.monotonic, said.append, silence=0.01):
        time.sleep(0.1)
    assert said == []


def test_the_thread_ends_with_a_command_that_fails(atdp: Atdp) -> None:
    assert atdp("detect", "absent.txt").code == 2
    assert not [thread for thread in threading.enumerate() if thread.name == "atdp-heartbeat"]
