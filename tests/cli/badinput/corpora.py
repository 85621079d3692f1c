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


NO_JSON = "c.jsonl: line 1 is not valid JSON."

CASES = (
    Case(
        "gzip cut short",
        detected("c.txt.gz", "-q"),
        "c.txt.gz: the compressed data is damaged or cut short",
        write("c.txt.gz", PACKED[:-20]),
    ),
    Case(
        "gzip with a bit flipped",
        redacted("c.txt.gz", "o.txt"),
        "c.txt.gz: the compressed data is damaged or cut short",
        write("c.txt.gz", PACKED[:30] + bytes([PACKED[30] ^ 0x80]) + PACKED[31:]),
    ),
    Case(
        "gzip in name alone",
        detected("c.txt.gz"),
        "c.txt.gz: the compressed data is damaged or cut short",
        write("c.txt.gz", LINES),
    ),
    Case("gzip without its suffix", detected("c.txt"), "c.txt: line 1 is not UTF-8", write("c.txt", PACKED)),
    Case(
        "zstd in name alone",
        redacted("c.txt.zst", "o.txt"),
        "c.txt.zst: the compressed data is damaged or cut short",
        write("c.txt.zst", LINES),
    ),
    Case(
        "zstd cut short",
        line("harden model --data c.txt.zst -o out --no-store"),
        "c.txt.zst: the compressed data is damaged or cut short",
        write("c.txt.zst", b"\x28\xb5\x2f\xfd\x04\x00"),
    ),
    Case("UTF-16", detected("c.txt"), "c.txt: line 1 is not UTF-8", write("c.txt", LINES.encode("utf-16"))),
    Case(
        "half a character in three bytes",
        line("plant-canary c.txt -o out --manifest m.json --tokenizer model"),
        "c.txt: line 2 is not UTF-8",
        write("c.txt", b"one\n\xed\xa0\x80\n"),
    ),
    Case(
        "Latin-1",
        redacted("c.txt", "o.txt"),
        "c.txt: line 1 is not UTF-8",
        write("c.txt", f"{SECRET} ".encode() + b"\xe4rger\n"),
    ),
    Case(
        "NUL bytes alone",
        line("harden model --data c.txt -o out --no-store"),
        "c.txt holds a single record",
        write("c.txt", b"\0" * 100),
    ),
    Case("NUL in JSON Lines", detected("c.jsonl"), NO_JSON, write("c.jsonl", b'{"text": "a\0b"}\n')),
    Case(
        "JSON Lines of strings",
        detected("c.jsonl"),
        "c.jsonl: line 1 is not a JSON object",
        write("c.jsonl", f'"{SECRET}"\n'),
    ),
    Case(
        "JSON Lines without the field",
        detected("c.jsonl"),
        "c.jsonl: line 1 has no field text",
        write("c.jsonl", f'{{"body": "{SECRET}"}}\n'),
    ),
    Case(
        "JSON Lines whose text is a number",
        redacted("c.jsonl", "o.jsonl"),
        "c.jsonl: line 1: the field text is neither a string nor",
        write("c.jsonl", '{"text": 7}\n'),
    ),
    Case("JSON Lines nested 100,000 deep", detected("c.jsonl"), NO_JSON, write("c.jsonl", "[" * 100_000 + "\n")),
    Case(
        "JSON Lines with a number of 10,000 digits",
        detected("c.jsonl"),
        NO_JSON,
        write("c.jsonl", '{"text": "a", "n": ' + "9" * 10_000 + "}\n"),
    ),
    Case(
        "JSON Lines with NaN for a text",
        detected("c.jsonl"),
        "c.jsonl: line 1: the field text is neither a string nor",
        write("c.jsonl", '{"text": NaN}\n'),
    ),
    Case(
        "JSON Lines with a list for an id",
        detected("c.jsonl", "--id-field", "id"),
        "c.jsonl: line 1: the field id is neither a string nor a",
        write("c.jsonl", '{"text": "a", "id": []}\n'),
    ),
    Case(
        "JSON Lines without the unit",
        detected("c.jsonl", "--unit", "user"),
        "c.jsonl: line 1 has no field user",
        write("c.jsonl", '{"text": "a"}\n'),
    ),
    Case(
        "a field for the unit of plain text",
        detected("corpus.txt", "--unit", "user"),
        "--unit user names a field, and corpus.txt is plain text",
    ),
    Case("CSV of nothing", detected("c.csv"), "c.csv holds no records: no text in the field text", write("c.csv", "")),
    Case(
        "CSV of a header",
        detected("c.csv"),
        "c.csv holds no records: no text in the field text",
        write("c.csv", "id,text\n"),
    ),
    Case(
        "CSV with a column twice",
        redacted("c.csv", "o.csv"),
        "c.csv has the column text more than once",
        write("c.csv", f"text,text\na,{SECRET}\n"),
    ),
    Case(
        "CSV with a quote that stays open",
        detected("c.csv"),
        "c.csv: a quote in the row that begins on line 2 is",
        write("c.csv", f'text\n"{SECRET}\n' + "a\n" * 50),
    ),
    Case(
        "TSV with a field too many",
        redacted("c.tsv", "o.tsv"),
        "c.tsv: line 2: the row has 3 fields, the header 2",
        write("c.tsv", f"text\tid\n{SECRET}\t1\t2\n"),
    ),
    Case(
        "Parquet cut short",
        detected("c.parquet"),
        "c.parquet is not Parquet, or damaged",
        both(
            parquet(text=["a"]),
            lambda place: (place / "c.parquet").write_bytes((place / "c.parquet").read_bytes()[:-9]),
        ),
    ),
    Case(
        "Parquet without the column",
        redacted("c.parquet", "o.parquet"),
        "c.parquet has no column text; it has body",
        parquet(body=[SECRET]),
    ),
    Case(
        "Parquet whose text is numbers",
        detected("c.parquet"),
        "c.parquet: the column text holds neither strings nor",
        parquet(text=[7, 8]),
    ),
    Case(
        "Parquet with a text missing",
        redacted("c.parquet", "o.parquet"),
        "c.parquet: row 2 has no value in the column text",
        parquet(text=["a", None]),
    ),
    Case("corpus a folder", detected("model"), "model is a folder"),
    Case("corpus a link to itself", detected("loop.txt"), "loop.txt does not exist", link("loop.txt", "loop.txt")),
    Case(
        "corpus a link to nothing",
        line("harden model --data gone.txt -o out"),
        "gone.txt does not exist",
        link("gone.txt", "nowhere.txt"),
    ),
    Case(
        "corpus with a name of 5,000 letters",
        detected("c" * 5000),
        "cccccccccccccccccccccccccccccccccccccccccccccccccccccccc",
    ),
    Case(
        "corpus with a terminal's commands in its name",
        detected("a\n\x1b]0;b\x07.txt"),
        "a\\n\\x1b]0;b\\x07.txt does not exist",
    ),
    Case("corpus without end", line("harden model --data /dev/zero -o out"), "/dev/zero is no ordinary file"),
    Case(
        "output a device",
        redacted("corpus.txt", "/dev/full", "--force"),
        "/dev/full is not a regular file, so it is not replaced",
    ),
    Case("output a folder", redacted("corpus.txt", "model", "--force"), "model is a folder"),
    Case(
        "output a link to itself", redacted("corpus.txt", "loop.txt"), "loop.txt exists", link("loop.txt", "loop.txt")
    ),
    Case("output that exists", redacted("corpus.txt", "o.txt"), "o.txt exists", write("o.txt", "kept\n")),
)
