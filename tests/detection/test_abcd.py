"""Real customer chats: whatever a plain, independent look finds must be flagged at the first tier."""

import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from atdp_cli.corpus.record import read_records
from atdp_cli.corpus.spans import Tier, at_tier
from atdp_cli.detection.detect import Detection, detect_records
from atdp_cli.replacement.edits import redact_text
from tests.strategies import sensitive_characters

LINES = 300


@pytest.fixture(scope="module")
def detections(shared_data: Path, pipeline: Any) -> list[Detection]:
    """The first lines that hold a digit or an at sign: the others have nothing that a plain look finds."""
    lines = (record for record in read_records(shared_data / "abcd" / "valid.txt") if re.search("[0-9@]", record.text))
    return list(detect_records(islice(lines, LINES), pipeline=pipeline))


def plain_emails(text: str) -> list[str]:
    words = [word.split(":")[-1].strip(".,;!?()") for word in text.split()]
    return [word for word in words if "." in word.partition("@")[2]]


def plain_phones(text: str) -> list[str]:
    return re.findall(r"\(?[0-9]{3}\)?[ -][0-9]{3}-[0-9]{4}", text)


def plain_long_numbers(text: str) -> list[str]:
    return re.findall("[0-9]{5,}", text)


@pytest.mark.parametrize("look", [plain_emails, plain_phones, plain_long_numbers])
def test_what_a_plain_look_finds_is_flagged_and_redacted(detections: list[Detection], look: Any) -> None:
    seen = 0
    for actual in detections:
        text = actual.record.text
        spans = at_tier(actual.spans, Tier.LOW_ENTITY)
        mask = sensitive_characters(spans, len(text))
        for secret in look(text):
            seen += 1
            at = text.index(secret)
            assert all(mask[at : at + len(secret)])
            assert secret not in redact_text(text, spans).text
    assert seen >= 8


def test_the_ids_are_the_line_numbers_of_the_file(detections: list[Detection], shared_data: Path) -> None:
    lines = (shared_data / "abcd" / "valid.txt").read_text("utf-8").split("\n")
    assert [lines[int(actual.record.id) - 1] for actual in detections] == [actual.record.text for actual in detections]
