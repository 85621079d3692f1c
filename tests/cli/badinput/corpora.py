"""Damaged corpora, and places where nothing can be written."""

import gzip

from tests.cli.badinput.case import SECRET, Case, Make, both, line, link, write

LINES = f"{SECRET} is one.\n{SECRET} is two.\n"

PACKED = gzip.compress(LINES.encode() * 50, mtime=0)


def detected(name: str, *options: str) -> tuple[str, ...]:
    """Detect in a file, and keep nothing."""
    return ("detect", name, "--no-store", *options)


def redacted(name: str, out: str, *options: str) -> tuple[str, ...]:
    """Redact a file, and keep nothing."""
    return ("redact", name, "-o", out, "--no-store", *options)


def parquet(**columns: list[object]) -> Make:
    """A Parquet file of these columns."""

    def make(place: object) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(columns), f"{place}/c.parquet")

    return make


NO_JSON = "c.jsonl: line 1 is not valid JSON. Each line must be one JSON object."

CASES = (
    Case(
        name="gzip cut short",
        make=write("c.txt.gz", PACKED[:-20]),
        command=detected("c.txt.gz", "-q"),
        said="c.txt.gz: the compressed data is damaged or cut short after line 39. Compress or copy the file again.",
    ),
    Case(
        name="gzip with a bit flipped",
        make=write("c.txt.gz", PACKED[:30] + bytes([PACKED[30] ^ 0x80]) + PACKED[31:]),
        command=redacted("c.txt.gz", "o.txt"),
        said="c.txt.gz: the compressed data is damaged or cut short after line 0. Compress or copy the file again.",
    ),
    Case(
        name="gzip in name alone",
        make=write("c.txt.gz", LINES),
        command=detected("c.txt.gz"),
        said="c.txt.gz: the compressed data is damaged or cut short after line 0. Compress or copy the file again.",
    ),
    Case(
        name="gzip without its suffix",
        make=write("c.txt", PACKED),
        command=detected("c.txt"),
        said="c.txt: line 1 is not UTF-8. Decompress the file, or give it its .gz or .zst suffix.",
    ),
    Case(
        name="zstd in name alone",
        make=write("c.txt.zst", LINES),
        command=redacted("c.txt.zst", "o.txt"),
        said="c.txt.zst: the compressed data is damaged or cut short after line 0. Compress or copy the file again.",
    ),
    Case(
        name="zstd cut short",
        make=write("c.txt.zst", b"\x28\xb5\x2f\xfd\x04\x00"),
        command=line("harden model --data c.txt.zst -o out --no-store"),
        said="c.txt.zst: the compressed data is damaged or cut short after line 0. Compress or copy the file again.",
    ),
    Case(
        name="UTF-16",
        make=write("c.txt", LINES.encode("utf-16")),
        command=detected("c.txt"),
        said="c.txt: line 1 is not UTF-8. Convert the file, for example with: iconv -f latin1 -t utf-8.",
    ),
    Case(
        name="half a character in three bytes",
        make=write("c.txt", b"one\n\xed\xa0\x80\n"),
        command=line("plant-canary c.txt -o out --manifest m.json --tokenizer model"),
        said="c.txt: line 2 is not UTF-8. Convert the file, for example with: iconv -f latin1 -t utf-8.",
    ),
    Case(
        name="Latin-1",
        make=write("c.txt", f"{SECRET} ".encode() + b"\xe4rger\n"),
        command=redacted("c.txt", "o.txt"),
        said="c.txt: line 1 is not UTF-8. Convert the file, for example with: iconv -f latin1 -t utf-8.",
    ),
    Case(
        name="NUL bytes alone",
        make=write("c.txt", b"\0" * 100),
        command=line("harden model --data c.txt -o out --no-store"),
        said="c.txt holds a single record. Give a corpus, or choose a smaller --unit.",
    ),
    Case(
        name="NUL in JSON Lines",
        make=write("c.jsonl", b'{"text": "a\0b"}\n'),
        command=detected("c.jsonl"),
        said=NO_JSON,
    ),
    Case(
        name="JSON Lines of strings",
        make=write("c.jsonl", f'"{SECRET}"\n'),
        command=detected("c.jsonl"),
        said="c.jsonl: line 1 is not a JSON object. Each line must be one JSON object.",
    ),
    Case(
        name="JSON Lines without the field",
        make=write("c.jsonl", f'{{"body": "{SECRET}"}}\n'),
        command=detected("c.jsonl"),
        said="c.jsonl: line 1 has no field text. Name the field that holds the text with --text-field.",
    ),
    Case(
        name="JSON Lines whose text is a number",
        make=write("c.jsonl", '{"text": 7}\n'),
        command=redacted("c.jsonl", "o.jsonl"),
        said="c.jsonl: line 1: the field text is neither a string nor a list of messages. Name the field that holds "
        "the text with --text-field.",
    ),
    Case(
        name="JSON Lines nested 100,000 deep",
        make=write("c.jsonl", "[" * 100_000 + "\n"),
        command=detected("c.jsonl"),
        said=NO_JSON,
    ),
    Case(
        name="JSON Lines with a number of 10,000 digits",
        make=write("c.jsonl", '{"text": "a", "n": ' + "9" * 10_000 + "}\n"),
        command=detected("c.jsonl"),
        said=NO_JSON,
    ),
    Case(
        name="JSON Lines with NaN for a text",
        make=write("c.jsonl", '{"text": NaN}\n'),
        command=detected("c.jsonl"),
        said="c.jsonl: line 1: the field text is neither a string nor a list of messages. Name the field that holds "
        "the text with --text-field.",
    ),
    Case(
        name="JSON Lines with a list for an id",
        make=write("c.jsonl", '{"text": "a", "id": []}\n'),
        command=detected("c.jsonl", "--id-field", "id"),
        said="c.jsonl: line 1: the field id is neither a string nor a whole number. Use another field.",
    ),
    Case(
        name="JSON Lines without the unit",
        make=write("c.jsonl", '{"text": "a"}\n'),
        command=detected("c.jsonl", "--unit", "user"),
        said="c.jsonl: line 1 has no field user. Every object needs it; check the field's name.",
    ),
    Case(
        name="a field for the unit of plain text",
        command=detected("corpus.txt", "--unit", "user"),
        said="--unit user names a field, and corpus.txt is plain text. Use --unit line, paragraph or document, or "
        "a corpus with fields (.jsonl, .csv, .parquet).",
    ),
    Case(
        name="CSV of nothing",
        make=write("c.csv", ""),
        command=detected("c.csv"),
        said="c.csv holds no records: no text in the field text. Check that it is the right file.",
    ),
    Case(
        name="CSV of a header",
        make=write("c.csv", "id,text\n"),
        command=detected("c.csv"),
        said="c.csv holds no records: no text in the field text. Check that it is the right file.",
    ),
    Case(
        name="CSV with a column twice",
        make=write("c.csv", f"text,text\na,{SECRET}\n"),
        command=redacted("c.csv", "o.csv"),
        said="c.csv has the column text more than once. Keep one of them.",
    ),
    Case(
        name="CSV with a quote that stays open",
        make=write("c.csv", f'text\n"{SECRET}\n' + "a\n" * 50),
        command=detected("c.csv"),
        said="c.csv: a quote in the row that begins on line 2 is never closed. Close it, or write a quote inside "
        'a quoted field as "".',
    ),
    Case(
        name="TSV with a field too many",
        make=write("c.tsv", f"text\tid\n{SECRET}\t1\t2\n"),
        command=redacted("c.tsv", "o.tsv"),
        said="c.tsv: line 2: the row has 3 fields, the header 2. Put fields that hold a tab or line feed in quotes.",
    ),
    Case(
        name="Parquet cut short",
        make=both(
            parquet(text=["a"]),
            lambda place: (place / "c.parquet").write_bytes((place / "c.parquet").read_bytes()[:-9]),
        ),
        command=detected("c.parquet"),
        said="c.parquet is not Parquet, or damaged. Write or copy the file again; encrypted files are not read.",
    ),
    Case(
        name="Parquet without the column",
        make=parquet(body=[SECRET]),
        command=redacted("c.parquet", "o.parquet"),
        said="c.parquet has no column text; it has body. Name the column with --text-field, --id-field or --unit.",
    ),
    Case(
        name="Parquet whose text is numbers",
        make=parquet(text=[7, 8]),
        command=detected("c.parquet"),
        said="c.parquet: the column text holds neither strings nor lists of messages. Name the column that holds the "
        "text with --text-field.",
    ),
    Case(
        name="Parquet with a text missing",
        make=parquet(text=["a", None]),
        command=redacted("c.parquet", "o.parquet"),
        said="c.parquet: row 2 has no value in the column text. Fill it in, or leave the row out.",
    ),
    Case(name="corpus a folder", command=detected("model"), said="model is a folder. Name one corpus file in it."),
    Case(
        name="corpus a link to itself",
        make=link("loop.txt", "loop.txt"),
        command=detected("loop.txt"),
        said="loop.txt does not exist. Check the path.",
    ),
    Case(
        name="corpus a link to nothing",
        make=link("gone.txt", "nowhere.txt"),
        command=line("harden model --data gone.txt -o out"),
        said="gone.txt does not exist. Check the path.",
    ),
    Case(
        name="corpus with a name of 5,000 letters",
        command=detected("c" * 5000),
        said="cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
        "… cannot be used (File name too long). Check the path and its permissions.",
    ),
    Case(
        name="corpus with a terminal's commands in its name",
        command=detected("a\n\x1b]0;b\x07.txt"),
        said="a\\n\\x1b]0;b\\x07.txt does not exist. Check the path.",
    ),
    Case(
        name="corpus without end",
        command=line("harden model --data /dev/zero -o out"),
        said="/dev/zero is no ordinary file. Give a file: it is read more than once.",
    ),
    Case(
        name="output a device",
        command=redacted("corpus.txt", "/dev/full", "--force"),
        said="/dev/full is not a regular file, so it is not replaced. Name the file to write.",
    ),
    Case(
        name="output a folder",
        command=redacted("corpus.txt", "model", "--force"),
        said="model is a folder. Name the file to write.",
    ),
    Case(
        name="output a link to itself",
        make=link("loop.txt", "loop.txt"),
        command=redacted("corpus.txt", "loop.txt"),
        said="loop.txt exists. Use --force to replace it, or choose another name.",
    ),
    Case(
        name="output that exists",
        make=write("o.txt", "kept\n"),
        command=redacted("corpus.txt", "o.txt"),
        said="o.txt exists. Use --force to replace it, or choose another name.",
    ),
)
