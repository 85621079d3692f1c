"""The span store: what comes back is what was found, and nothing else."""

import contextlib
import importlib.metadata
import itertools
import shutil
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection import cache as packing
from atdp_cli.detection import identity
from atdp_cli.detection.cache import SPANS, SpanStore, opened_store, pack, unpack
from atdp_cli.detection.detect import Detection, detect_records
from atdp_cli.detection.executor import processes
from atdp_cli.detection.identity import detector_identity
from atdp_cli.detection.scan import KNOWN_BATCH, Finding, split_sentences
from atdp_cli.detection.term_lists import literal
from atdp_cli.events import ChoiceWarning, Event
from tests.strategies import spans_within

many = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

RECORDS = [Record(str(n), f"Maria {n} met Tom Jones on May {n % 28 + 1}. Mail jo{n}@x.com.") for n in range(150)]


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    """Any finding that `scan` could give, and many that it could not."""
    text = draw(st.text(st.characters(), max_size=40)) * draw(st.sampled_from([1, 1, 20, 5_000]))
    edges = draw(st.lists(st.integers(0, len(text)), max_size=12).map(sorted))
    tokens = tuple(zip(edges[::2], edges[1::2], strict=False))
    ends = draw(st.lists(st.integers(0, len(text)), max_size=4))
    spans = tuple(sorted(draw(spans_within(len(text)))))
    return Finding(Record("1", text), spans, tokens, split_sentences(ends, len(text)))


@pytest.fixture
def small(tmp_path: Path) -> Any:
    """What a store asks of a pipeline: where it is and what it is called."""
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "weights").write_bytes(b"1")
    return SimpleNamespace(path=tmp_path / "pipeline", meta={"version": "1"}, pipe_names=["ner"])


