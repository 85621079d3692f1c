"""Mutations of the source, each run by the command line: every one ends with the error that names it, exit code 3.

Before runs traced what they used, each of them ended with exit code 0 and with the figures of a sound run.
"""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fresh import ROOT, command, environment
from tests.small import small_lines, write_checkpoint, write_corpus

ATDP = ("--recipe", "atdp")
FITTED = ("--recipe", "fitted-decoys")


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A change of one place of a file of the package.

    Attributes:
        said: What the error says.
        processes: That train together.
    """

    name: str
    file: str
    old: str
    new: str
    said: str
    recipe: Sequence[str] = ATDP
    processes: int = 1


LOOP, NOISE, MECHANISM = "training/trainer.py", "training/noise.py", "training/noise.py"
RELEASES, RELEASE = "hardening/releases.py", "privacy/noisy_statistic.py"

MUTATIONS = (
    Mutation(
        name="the first epoch's σ in every epoch",
        file=LOOP,
        old="event.noise_multiplier * ",
        new="events[0].noise_multiplier * ",
        said="epoch 2, step 5: the noise's standard deviation was",
    ),
    Mutation(
        name="the σ of another epoch",
        file=LOOP,
        old="event.noise_multiplier * ",
        new="events[-events.index(event) - 1].noise_multiplier * ",
        said="epoch 1, step 1: the noise's standard deviation was",
    ),
    Mutation(
        name="σ/100 for the words",
        file=RELEASES,
        old="fit_frequencies(records, event.noise_multiplier * event.sensitivity, noise)",
        new="fit_frequencies(records, event.noise_multiplier * event.sensitivity / 100, noise)",
        said="the noise's standard deviation was 0.025, and 2.5 was planned",
        recipe=FITTED,
    ),
    Mutation(
        name="no noise for the words",
        file=RELEASE,
        old="noisy = [count + drawn for",
        new="noisy = [count for",
        said="the noise's root mean square was 0",
        recipe=FITTED,
    ),
    Mutation(
        name="q halved",
        file=LOOP,
        old="event.sampling_rate, randomness.sample",
        new="event.sampling_rate / 2, randomness.sample",
        said="epoch 1, step 1: the sampling rate was",
    ),
    Mutation(
        name="q halved where it is compared",
        file=MECHANISM,
        old="draws < sampling_rate",
        new="draws < sampling_rate / 2",
        said="all steps: the share of records that were sampled was",
    ),
    Mutation(
        name="C doubled",
        file=LOOP,
        old="local_items(ranks, sample), event.clip_norm",
        new="local_items(ranks, sample), 2 * event.clip_norm",
        said="epoch 1, step 1: the norm bound was",
    ),
    Mutation(
        name="noise on half of the coordinates",
        file=NOISE,
        old="torch.split(part.view(-1), size)",
        new="torch.split(part.view(-1)[::2], size)",
        said="the number of coordinates with noise was",
    ),
    Mutation(
        name="one noise for all blocks and steps",
        file=NOISE,
        old="uniforms(stream, 2 * pairs, device)",
        new="uniforms(KeyStream(bytes(32)), 2 * pairs, device)",
        said="the draws of the noise's stream was 0",
    ),
    Mutation(
        name="noise of the first process alone",
        file=NOISE,
        old="index % ranks.size == ranks.rank",
        new="index % ranks.size == ranks.rank == 0",
        said="the number of coordinates with noise was",
        processes=2,
    ),
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    lines = small_lines()[:120]
    write_corpus(folder / "corpus.txt", lines)
    write_checkpoint(folder / "gpt2", lines)
    detect = ["detect", "corpus.txt", "--tier", "high-entity", "-o", "spans.jsonl", "-q", "--set", "run.store=none"]
    subprocess.run(command(detect), cwd=folder, env=environment(ROOT), check=True)
    return folder


def ended(
    root: Path, inputs: Path, out: Path, recipe: Sequence[str], processes: int, *more: str
) -> subprocess.CompletedProcess[str]:
    """`atdp harden` of the package at `root`."""
    data = ["--data", inputs / "corpus.txt", "--spans", inputs / "spans.jsonl", "--tier", "high-entity"]
    fixed = [
        "--epochs",
        4,
        "--set",
        "run.threads=1",
        "--device",
        "cpu",
        "--set",
        "run.insecure-seed=1",
        "-q",
        "-o",
        out,
    ]
    return subprocess.run(
        command(["harden", inputs / "gpt2", *data, *fixed, *recipe, *more], processes=processes),
        cwd=out.parent,
        env=environment(root) | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_every_mutation_has_its_place(mutation: Mutation) -> None:
    assert (ROOT / "atdp_cli" / mutation.file).read_text(encoding="utf-8").count(mutation.old) == 1


@pytest.mark.deep
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_of_the_source_ends_the_run(inputs: Path, tmp_path: Path, mutation: Mutation) -> None:
    root = tmp_path / "source"
    shutil.copytree(ROOT / "atdp_cli", root / "atdp_cli", ignore=shutil.ignore_patterns("__pycache__"))
    file = root / "atdp_cli" / mutation.file
    file.write_text(file.read_text(encoding="utf-8").replace(mutation.old, mutation.new), encoding="utf-8")
    done = ended(root, inputs, tmp_path / "out", mutation.recipe, mutation.processes)
    assert done.returncode != 0
    assert mutation.processes > 1 or done.returncode == 3
    assert mutation.said in " ".join(done.stderr.split())
    assert "Nothing was published" in " ".join(done.stderr.split())
    assert {path.name for path in tmp_path.iterdir()} <= {"source", "out.partial"}


@pytest.mark.deep
@pytest.mark.parametrize("recipe", [ATDP, FITTED], ids=" ".join)
@pytest.mark.parametrize(("processes", "more"), [(1, ()), (2, ()), (2, ("--set", "run.shard-model=true"))])
def test_the_source_as_it_is_does_not(
    inputs: Path, tmp_path: Path, recipe: Sequence[str], processes: int, more: Sequence[str]
) -> None:
    done = ended(ROOT, inputs, tmp_path / "out", recipe, processes, *more)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.private" / "trace.jsonl").stat().st_size > 0
