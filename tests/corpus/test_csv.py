"""CSV and TSV: what is a row, what stays when it is rewritten, and what is refused."""

import contextlib
import csv
import gzip
import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.edits import Edit
from atdp_cli.corpus.record import Record
from atdp_cli.corpus.rewrite import Edits, rewrite_corpus
from atdp_cli.corpus.segments import Selection
from atdp_cli.errors import InputError, UsageError
from tests.corpus.corpora import nothing, pairs, written


def replaced(new: str) -> Edits:
    """Edits that put `new` in place of every whole text."""

    def edits(records: Iterator[Record]) -> Iterator[list[Edit]]:
        return ([Edit(0, len(record.text), new)] if record.text else [] for record in records)

    return edits


def rewritten(folder: Path, name: str, content: str | bytes, edits: Edits, **options: Any) -> str:
    source = written(folder, f"in.{name}", content)
    rewrite_corpus(source, folder / f"out.{name}", edits, Selection(**options))
    return (folder / f"out.{name}").read_bytes().decode()


CONTENT = '\ufeffid,text,"n"\r\n\r\n7,"a ""b"", c\r\nd",1\r\nx y,plain "quote",\r\n"8", é😀 ,"2"'


@pytest.mark.parametrize("name", ["c.csv", "C.CSV", "c.csv.gz", "c.csv.zst"])
def test_rows_are_records(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, CONTENT)
    texts = ['a "b", c\r\nd', 'plain "quote"', " é😀 "]
    assert pairs(path) == list(zip(["3", "5", "6"], texts, strict=True))
    assert pairs(path, id_field="id") == list(zip(["7", "x y", "8"], texts, strict=True))
    assert pairs(path, text_field="n", id_field="id") == [("7", "1"), ("x y", ""), ("8", "2")]


def test_tabs_separate_the_fields_of_tsv(tmp_path: Path) -> None:
    assert pairs(written(tmp_path, "c.tsv", 'id\ttext\n1\ta, b\n2\t"c\td"\n')) == [("2", "a, b"), ("3", "c\td")]


@pytest.mark.parametrize("name", ["c.csv", "c.tsv", "c.csv.gz"])
@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_the_delimiter_is_the_one_by_which_the_header_has_the_text(tmp_path: Path, name: str, delimiter: str) -> None:
    """Whatever the rows hold most, and whatever the suffix."""
    text = "a; b | c, d\t1,5;;||"
    content = "\ufeff" + delimiter.join(("id", "text", '"n;a|b,c"\r\n1', f'"{text}"', "\r\n"))
    path, target = written(tmp_path, name, content), tmp_path / f"out.{name}"
    assert pairs(path, id_field="id") == [("1", text)]
    rewrite_corpus(path, target, replaced(f"x{delimiter}y"))
    assert pairs(target) == [("2", f"x{delimiter}y")]
    whole = gzip.decompress(target.read_bytes()) if name.endswith(".gz") else target.read_bytes()
    assert whole.decode() == content.replace(text, f"x{delimiter}y")


def test_a_header_of_one_column_and_one_that_two_delimiters_fit(tmp_path: Path) -> None:
    assert pairs(written(tmp_path, "c.csv", "text\na;b|c\td\n")) == [("2", "a;b|c\td")]
    assert pairs(written(tmp_path, "c.csv", "text,a;text\nb,c;d\n")) == [("2", "b")]
    assert pairs(written(tmp_path, "c.csv", "x,y;text\na,b;c,d\n")) == [("2", "c,d")]
    with pytest.raises(InputError, match="no column body among its 3"):
        pairs(written(tmp_path, "c.csv", "id;text;n, m\n1;a;2\n"), text_field="body")
    with pytest.raises(InputError, match=r"3 fields, the header 2. Put fields that hold a semicolon"):
        pairs(written(tmp_path, "c.csv", "id;text\n1;a;b\n"))


def test_rows_that_share_a_column_are_one_record(tmp_path: Path) -> None:
    content = 'user,text\nann,1\n5,2\n"ann",3\nbob,4\n'
    assert pairs(written(tmp_path, "c.csv", content), unit="user") == [("ann", "1\n3"), ("5", "2"), ("bob", "4")]


def test_every_other_character_stays(tmp_path: Path) -> None:
    assert rewritten(tmp_path, "csv", CONTENT, nothing) == CONTENT
    assert rewritten(tmp_path, "csv", CONTENT, replaced("[X]")) == (
        '\ufeffid,text,"n"\r\n\r\n7,"[X]",1\r\nx y,[X],\r\n"8",[X],"2"'
    )


def test_a_new_text_is_quoted_where_it_needs_it(tmp_path: Path) -> None:
    for new, field in [("a,b", '"a,b"'), ('"', '""""'), ("a\nb", '"a\nb"'), ("a\rb", '"a\rb"'), ("", '""'), ("é", "é")]:
        assert rewritten(tmp_path, "csv", "text\nold\n", replaced(new)) == f"text\n{field}\n"
    assert rewritten(tmp_path, "tsv", "n\ttext\n1\told\n", replaced("a,\tb")) == 'n\ttext\n1\t"a,\tb"\n'


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
FIELD = st.one_of(st.text(st.sampled_from('a",\n\r\té '), max_size=8), ANY_TEXT)


