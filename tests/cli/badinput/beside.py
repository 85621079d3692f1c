"""What goes beside a corpus: stores, lists, spans, keys, review queues."""

import json

from tests.cli.badinput.case import SECRET, Case, Make, both, cases, line, link, write


def detected(name: str, *options: str) -> tuple[str, ...]:
    """Detect in a file, and keep nothing."""
    return ("detect", name, "--set", "run.store=none", *options)


def redacted(name: str, out: str, *options: str) -> tuple[str, ...]:
    """Redact a file, and keep nothing."""
    return ("redact", name, "-o", out, "--set", "run.store=none", *options)


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
    "review_share": 0.5,
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

CHECK = "[crosscheck]\nmodel = 'm'\n"


def settings(name: str, content: str | bytes, said: str) -> Case:
    """A detector file that cannot be used, beside a key of two words."""
    make = both(write("d.toml", content), write("key", "two words\n"))
    return Case(f"detector file {name}", detected("corpus.txt", "--detector", "d.toml"), said, make)


CASES = (
    Case(
        "store without .private",
        line("detect corpus.txt --set run.store=found"),
        "run.store=found does not end in .private",
    ),
    *cases(
        detected("corpus.txt", "--deny", "deny.txt"),
        {"list a link to itself": ("deny.txt does not exist", link("deny.txt", "deny.txt"))},
    ),
    *cases(
        detected("corpus.txt", "--allow", "allow.txt"),
        {
            "list with an expression too large": (
                "allow.txt: line 1 is not a valid regular expression",
                write("allow.txt", "/a{99999999999}/\n"),
            )
        },
    ),
    *cases(
        WITH_SPANS,
        {
            "spans beyond the record": (NO_PLACE, spans(SPAN | {"end": 10**12})),
            "spans with half a character": (
                "spans.jsonl: line 1, span 1 needs a source of up to 40",
                spans(SPAN | {"source": "\ud800"}),
            ),
            "spans of another record": (
                "spans.jsonl: line 1 has another id than the record at",
                both(spans(SPAN), write("spans.jsonl", '{"id": "2", "spans": []}\n')),
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
    settings("not TOML", "ner = ", "d.toml is not TOML: Invalid value (at end of document)"),
    settings("not UTF-8", b'a = "\xff"', "d.toml is not TOML: UnicodeDecodeError"),
    settings("nested deep", "a = " + "[" * 100_000, "d.toml is not TOML: RecursionError"),
    settings("with an unknown key", "nor = 1", "d.toml: the key 'nor' is not known. Did you mean ner?"),
    settings("with a number for a name", "ner = 1", "d.toml: ner: Input should be a valid string"),
    settings("of no confidence", "min_confidence = 2", "d.toml: min_confidence is 2"),
    settings("with text for a table", "crosscheck = 'm'", "d.toml: crosscheck is no table"),
    settings("with nobody to ask", "[crosscheck]", "d.toml: the key 'crosscheck.model' is missing"),
    settings("with an unknown finder", "ner = 'x'", "ner is x, which is not known"),
    settings("with no label", "speaker_labels = ['a:b']", "d.toml: speaker_labels has 'a:b', which is no label"),
    settings("with no pipeline", "spacy_pipeline = 'xx_none'", "no spaCy pipeline xx_none"),
    settings("with a key without end", f"{CHECK} key_file = '/dev/zero'", "could not be read (Not a regular file)"),
    settings("with a key of two words", f"{CHECK} key_file = 'key'", "key holds no key"),
    settings("with a server by a file's address", f"{CHECK} url = 'file:///etc/passwd'", "is not an http or https URL"),
    settings("with a server that is no address", f"{CHECK} url = 'http://[::1'", "is not an http or https URL"),
    *cases(
        REVIEW,
        {
            "queue of nothing": (NO_HEADER, write("q.jsonl", "")),
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
