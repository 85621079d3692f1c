"""Damaged corpora, and places where nothing can be written."""

import gzip

from tests.cli.badinput.case import SECRET, Case, Make, both, cases, line, link, write

LINES = f"{SECRET} is one.\n{SECRET} is two.\n"

PACKED = gzip.compress(LINES.encode() * 50, mtime=0)


def detected(name: str, *options: str) -> tuple[str, ...]:
    """Detect in a file, and keep nothing."""
    return ("detect", name, "--set", "run.store=none", *options)


def redacted(name: str, out: str, *options: str) -> tuple[str, ...]:
    """Redact a file, and keep nothing."""
    return ("redact", name, "-o", out, "--set", "run.store=none", *options)


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
        "zstd cut short",
        line("harden model --data c.txt.zst -o out --set run.store=none"),
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
        "NUL bytes alone",
        line("harden model --data c.txt -o out --set run.store=none"),
        "c.txt holds a single record",
        write("c.txt", b"\0" * 100),
    ),
    *cases(detected("c.jsonl"), {"JSON Lines nested 100,000 deep": (NO_JSON, write("c.jsonl", "[" * 100_000 + "\n"))}),
    *cases(
        detected("c.csv"),
        {
            "CSV with a quote that stays open": (
                "c.csv: a quote in the row that begins on line 2 is",
                write("c.csv", f'text\n"{SECRET}\n' + "a\n" * 50),
            )
        },
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
            )
        },
    ),
    Case("corpus a folder", detected("model"), "model is a folder"),
    Case("corpus a link to itself", detected("loop.txt"), "loop.txt does not exist", link("loop.txt", "loop.txt")),
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
