"""The laws of equal decoys: equal words and numbers stay equal, and what is drawn follows from shapes and pattern."""

import random
import re
import string
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from atdp_cli.corpus.spans import Span, Tier, merge
from atdp_cli.replacement.decoys import WORDS, Choose, DecoySlot, lists, shape, uniformly
from atdp_cli.replacement.draw import decoy_record, decoy_text
from atdp_cli.replacement.equality import MIN_CHOICES, equality_pattern
from atdp_cli.replacement.frequencies import UNIFORM_SHARE, Frequencies, by_frequency, frequencies, tables
from tests.replacement.twins import Twins, twins
from tests.strategies import flagged_texts

SEEDS = st.integers(0, 2**32)


def flag(*parts: tuple[str, str]) -> tuple[str, list[Span]]:
    """A text of surfaces with their labels, each behind a word that nobody flags."""
    text, spans = "", []
    for surface, label in parts:
        start = len(text) + 4
        text += f"and {surface} "
        spans.append(Span(start, start + len(surface), label, "ner", Tier.LOW_ENTITY))
    return text, spans


def shown(*parts: tuple[str, str], choose: Choose) -> list[str]:
    """What stands for each surface."""
    [actual] = decoy_record([flag(*parts)], choose, "record")
    return [actual.text[start:end] for start, end in actual.places]


def pattern(texts: Sequence[tuple[str, list[Span]]]) -> Any:
    """The groups of places, what is made of names, and dates in another form."""
    return equality_pattern(texts)


def at_random(seed: int) -> Choose:
    return uniformly(random.Random(seed).randrange)


def counted() -> Frequencies:
    """Any frequencies: those of the first words of each table fall."""
    return frequencies({name: [1.0 / (at + 1) for at in range(table.size)] for name, table in tables().items()})


@pytest.mark.parametrize("seed", range(20))
def test_equal_words_and_numbers_have_equal_decoys_each_in_its_own_case(seed: int) -> None:
    whole, upper, family, mail, number, in_brackets, other = shown(
        ("Emma Clarke", "PERSON"),
        ("EMMA", "PERSON"),
        ("Clarke", "PERSON"),
        ("emma.clarke42@x.org", "EMAIL"),
        ("4930", "NUMBER"),
        ("[4930/42]", "ID"),
        ("4931", "NUMBER"),
        choose=at_random(seed),
    )
    first, last = whole.split()
    assert upper == first.upper()
    assert family == last
    assert mail.split("@")[0][:-2] == f"{first}.{last}".lower()
    assert in_brackets == f"[{number}/{mail.split('@')[0][-2:]}]"
    assert len(other) == 4


def test_values_that_differ_are_drawn_apart() -> None:
    actual = [shown(("4930", "NUMBER"), ("4931", "NUMBER"), choose=at_random(seed)) for seed in range(200)]
    assert sum(number == other for number, other in actual) <= 1, "a chance of 1 in 10,000 each"
    names = [shown(("Emma", "PERSON"), ("Omar", "PERSON"), choose=at_random(seed)) for seed in range(200)]
    assert sum(name == other for name, other in names) <= 6, "a chance of 1 in 259 each"


def test_a_whole_number_alone_is_a_value() -> None:
    """The digits of 493 that 4930 begins with tell nothing."""
    groups, *_ = pattern([flag(("4930", "NUMBER"), ("493", "NUMBER"), ("4930", "PHONE"))])
    assert groups == (0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3)


def test_a_name_that_is_given_and_family_is_of_both_lists() -> None:
    both = {word.casefold() for word in (*lists()["given"].common, *lists()["given"].more)}
    both &= {word.casefold() for word in (*lists()["family"].common, *lists()["family"].more)}
    actual = {shown(("Emma Clarke", "PERSON"), ("clarke", "PERSON"), choose=at_random(seed))[1] for seed in range(300)}
    assert len(actual) > 60
    assert actual <= both


def test_lists_that_share_too_little_are_drawn_apart() -> None:
    """April is a name and a month; a list of few names would show which."""
    actual = [shown(("April", "PERSON"), ("April", "DATE"), choose=at_random(seed)) for seed in range(50)]
    assert any(name != other for name, other in actual)
    together = [
        shown(("April", "PERSON"), ("April", "DATE"), ("APRIL", "PERSON"), choose=at_random(s)) for s in range(50)
    ]
    assert all(name.upper() == other for name, _, other in together)


