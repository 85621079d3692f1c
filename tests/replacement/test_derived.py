"""What is made from a value follows it, and what is drawn could be: names, numbers, dates, cards, addresses."""

import ipaddress
import random
import re
from datetime import datetime

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from stdnum import iban, luhn

from atdp_cli.replacement.decoys import uniformly
from atdp_cli.replacement.draw import decoy_record
from atdp_cli.replacement.equality import equality_pattern
from atdp_cli.replacement.frequencies import by_frequency
from tests.replacement.test_equality import SEEDS, at_random, counted, flag, shown

Part = tuple[str, str]

SOME_SEEDS = pytest.mark.parametrize("seed", range(15))


@SOME_SEEDS
def test_what_is_made_of_a_name_follows_it(seed: int) -> None:
    whole, possessive, short, initials, user, address, other = shown(
        ("Joseph Banter", "PERSON"),
        ("JOSEPH's", "PERSON"),
        ("J. Banter", "PERSON"),
        ("JB", "PERSON"),
        ("josephb7", "USERNAME"),
        ("J.BANTER@mail.org", "EMAIL"),
        ("jbanter", "USERNAME"),
        choose=at_random(seed),
    )
    first, last = whole.split()
    assert possessive == f"{first.upper()}'s"
    assert short == f"{first[0]}. {last}"
    assert initials == first[0] + last[0]
    assert re.fullmatch(rf"{first}{last[0]}\d".lower(), user)
    assert address.split("@")[0] == f"{first[0]}.{last}".upper()
    assert other == f"{first[0]}{last}".lower()


@SOME_SEEDS
def test_a_name_that_comes_after_what_is_made_of_it_is_drawn_with_it(seed: int) -> None:
    user, first, last = shown(("zoe_marsh", "USERNAME"), ("Zoe", "PERSON"), ("Marsh", "PERSON"), choose=at_random(seed))
    assert user == f"{first}_{last}".lower()


@SOME_SEEDS
def test_a_number_is_the_same_without_its_separators_and_in_its_ending(seed: int) -> None:
    card, plain, ending, phone, dotted, other = shown(
        ("5105-1051-0510-5100", "CREDIT_CARD"),
        ("5105105105105100", "NUMBER"),
        ("5100", "NUMBER"),
        ("(555) 123-4567", "PHONE"),
        ("555.123.4567", "PHONE"),
        ("5101", "NUMBER"),
        choose=at_random(seed),
    )
    assert plain == card.replace("-", "")
    assert ending == plain[-4:]
    assert [*filter(str.isdigit, phone)] == [*filter(str.isdigit, dotted)]
    assert len(other) == 4
    assert luhn.is_valid(plain)


@SOME_SEEDS
@pytest.mark.parametrize("forms", [("%B %-d, %Y", "%m/%d/%Y"), ("%m/%d/%Y", "%d %B %Y"), ("%Y-%m-%d", "%b %-d")])
def test_a_date_in_two_forms_is_one_date(seed: int, forms: tuple[str, str]) -> None:
    day = datetime(2024, 3, 5)
    first, second = (day.strftime(form) for form in forms)
    parsed = shown((first, "DATE"), (second, "DATE"), choose=at_random(seed))
    drawn = datetime.strptime(parsed[0], forms[0].replace("%-d", "%d"))
    assert parsed[1] == drawn.strftime(forms[1])
    assert 1900 <= drawn.year <= 2099


@st.composite
def people(draw: st.DrawFn) -> list[Part]:
    """What a text says of one person, in any order. Lengths that shapes show are the same for all."""
    first, last = (draw(st.text("bcdfghjklmnpqrtvwxz", min_size=4, max_size=8)).capitalize() for _ in range(2))
    number = draw(st.text("123456789", min_size=12, max_size=12))
    day = datetime(draw(st.integers(2000, 2030)), draw(st.integers(10, 12)), draw(st.integers(10, 28)))
    return [
        (f"{first} {last}", "PERSON"),
        (f"{first}'s", "PERSON"),
        (f"{first[0]}. {last}", "PERSON"),
        (f"{first}{last[0]}7".lower(), "USERNAME"),
        (f"{first[0]}{last}@{first}.org".lower(), "EMAIL"),
        (last.upper(), "ORG"),
        (number, "ACCOUNT"),
        (f"{number[:4]} {number[4:8]} {number[8:]}", "CREDIT_CARD"),
        (number[-4:], "NUMBER"),
        (day.strftime("%B %d, %Y"), "DATE"),
        (day.strftime("%m/%d/%Y"), "DATE"),
        (day.strftime("%d %B"), "DATE"),
        (day.strftime("the %dth of the month"), "DATE"),
    ]


