"""What many tests need: a small real checkpoint, a corpus, and the shared material where it is at hand."""

import gc
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.small import small_lines, write_checkpoint, write_corpus
from tests.taggers import write_tagger

# A test's time says nothing on a machine that does other things as well.
settings.register_profile("atdp", deadline=None)
settings.load_profile("atdp")

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What CI runs of the deep suite is of the deep suite; of the others of `one_in(n)` every 24th is CI's."""
    cases: Counter[str] = Counter()
    for item in items:
        if (one_in := item.get_closest_marker("one_in")) is not None:
            name = item.nodeid.partition("[")[0]
            place, every = cases[name], one_in.args[0]
            if place % every:
                item.add_marker("ci" if (place - place // every) % 24 == 1 else "deep")
            cases[name] += 1
        # A case's own marker comes after that of its test, and holds.
        if [marker.name for marker in item.own_markers if marker.name in ("ci", "deep")][-1:] == ["deep"]:
            item.own_markers = [marker for marker in item.own_markers if marker.name != "ci"]
        elif item.get_closest_marker("ci"):
            item.add_marker("deep")


def pytest_collection_finish() -> None:
    """Thousands of collected tests live to the end; to walk over them in every collection took a third of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Tests run side by side; two threads each would make them wait for one another."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def key_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Stores of tests are under a key that goes with them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True, scope="session")
def one_pipeline() -> Iterator[None]:
    """An installed spaCy pipeline is read from disk once a process, however many commands load it.

    Commands do not change it: what spaCy keeps of a text goes when its memory zone ends.
    """
    import spacy

    from atdp_cli.detection.scan import THIRD_PARTY, installed_pipeline, third_party_folder

    default = third_party_folder() if installed_pipeline() == THIRD_PARTY else None
    load = spacy.load
    installed = cache(lambda name: load(name, exclude=["lemmatizer"]))

    def load_once(name: Any, **options: Any) -> Any:
        known = spacy.util.is_package(str(name)) or name == default
        alike = options == {"exclude": ["lemmatizer"]} and known
        return installed(name) if alike else load(name, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spacy, "load", load_once)
        yield


@pytest.fixture(scope="session")
def shared() -> Iterator[Path]:
    """The shared corpora and models, or a skip that says what is missing. Tests leave nothing there."""
    if not SHARED.is_dir():
        pytest.skip("../shared is absent: the shared corpora and models")
    before = set(SHARED.rglob("*"))
    yield SHARED
    assert set(SHARED.rglob("*")) == before


@pytest.fixture(scope="session")
def lines() -> list[str]:
    """Some 200 short records with names and numbers in them."""
    return small_lines()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> Path:
    """The records as a text file, a line each."""
    return write_corpus(tmp_path_factory.mktemp("corpus") / "corpus.txt", lines)


@pytest.fixture(scope="session")
def checkpoint_folder(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> Path:
    """A GPT-2 of some 50,000 random parameters with a byte-level BPE tokenizer of its own, in fp32."""
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny", lines)


@pytest.fixture(scope="session")
def span_file(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """The spans of the small corpus at the lowest tier."""
    from atdp_cli.cli.app import run

    path = tmp_path_factory.mktemp("spans") / "spans.jsonl"
    assert run(["detect", str(corpus), "--tier", "low-entity", "-o", str(path), "-q", "--set", "run.store=none"]) == 0
    return path


@pytest.fixture(scope="session")
def tagger_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small token classifier that finds the names and numbers of `tests.taggers`."""
    return write_tagger(tmp_path_factory.mktemp("tagger"))
