"""What goes beside a corpus: stores, lists, spans, keys, review queues."""

import json

from tests.cli.badinput.case import SECRET, Case, Make, both, line, link, write


def detected(name: str, *options: str) -> tuple[str, ...]:
    """Detect in a file, and keep nothing."""
    return ("detect", name, "--no-store", *options)


def redacted(name: str, out: str, *options: str) -> tuple[str, ...]:
    """Redact a file, and keep nothing."""
    return ("redact", name, "-o", out, "--no-store", *options)


def spans(*members: object) -> Make:
    """A spans file for a corpus of one line."""
    return both(
        write("one.txt", f"{SECRET}\n"),
        write("spans.jsonl", json.dumps({"id": "1", "spans": list(members)}) + "\n"),
    )


SPAN = {"start": 0, "end": 3, "label": "PERSON", "source": "ner"}

WITH_SPANS = redacted("one.txt", "out.txt", "--spans", "spans.jsonl")

HEADER = {
    "schema_version": 1,
    "kind": "atdp-review-queue",
    "corpora": ["corpus.txt"],
    "unit": "line",
    "text_field": "text",
    "id_field": None,
    "skip_bad": False,
    "tier": "low-entity",
    "sample": 0.5,
}

ENTRY = {
    "id": "1",
    "record": 0,
    "start": 0,
    "end": 9,
    "stratum": "unflagged",
    "stands_for": 2.0,
    "masked": "It is so.",
    "spans": [],
    "decision": None,
}


def queue(*lines: object, **members: object) -> Make:
    """A review queue."""
    return write("q.jsonl", "".join(json.dumps(entry) + "\n" for entry in (HEADER | members, *lines)))


REVIEW = line("review q.jsonl")

NO_PLACE = (
    "spans.jsonl: line 1, span 1 needs whole numbers with 0 ≤ start < end ≤ 12. Count code points of the "
    "record's text from 0, the end exclusive."
)
NO_HEADER = "q.jsonl: line 1 is not the first line of a review queue. Give the file that detect --review wrote."
NO_SENTENCE = "q.jsonl: line 2 is not a sentence of a review queue. Give the file that detect --review wrote."