def test_letters_that_are_a_name_are_the_name_that_is_drawn() -> None:
    """The letters of a key have their number; a word of a list has any."""
    for seed in range(20):
        person, user, key = shown(("emma", "PERSON"), ("@emma", "USERNAME"), ("EMMA", "KEY"), choose=at_random(seed))
        assert user == f"@{person}"
        assert key == person.upper()
        assert len(shown(("EMMA", "KEY"), choose=at_random(seed))[0]) == 4


def test_values_are_equal_in_all_texts_of_a_record_and_in_no_other() -> None:
    flagged, other = flag(("Emma", "PERSON")), flag(("EMMA", "PERSON"), ("7341", "NUMBER"))
    choose = at_random(4)
    source, target = decoy_record([flagged, other], choose, "record")
    assert target.text.split()[1] == source.text.split()[1].upper()
    groups, *_ = pattern([flagged, other])
    assert groups == (0, 0, 2, 3, 4, 5)
    [again] = decoy_record([flagged], choose, "record")
    assert again != source, "the next record has draws of its own"


@given(flagged_texts(), SEEDS)
def test_what_is_not_flagged_stays_and_shapes_are_kept(case: tuple[str, list[Span]], seed: int) -> None:
    text, spans = case
    [actual] = decoy_record([case], at_random(seed), "record")
    merged, kept, end = merge(spans), "", 0
    assert len(actual.places) == len(merged)
    for (start, stop), span in zip(actual.places, merged, strict=True):
        kept += actual.text[end:start] + text[span.start : span.end]
        end = stop
        for slot in (place for place in shape(span.label, text[span.start : span.end]) if len(place.choices) == 1):
            assert slot.choices[0] in actual.text[start:stop]
    assert kept + actual.text[end:] == text


@given(flagged_texts(), SEEDS)
def test_where_all_values_differ_decoys_are_drawn_as_without_equality(case: tuple[str, list[Span]], seed: int) -> None:
    text, spans = case
    groups, pieces, dates = pattern([case])
    if len(set(groups)) == len(groups) and not pieces and not dates:
        assert decoy_record([case], at_random(seed), "record") == (decoy_text(text, spans, at_random(seed)),)


@pytest.mark.ci
@settings(max_examples=500, deadline=None)
@given(twins(), SEEDS, st.booleans())
def test_neighbours_of_one_pattern_have_the_same_decoys(pair: Twins, seed: int, fitted: bool) -> None:
    """Texts that differ in flagged characters, with the shapes and the pattern of each other, under one stream."""
    our_dice, their_dice = random.Random(seed), random.Random(seed)
    chooses = [
        by_frequency(dice.randrange, counted()) if fitted else uniformly(dice.randrange)
        for dice in (our_dice, their_dice)
    ]
    assert equality_pattern([pair.ours]) == equality_pattern([pair.theirs])
    ours, theirs = (
        decoy_record([case], choose, "record") for case, choose in zip((pair.ours, pair.theirs), chooses, strict=True)
    )
    assert ours == theirs
    assert our_dice.random() == their_dice.random(), "the records behind must not tell, either"


def test_the_pattern_is_what_shapes_leave_open() -> None:
    """Without it two texts of the same shapes have decoys that tell them apart."""
    ours, theirs = (flag(("4930", "NUMBER"), (twice, "NUMBER")) for twice in ("4930", "7777"))
    [[our_text], [their_text]] = (decoy_record([case], at_random(1), "record") for case in (ours, theirs))
    assert our_text != their_text
    assert equality_pattern([ours]) != equality_pattern([theirs])


SURFACES: tuple[tuple[tuple[str, str], ...], ...] = (
    (("Emma", "PERSON"), ("EMMA", "PERSON")),
    (("Emma Clarke", "PERSON"), ("Clarke", "PERSON")),
    (("Clarke", "PERSON"), ("Emma Clarke", "PERSON")),
    (("Jordan", "GPE"), ("Jordan", "PERSON"), ("jordan", "ORG")),
)


