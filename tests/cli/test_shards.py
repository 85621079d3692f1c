"""`--shard`: what the parts write, joined, is what the whole writes."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Atdp

TEXT = "Mail emma.clarke@example.org today.\n\nThe account is 48213377.\nNothing here.\nAsk Tom Jones.\n"


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    path = tmp_path / "mail.txt"
    path.write_text(TEXT)
    return path


def test_spans_and_redacted_parts_join_to_those_of_the_whole(atdp: Atdp, mail: Path, tmp_path: Path) -> None:
    whole, spans = tmp_path / "whole.txt", atdp("detect", mail).out
    assert atdp("redact", mail, "-o", whole).code == 0
    actual, redacted, counts = "", "", 0
    for number in (1, 2, 3):
        part, of = tmp_path / f"{number}.txt", ("--shard", f"{number}/3")
        listed = tmp_path / f"{number}.jsonl"
        counts += atdp("detect", mail, "-o", listed, *of, "--json").json["records"]
        actual += listed.read_text()
        assert atdp("redact", mail, "-o", part, "--spans", listed, *of).code == 0
        redacted += part.read_text()
    assert (actual, redacted, counts) == (spans, whole.read_text(), 4)
    assert [json.loads(line)["id"] for line in actual.splitlines()] == ["1", "3", "4", "5"]


def test_pseudonyms_of_all_parts_are_those_of_the_whole(atdp: Atdp, mail: Path, tmp_path: Path) -> None:
    mail.write_text("Ask Tom Jones.\n" * 4)
    key = ("--style", "pseudonym", "--pseudonym-key", tmp_path / "key")
    for name, of in (("whole", ()), ("1", ("--shard", "1/2")), ("2", ("--shard", "2/2"))):
        assert atdp("redact", mail, "-o", tmp_path / name, *key, *of).code == 0
    assert (tmp_path / "1").read_text() + (tmp_path / "2").read_text() == (tmp_path / "whole").read_text()


def test_a_part_without_records_is_an_empty_file(atdp: Atdp, mail: Path, tmp_path: Path) -> None:
    mail.write_text("Nothing here.\n")
    ended = atdp("redact", mail, "-o", tmp_path / "2.txt", "--shard", "2/2")
    assert (ended.code, (tmp_path / "2.txt").read_bytes()) == (0, b"")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("detect", "{mail}", "--shard", "5/4"), "--shard 5/4 is not a part of a corpus. Give I/N"),
        (("detect", "{mail}", "--shard", "1/2", "--privacy-unit", "document"), "--privacy-unit document makes it one"),
        (("detect", "-", "--shard", "1/2"), "standard input has none"),
        (("detect", "{mail}", "--shard", "1/2", "--review", "{mail}.queue"), "Draw the queue by a run without --shard"),
        (("redact", "{mail}", "-o", "{mail}", "--force", "--shard", "1/2"), "Write the part to another file"),
        (
            ("redact", "{mail}", "-o", "{mail}.out", "--style", "pseudonym", "--shard", "1/2"),
            "Give all parts the same --pseudonym-key",
        ),
    ],
)
def test_what_has_no_parts_is_refused_in_one_line(
    atdp: Atdp, mail: Path, command: tuple[str, ...], message: str
) -> None:
    ended = atdp(*(word.format(mail=mail) for word in command))
    assert ended.code == 2
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1
    assert mail.read_text() == TEXT
    assert [path.name for path in mail.parent.iterdir()] == ["mail.txt"]
