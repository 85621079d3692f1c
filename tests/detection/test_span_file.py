"""Spans files: what is written comes back, and what does not belong is refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.span_file import read_spans, spans_line
from atdp_cli.errors import InputError
from tests.strategies import flagged_texts


def read(folder: Path, lines: list[str], *records: Record) -> list[tuple[Record, tuple[Span, ...]]]:
    path = folder / "spans.jsonl"
    path.write_text("".join(line + "\n" for line in lines), "utf-8")
    return list(read_spans(path, records))


def line(**changes: object) -> str:
    member: dict[str, object] = {"start": 0, "end": 2, "label": "PERSON", "source": "ner"}
    return json.dumps({"id": "1", "spans": [{**member, **changes}]})


def test_the_format() -> None:
    span = Span(0, 5, "PERSON", "ner", Tier.LOW_ENTITY)
    assert spans_line("12", [span]) == (
        '{"id": "12", "spans": [{"start": 0, "end": 5, "label": "PERSON", "source": "ner", "confidence": 0.9}]}'
    )


@given(flagged_texts())
def test_what_is_written_comes_back_at_the_first_tier(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[str, list[Span]]
) -> None:
    text, spans = case
    records = [Record("a", text), Record("é\n", text)]
    result = read(tmp_path_factory.mktemp("spans"), [spans_line(r.id, spans) for r in records], *records)
    expected = tuple(sorted(Span(s.start, s.end, s.label, s.source, Tier.LOW_ENTITY) for s in spans))
    assert result == [(record, expected) for record in records]


def test_other_members_are_ignored_and_the_source_may_be_missing(tmp_path: Path) -> None:
    text = '{"id": "1", "model": 3, "spans": [{"start": 0, "end": 1, "label": "X", "score": 0.5}]}'
    [(_, spans)] = read(tmp_path, [text], Record("1", "ab"))
    assert spans == (Span(0, 1, "X", "file", Tier.LOW_ENTITY),)


BAD = [
    ("{", "line 1 is not valid JSON"),
    ("", "line 1 is not valid JSON"),
    ("[]", "line 1 is not an object with a list of spans"),
    ('{"id": "1"}', "line 1 is not an object with a list of spans"),
    ('{"id": "1", "spans": {}}', "line 1 is not an object with a list of spans"),
    ('{"id": "2", "spans": []}', "line 1 has another id"),
    ('{"id": 1, "spans": []}', "line 1 has another id"),
    ('{"spans": []}', "line 1 has another id"),
    ('{"id": "1", "spans": [3]}', "line 1, span 1 is not an object"),
    (line(start=-1), "line 1, span 1 needs whole numbers with 0 ≤ start < end ≤ 4"),
    (line(start=2), "span 1 needs whole numbers"),
    (line(end=5), "span 1 needs whole numbers"),
    (line(end=1.0), "span 1 needs whole numbers"),
    (line(end="1"), "span 1 needs whole numbers"),
    (line(end=True), "span 1 needs whole numbers"),
    (line(end=None), "span 1 needs whole numbers"),
    (line(label=""), "span 1 needs a label"),
    (line(label="a b"), "span 1 needs a label"),
    (line(label="X\n"), "span 1 needs a label"),
    (line(label="secret]"), "span 1 needs a label"),
    (line(label=3), "span 1 needs a label"),
    (line(label="X" * 41), "span 1 needs a label"),
    (line(source=None), "span 1 needs a source"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_malformed_lines(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, [text], Record("1", "abcd"))
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_second_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 2, span 1 needs"):
        read(tmp_path, [line(), line(start=9)], Record("1", "abcd"), Record("1", "abcd"))


def test_too_few_and_too_many_lines(tmp_path: Path) -> None:
    record = Record("1", "abcd")
    with pytest.raises(InputError, match="ends after line 1, but the corpus has more records"):
        read(tmp_path, [line()], record, record)
    with pytest.raises(InputError, match="line 2 is one too many: the corpus has fewer records"):
        read(tmp_path, [line(), line()], record)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_spans(tmp_path / "no.jsonl", [])