def expected(parts: Sequence[tuple[str, str]], word: str, shares: Frequencies) -> dict[str, float]:
    """The law of what stands for a word, written apart: by the first of its lists, among the words that all hold."""
    named = [
        WORDS[label][at > 0]
        for surface, label in parts
        for at, each in enumerate(surface.split())
        if each.casefold() == word
    ]
    named.sort(key=["given", "family", "organisations", "places"].index)
    held = [{each.casefold() for each in (*lists()[name].common, *lists()[name].more)} for name in named]
    first = [each.casefold() for each in (*lists()[named[0]].common, *lists()[named[0]].more)]
    cumulative = shares[named[0]].cumulative
    before = (0, *cumulative)
    weights = {
        each: cumulative[at] - before[at] for at, each in enumerate(first) if all(each in names for names in held)
    }
    return {each: weight / sum(weights.values()) for each, weight in weights.items()}


@pytest.mark.parametrize("parts", SURFACES, ids=str)
def test_a_class_is_drawn_by_its_table(parts: tuple[tuple[str, str], ...]) -> None:
    [(word, _)] = Counter(w.casefold() for surface, _ in parts for w in surface.split()).most_common(1)
    shares, draws = counted(), 4000
    choose = by_frequency(random.Random(8).randrange, shares)
    at = [
        (p, w)
        for p, (surface, _) in enumerate(parts)
        for w, each in enumerate(surface.split())
        if each.casefold() == word
    ]
    seen: Counter[str] = Counter()
    for _ in range(draws):
        actual = shown(*parts, choose=choose)
        [drawn] = {actual[place].split()[position].casefold() for place, position in at}
        seen[drawn] += 1
    law = expected(parts, word, shares)
    assert seen.keys() <= law.keys()
    # A test of χ² wants five of each: the rare ones are one.
    often = [each for each in law if law[each] * draws >= 5]
    observed = [seen[each] for each in often] + [draws - sum(seen[each] for each in often)]
    wanted = [law[each] * draws for each in often]
    wanted.append(draws - sum(wanted))
    if wanted[-1] < 1:
        observed, wanted = observed[:-1], wanted[:-1]
    assert chisquare(observed, wanted, sum_check=False).pvalue > 1e-4


def test_a_number_that_must_be_uniform_somewhere_is_uniform_everywhere() -> None:
    """Its digits have a table in a phone number, and none in another."""
    counts = {name: [float(at == 7) for at in range(table.size)] for name, table in tables().items()}
    choose = by_frequency(random.Random(3).randrange, frequencies(counts))
    phones = [shown(("42", "PHONE"), ("42", "PHONE"), choose=choose)[0] for _ in range(200)]
    assert phones.count("77") > 200 * (1 - 3 * UNIFORM_SHARE)
    pairs = [shown(("42", "PHONE"), ("42", "NUMBER"), choose=choose) for _ in range(4000)]
    assert all(phone == other for phone, other in pairs)
    seen = Counter(phone for phone, _ in pairs)
    every = ["".join(digits) for digits in product(string.digits, repeat=2)]
    assert chisquare([seen[each] for each in every]).pvalue > 1e-4


@pytest.mark.ci
def test_no_place_is_drawn_from_few_choices() -> None:
    """For every pair of labels, as words that are equal meet under them."""
    asked: list[DecoySlot] = []

    def choose(slot: DecoySlot) -> str:
        asked.append(slot)
        return slot.choices[0]

    for label, other in product(sorted(WORDS), repeat=2):
        for word in ("Word", "word Word", "WD", "w"):
            shown((word, label), (word, other), choose=choose)
    assert min(slot.common for slot in asked) >= MIN_CHOICES
    assert all(slot.choices[: slot.common] for slot in asked)
    assert not any(slot.within and len(slot.within) != len(slot.choices) for slot in asked)


def test_the_lists_have_each_word_once_in_every_case() -> None:
    for words in lists().values():
        for word in (*words.common, *words.more):
            assert word.casefold() == word.upper().casefold() == word.lower().casefold()
            assert re.fullmatch(r"\S+", word)
