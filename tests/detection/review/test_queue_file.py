"""Review queues as files."""

import itertools
import json
import random
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.detect import Detection
from atdp_cli.detection.results import QueueSummary
from atdp_cli.detection.review.queue import (
    Decision,
    Header,
    Queue,
    QueueEntry,
    QueuePosition,
    entry_of,
    masked,
    read_queue,
    save_queue,
    writable,
    write_queue,
)
from atdp_cli.detection.review.sample import Drawn, sentences_of
from atdp_cli.errors import InputError, UsageError
from tests.strategies import flagged_texts

HEADER = Header(corpora=("/corpus.txt",), tier=Tier.HIGH_CONTEXTUAL, review_share=1.0)


def entries(text: str, spans: list[Span], cuts: set[int]) -> list[QueueEntry]:
    inner = sorted(cut for cut in cuts if 0 < cut < len(text))
    ranges = tuple(itertools.pairwise([0, *inner, len(text)])) if text else ()
    detection = Detection(Record("1", text), tuple(sorted(spans)), (), ranges)
    return [entry_of(Drawn(sentence, 1.0)) for sentence in sentences_of([detection], Tier.HIGH_CONTEXTUAL)]


@given(flagged_texts(), st.sets(st.integers(0, 29), max_size=4))
def test_a_line_holds_every_character_outside_spans_and_none_inside(
    case: tuple[str, list[Span]], cuts: set[int]
) -> None:
    text, spans = case
    flagged = {at for span in spans for at in range(span.start, span.end)}
    # A flagged character is written in a script that nothing else of a queue is written in.
    secret = "".join(chr(0x4E00 + at) if at in flagged else character for at, character in enumerate(text))
    secret = "".join(
        character if at in flagged or not 0x4E00 <= ord(character) < 0x4E20 else "x"
        for at, character in enumerate(secret)
    )
    for entry in entries(secret, spans, cuts):
        line = entry.model_dump_json()
        assert not any("\u4e00" <= character < "\u4e20" for character in line)
        shown = [secret[at] for at in range(entry.start, entry.end) if at not in flagged]
        assert "".join(entry.pieces()) == writable("".join(shown))
        assert QueueEntry.model_validate_json(line) == entry
        assert masked(secret, entry.start, entry.end, entry.spans) == entry.masked


def test_what_a_line_looks_like() -> None:
    spans = [Span(0, 4, "PERSON", "ner", Tier.LOW_ENTITY), Span(12, 18, "GPE", "ner", Tier.LOW_ENTITY)]
    [entry] = entries("Emma went to  Berlin.", [spans[0], Span(14, 20, "GPE", "ner", Tier.LOW_ENTITY)], set())
    assert json.loads(entry.model_dump_json()) == {
        "id": "1",
        "record": 0,
        "start": 0,
        "end": 21,
        "stratum": "flagged",
        "stands_for": 1.0,
        "masked": "[1:PERSON] went to  [2:GPE].",
        "spans": [
            {"start": 0, "end": 4, "label": "PERSON", "source": "ner"},
            {"start": 14, "end": 20, "label": "GPE", "source": "ner"},
        ],
        "decision": None,
    }
    # A span over the end of a sentence is masked in both.
    assert [
        queued.masked for queued in entries("Go to Emma St. Clair.", [Span(6, 20, "X", "ner", Tier.LOW_ENTITY)], {14})
    ] == [
        "Go to [1:X]",
        "[1:X].",
    ]


def detections(count: int) -> list[Detection]:
    span = Span(0, 4, "PERSON", "ner", Tier.LOW_ENTITY)
    return [
        Detection(Record(str(at), "Emma is here."), (span,) if at % 2 else (), (), ((0, 13),)) for at in range(count)
    ]


def test_a_queue_is_private_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "queue.jsonl"
    assert write_queue(path, detections(40), HEADER, random.Random(3)) == QueueSummary(
        queue=str(path), flagged=20, unflagged=20
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    queue = read_queue(path)
    assert queue.header == HEADER
    assert [entry.record for entry in queue.entries] == list(range(40))
    decision = Decision(verdict="reviewed", drop=(QueuePosition(start=0, end=4),), mark=("heré",))
    changed = Queue(
        header=queue.header, entries=(queue.entries[0].model_copy(update={"decision": decision}), *queue.entries[1:])
    )
    path.chmod(0o666)
    save_queue(path, changed)
    assert read_queue(path) == changed
    assert stat.S_IMODE(path.stat().st_mode) == 0o666


def test_a_failed_corpus_leaves_no_queue(tmp_path: Path) -> None:
    def broken() -> Iterator[Detection]:
        yield from detections(5)
        raise InputError("line 6 is not UTF-8.", "")

    with pytest.raises(InputError):
        write_queue(tmp_path / "q", broken(), HEADER, random.Random(3))
    with pytest.raises(UsageError):
        write_queue(tmp_path / "q", detections(5), HEADER.model_copy(update={"review_share": 2.0}), random.Random(3))
    assert list(tmp_path.iterdir()) == []


GOOD = json.loads(entries("Emma is here.", [Span(0, 4, "X", "ner", Tier.LOW_ENTITY)], set())[0].model_dump_json())
BAD = [
    {},
    GOOD | {"masked": "Emma is here."},
    GOOD | {"stratum": "unflagged"},
    GOOD | {"stands_for": 0},
    GOOD | {"record": "0"},
    GOOD | {"spans": GOOD["spans"] * 2},
    GOOD | {"spans": [GOOD["spans"][0] | {"start": 20, "end": 24}]},
    GOOD | {"spans": [GOOD["spans"][0] | {"end": 0}]},
    GOOD | {"decision": {"verdict": "perhaps"}},
    GOOD | {"more": 1},
]


@pytest.mark.parametrize("line", [*map(json.dumps, BAD), "Quillfeather", "[" * 5000, ""])
def test_other_lines_are_refused_without_a_quote(tmp_path: Path, line: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(HEADER.model_dump_json() + "\n" + json.dumps(GOOD) + "\n" + line + "\n")
    with pytest.raises(InputError, match="line 3 is not a sentence of a review queue") as caught:
        read_queue(path)
    assert "Quillfeather" not in str(caught.value)
    path.write_text(line + "\n")
    with pytest.raises(InputError, match="line 1 is not the first line of a review queue"):
        read_queue(path)
