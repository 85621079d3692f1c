"""The warning that one person has several records: where it comes, what it names, and which corpora have none."""

import csv
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from atdp_cli.corpus.people import several_records
from atdp_cli.corpus.record import read_records
from tests.chats import small_conversations
from tests.small import WORDS, small_lines

DICE = random.Random(8)
SAID = [" ".join(DICE.choices(WORDS, k=6)) for _ in range(120)]


def labelled(labels: Sequence[str], *, blank: str = "") -> str:
    """Lines whose labels take turns; an empty one ends a talk."""
    talks = (f"{labels[n % len(labels)]}{text}\n{blank}" for n, text in enumerate(SAID))
    return "".join(line + "\n" * (n % 8 == 7) for n, line in enumerate(talks))


def lines(*templates: str) -> str:
    """Lines with words, and with the numbers 0 to 119."""
    return "".join(f"{templates[n % len(templates)].format(n=n, said=said)}\n" for n, said in enumerate(SAID))


def shuffled(text: str) -> str:
    return "".join(random.Random(3).sample(found := text.splitlines(keepends=True), len(found)))


def people(template: str) -> str:
    """A value of each of twenty people in six lines."""
    return "".join(f"{said} {template.format(n=100 + n % 20)}.\n" for n, said in enumerate(SAID))


ABOUT_PEOPLE = {
    "a call": (labelled(("Customer: ", "Agent: ")), "paragraph"),
    "a call whose lines are apart": (labelled(("SYS:", "USR:"), blank="\n"), "FIELD, with"),
    "a chat with times": (labelled(("[12:03] emma: ", "[12:04] Omar H.: ", "[12:04] emma: ")), "paragraph"),
    "a play": (labelled(("MARY: ", "JOHN: ", "MARY: ", "ANN: ")), "paragraph"),
    "a call without its order": (shuffled(labelled(("Customer: ", "Agent: "))), "paragraph"),
    "ends of texts": (labelled(("<|endoftext|>Human: ", "Assistant: ")), "paragraph"),
    "e-mail addresses": (people("p{n}@example.org"), "paragraph"),
    "phone numbers": (people("({n}) 555-0143"), "paragraph"),
    "other phone numbers": (people("+49 30 5550{n}"), "paragraph"),
    "account numbers": (people("(account 48{n}377)"), "paragraph"),
    "accounts in lines that are apart": (people("account 48{n}377").replace("\n", "\n\n"), "FIELD, with"),
}


FIXED = re.compile(
    "In these lines (speakers take turns|e-mail addresses, phone or account numbers come again), so one person may "
    "have several, and ε holds for one line, not for the person: --privacy-unit (paragraph|FIELD, with a field that "
    "names the person,) makes them one."
)


@pytest.mark.parametrize("name", ABOUT_PEOPLE)
def test_plain_text_about_people_is_told(tmp_path: Path, name: str) -> None:
    text, unit = ABOUT_PEOPLE[name]
    (path := tmp_path / "corpus.txt").write_text(text)
    said = warned(path)
    assert said is not None
    assert f"--privacy-unit {unit}" in said
    assert FIXED.fullmatch(said)  # without a word of the corpus


