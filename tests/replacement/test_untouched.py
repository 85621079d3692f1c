"""What is not flagged stays: no character outside a span changes, in any format, by redaction or by decoys."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli import DecoyRequest, RedactRequest, decoy, redact
from atdp_cli.corpus.record import read_records
from tests.strategies import sensitive_characters, spans_within

Rows = Sequence[tuple[str, str]]
"""Who wrote each row, and its text."""


def write_csv(path: Path, rows: Rows) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        csv.writer(stream, delimiter=delimiter).writerows([("n", "text", "user"), *((7, t, u) for u, t in rows)])


def read_csv(path: Path) -> tuple[list[str], Any]:
    content = io.StringIO(path.read_bytes().decode(), newline="")
    rows = list(csv.reader(content, delimiter="\t" if path.suffix == ".tsv" else ","))
    return [row[1] for row in rows[1:]], [(row[0], row[2]) for row in rows]


def write_json(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps({"n": 1.0, "text": t, "user": u}) + "\r\n" for u, t in rows), "utf-8")


def read_json(path: Path) -> tuple[list[str], Any]:
    objects = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [each.pop("text") for each in objects], objects


def write_chats(path: Path, rows: Rows) -> None:
    """One conversation, a message a row; every other content is a list of two parts."""
    texts = [text for _, text in rows]
    said = [t if at % 2 else [{"type": "text", "text": part} for part in (t, t[::-1])] for at, t in enumerate(texts)]
    messages = [{"role": user, "content": content} for (user, _), content in zip(rows, said, strict=True)]
    path.write_text(json.dumps({"text": messages, "id": 5}) + "\n", "utf-8")


def read_chats(path: Path) -> tuple[list[str], Any]:
    chat = json.loads(path.read_text("utf-8"))
    contents = [message.pop("content") for message in chat["text"]]
    parts = [[part.pop("text") for part in each] if isinstance(each, list) else [each] for each in contents]
    return [text for each in parts for text in each], (chat, [each for each in contents if isinstance(each, list)])


def talks(rows: Rows) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A conversation of two messages for each row."""
    for user, text in rows:
        yield user, [{"role": "user", "content": text}, {"role": "assistant", "content": text[::-1]}]


def write_user_chats(path: Path, rows: Rows) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.table(dict(zip(("user", "text"), zip(*talks(rows), strict=True), strict=True))), path)
        return
    lines = (json.dumps({"user": user, "text": messages, "n": 1.0}) + "\r\n" for user, messages in talks(rows))
    path.write_text("".join(lines), "utf-8")


