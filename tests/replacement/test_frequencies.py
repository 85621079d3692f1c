"""What votes and what does not, and decoys that are drawn by frequencies."""

import random
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.replacement.decoys import (
    FITTED_DIGITS,
    MAX_CAPITALS,
    MAX_DIGITS,
    WORDS,
    DecoySlot,
    lists,
    shape,
)
from atdp_cli.replacement.draw import decoy_text
from atdp_cli.replacement.frequencies import (
    LIGHT_VOTE,
    UNIFORM_SHARE,
    Item,
    Unlisted,
    by_frequency,
    choices_of,
    frequencies,
    is_listed,
    items,
    tables,
    unlisted,
    votes,
)
from tests.strategies import flagged_texts


def span(text: str, part: str, label: str) -> Span:
    start = text.index(part)
    return Span(start, start + len(part), label, "ner", Tier.LOW_ENTITY)


def item(table: str, choice: str) -> int:
    return tables()[table].start + choices_of(table).index(choice)


def test_words_and_the_digits_of_dates_and_phones_vote() -> None:
    text = "emma Clarke of Boston, BOSTON: call 617-55 by May 3, pay 4111, at 12:30"
    spans = [
        span(text, "emma Clarke", "PERSON"),
        span(text, "Boston", "GPE"),
        span(text, "BOSTON", "GPE"),
        span(text, "617-55", "PHONE"),
        span(text, "May 3", "DATE"),
        span(text, "4111", "CREDIT_CARD"),
    ]
    expected = {item("places", "Boston"): 2.0, item("calendar", "May"): 1.0, item("DATE 1/1", "3"): LIGHT_VOTE}
    for name, word in (("given", "Emma"), ("family", "Clarke")):
        if word in (*lists()[name].common, *lists()[name].more):
            expected[item(name, word)] = 1.0
    for place, digit in enumerate("61755"):
        expected[item(f"PHONE {place + 1}/5", digit)] = LIGHT_VOTE
    assert votes(text, spans) == expected


def test_abbreviations_vote_whatever_kind_of_name_they_are() -> None:
    text = "USR: the IBM of J. Doe, NY"
    spans = [span(text, "USR", "PROPN"), span(text, "IBM", "ORG"), span(text, "J", "PERSON"), span(text, "NY", "GPE")]
    tables_of = {"USR": "3 capitals", "IBM": "3 capitals", "J": "1 capitals", "NY": "2 capitals"}
    assert votes(text, spans) == {item(table, word): LIGHT_VOTE for word, table in tables_of.items()}


def test_words_that_no_list_has_vote_too_but_for_those_beyond_the_domain() -> None:
    text = "ZUBROWKA Zubrowka of Zubrowka and Nuñez, Emma"
    spans = [
        span(text, "ZUBROWKA Zubrowka", "PERSON"),
        span(text, "Nuñez", "GPE"),
        span(text, "Emma", "PERSON"),
    ]
    expected: dict[Item, float] = {Unlisted("given", "Zubrowka"): 1.0, Unlisted("family", "Zubrowka"): 1.0}
    if "Emma" in lists()["given"].more:
        expected[item("given", "Emma")] = 1.0
    assert votes(text, spans) == expected
    assert votes(text, [Span(0, 8, "MEMORISED", "ner", Tier.LOW_ENTITY)]) == {}


def test_they_are_drawn_as_often_in_the_case_of_their_place_and_only_at_places_of_their_table() -> None:
    listed = {name: [0.0] * table.size for name, table in tables().items()}
    listed["given"][0] = 6.0
    shares = frequencies(listed, {Unlisted("given", "AcmeBrands"): 3.0, Unlisted("family", "Zubrowka"): 1.0})
    choose = by_frequency(random.Random(4).randrange, shares)
    text = "EMMA emma Emma"
    shown = Counter(
        word
        for _ in range(2000)
        for word in decoy_text(
            text, [Span(at, at + 4, "PERSON", "ner", Tier.LOW_ENTITY) for at in (0, 5, 10)], choose
        ).text.split()
    )
    drawn = sum(shown[word] for word in ("ACMEBRANDS", "acmebrands", "AcmeBrands"))
    assert "Acmebrands" not in shown
    assert min(shown[word] for word in ("ACMEBRANDS", "acmebrands", "AcmeBrands")) > 500
    assert drawn / 6000 == pytest.approx((1 - UNIFORM_SHARE) * 3 / 9, abs=0.03)
    both = {
        decoy_text("Emma Clarke", [span("Emma Clarke", "Emma Clarke", "PERSON")], choose).text.split()[1]
        for _ in range(50)
    }
    assert "Zubrowka" in both