class Counting:
    """A pipeline that counts the texts it is given."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline
        self.texts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipeline, name)

    def pipe(self, texts: Iterator[str], **options: Any) -> Any:
        def counted() -> Iterator[str]:
            for text in texts:
                self.texts += 1
                yield text

        return self._pipeline.pipe(counted(), **options)


def actual(text: str, number: int = 1) -> Finding:
    return Finding(Record(str(number), text), (Span(0, 1, "PERSON", "ner", Tier.LOW_ENTITY),), ((0, 1),), ((0, 1),))


def reasons(heard: list[Event]) -> list[str]:
    return [event.reason for event in heard if isinstance(event, ChoiceWarning)]


@many
@given(finding=findings())
def test_packing_keeps_everything_but_the_record(finding: Finding) -> None:
    assert unpack(pack(finding), finding.record) == finding


@many
@given(finding=findings(), place=st.integers(0, 200), flip=st.integers(1, 255))
def test_damaged_bytes_raise_value_error(finding: Finding, place: int, flip: int) -> None:
    packed = bytearray(pack(finding))
    place %= len(packed)
    with pytest.raises(ValueError, match="not a packed finding"):
        unpack(bytes(packed[:place]), finding.record)
    packed[place] ^= flip
    with contextlib.suppress(ValueError):
        assert unpack(bytes(packed), finding.record) == finding


@pytest.mark.ci
@settings(parent=many, max_examples=30)
@given(
    kept=st.lists(findings(), max_size=10, unique_by=lambda found: found.record.text), other=st.text(st.characters())
)
def test_what_was_put_comes_back_for_any_text(
    small: Any, tmp_path_factory: pytest.TempPathFactory, kept: list[Finding], other: str
) -> None:
    folder = tmp_path_factory.mktemp("store") / "a.private"
    for _ in range(2):
        with opened_store(folder, small) as store:
            for finding in kept:
                store.put(finding)
            assert [store.get(finding.record) for finding in kept] == kept
    with opened_store(folder, small) as store:
        for finding in kept:
            renamed = Record("another id", finding.record.text)
            again = store.get(renamed)
            assert again is not None
            assert (again.record, again.spans) == (renamed, finding.spans)
        if other not in {finding.record.text for finding in kept}:
            assert store.get(Record("1", other)) is None


def test_the_folder_is_private_and_holds_no_text(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mail.txt.private"
    secret = "The account of Emma Clarke is 48213377."
    with opened_store(folder, small) as store:
        store.put(actual(secret))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {file.name for file in folder.iterdir()} == {".gitignore", SPANS.database}
    assert (folder / ".gitignore").read_text() == "*\n"
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert not any(word.encode() in file.read_bytes() for word in secret.split() if len(word) > 3)
    with sqlite3.connect(folder / SPANS.database) as database:
        [[key]] = database.execute("SELECT key FROM findings")
    with monkeypatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
        with opened_store(tmp_path / "twin.private", small) as store:
            store.put(actual(secret))
    with sqlite3.connect(tmp_path / "twin.private" / SPANS.database) as database:
        assert database.execute("SELECT key FROM findings").fetchone() != (key,)


def test_the_identity_changes_with_every_part(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {detector_identity(small)}

    def is_new() -> None:
        now = detector_identity(small)
        assert now not in seen
        seen.add(now)

    assert detector_identity(small) in seen
    (small.path / "weights").write_bytes(b"2")
    is_new()
    (small.path / "weights").rename(small.path / "heights")
    is_new()
    small.meta = {"version": "2"}
    is_new()
    small.pipe_names = ["ner", "tagger"]
    is_new()
    real = importlib.metadata.version
    for library in identity.LIBRARIES:
        with monkeypatch.context() as patch:
            patch.setattr(identity, "version", lambda name, other=library: "0" if name == other else real(name))
            is_new()
    copy = tmp_path / "atdp_cli"
    shutil.copytree(Path(packing.__file__).parents[1], copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(identity, "files", lambda package: copy)
    assert detector_identity(small) in seen
    rules = copy / "detection"
    modules = ("scan.py", "spacy.py", "word_lists.py", "identifiers/__init__.py", "identifiers/numbers.py")
    lists = ("identifiers/words.txt", "identifiers/health_terms.txt", "words/names.txt")
    for name in (*modules, *lists, "../corpus/spans.py", "../files/word_lists.py"):
        (rules / name).write_text((rules / name).read_text() + "#")
        is_new()
    (rules / "identifiers" / "numbers.py").rename(rules / "identifiers" / "more.py")
    is_new()


def test_a_finding_of_another_detector_is_not_found(small: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a.private"
    with opened_store(folder, small) as store:
        store.put(actual("Maria"))
    (small.path / "weights").write_bytes(b"2")
    with opened_store(folder, small) as store:
        assert store.get(Record("1", "Maria")) is None
    (small.path / "weights").write_bytes(b"1")
    with opened_store(folder, small) as store:
        assert store.get(Record("1", "Maria")) == actual("Maria")


@pytest.mark.ci
@pytest.mark.parametrize("jobs", [1, 2])
def test_hits_and_misses_give_what_one_pass_gives(pipeline: Any, tmp_path: Path, jobs: int) -> None:
    folder = tmp_path / "a.private"
    lists: dict[str, Any] = {"allow": [literal("Tom Jones")], "deny": [literal("met")]}
    first, corrected = (list(detect_records(RECORDS, pipeline=pipeline, **options)) for options in ({}, lists))
    counting = Counting(pipeline)

    def through_store(records: list[Record], **options: Any) -> list[Detection]:
        with opened_store(folder, pipeline) as store:
            return list(detect_records(records, pipeline=counting, lookup=store.get, store=store.put, **options))

    # Every third record, then all: hits stand among misses.
    assert through_store(RECORDS[::3], engine=processes(jobs)) == first[::3]
    assert through_store(RECORDS, engine=processes(jobs)) == first
    if jobs == 1:
        assert counting.texts == len(RECORDS)
    before = counting.texts
    assert through_store(RECORDS, engine=processes(jobs)) == first
    assert through_store(RECORDS, engine=processes(jobs), **lists) == corrected
    assert counting.texts == before


def test_memory_is_bounded_where_everything_is_known(pipeline: Any) -> None:
    taken = 0

    def endless() -> Iterator[Record]:
        nonlocal taken
        for taken in itertools.count(1):
            yield Record(str(taken), "x")

    counting = Counting(pipeline)
    known = detect_records(endless(), pipeline=counting, lookup=lambda record: Finding(record, (), (), ((0, 1),)))
    for number in range(1, 5 * KNOWN_BATCH):
        assert next(known).record.id == str(number)
        assert taken - number <= KNOWN_BATCH
    assert counting.texts == 0


def test_a_run_that_ends_early_is_kept(pipeline: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a.private"

    def run() -> Iterator[Detection]:
        with opened_store(folder, pipeline) as store:
            yield from detect_records(RECORDS, pipeline=pipeline, lookup=store.get, store=store.put)

    running = run()
    early = list(itertools.islice(running, 70))
    running.close()  # type: ignore[attr-defined]
    with opened_store(folder, pipeline) as store:
        assert [detection.tokens for detection in early] == [
            kept.tokens for record in RECORDS if (kept := store.get(record)) is not None
        ]


def test_much_is_written_before_the_end(small: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a.private"
    with opened_store(folder, small) as store:
        for number in range(600):
            store.put(actual(f"{number}"))
        with opened_store(folder, small) as beside:
            assert sum(beside.get(Record("1", f"{number}")) is not None for number in range(600)) >= 500


def test_two_at_once_both_keep_what_they_found(small: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a.private"
    start, heard = threading.Barrier(2), list[Event]()

    def fill(first: int) -> None:
        start.wait()
        with opened_store(folder, small, heard.append) as store:
            for number in range(first, first + 2_000):
                finding = actual(f"{number}")
                assert store.get(finding.record) in (None, finding)
                store.put(finding)

    threads = [threading.Thread(target=fill, args=(first,)) for first in (0, 1_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == []
    with opened_store(folder, small) as store:
        assert all(store.get(Record("1", f"{number}")) == actual(f"{number}") for number in range(3_000))


@pytest.mark.ci
@settings(parent=many, max_examples=60)
@given(data=st.data())
def test_a_damaged_database_never_gives_wrong_spans(
    small: Any, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("store") / "a.private"
    kept = [actual(f"{number}") for number in range(40)]
    with opened_store(folder, small) as store:
        for finding in kept:
            store.put(finding)
    content = bytearray((folder / SPANS.database).read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=40)):
        content[place] ^= data.draw(st.integers(1, 255))
    (folder / SPANS.database).write_bytes(content[: data.draw(st.sampled_from([len(content), 0, 1, 5_000]))])
    # What cannot be used is gone after one run at the latest.
    for _ in range(2):
        with opened_store(folder, small) as store:
            for finding in kept:
                assert store.get(finding.record) in (None, finding)
            for finding in kept:
                store.put(finding)


def _another_user(folder: Path) -> None:
    with sqlite3.connect(folder / SPANS.database) as database:
        database.execute("UPDATE made_with SET mark = ?", (bytes(32),))


def _nobody(folder: Path) -> None:
    with sqlite3.connect(folder / SPANS.database) as database:
        database.execute("DROP TABLE made_with")


def _another_version(folder: Path) -> None:
    with sqlite3.connect(folder / SPANS.database) as database:
        database.execute("PRAGMA user_version = 99")


def _no_database(folder: Path) -> None:
    (folder / SPANS.database).write_text("This is no database." * 500)


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (_another_user, "was written by another user or on another machine, so it is started afresh"),
        (_nobody, "was written by another user or on another machine, so it is started afresh"),
        (_another_version, "is of another version, so it is started afresh"),
        (_no_database, "was damaged, so it is started afresh"),
    ],
)
def test_a_store_that_does_not_fit_is_started_afresh(small: Any, tmp_path: Path, break_it: Any, why: str) -> None:
    folder, heard = tmp_path / "a.private", list[Event]()
    with opened_store(folder, small, heard.append) as store:
        store.put(actual("Maria"))
    break_it(folder)
    with opened_store(folder, small, heard.append) as store:
        assert store.get(Record("1", "Maria")) is None
        store.put(actual("Tom"))
    assert reasons(heard) == [f"{folder} {why}"]
    with opened_store(folder, small, heard.append) as store:
        assert store.get(Record("1", "Tom")) == actual("Tom")
    assert len(heard) == 1


def test_a_folder_that_cannot_be_used_is_done_without(small: Any, tmp_path: Path) -> None:
    folder, heard = tmp_path / "a.private", list[Event]()
    folder.write_text("a file")
    with opened_store(folder, small, heard.append) as store:
        store.put(actual("Maria"))
        assert store.get(Record("1", "Maria")) is None
    assert [reason.endswith("so the rest is read without it and not kept") for reason in reasons(heard)] == [True]


def test_trouble_in_the_middle_is_reported_once(small: Any, tmp_path: Path) -> None:
    folder, heard = tmp_path / "a.private", list[Event]()
    store = SpanStore(folder, small, heard.append)
    (folder / SPANS.database).write_bytes(b"nothing" * 3_000)
    for number in range(600):
        store.put(actual(f"{number}"))
        assert store.get(Record("1", f"{number}")) in (None, actual(f"{number}"))
    store.close()
    assert len(heard) == 1