CASES = (
    Case(
        name="store without .private",
        command=line("detect corpus.txt --store found"),
        said="--store found does not end in .private. What was found says something about the records and stays "
        "with you; call it found.private.",
    ),
    Case(
        name="list with a broken expression",
        make=write("deny.txt", f"Emma\n/{SECRET}(/\n"),
        command=detected("corpus.txt", "--deny", "deny.txt"),
        said="deny.txt: line 2 is not a valid regular expression (missing ), unterminated subpattern). Correct "
        "it, or drop the slashes to match the line as a literal term.",
    ),
    Case(
        name="list with an expression that looks for ever",
        make=write("deny.txt", "/(\\w|\\w\\w|\\s)+\\d$/\n"),
        command=detected("corpus.txt", "--deny", "deny.txt"),
        said="deny.txt: line 1 takes more than 1 s on 81 characters. Write it without a repeat inside a repeat, "
        "as in (a+)+.",
    ),
    Case(
        name="list with an expression too large",
        make=write("allow.txt", "/a{99999999999}/\n"),
        command=detected("corpus.txt", "--allow", "allow.txt"),
        said="allow.txt: line 1 is not a valid regular expression (too large). Correct it, or drop the slashes to "
        "match the line as a literal term.",
    ),
    Case(
        name="list not UTF-8",
        make=write("allow.txt", b"\xff\n"),
        command=detected("corpus.txt", "--allow", "allow.txt"),
        said="allow.txt: line 1 is not UTF-8. Convert the file, for example with: iconv -f latin1 -t utf-8.",
    ),
    Case(
        name="list a link to itself",
        make=link("deny.txt", "deny.txt"),
        command=detected("corpus.txt", "--deny", "deny.txt"),
        said="deny.txt does not exist. Check the path.",
    ),
    Case(name="spans with NaN", make=spans(SPAN | {"start": float("nan")}), command=WITH_SPANS, said=NO_PLACE),
    Case(name="spans below zero", make=spans(SPAN | {"start": -1}), command=WITH_SPANS, said=NO_PLACE),
    Case(
        name="spans that end before they begin",
        make=spans(SPAN | {"start": 3, "end": 2}),
        command=WITH_SPANS,
        said=NO_PLACE,
    ),
    Case(name="spans beyond the record", make=spans(SPAN | {"end": 10**12}), command=WITH_SPANS, said=NO_PLACE),
    Case(
        name="spans with a label of brackets",
        make=spans(SPAN | {"label": "A] B"}),
        command=WITH_SPANS,
        said="spans.jsonl: line 1, span 1 needs a label of up to 40 ASCII letters, digits, _ or - that begins "
        "with a letter. A label such as PERSON becomes the placeholder.",
    ),
    Case(
        name="spans with half a character",
        make=spans(SPAN | {"source": "\ud800"}),
        command=WITH_SPANS,
        said="spans.jsonl: line 1, span 1 needs a source of up to 40 ASCII letters, digits, _ or - that begins "
        "with a letter. A label such as PERSON becomes the placeholder.",
    ),
    Case(
        name="spans of another record",
        make=both(spans(SPAN), write("spans.jsonl", '{"id": "2", "spans": []}\n')),
        command=WITH_SPANS,
        said="spans.jsonl: line 1 has another id than the record at the same place of the corpus. Use the spans "
        "file of this corpus, in the corpus's order, with the ids as strings.",
    ),
    Case(
        name="spans of a record twice",
        make=both(spans(SPAN), write("spans.jsonl", '{"id": "1", "spans": []}\n' * 2)),
        command=WITH_SPANS,
        said="spans.jsonl: line 2 is one too many: the corpus has fewer records. Use the spans file of this corpus.",
    ),
    Case(
        name="spans of fewer records",
        make=both(spans(SPAN), write("one.txt", f"{SECRET}\nb\n")),
        command=WITH_SPANS,
        said="spans.jsonl ends after line 1, but the corpus has more records. Use the spans file of this corpus, "
        "with one line a record.",
    ),
    Case(
        name="spans that are a pickle",
        make=both(spans(SPAN), write("spans.jsonl", b"\x80\x04cos\nsystem\n.")),
        command=WITH_SPANS,
        said="spans.jsonl: line 1 is not UTF-8. Convert the file, for example with: iconv -f latin1 -t utf-8.",
    ),
    Case(
        name="key of pseudonyms too short",
        make=write("key", "short"),
        command=redacted("corpus.txt", "o.txt", "--style", "pseudonym", "--pseudonym-key", "key"),
        said="key has only 5 bytes; a key for pseudonyms has 32 to 4,096. Name another file; one that does not "
        "exist is created with a random key.",
    ),
    Case(
        name="key of pseudonyms without end",
        command=redacted("corpus.txt", "o.txt", "--style", "pseudonym", "--pseudonym-key", "/dev/zero"),
        said="/dev/zero could not be read (Not a regular file). Check the file and its permissions.",
    ),
    Case(
        name="key of pseudonyms a folder",
        command=redacted("corpus.txt", "o.txt", "--style", "pseudonym", "--pseudonym-key", "model"),
        said="model could not be read (Is a directory). Check the file and its permissions.",
    ),
    Case(
        name="key of a server without end",
        command=detected(
            "corpus.txt",
            "--crosscheck",
            "m",
            "--crosscheck-url",
            "http://127.0.0.1:9/v1",
            "--llm-key-file",
            "/dev/zero",
        ),
        said="/dev/zero could not be read (Not a regular file). Check --llm-key-file.",
    ),
    Case(
        name="key of a server of two words",
        make=write("key", "a\x00b\n"),
        command=detected(
            "corpus.txt", "--crosscheck", "m", "--crosscheck-url", "http://127.0.0.1:9/v1", "--llm-key-file", "key"
        ),
        said="key holds no key. Write the key into its first line, and nothing else.",
    ),
    Case(
        name="server by a file's address",
        command=detected("corpus.txt", "--crosscheck", "m", "--crosscheck-url", "file:///etc/passwd"),
        said="--crosscheck-url is not an http or https URL. Give a URL such as http://127.0.0.1:8000/v1, and the key "
        "in --llm-key-file.",
    ),
    Case(
        name="server that is no address",
        command=detected("corpus.txt", "--crosscheck", "m", "--crosscheck-url", "http://[::1"),
        said="--crosscheck-url is not an http or https URL. Give a URL such as http://127.0.0.1:8000/v1, and the key "
        "in --llm-key-file.",
    ),
    Case(
        name="queue that is a corpus",
        command=line("review corpus.txt"),
        said="corpus.txt: line 1 is not the first line of a review queue. Give the file that detect --review wrote.",
    ),
    Case(name="queue of nothing", make=write("q.jsonl", ""), command=REVIEW, said=NO_HEADER),
    Case(name="queue of another version", make=queue(schema_version=9), command=REVIEW, said=NO_HEADER),
    Case(name="queue of no corpora", make=queue(ENTRY, corpora=[]), command=REVIEW, said=NO_HEADER),
    Case(
        name="queue cut within a line",
        make=both(queue(ENTRY), lambda place: (place / "q.jsonl").write_bytes((place / "q.jsonl").read_bytes()[:-9])),
        command=REVIEW,
        said=NO_SENTENCE,
    ),
    Case(name="queue with an entry below zero", make=queue(ENTRY | {"record": -1}), command=REVIEW, said=NO_SENTENCE),
    Case(
        name="queue that stands for NaN sentences",
        make=queue(ENTRY | {"stands_for": float("nan")}),
        command=REVIEW,
        said=NO_SENTENCE,
    ),
    Case(
        name="queue with spans that cross",
        make=queue(
            ENTRY
            | {
                "spans": [
                    {"start": 2, "end": 5, "label": "A", "source": "b"},
                    {"start": 1, "end": 3, "label": "A", "source": "b"},
                ]
            }
        ),
        command=REVIEW,
        said=NO_SENTENCE,
    ),
    Case(
        name="queue with an entry twice",
        make=queue(ENTRY, ENTRY),
        command=REVIEW,
        said="q.jsonl has a sentence twice. Give the file that detect --review wrote.",
    ),
    Case(
        name="queue whose list is its corpus",
        make=queue(ENTRY),
        command=line("review q.jsonl --allow corpus.txt --data corpus.txt"),
        said="Queue, corpus, --allow and --deny must not share a file. Name another.",
    ),
    Case(name="queue nested 100,000 deep", make=write("q.jsonl", "[" * 100_000 + "\n"), command=REVIEW, said=NO_HEADER),
)
