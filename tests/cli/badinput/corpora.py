"""Damaged corpora, and places where nothing can be written."""

import gzip

from tests.cli.badinput.case import SECRET, Case, Make, both, cases, line, link, write

LINES = f"{SECRET} is one.\n{SECRET} is two.\n"

PACKED = gzip.compress(LINES.encode() * 50, mtime=0)


def detected(name: str, *options: str) -> tuple[str, ...]:
    """Detect in a file, and keep nothing."""
    return ("detect", name, "--store", "none", *options)


def redacted(name: str, out: str, *options: str) -> tuple[str, ...]:
    """Redact a file, and keep nothing."""
    return ("redact", name, "-o", out, "--store", "none", *options)


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
    *cases(
        detected("c.txt"),
        {
            "gzip without its suffix": ("c.txt: line 1 is not UTF-8", write("c.txt", PACKED)),
            "UTF-16": ("c.txt: line 1 is not UTF-8", write("c.txt", LINES.encode("utf-16"))),
        },
    ),
    Case(
        "zstd in name alone",
        redacted("c.txt.zst", "o.txt"),
        "c.txt.zst: the compressed data is damaged or cut short",
        write("c.txt.zst", LINES),
    ),
    Case(
        "zstd cut short",
        line("harden model --data c.txt.zst -o out --store none"),
        "c.txt.zst: the compressed data is damaged or cut short",
        write("c.txt.zst", b"\x28\xb5\x2f\xfd\x04\x00"),
    ),
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
        line("harden model --data c.txt -o out --store none"),
        "c.txt holds a single record",
        write("c.txt", b"\0" * 100),
    ),
    *cases(
        detected("c.jsonl"),
        {
            "NUL in JSON Lines": (NO_JSON, write("c.jsonl", b'{"text": "a\0b"}\n')),
            "JSON Lines of strings": ("c.jsonl: line 1 is not a JSON object", write("c.jsonl", f'"{SECRET}"\n')),
            "JSON Lines without the field": (
                "c.jsonl: line 1 has no field text",
                write("c.jsonl", f'{{"body": "{SECRET}"}}\n'),
            ),
            "JSON Lines nested 100,000 deep": (NO_JSON, write("c.jsonl", "[" * 100_000 + "\n")),
            "JSON Lines with a number of 10,000 digits": (
                NO_JSON,
                write("c.jsonl", '{"text": "a", "n": ' + "9" * 10_000 + "}\n"),
            ),
            "JSON Lines with NaN for a text": (
                "c.jsonl: line 1: the field text is neither a string nor",
                write("c.jsonl", '{"text": NaN}\n'),
            ),
        },
    ),
    Case(
        "JSON Lines whose text is a number",
        redacted("c.jsonl", "o.jsonl"),
        "c.jsonl: line 1: the field text is neither a string nor",
        write("c.jsonl", '{"text": 7}\n'),
    ),
    Case(
        "JSON Lines with a list for an id",
        detected("c.jsonl", "--set", "run.id-field=id"),
        "c.jsonl: line 1: the field id is neither a string nor a",
        write("c.jsonl", '{"text": "a", "id": []}\n'),
    ),
    Case(
        "JSON Lines without the unit",
        detected("c.jsonl", "--privacy-unit", "user"),
        "c.jsonl: line 1 has no field user",
        write("c.jsonl", '{"text": "a"}\n'),
    ),
    Case(
        "a field for the unit of plain text",
        detected("corpus.txt", "--privacy-unit", "user"),
        "--privacy-unit user names a field, and corpus.txt is plain text",
    ),
    *cases(
        detected("c.csv"),
        {
            "CSV of nothing": ("c.csv holds no records: no text in the field text", write("c.csv", "")),
            "CSV of a header": ("c.csv holds no records: no text in the field text", write("c.csv", "id,text\n")),
            "CSV with a quote that stays open": (
                "c.csv: a quote in the row that begins on line 2 is",
                write("c.csv", f'text\n"{SECRET}\n' + "a\n" * 50),
            ),
        },
    ),
    Case(
        "CSV with a column twice",
        redacted("c.csv", "o.csv"),
        "c.csv has the column text more than once",
        write("c.csv", f"text,text\na,{SECRET}\n"),
    ),
    Case(
        "TSV with a field too many",
        redacted("c.tsv", "o.tsv"),
        "c.tsv: line 2: the row has 3 fields, the header 2",
        write("c.tsv", f"text\tid\n{SECRET}\t1\t2\n"),
    ),
    *cases(
        detected("c.parquet"),
        {
            "Parquet cut short": (
                "c.parquet is not Parquet, or damaged",
                both(
                    parquet(text=["a"]),
                    lambda place: (place / "c.parquet").write_bytes((place / "c.parquet").read_bytes()[:-9]),
                ),
            ),
            "Parquet whose text is numbers": (
                "c.parquet: the column text holds neither strings nor",
                parquet(text=[7, 8]),
            ),
        },
    ),
    *cases(
        redacted("c.parquet", "o.parquet"),
        {
            "Parquet without the column": ("c.parquet has no column text; it has body", parquet(body=[SECRET])),
            "Parquet with a text missing": (
                "c.parquet: row 2 has no value in the column text",
                parquet(text=["a", None]),
            ),
        },
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