@pytest.mark.ci
@settings(max_examples=500, deadline=None)
@given(people(), people(), st.lists(st.integers(0, 12), max_size=14), SEEDS, st.booleans())
def test_people_of_one_pattern_have_the_same_decoys(
    ours: list[Part], theirs: list[Part], order: list[int], seed: int, fitted: bool
) -> None:
    """The neighbours of the guarantee: all values change, the forms and the links stay."""
    texts = [flag(*(each[at] for at in order)) for each in (ours, theirs)]
    assume(equality_pattern([texts[0]]) == equality_pattern([texts[1]]))
    dice = [random.Random(seed), random.Random(seed)]
    chooses = [by_frequency(each.randrange, counted()) if fitted else uniformly(each.randrange) for each in dice]
    our_decoys, their_decoys = (
        decoy_record([text], choose, "record")[0] for text, choose in zip(texts, chooses, strict=True)
    )
    values = [[decoys.text[start:end] for start, end in decoys.places] for decoys in (our_decoys, their_decoys)]
    assert values[0] == values[1]
    assert dice[0].random() == dice[1].random(), "the records behind must not tell, either"


def test_another_pattern_is_another_law() -> None:
    """What the guarantee does not claim: a user name that is made of the name, and one that is not."""
    made, apart = (flag(("Joseph Banter", "PERSON"), (user, "USERNAME")) for user in ("josephb7", "qwertyz7"))
    assert equality_pattern([made]) != equality_pattern([apart])


@settings(deadline=None)
@given(SEEDS)
def test_what_is_drawn_could_be(seed: int) -> None:
    card, account, address, day, short, clock, amount, age = shown(
        ("4111 1111 1111 1111", "CREDIT_CARD"),
        ("GB33 BUKB 2020 1555 5555 55", "IBAN"),
        ("10.20.255.1", "IP_ADDRESS"),
        ("2024-02-29", "DATE"),
        ("31/12/99", "DATE"),
        ("11:59 pm", "TIME"),
        ("$1,250.00", "MONEY"),
        ("the 22nd", "DATE"),
        choose=at_random(seed),
    )
    assert luhn.is_valid(card.replace(" ", ""))
    assert account[:2] in ("GB", "IE")
    assert iban.is_valid(account, check_country=False)
    ipaddress.ip_address(address)
    datetime.strptime(day, "%Y-%m-%d")
    assert any(_is(short, form) for form in ("%d/%m/%y", "%m/%d/%y"))
    assert _is(clock, "%I:%M %p")
    assert re.fullmatch(r"\$[1-9],\d{3}\.\d\d", amount)
    assert re.fullmatch(r"the (21st|22nd|23rd|31st|30th|(1\d|2[04-9])th)", age)


def _is(text: str, form: str) -> bool:
    try:
        datetime.strptime(text, form)
    except ValueError:
        return False
    return True


def test_words_that_are_no_values_stay() -> None:
    """A public list of them; whoever reads the decoy learns that they stood there, as of any unflagged word."""
    kept = shown(("the last 12 months", "DATE"), ("The Bank of Oslo", "ORG"), ("about 3 million miles", "QUANTITY"),
                 choose=at_random(3))  # fmt: skip
    assert re.fullmatch(r"the last \d\d months", kept[0])
    assert re.fullmatch(r"The \w+ of \w+", kept[1])
    assert re.fullmatch(r"about \d million miles", kept[2])
    assert shown(("Of The", "PERSON"), choose=at_random(3)) != ["Of The"]
