"""What one run of `atdp harden` computes once: hashes, the pipeline, the manifest, the check of its folders."""

import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.detection import executor
from atdp_cli.detection import spacy as spacy_reader
from atdp_cli.detection.spacy import Piece, Reading
from tests.cli.conftest import Atdp

ONCE = ("load_pipeline", "read_manifest", "check_output", "completed_run", "flag_corpus", "open_run")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each of `ONCE` is called, under whatever module's name."""
    counts: Counter[str] = Counter()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any, **settings: Any) -> Any:
            counts[name] += 1
            return function(*arguments, **settings)

        return count

    modules = [module for name, module in sys.modules.items() if name.startswith("atdp_cli.")]
    for name in ONCE:
        for module in modules:
            if name in vars(module):
                monkeypatch.setattr(module, name, counted(name, vars(module)[name]))
    return counts


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> Counter[Path]:
    """How often each file is hashed."""
    counts: Counter[Path] = Counter()
    file_digest = hashlib.file_digest

    def count(stream: Any, digest: Any) -> Any:
        counts[Path(stream.name)] += 1
        return file_digest(stream, digest)

    monkeypatch.setattr(hashlib, "file_digest", count)
    return counts


@pytest.fixture
def start(atdp: Atdp, checkpoint_folder: Path, corpus: Path, fixed_manifest: Path, tmp_path: Path) -> Path:
    """A folder with a planted corpus, its manifest, and a model that has a ledger."""
    planted = ["-o", tmp_path / "planted.txt", "--manifest", tmp_path / "canaries.json", "--from", fixed_manifest]
    assert atdp("plant-canary", corpus, *planted, "--tokenizer", checkpoint_folder, "-q").code == 0
    options = ["--recipe", "no-dp", "--epochs", 1, "--tier", "low-entity", "--max-records", 40, "--store", "none", "-q"]
    trained = atdp("harden", checkpoint_folder, "--data", corpus, "-o", tmp_path / "model", *options)
    assert trained.code == 0
    return tmp_path


@pytest.mark.ci
def test_a_run_computes_each_once(
    atdp: Atdp, start: Path, checkpoint_folder: Path, request: pytest.FixtureRequest
) -> None:
    """A start with a ledger, a reference, canaries, a review, and --resume."""
    calls, hashed = (request.getfixturevalue(name) for name in ("calls", "hashed"))
    model, manifest = start / "model", start / "canaries.json"
    options = ["--manifest", manifest, "--reference", checkpoint_folder, "--resume"]
    options += [
        "--review-each-epoch",
        "--set",
        "run.review-share=0.05",
        "--store",
        "none",
    ]
    options += ["--recipe", "anchored", "--tier", "low-entity", "--epochs", 1, "-q"]
    assert atdp("harden", model, "--data", start / "planted.txt", "-o", start / "out", *options).code == 0
    assert calls == dict.fromkeys(ONCE, 1)
    read = [path for path in hashed if path.is_relative_to(model) or path.is_relative_to(checkpoint_folder)]
    weights = [path for path in read if path.suffix == ".safetensors"]
    assert {path.parent for path in weights} == {model, checkpoint_folder}
    assert {path: hashed[path] for path in (*read, manifest)} == dict.fromkeys((*read, manifest), 1)


@pytest.fixture
def texts_read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the pipeline reads each text."""
    counts: Counter[str] = Counter()

    def read(pieces: Sequence[Piece], *arguments: Any) -> list[Reading]:
        counts.update(text for text, _ in pieces)
        return spacy_reader.read(pieces, *arguments)

    monkeypatch.setattr(executor, "read", read)
    return counts


def test_the_pipeline_reads_a_record_once(
    atdp: Atdp, checkpoint_folder: Path, corpus: Path, tmp_path: Path, texts_read: Counter[str]
) -> None:
    """Also those records of which the plan shows the flagged share."""
    records = sorted(set(corpus.read_text().splitlines()[:40]))
    data = tmp_path / "corpus.txt"
    data.write_text("".join(f"{record}\n" for record in records))
    options = ["--data", data, "--recipe", "no-dp", "--epochs", 1, "-q"]
    for name, store in (("without", ["--store", "none"]), ("with", ["--store", tmp_path / "store.private"])):
        texts_read.clear()
        assert atdp("harden", checkpoint_folder, *options, *store, "-o", tmp_path / name).code == 0
        assert {text: texts_read[text] for text in records} == dict.fromkeys(records, 1), name
    texts_read.clear()
    assert atdp("harden", checkpoint_folder, *options, *store, "-o", tmp_path / "again").code == 0
    assert not set(records) & set(texts_read), "the store has them"