def read_user_chats(path: Path) -> tuple[list[str], Any]:
    objects: list[Any] = (
        pq.read_table(path).to_pylist()
        if path.suffix == ".parquet"
        else [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    )
    return [message.pop("content") for each in objects for message in each["text"]], objects


def write_parquet(path: Path, rows: Rows) -> None:
    pq.write_table(pa.table({"user": [user for user, _ in rows], "text": [text for _, text in rows]}), path)


def read_parquet(path: Path) -> tuple[list[str], Any]:
    table = pq.read_table(path)
    return table["text"].to_pylist(), table["user"].to_pylist()


def write_lines(path: Path, rows: Rows) -> None:
    path.write_text("\r\n\n".join(text for _, text in rows), "utf-8", newline="")


def write_paragraphs(path: Path, rows: Rows) -> None:
    path.write_text("".join(f"{user}-{text}\r\n{text}\n\n" for user, text in rows), "utf-8", newline="")


def read_text(path: Path) -> tuple[list[str], Any]:
    paragraphs = re.split(r"\r?\n\n", path.read_bytes().decode().removesuffix("\n\n"))
    return [each.replace("\r\n", "\n") for each in paragraphs], len(paragraphs)


@dataclass(frozen=True)
class Format:
    """How rows are written, and the texts that stand apart in a file are read back with all that is beside them."""

    name: str
    unit: str
    write: Callable[[Path, Rows], None]
    read: Callable[[Path], tuple[list[str], Any]]


FORMATS = [
    Format("lines.txt", "line", write_lines, read_text),
    Format("paragraphs.txt", "paragraph", write_paragraphs, read_text),
    *(Format("objects.jsonl", unit, write_json, read_json) for unit in ("line", "user")),
    *(Format("rows.csv", unit, write_csv, read_csv) for unit in ("line", "user")),
    Format("rows.tsv", "user", write_csv, read_csv),
    *(Format("rows.parquet", unit, write_parquet, read_parquet) for unit in ("line", "user")),
    Format("chats.jsonl", "line", write_chats, read_chats),
    *(Format("chats.jsonl", unit, write_user_chats, read_user_chats) for unit in ("line", "user")),
    Format("chats.parquet", "user", write_user_chats, read_user_chats),
]


@st.composite
def corpora(draw: st.DrawFn, *, plain: bool) -> Rows:
    texts = st.text(st.sampled_from("aB7é-\"',." + (" " if plain else " \t\r\n")), min_size=1, max_size=12)
    return draw(st.lists(st.tuples(st.sampled_from("uv"), texts.filter(str.strip)), min_size=2, max_size=5))


def records_of(kind: Format, rows: Rows, cells: int) -> list[list[int]]:
    """The texts of each record, by their places in the file."""
    if kind.write is write_chats:
        return [list(range(cells))]
    of_row = cells // len(rows)
    if kind.unit != "user":
        return [list(range(at, at + of_row)) for at in range(0, cells, of_row)]
    users = [user for user, _ in rows for _ in range(of_row)]
    return [[place for place in range(cells) if users[place] == user] for user in dict.fromkeys(users)]


def flag(spans: Path, ids: Sequence[str], texts: Sequence[str], data: st.DataObject) -> Iterator[bytearray]:
    """Draw spans for each record and write them; 1 for each of its characters that one covers."""
    with spans.open("w", encoding="utf-8") as stream:
        for id_, text in zip(ids, texts, strict=True):
            drawn = data.draw(spans_within(len(text), most=3))
            members = [{"start": s.start, "end": s.end, "label": "PERSON" if s.start % 2 else "DATE"} for s in drawn]
            stream.write(json.dumps({"id": id_, "spans": members}) + "\n")
            yield sensitive_characters(drawn, len(text))


def left_of(text: str, covered: bytes) -> re.Pattern[str]:
    """What a text may be after its covered stretches have given way: each that was not blank to something."""
    pieces = []
    for stretch in re.finditer(rb"\x00+|\x01+", covered):
        here = text[slice(*stretch.span())]
        pieces.append(re.escape(here) if not covered[stretch.start()] else r".*" if here.isspace() else r".*\S.*")
    return re.compile("".join(pieces), re.DOTALL)


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: f"{kind.name} by {kind.unit}")
@given(data=st.data())
@settings(max_examples=12)
def test_no_character_outside_a_span_changes(
    tmp_path_factory: pytest.TempPathFactory, kind: Format, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    corpus, spans, redacted = folder / kind.name, folder / "spans.jsonl", folder / f"redacted.{kind.name}"
    rows = data.draw(corpora(plain=kind.name.endswith("txt")))
    kind.write(corpus, rows)
    texts, beside = kind.read(corpus)
    places = records_of(kind, rows, len(texts))
    joined = ["\n".join(texts[place] for place in record) for record in places]
    read = list(read_records(corpus, unit=kind.unit))
    assert [record.text for record in read] == joined
    expected: dict[int, re.Pattern[str]] = {}
    for record, mask in zip(places, flag(spans, [record.id for record in read], joined, data), strict=True):
        for place in record:
            expected[place] = left_of(texts[place], bytes(mask[: len(texts[place])]))
            del mask[: len(texts[place]) + 1]
    redact(RedactRequest(corpus=corpus, output=redacted, spans=spans, privacy_unit=kind.unit))
    asked = DecoyRequest(corpus=corpus, output=folder / "out", spans=spans, privacy_unit=kind.unit, recipe="decoys")
    for changed in (redacted, *map(Path, decoy(asked).copies)):
        after, beside_after = kind.read(changed)
        assert beside_after == beside
        assert len(after) == len(texts)
        assert [after[place] for place, left in expected.items() if not left.fullmatch(after[place])] == []
