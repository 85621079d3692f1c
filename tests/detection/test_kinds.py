"""What people bring: odd characters, markup, keys, secrets and dates are found, and what is nobody's stays."""

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Tier, at_tier
from atdp_cli.detection.detect import detect_records
from atdp_cli.detection.identifiers import RECOGNISERS
from atdp_cli.detection.plain_copy import plain_copy
from atdp_cli.replacement.decoys import public_draws, uniformly
from atdp_cli.replacement.draw import decoy_text
from atdp_cli.replacement.edits import redact_text
from tests.detection.kinds import KINDS, leaks

PLAIN = (
    "The <b>report</b> is due &amp; the budget grew by 20%25 last year.",
    '{"name": "get_weather", "description": "look up the weather", "token_count": 12, "role": "user"}',
    "name: build and test\nsteps:\n  - run: make test\n  timeout: 30",
    "\x1b[32mPASS\x1b[0m all tests in 3 seconds",
    "the loop runs from 1 to 10\t20\t30\n40\t50\t60",
    "const getUserAccountBalanceFromDatabase2 = require('./database_connection_pool')",
    "see /home/index.html and /usr/lib/x86_64-linux-gnu/libstdc++.so",
    "rated 4/5 stars, open 24/7, half of 3/4 is 3/8",
    "the trash bin is full, put it in the van behind the house",
)
"""Texts in which nothing of these kinds is anybody's."""


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_between_marks_is_left_in_the_open(pipeline: Any, kind: str) -> None:
    assert leaks(pipeline, KINDS[kind]) == []


def test_what_is_nobodys_is_left_alone() -> None:
    for text in PLAIN:
        copy = plain_copy(text)
        assert [copy.text[start:end] for each in RECOGNISERS for start, end, _ in each(copy.text)] == [], text


@pytest.mark.parametrize("kind", KINDS)
def test_decoys_stand_for_what_is_marked(pipeline: Any, kind: str) -> None:
    """Nothing that is marked is in the text with decoys, and what is beside the spans is as it was."""
    texts = [sibling.replace("⟦", "").replace("⟧", "") for sibling in KINDS[kind]]
    records = [Record(str(number), text) for number, text in enumerate(texts)]
    choose = uniformly(public_draws("kinds"))
    for sibling, found in zip(KINDS[kind], detect_records(records, pipeline=pipeline), strict=True):
        actual = decoy_text(found.record.text, at_tier(found.spans, Tier.LOW_ENTITY), choose).text
        marked = [value for value in re.findall("⟦(.*?)⟧", sibling, re.DOTALL) if len(value) > 3]
        assert [value for value in marked if value in actual] == []


MARKUP = re.compile(r"</?\w+/?>|&#?\w+;|%[0-9A-F]{2}|\x1b\[[0-9;]*m")


@pytest.mark.parametrize("kind", ["HTML and XML", "URLs and percent-encoding", "terminals"])
def test_codes_are_borders_and_stay(pipeline: Any, kind: str) -> None:
    """Codes that stand for a letter belong to its word; any other is in the text after what is flagged is replaced."""
    texts = [sibling.replace("⟦", "").replace("⟧", "") for sibling in KINDS[kind]]
    records = [Record(str(number), text) for number, text in enumerate(texts)]
    for found in detect_records(records, pipeline=pipeline):
        text, spans = found.record.text, at_tier(found.spans, Tier.LOW_ENTITY)
        codes = [code for code in MARKUP.findall(text) if code not in ("&eacute;",)]
        assert MARKUP.findall(redact_text(text, spans).text.replace("&eacute;", "")) == codes


ODD = st.text(st.sampled_from('aZ9 <b>/&amp;%20\\n"\u0301\u200b\u00a0\u2011\uff11\x1b[1m\t\n-()[.]é日🙂'), max_size=40)


@given(ODD)
def test_the_places_of_a_copy_are_those_of_its_text(text: str) -> None:
    """They are in order, within the text, and a character that stands for itself is there."""
    copy = plain_copy(text)
    assert len(copy.text) == len(copy.starts) == len(copy.ends)
    for number, (start, end) in enumerate(zip(copy.starts, copy.ends, strict=True)):
        assert 0 <= start < end <= len(text)
        if end == start + 1 and text[start].isascii() and text[start].isalnum() and copy.text[number].isalnum():
            assert copy.text[number] == text[start]
    for places in (copy.starts, copy.ends):
        assert all(one <= other for one, other in pairwise(places))
    # Letters and digits are never left out.
    shown = {place for start, end in zip(copy.starts, copy.ends, strict=True) for place in range(start, end)}
    hidden = [text[place] for place in range(len(text)) if place not in shown and text[place].isalnum()]
    assert not hidden or MARKUP.search(text) or "<" in text or "\x1b" in text


def test_a_text_without_such_characters_is_its_own_copy() -> None:
    text = "Dear Anna, call 555-123-4567 before noon. It's 20 % off (today only)!\nYours"
    assert plain_copy(text).text is text
    assert not plain_copy(text).changed
