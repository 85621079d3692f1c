"""Reading in several processes."""

import multiprocessing
import os
from collections.abc import Iterator
from typing import Any

import pytest

from atdp_cli.corpus.record import Record
from atdp_cli.detection import detect
from atdp_cli.detection.detect import detect_records
from atdp_cli.detection.executor import processes
from atdp_cli.detection.identifiers.recogniser import IdentifierMatch
from atdp_cli.detection.scan import BATCH, scan
from atdp_cli.errors import RunError

RECORDS = [Record(str(n), f"Maria {n} met Tom Jones on May {n % 28 + 1}; jo{n}@x.com.") for n in range(3 * BATCH)]


def ends_its_process(text: str) -> Iterator[IdentifierMatch]:
    os._exit(1)


def test_a_process_that_ends_is_an_error_and_no_hang(pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atdp_cli.detection.spacy.RECOGNISERS", [ends_its_process])
    with pytest.raises(RunError, match=r"ended before its work was done\. It may have run out of memory"):
        list(detect_records(RECORDS, pipeline=pipeline, engine=processes(2)))


@pytest.mark.ci
def test_processes_that_start_afresh_give_the_same(pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = list(detect_records(RECORDS[:4], pipeline=pipeline))
    monkeypatch.setattr(multiprocessing.context._default_context, "_actual_context", None)
    multiprocessing.set_start_method("spawn")
    assert list(detect_records(RECORDS[:4], pipeline=pipeline, engine=processes(2))) == alone


def test_processes_end_with_the_reading(pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where something still refers to the generator within."""
    scans = []

    def kept(*records: Any, **settings: Any) -> Iterator[Any]:
        scans.append(scan(*records, **settings))
        return scans[-1]

    monkeypatch.setattr(detect, "scan", kept)
    before = set(multiprocessing.active_children())
    reading = detect_records(RECORDS, pipeline=pipeline, engine=processes(2))
    next(reading)
    assert len(set(multiprocessing.active_children()) - before) == 2
    reading.close()  # type: ignore[attr-defined]
    assert set(multiprocessing.active_children()) == before