@pytest.mark.ci
@given(
    rows=st.lists(st.tuples(FIELD, FIELD, FIELD), min_size=1, max_size=6),
    # Where rows end with a line feed alone, the csv module leaves a carriage return without quotes.
    style=st.sampled_from([(csv.QUOTE_MINIMAL, "\r\n"), (csv.QUOTE_ALL, "\r\n"), (csv.QUOTE_ALL, "\n")]),
    kind=st.sampled_from(["csv", "tsv"]),
    new=FIELD,
)
def test_files_of_the_csv_module_are_read_and_rewritten_as_it_does(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    rows: list[tuple[str, str, str]],
    style: tuple[Any, str],
    kind: str,
    new: str,
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    delimiter = "," if kind == "csv" else "\t"
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, quoting=style[0], lineterminator=style[1])
    writer.writerows([("a", "the text", "b"), *rows])
    content = buffer.getvalue()
    source = written(folder, f"in.{kind}", content)
    assert [text for _, text in pairs(source, text_field="the text")] == [row[1] for row in rows]
    assert rewritten(folder, kind, content, nothing, text_field="the text") == content
    result = io.StringIO(rewritten(folder, kind, content, replaced(new), text_field="the text"), newline="")
    expected = [[a, new if text else "", b] for a, text, b in rows]
    assert list(csv.reader(result, delimiter=delimiter))[1:] == expected


@pytest.mark.parametrize("end", ["\n", "\n\n\n", "\r\n\n", "\n\r\n"])
def test_empty_lines_at_the_end_stay(tmp_path: Path, end: str) -> None:
    assert rewritten(tmp_path, "csv", f"text\na{end}", nothing) == f"text\na{end}"


@given(st.text(st.sampled_from('a",\n\r\0'), max_size=12), st.binary(max_size=3))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str, junk: bytes) -> None:
    source = written(tmp_path_factory.mktemp("corpus"), "in.csv", b"text\n" + text.encode() + junk)
    with contextlib.suppress(InputError):
        rewrite_corpus(source, source.with_name("out.csv"), nothing)
        assert source.with_name("out.csv").read_bytes() == source.read_bytes()


MALFORMED: list[tuple[str | bytes, dict[str, str], str]] = [
    ("id,body\n1,secret\n", {}, r"c.csv has no column text among its 2\. .*--text-field"),
    ("Ann S, secret!\n", {}, r"has no column text among its 2\."),
    ("id,Ann S,text\n", {"id_field": "key"}, r"has no column key among its 3\."),
    ("text,text\na,b\n", {}, r"has the column text more than once"),
    ("text,n\nsecret,1\nsecret\n", {}, r"line 3: the row has 1 fields, the header 2"),
    ('text,n\n"secret\nx",1\nsecret,1,2\n', {}, r"line 4: the row has 3 fields, the header 2"),
    ('text,n\n"secret\n,1\n', {}, r"a quote in the row that begins on line 2 is never closed"),
    ('text,n\na,1\n"secret" x,1\n', {}, r"line 3: text follows a closing quote"),
    ("text\nsec\0ret\n", {}, r"line 2 holds a NUL byte"),
    ("text\ra\rb", {}, r"line 1 holds a carriage return outside quotes"),
    (b'text\na\n"secret\n\xff"\n', {}, r"line 4 is not UTF-8"),
    (b"\xff\n", {}, r"line 1 is not UTF-8"),
    ("text\n\n", {}, r"holds no records: no text in the field text"),
    ("", {}, r"holds no records"),
]


@pytest.mark.parametrize(("content", "options", "message"), MALFORMED)
def test_malformed_files_give_one_line_without_text(
    tmp_path: Path, content: str | bytes, options: dict[str, str], message: str
) -> None:
    path = written(tmp_path, "c.csv", content)
    with pytest.raises(InputError, match=message) as caught:
        pairs(path, **options)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_damaged_compression(tmp_path: Path) -> None:
    path = written(tmp_path, "c.csv.gz", "text\n" + "row\n" * 50_000)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="damaged or cut short"):
        pairs(path)


def test_units_of_plain_text_and_other_formats_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "c.csv", "text\na\n")
    with pytest.raises(UsageError, match=r"is for plain text, and .* is CSV"):
        pairs(path, unit="paragraph")
    with pytest.raises(UsageError, match=r"is CSV but .* would be TSV"):
        rewrite_corpus(path, tmp_path / "c.tsv", nothing)


def test_a_field_may_be_larger_than_the_csv_module_allows(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    text = 'x,"\n' * limit
    content = 'n,text\n1,"' + text.replace('"', '""') + '"\n'
    assert pairs(written(tmp_path, "c.csv", content)) == [("2", text)]
    assert csv.field_size_limit() == limit


@pytest.mark.ci
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak(rows: int) -> int:
        path = written(tmp_path, f"{rows}.csv", "id,text\n" + '1,"some ""text"" of a row"\n' * rows)
        tracemalloc.start()
        rewrite_corpus(path, tmp_path / "out.csv", nothing)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(20_000) < peak(2_000) + 100_000
