"""A thousand checkpoints in one audit, and two gigabytes of text: neither memory nor descriptors may grow."""

import itertools
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from atdp_cli.audit.canary import parse_template
from atdp_cli.audit.manifest import make_manifest, write_manifest
from atdp_cli.model.checkpoint import load_tokenizer
from tests.small import small_lines

CHECKPOINTS = 1_000
DAMAGED = range(0, CHECKPOINTS, 10)
SIZE = 2_000_000_000
"""Bytes of the corpus."""

EVERY = 0.05
"""Seconds between two looks at the process."""

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc tells memory and descriptors here"),
]


@dataclass(frozen=True, kw_only=True)
class Look:
    """A process at one moment: bytes resident, and open descriptors."""

    resident: int
    descriptors: int


def watched(arguments: Sequence[object], output: Path) -> tuple[list[Look], int]:
    """What a Python process looked like while it ran, and its exit code. Its standard output goes to the file."""
    looks = []
    with (
        output.open("wb") as stream,
        subprocess.Popen([sys.executable, *map(str, arguments)], stdout=stream) as process,
    ):
        place = Path(f"/proc/{process.pid}")
        while process.poll() is None:
            try:
                resident = int((place / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                looks.append(Look(resident=resident, descriptors=sum(1 for _ in (place / "fd").iterdir())))
            except (FileNotFoundError, ProcessLookupError, IndexError):  # it has just ended
                break
            time.sleep(EVERY)
    return looks, process.returncode


def assert_flat(looks: Sequence[Look]) -> None:
    """The last tenth of the time is like the second: 5 % of memory, and the same number of descriptors."""
    tenth = len(looks) // 10
    second, last = looks[tenth : 2 * tenth], looks[-tenth:]
    resident = [statistics.mean(look.resident for look in part) for part in (second, last)]
    descriptors = [statistics.median(look.descriptors for look in part) for part in (second, last)]
    assert resident[1] == pytest.approx(resident[0], rel=0.05)
    assert descriptors[1] == descriptors[0]


def copies(checkpoint: Path, folder: Path) -> list[Path]:
    """Checkpoints that differ in their weights, some of which are no numbers."""
    from safetensors.numpy import load_file, save_file

    tensors = load_file(checkpoint / "model.safetensors")
    name = "transformer.wte.weight"
    actual = []
    for number in range(CHECKPOINTS):
        copy = folder / f"model-{number}"
        copy.mkdir(parents=True)
        for file in checkpoint.iterdir():
            if file.name != "model.safetensors":
                os.link(file, copy / file.name)
        changed = tensors | {name: tensors[name] * (math.nan if number in DAMAGED else 1 + number / CHECKPOINTS)}
        save_file(changed, copy / "model.safetensors", metadata={"format": "pt"})
        actual.append(copy)
    return actual


def test_audit_of_a_thousand_checkpoints(checkpoint_folder: Path, tmp_path: Path) -> None:
    template = parse_template("My ID is {digits:3}")
    secrets = [template.secret(index) for index in random.Random(11).sample(range(template.pool), 10)]
    made = make_manifest(
        load_tokenizer(checkpoint_folder),
        template,
        secrets,
        [[line] for line in range(1, 11)],
        repeats=(1,) * 10,
        coins=None,
        records=100,
        drawn="csprng",
    )
    write_manifest(tmp_path / "canaries.json", made)
    models = copies(checkpoint_folder, tmp_path / "models")
    command = ["-m", "atdp_cli", "audit-canary", "--manifest", tmp_path / "canaries.json", "--json", "-q"]
    looks, _ = watched([*command, "--set", "run.threads=1", *models], tmp_path / "audit.json")
    entries = json.loads((tmp_path / "audit.json").read_text())["models"]
    assert len(entries) == CHECKPOINTS
    refused = [number for number, entry in enumerate(entries) if entry["verdict"] == "ERROR"]
    assert refused == list(DAMAGED)
    assert len({entry["weights"].get("model.safetensors") for entry in entries}) == 1 + CHECKPOINTS - len(DAMAGED)
    assert_flat(looks)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Two gigabytes of records of some 500 characters, no two alike, and the span of each one's number beside them."""
    path, said = tmp_path / "corpus.txt", small_lines()
    texts = [" ".join([*said[at:], *said[:at]][:10]) for at in range(len(said))]
    size = 0
    with path.open("w") as lines, (tmp_path / "spans.jsonl").open("w") as spans:
        for number, text in enumerate(itertools.cycle(texts), start=1):
            if size >= SIZE:
                break
            line = f"{text} {number:09d}."
            actual = {"start": len(text) + 1, "end": len(line) - 1, "label": "NUMBER", "source": "pattern"}
            lines.write(f"{line}\n")
            spans.write(json.dumps({"id": str(number), "spans": [actual]}) + "\n")
            size += len(line) + 1
    return path


def test_two_gigabytes_read(corpus: Path, tmp_path: Path) -> None:
    code = "import sys, pathlib; from atdp_cli.corpus.record import read_records; "
    code += "print(sum(1 for _ in read_records(pathlib.Path(sys.argv[1]))))"
    looks, ended = watched(["-c", code, corpus], tmp_path / "count.txt")
    assert ended == 0
    with corpus.open("rb") as lines:
        assert int((tmp_path / "count.txt").read_text()) == sum(1 for _ in lines)
    assert_flat(looks)


def test_two_gigabytes_redacted(corpus: Path, tmp_path: Path) -> None:
    command = ["-m", "atdp_cli", "redact", corpus, "-o", tmp_path / "out.txt", "--spans", tmp_path / "spans.jsonl"]
    looks, ended = watched([*command, "-q"], tmp_path / "said.txt")
    assert ended == 0
    with corpus.open("rb") as before, (tmp_path / "out.txt").open("rb") as after:
        for old, new in zip(before, after, strict=True):
            assert new == old.rpartition(b" ")[0] + b" [NUMBER].\n"
    assert_flat(looks)