ORDINARY = {
    "prose": (lines("{said}.", "He said: {said}.", "In 1984 {said}, and {n} more."), "line"),
    "the tests' own": ("\n".join(small_lines()), "line"),
    "a log": (lines("INFO: {said}", "ERROR: {said}", "INFO: done {n}"), "line"),
    "another log": (lines("2024-01-05 10:00:{n} WARN: {said}", "2024-01-05 10:00:{n} DEBUG: {said}"), "line"),
    "questions and answers": (lines("Q: {said}?", "A: {said}."), "line"),
    "forms": (lines("Name: {said}", "Born: {n}", "Note: {said}"), "line"),
    "recipes": (lines("- sugar: {n} g", "- salt: {n} g", "Mix {said}", "Bake: {said}"), "line"),
    "links": (lines("see http://example.org/{n}", "{said}"), "line"),
    "dates": (lines("{said} on 20240105", "on 2024-01-05 and 201{n}", "19871212 {said}"), "line"),
    "few hotlines": (lines("{said}, call 0800-555-0143 or help@example.org", "{said} (800) 555-0143"), "line"),
    "each its own": (lines("write to p{n}@example.org, account 482{n}1"), "line"),
    "some again": (lines("write to p{n}@example.org") + lines("{said}, p7@example.org or p8@example.org"), "line"),
    "copies": (lines("write to p{n}@example.org") * 3, "line"),
    "big numbers": (lines("{said} 1,000,00{n} of 1,000,001", "3.141592653589793 {said}"), "line"),
    "calls as paragraphs": (labelled(("Customer: ", "Agent: ")), "paragraph"),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_text_is_not(tmp_path: Path, name: str) -> None:
    text, unit = ORDINARY[name]
    (path := tmp_path / "corpus.txt").write_text(text)
    assert warned(path, unit) is None


def warned(path: Path, unit: str = "line", text_field: str = "text") -> str | None:
    return several_records([path], list(read_records(path, unit=unit, text_field=text_field)), unit, text_field)


def rows(**fields: Sequence[Any]) -> list[dict[str, Any]]:
    """A row for each text, with values of its fields in turn."""
    return [{"text": t, **{name: each[n % len(each)] for name, each in fields.items()}} for n, t in enumerate(SAID)]


USERS = [f"u{n}" for n in range(30)]
BY_FIELD: dict[str, tuple[dict[str, Sequence[Any]], str | None]] = {
    "customers": ({"customer_id": USERS}, "customer_id"),
    "numbers": ({"userId": range(30)}, "userId"),
    "three": ({"patient": USERS[:3]}, "patient"),
    "one with most": ({"author": [*USERS, *["u0"] * 70]}, "author"),
    "conversations": ({"conversation_id": USERS, "lang": ["en"]}, "conversation_id"),
    "a person before a conversation": ({"thread": USERS[:8], "user_email": USERS}, "user_email"),
    "the fewest": ({"member_no": USERS, "account_no": USERS[:8]}, "account_no"),
    "an id": ({"id": USERS}, "id"),
    "ids of their own": ({"id": range(120), "user_id": [f"u{n}" for n in range(120)]}, None),
    "hardly any again": ({"user_id": [*range(115), 1, 2]}, None),
    "roles": ({"speaker": ["customer", "agent", "agent", "customer", "system"]}, None),
    "one account": ({"account": ["a"]}, None),
    "kinds": (
        {"label": USERS, "source": USERS, "category": USERS[:4], "article_id": USERS, "customer_story": USERS},
        None,
    ),
}


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("name", BY_FIELD)
def test_a_field_is_told_by_its_name_and_its_values(tmp_path: Path, name: str, ending: str) -> None:
    fields, expected = BY_FIELD[name]
    path, written = tmp_path / f"corpus{ending}", rows(**fields)
    if ending == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in written))
    elif ending == ".csv":
        with path.open("w", newline="") as stream:
            (writer := csv.DictWriter(stream, written[0])).writeheader()
            writer.writerows(written)
    else:
        pq.write_table(pa.Table.from_pylist(written), path)
    said = warned(path)
    assert expected is None or f"--privacy-unit {expected} makes" in str(said)
    assert (said is None) == (expected is None)
    if expected is not None:
        assert warned(path, unit=expected) is None


def test_no_unit_is_named_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    for spoilt in ({}, {"user": None}, {"user": 1.5}):
        written = [{"text": "a", "user": "b"} | {"who": n} for n in range(5)] + rows(user=USERS)
        path.write_text("".join(json.dumps(row) + "\n" for row in [*written, {"text": "x", **spoilt}]))
        assert warned(path) is None
    pq.write_table(pa.Table.from_pylist(rows(user_id=[0.5, 1.5, 2.5])), path.with_suffix(".parquet"))
    assert warned(path.with_suffix(".parquet")) is None


def test_lines_that_are_skipped_name_no_field(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    good = "".join(json.dumps(row) + "\n" for row in rows(user=USERS))
    path.write_text('\n[1, {"user": 2}]\n{"user"\n7\n' + good)
    records = list(read_records(path, on_error=lambda _: None))
    assert "--privacy-unit user makes" in str(several_records([path], records, "line", "text"))
    path.write_text(good.replace('"user"', '"user 4929 1111"'))
    assert warned(path) is None  # a name with digits may be somebody's


def test_conversations_are_told_as_texts_are(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    for field, expected in (({"user": USERS}, "user"), ({"meta": [{"user": "u"}]}, None)):
        chats = [
            {"messages": chat, **{name: each[n % len(each)] for name, each in field.items()}}
            for n, chat in enumerate(small_conversations(60))
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in chats))
        said = warned(path, text_field="messages")
        assert (said is not None and f"--privacy-unit {expected} makes" in said) == (expected is not None)
