"""Placeholders: their key, their surrogates, and how they are recognised."""

import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.detect import LABELS, PLACEHOLDERS
from atdp_cli.errors import InputError
from atdp_cli.files.private import KEY_BYTES
from atdp_cli.replacement.placeholders import (
    MAX_BYTES,
    Masking,
    Style,
    fresh_masking,
    placeholders,
    read_or_create_key,
    surrogate,
)

KEYS = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)


@given(KEYS, st.sampled_from(sorted(LABELS)), st.text(st.characters()))
def test_a_surrogate_is_eight_characters_whatever_the_text(key: bytes, label: str, text: str) -> None:
    assert re.fullmatch("[a-z2-7]{8}", surrogate(key, label, text))


@given(KEYS, st.text(st.characters()), st.sampled_from(" \t\r\n\u00a0\u2003"))
def test_case_and_white_space_do_not_matter(key: bytes, text: str, space: str) -> None:
    other = space + text.casefold().replace(" ", space * 2) + space
    assert surrogate(key, "PERSON", other) == surrogate(key, "PERSON", text)


def test_other_words_have_other_surrogates() -> None:
    words = [f"{letter}{number}" for letter in "aé深😀" for number in range(2500)]
    assert len({surrogate(bytes(KEY_BYTES), "PERSON", word) for word in words}) == len(words)


def test_a_surrogate_needs_its_key_and_its_label() -> None:
    key, other = bytes(KEY_BYTES), bytes([1]) * KEY_BYTES
    actual = {surrogate(key, "PERSON", "Paris"), surrogate(key, "GPE", "Paris"), surrogate(other, "PERSON", "Paris")}
    assert len(actual) == 3


@pytest.mark.parametrize("style", Style)
def test_every_label_is_recognised_in_every_style(style: Style) -> None:
    spans = {label: [Span(0, 4, label, "ner", Tier.LOW_ENTITY)] for label in sorted(LABELS)}
    masked = {label: placeholders("Emma", label_spans, fresh_masking(style)) for label, label_spans in spans.items()}
    assert {label: len(texts) for label, texts in masked.items()} == dict.fromkeys(masked, 1)
    assert [label for label, [text] in masked.items() if not PLACEHOLDERS.fullmatch(text)] == []


@pytest.mark.parametrize(
    "text", ["[MARIA]", "[PERSON_0]", "[PERSON_12345678]", "[PERSON_hunter22a]", "[PERSON_Hunter22]", "<PERSON_1>"]
)
def test_what_only_looks_like_a_placeholder_is_text(text: str) -> None:
    assert not PLACEHOLDERS.search(text)


def test_a_fresh_key_is_of_one_run() -> None:
    spans = [Span(0, 4, "PERSON", "ner", Tier.LOW_ENTITY)]
    assert len({placeholders("Emma", spans, fresh_masking(Style.PSEUDONYM))[0] for _ in range(4)}) == 4


def test_a_masking_does_not_show_its_key_and_needs_one() -> None:
    assert "kkkk" not in repr(Masking(Style.PSEUDONYM, b"k" * KEY_BYTES))
    with pytest.raises(ValueError, match="32 bytes"):
        Masking(Style.PSEUDONYM, b"k" * (KEY_BYTES - 1))


def test_a_key_file_is_created_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "key"
    key = read_or_create_key(path)
    assert len(key) == KEY_BYTES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_or_create_key(path) == key == path.read_bytes()
    assert read_or_create_key(tmp_path / "other") != key


@pytest.mark.parametrize(("size", "problem"), [(0, "only 0"), (31, "only 31"), (MAX_BYTES + 1, "more than 4,096")])
def test_a_key_of_another_size_is_refused_and_stays(tmp_path: Path, size: int, problem: str) -> None:
    path = tmp_path / "key"
    path.write_bytes(bytes(size))
    with pytest.raises(InputError, match=f"{problem} bytes"):
        read_or_create_key(path)
    assert path.read_bytes() == bytes(size)


def test_a_key_that_cannot_be_read_or_created_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="could not be read"):
        read_or_create_key(tmp_path)
    with pytest.raises(InputError, match="could not be created"):
        read_or_create_key(tmp_path / "no" / "key")
