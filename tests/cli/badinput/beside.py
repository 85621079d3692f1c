"""What goes beside a corpus: stores, lists, spans, keys, review queues."""

import json

from tests.cli.badinput.case import SECRET, Case, Make, both, cases, line, link, write


def detected(name: str, *options: str) -> tuple[str, ...]:
    """Detect in a file, and keep nothing."""
    return ("detect", name, "--no-store", *options)


def redacted(name: str, out: str, *options: str) -> tuple[str, ...]:
    """Redact a file, and keep nothing."""
    return ("redact", name, "-o", out, "--no-store", *options)


def spans(*members: object) -> Make:
    """A spans file for a corpus of one line."""
    return both(
        write("one.txt", f"{SECRET}\n"), write("spans.jsonl", json.dumps({"id": "1", "spans": list(members)}) + "\n")
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

NO_PLACE = "spans.jsonl: line 1, span 1 needs whole numbers"
NO_HEADER = "q.jsonl: line 1 is not"
NO_SENTENCE = "q.jsonl: line 2 is not"

CASES = (
    Case("store without .private", line("detect corpus.txt --store found"), "--store found does not end in .private"),
    *cases(
        detected("corpus.txt", "--deny", "deny.txt"),
        {
            "list with a broken expression": (
                "deny.txt: line 2 is not a valid regular expression",
                write("deny.txt", f"Emma\n/{SECRET}(/\n"),
            ),
            "list with an expression that looks for ever": (
                "deny.txt: line 1 takes more than 1 s on 81 characters",
                write("deny.txt", "/(\\w|\\w\\w|\\s)+\\d$/\n"),
            ),
            "list a link to itself": ("deny.txt does not exist", link("deny.txt", "deny.txt")),
        },
    ),
    *cases(
        detected("corpus.txt", "--allow", "allow.txt"),
        {
            "list with an expression too large": (
                "allow.txt: line 1 is not a valid regular expression",
                write("allow.txt", "/a{99999999999}/\n"),
            ),
            "list not UTF-8": ("allow.txt: line 1 is not UTF-8", write("allow.txt", b"\xff\n")),
        },
    ),
    *cases(
        WITH_SPANS,
        {
            "spans with NaN": (NO_PLACE, spans(SPAN | {"start": float("nan")})),
            "spans below zero": (NO_PLACE, spans(SPAN | {"start": -1})),
            "spans that end before they begin": (NO_PLACE, spans(SPAN | {"start": 3, "end": 2})),
            "spans beyond the record": (NO_PLACE, spans(SPAN | {"end": 10**12})),
            "spans with a label of brackets": (
                "spans.jsonl: line 1, span 1 needs a label of up to 40",
                spans(SPAN | {"label": "A] B"}),
            ),
            "spans with half a character": (
                "spans.jsonl: line 1, span 1 needs a source of up to 40",
                spans(SPAN | {"source": "\ud800"}),
            ),
            "spans of another record": (
                "spans.jsonl: line 1 has another id than the record at",
                both(spans(SPAN), write("spans.jsonl", '{"id": "2", "spans": []}\n')),
            ),
            "spans of a record twice": (
                "spans.jsonl: line 2 is one too many: the corpus has",
                both(spans(SPAN), write("spans.jsonl", '{"id": "1", "spans": []}\n' * 2)),
            ),
            "spans of fewer records": (
                "spans.jsonl ends after line 1, but the corpus has more",
                both(spans(SPAN), write("one.txt", f"{SECRET}\nb\n")),
            ),
            "spans that are a pickle": (
                "spans.jsonl: line 1 is not UTF-8",
                both(spans(SPAN), write("spans.jsonl", b"\x80\x04cos\nsystem\n.")),
            ),
        },
    ),
    Case(
        "key of pseudonyms too short",
        redacted("corpus.txt", "o.txt", "--style", "pseudonym", "--pseudonym-key", "key"),
        "key has only 5 bytes; a key for pseudonyms has 32 to",
        write("key", "short"),
    ),
    Case(
        "key of pseudonyms without end",
        redacted("corpus.txt", "o.txt", "--style", "pseudonym", "--pseudonym-key", "/dev/zero"),
        "/dev/zero could not be read (Not a regular file)",
    ),
    Case(
        "key of pseudonyms a folder",
        redacted("corpus.txt", "o.txt", "--style", "pseudonym", "--pseudonym-key", "model"),
        "model could not be read (Is a directory)",
    ),
    Case(
        "key of a server without end",
        detected(
            "corpus.txt",
            "--crosscheck",
            "m",
            "--crosscheck-url",
            "http://127.0.0.1:9/v1",
            "--llm-key-file",
            "/dev/zero",
        ),
        "/dev/zero could not be read (Not a regular file)",
    ),
    Case(
        "key of a server of two words",
        detected(
            "corpus.txt", "--crosscheck", "m", "--crosscheck-url", "http://127.0.0.1:9/v1", "--llm-key-file", "key"
        ),
        "key holds no key",
        write("key", "a\x00b\n"),
    ),
    Case(
        "server by a file's address",
        detected("corpus.txt", "--crosscheck", "m", "--crosscheck-url", "file:///etc/passwd"),
        "--crosscheck-url is not an http or https URL",
    ),
    Case(
        "server that is no address",
        detected("corpus.txt", "--crosscheck", "m", "--crosscheck-url", "http://[::1"),
        "--crosscheck-url is not an http or https URL",
    ),
    Case("queue that is a corpus", line("review corpus.txt"), "corpus.txt: line 1 is not the first line of a review"),
    *cases(
        REVIEW,
        {
            "queue of nothing": (NO_HEADER, write("q.jsonl", "")),
            "queue of another version": (NO_HEADER, queue(schema_version=9)),
            "queue of no corpora": (NO_HEADER, queue(ENTRY, corpora=[])),
            "queue cut within a line": (
                NO_SENTENCE,
                both(
                    queue(ENTRY), lambda place: (place / "q.jsonl").write_bytes((place / "q.jsonl").read_bytes()[:-9])
                ),
            ),
            "queue with an entry below zero": (NO_SENTENCE, queue(ENTRY | {"record": -1})),
            "queue that stands for NaN sentences": (NO_SENTENCE, queue(ENTRY | {"stands_for": float("nan")})),
            "queue with spans that cross": (
                NO_SENTENCE,
                queue(
                    ENTRY
                    | {
                        "spans": [
                            {"start": 2, "end": 5, "label": "A", "source": "b"},
                            {"start": 1, "end": 3, "label": "A", "source": "b"},
                        ]
                    }
                ),
            ),
            "queue with an entry twice": ("q.jsonl has a sentence twice", queue(ENTRY, ENTRY)),
            "queue nested 100,000 deep": (NO_HEADER, write("q.jsonl", "[" * 100_000 + "\n")),
        },
    ),
    Case(
        "queue whose list is its corpus",
        line("review q.jsonl --allow corpus.txt --data corpus.txt"),
        "Queue, corpus, --allow and --deny must not share a file",
        queue(ENTRY),
    ),
)
