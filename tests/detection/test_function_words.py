"""The fixed list of function words and where they stand in a text."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.detection.word_lists import function_word_characters, function_words
from tests.growth import repeated, too_slow


def test_the_list_holds_function_words_and_no_content_words() -> None:
    words = function_words()
    assert {"the", "a", "of", "to", "and", "or", "is", "was", "would", "not", "with"} <= words
    assert not {"person", "time", "said", "berlin", "one", "two", "people", "new"} & words
    assert 150 <= len(words) <= 300
    assert all(re.fullmatch("[a-z]+(?:'[a-z]+)?", word) for word in words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat of Theo", ["The", "of"]),
        ("THE, (and)\nor; to-do", ["THE", "and", "or", "to", "do"]),
        ("I don’t, you can't.", ["I", "don’t", "you", "can't"]),
        ("'the' ‘of’", ["the", "of"]),
        ("Anna's the1 _the theé éthe to_do", []),
        ("the\u0301n", ["the"]),
        ("", []),
    ],
)
def test_whole_words_in_any_case(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in function_word_characters(text)] == expected


@given(st.lists(st.sampled_from(["the", "of", "Cat", "don't", "x1", ".", " ", "\n", "é", "'", "_"])))
def test_ranges_are_sorted_disjoint_and_of_the_list(pieces: list[str]) -> None:
    text = "".join(pieces)
    actual = function_word_characters(text)
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(actual))
    for start, end in actual:
        assert text[start:end].lower() in function_words()
        assert not (text[:start][-1:].isalnum())
        assert not (text[end:][:1].isalnum())


@pytest.mark.parametrize("piece", ["a", "a'", "the ", "'", "1a'"])
def test_time_is_linear(piece: str) -> None:
    assert not too_slow(function_word_characters, repeated(piece, "!"), times=4)
