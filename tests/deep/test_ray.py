"""Ten megabytes on Ray, with a worker killed: the bytes of one local run."""

import random
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.detection.run import DetectRequest, detect
from atdp_cli.events import Event, RecordsRead, ignore
from tests.rayworkers import kill_a_busy_worker
from tests.small import small_lines

BYTES = 10_000_000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw, lines, size = random.Random(64), small_lines(), 0
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    with path.open("w", encoding="utf-8") as stream:
        while size < BYTES:
            line = f"{draw.randrange(10**6)} {' '.join(draw.choices(lines, k=draw.randrange(1, 9)))}\n"
            size += stream.write(line)
    return path


@pytest.mark.deep
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
def test_ray_with_a_worker_killed_gives_what_one_process_gives(corpus: Path, tmp_path: Path) -> None:
    store, local, on_ray = tmp_path / "s.private", tmp_path / "local.jsonl", tmp_path / "ray.jsonl"
    killed: list[int] = []

    def kill_in_the_middle(event: Event) -> None:
        if isinstance(event, RecordsRead) and not killed and event.total and event.done > event.total / 2:
            killed.append(kill_a_busy_worker())

    def seconds(target: Path, store: Path, **where: Any) -> float:
        began = time.monotonic()
        hear = kill_in_the_middle if "run_on" in where else ignore
        detect(DetectRequest(corpus=corpus, output=target, store=store, workers=2, **where), hear)
        return time.monotonic() - began

    print(f"local, 2 processes: {seconds(local, store):.0f} s")
    print(f"Ray, 2 processors, one worker killed: {seconds(on_ray, Path('none'), run_on='ray'):.0f} s")
    assert len(killed) == 1
    assert on_ray.read_bytes() == local.read_bytes()
