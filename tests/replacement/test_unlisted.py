"""The domain of words that no list has: which they are, how likely, and how they are written."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from atdp_cli.replacement.decoys import lists, shape
from atdp_cli.replacement.frequencies import (
    MAX_LETTERS,
    MIN_LETTERS,
    Unlisted,
    draw_unlisted,
    spelled_at,
    unlisted,
    unlisted_share,
)


def test_the_shares_of_all_words_sum_to_one() -> None:
    total = 0.0
    for letters in range(MIN_LETTERS, MAX_LETTERS + 1):
        plain, further = "A" + "a" * (letters - 1), "AB" + "a" * (letters - 2)
        shares = unlisted_share(Unlisted("given", plain)), unlisted_share(Unlisted("given", further))
        total += len(lists()) * 26.0**letters * (shares[0] + (letters - 1) * shares[1])
    assert total == pytest.approx(1.0, rel=1e-12)


def test_words_are_drawn_by_their_shares() -> None:
    dice, draws = random.Random(6), 40_000
    drawn = [draw_unlisted(dice.randrange) for _ in range(draws)]
    lengths = Counter(len(item.word) for item in drawn)
    assert sorted(lengths) == list(range(MIN_LETTERS, MAX_LETTERS + 1))
    for counted in (lengths, Counter(item.table for item in drawn), Counter(item.word[-1].lower() for item in drawn)):
        assert chisquare(list(counted.values())).pvalue > 1e-4
    places = Counter(
        next((at for at, letter in enumerate(item.word[1:], 1) if letter.isupper()), 0)
        for item in drawn
        if len(item.word) == 5
    )
    of_five = sum(places.values())
    expected = [of_five / 2, *[of_five / 8] * 4]
    assert chisquare([places[at] for at in range(5)], expected).pvalue > 1e-4
    assert all(unlisted(item.table, item.word) == item for item in drawn)


@given(st.text(max_size=20) | st.from_regex(r"[A-Za-z]{1,18}", fullmatch=True))
def test_a_word_is_one_item_however_its_case(word: str) -> None:
    item = unlisted("given", word)
    if item is None:
        assert not (word.isascii() and word.isalpha() and MIN_LETTERS <= len(word) <= MAX_LETTERS)
        return
    assert item.word.lower() == word.lower()
    assert unlisted("given", item.word) == item
    assert unlisted_share(item) > 0
    assert unlisted("given", word.lower()) == unlisted("given", word.capitalize())


@pytest.mark.parametrize(
    ("stands", "spelled"),
    [("EMMA", "ACMEBRANDS"), ("emma", "acmebrands"), ("Emma", "AcmeBrands"), ("McEmma", "AcmeBrands")],
)
def test_a_word_is_written_in_the_case_of_its_place(stands: str, spelled: str) -> None:
    [place] = shape("PERSON", stands)
    assert spelled_at(place, "AcmeBrands") == spelled
