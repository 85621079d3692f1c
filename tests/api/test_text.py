"""`detect` and `redact` of the API: what the commands write and print, for paths and for records in memory."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.api import InputError, UsageError, detect, events, redact
from atdp_cli.api.inputs import corpus_file, scratch
from atdp_cli.text.corpus.records import select_records
from atdp_cli.text.corpus.segments import Selection
from tests.cli.conftest import Atdp

TEXTS = [
    "Emma Clarke wrote\nfrom Berlin.\r\n",
    "",
    'Say "+44 20 7946 0958" \\ twice.',
    "Nothing\u2028here\x00at all.",
    " ",
]


@dataclass
class Table:
    """A data set: what of `datasets.Dataset` the API uses."""

    rows: Sequence[dict[str, Any]]

    @property
    def column_names(self) -> list[str]:
        return list(self.rows[0])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)


def json_lines(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.ci
def test_spans_and_summary_are_those_of_the_command(lines: list[str], corpus: Path, atdp: Atdp, tmp_path: Path) -> None:
    spans = tmp_path / "spans.jsonl"
    reported = atdp("detect", corpus, "--json", "-o", spans, "--tier", "high-entity", "--no-store")
    actual = detect(lines, tier="high-entity")
    assert actual.summary.model_dump(mode="json") == reported.json
    assert [each.model_dump(mode="json") for each in actual.spans] == [
        json.loads(line) for line in spans.read_text().splitlines()
    ]
    assert actual.summary.by_label["PERSON"] > 50
    of_path = tmp_path / "again.jsonl"
    assert detect(corpus, output=of_path, tier="high-entity", no_store=True) == actual.summary
    assert of_path.read_bytes() == spans.read_bytes()
    assert detect(corpus, tier="high-entity", no_store=True) == actual


@pytest.mark.one_in(2)
@pytest.mark.parametrize("options", [{}, {"style": "numbered", "exclude": "GPE"}])
def test_texts_are_those_of_the_command(
    options: dict[str, Any], corpus: Path, lines: list[str], atdp: Atdp, tmp_path: Path
) -> None:
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    reported = atdp("redact", corpus, "-o", tmp_path / "redacted.txt", "--json", "--no-store", *flags)
    texts, summary = redact(lines, **options)
    assert "\n".join(texts) + "\n" == (tmp_path / "redacted.txt").read_text(encoding="utf-8")
    assert summary.model_dump(mode="json") | {"output": reported.json["output"]} == reported.json
    assert redact(corpus, output=tmp_path / "again.txt", no_store=True, **options).model_dump(mode="json") == (
        reported.json | {"output": str(tmp_path / "again.txt")}
    )
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "redacted.txt").read_bytes()


def test_records_with_any_characters_are_those_of_a_json_lines_file(atdp: Atdp, tmp_path: Path) -> None:
    path = json_lines(tmp_path / "texts.jsonl", [{"text": text} for text in TEXTS])
    assert atdp("redact", path, "-o", tmp_path / "redacted.jsonl", "-q", "--no-store").code == 0
    texts, summary = redact(tuple(TEXTS))
    assert list(texts) == [json.loads(line)["text"] for line in (tmp_path / "redacted.jsonl").read_bytes().splitlines()]
    assert texts[0] == "[PERSON] wrote\nfrom [GPE].\r\n"
    assert texts[1] == ""
    assert texts[3] == TEXTS[3]
    assert summary.records == len(TEXTS)


@given(st.lists(st.text(st.characters(codec=None, categories=None)), max_size=5).filter(any))
def test_a_record_is_read_as_it_is(texts: list[str]) -> None:
    with scratch() as place:
        path = corpus_file(place, "corpus", texts, ["body"])
        read = [record.text for record in select_records(path, Selection(text_field="body"))]
    assert read == texts


def test_a_data_set_is_read_by_its_columns(atdp: Atdp, tmp_path: Path) -> None:
    """Records are grouped by a column, have its ids, and a column that no option names may hold anything."""
    rows = [{"body": f"Emma Clarke {n}", "user": f"u{n // 2}", "image": b"\x00", "id": f"r{n}"} for n in range(6)]
    path = json_lines(tmp_path / "rows.jsonl", [{key: row[key] for key in ("body", "user", "id")} for row in rows])
    spans = tmp_path / "spans.jsonl"
    options = ["--text-field", "body", "--unit", "user", "--json", "-o", spans, "--no-store"]
    reported = atdp("detect", path, *options)
    actual = detect(Table(rows), text_field="body", unit="user")
    assert actual.summary.model_dump(mode="json") == reported.json
    assert [each.id for each in actual.spans] == ["u0", "u1", "u2"]
    assert [each.id for each in detect(Table(rows), text_field="body", id_field="id").spans][:2] == ["r0", "r1"]
    assert redact(Table(rows), text_field="body", exclude="NUMBER").texts[1].startswith("[PERSON]")


def test_a_data_set_of_the_library_is_read() -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"text": ["Emma Clarke wrote."], "n": [1]})
    assert redact(made).texts == ("[PERSON] wrote.",)
    assert detect(made).summary.records == 1


def test_conversations_of_a_data_set() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: pip install atdp[trl]")
    said = [
        {"role": "user", "content": "I am Emma Clarke."},
        {"role": "assistant", "content": "Call +44 20 7946 0958."},
    ]
    chats = datasets.Dataset.from_list([{"messages": said}])
    [redacted] = redact(chats, text_field="messages").texts
    assert redacted == [
        {"role": "user", "content": "I am [PERSON]."},
        {"role": "assistant", "content": "Call [PHONE]."},
    ]


def test_progress_comes_by_the_callback_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    heard: list[events.Event] = []
    redact(["Emma Clarke"] * 30, notify=heard.append)
    assert [event.done for event in heard if isinstance(event, events.RecordsRead)][-1] == 30
    assert capfd.readouterr() == ("", "")


def test_what_is_found_in_memory_is_stored_where_asked(tmp_path: Path) -> None:
    store = tmp_path / "kept.private"
    first = detect(["Emma Clarke wrote."], store=store)
    assert store.is_dir()
    assert detect(["Emma Clarke wrote."], store=store) == first


_detect: Any = detect
_redact: Any = redact
"""Without their types, for calls that a type checker finds wrong."""


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (_redact, "output goes with a corpus in a file."),
        (lambda path: _redact(["a"], output=path.with_name("x")), "output goes with a corpus in a file."),
        (lambda path: _redact(path, output="-"), "output is -, and a function has no standard output."),
        (lambda path: _detect(["a"], review=path.with_name("q")), "review names the corpus in its queue"),
        (lambda path: _detect({"text": "a"}), "A dict is no corpus."),
        (lambda path: _detect(["a"], teir="low-entity"), "detect has no keyword 'teir'. Did you mean tier?"),
        (lambda path: _detect(["a"], json=True), "detect has no keyword 'json'."),
        (lambda path: _detect(["a"], min_confidence=2), "min-confidence is 2."),
    ],
)
def test_a_wrong_call_is_a_usage_error(call: Any, problem: str, corpus: Path) -> None:
    with pytest.raises(UsageError) as raised:
        call(corpus)
    assert str(raised.value).startswith(problem)


def test_a_record_that_is_no_string_is_named_by_its_number() -> None:
    with pytest.raises(InputError, match="corpus: record 2 has a value that JSON has not"):
        _redact(["a", b"b"])
    with pytest.raises(InputError, match=r"corpus.jsonl: line 2: the field text is neither a string nor a list"):
        _redact(["a", 3])
    with pytest.raises(InputError, match=r"corpus.jsonl: line 1 has no field body"):
        _detect(Table([{"text": "a"}]), text_field="body")