def test_spans_that_overlap_vote_once() -> None:
    text = "in Boston"
    city = span(text, "Boston", "GPE")
    assert votes(text, [city, city]) == votes(text, [city]) == {item("places", "Boston"): 1.0}


@given(flagged_texts(), st.integers(0, 2**32))
def test_nothing_but_public_items_at_their_places_votes(case: tuple[str, list[Span]], seed: int) -> None:
    """Every letter and digit that has no table may be another without a change."""
    text, spans = case
    for voted, count in votes(text, spans).items():
        assert count > 0
        if isinstance(voted, int):
            assert 0 <= voted < items()
        else:
            assert voted == unlisted(voted.table, voted.word)
            assert not is_listed(voted)
    letterwise = [Span(span.start, span.end, "NUMBER", span.source, span.tier) for span in spans]
    assert votes(text, letterwise) == {}


def test_the_tables_share_no_item_and_leave_none_out() -> None:
    places = sorted(tables().values())
    assert [place.start for place in places[1:]] == [place.start + place.size for place in places[:-1]]
    assert places[-1].start + places[-1].size == items()
    digits = len(FITTED_DIGITS) * MAX_DIGITS * (MAX_DIGITS + 1) // 2
    assert len(places) == len(lists()) + MAX_CAPITALS + digits


@given(st.sampled_from([*WORDS, *FITTED_DIGITS, "NUMBER"]), st.text(max_size=30))
def test_every_table_that_a_place_names_is_there_and_of_its_size(label: str, surface: str) -> None:
    for place in shape(label, surface):
        if place.within:
            every = choices_of(place.table)
            assert [every[at].casefold() for at in place.within] == [choice.casefold() for choice in place.choices]
        elif place.table:
            assert tables()[place.table][1:] == (len(place.choices), place.common)


def test_draws_follow_the_counts_beside_a_uniform_share() -> None:
    counts = [0.0] * tables()["calendar"].size
    names = (*lists()["calendar"].common, *lists()["calendar"].more)
    wanted = {"Monday": 6.0, "March": 3.0, names[-1]: 1.0}
    for word, count in wanted.items():
        counts[names.index(word)] = count
    choose = by_frequency(random.Random(5).randrange, frequencies({"calendar": counts}))
    draws = 40_000
    seen = Counter(decoy_text("May", [span("May", "May", "DATE")], choose).text for _ in range(draws))
    common = lists()["calendar"].common
    expected = {
        word: (1 - UNIFORM_SHARE) * wanted.get(word, 0.0) / 10 + UNIFORM_SHARE / len(common) * (word in common)
        for word in {*common, *wanted}
    }
    assert seen.keys() <= expected.keys()
    words = sorted(expected)
    assert chisquare([seen[word] for word in words], [draws * expected[word] for word in words]).pvalue > 1e-4


def test_without_counts_a_table_is_drawn_uniformly_from_what_is_common() -> None:
    assert frequencies({"calendar": [0.0] * tables()["calendar"].size}) == {}
    asked: list[int] = []

    def draw(n: int) -> int:
        asked.append(n)
        return 0

    choose = by_frequency(draw, {})
    place = DecoySlot(("a", "b", "c"), 2, "calendar")
    assert choose(place) == "a"
    assert asked == [2]


@pytest.mark.ci
@given(flagged_texts(), st.integers(0, 2**32))
def test_fitted_decoys_have_the_same_shape(case: tuple[str, list[Span]], seed: int) -> None:
    """Words in the case of the word, digits where digits were, and nothing else moves."""
    text, spans = case
    dice = random.Random(seed)
    actual = frequencies({name: [dice.random() for _ in range(table.size)] for name, table in tables().items()})
    changed = decoy_text(text, spans, by_frequency(dice.randrange, actual))
    assert sum(c in string.digits for c in changed.text) >= sum(c in string.digits for c in text)
    kept = [c for c in text if not c.isalnum() and c not in "'’"]
    assert Counter(c for c in changed.text if c in ",;:/()") == Counter(c for c in kept if c in ",;:/()")
