"""Check digits: a number with one digit changed is another's, or nobody's, and is not found."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.detection.identifiers import Recogniser, money, national
from tests.detection.identifiers.every import POSITIVES, unmarked

CHECKED: dict[str, Recogniser] = {"card": money.payment_card, "iban": money.iban, **national.NUMBERS}
# A digit stands outside the sum: the century in Iceland, one of the year in Mexico.
LEFT_OUT = {"is_.kennitala", "mx.curp"}


def changed(text: str, places: range) -> list[str]:
    """The texts with one digit more by 1 to 9, for each digit in `places`."""
    return [
        f"{text[:place]}{(int(text[place]) + more) % 10}{text[place + 1 :]}"
        for place in places
        if text[place] in "0123456789"
        for more in range(1, 10)
    ]


@pytest.mark.parametrize("name", CHECKED)
def test_a_number_with_one_digit_changed_is_not_found(name: str) -> None:
    """Nearly never: where eleven remainders share ten digits, two numbers may both be right."""
    recogniser, tried, actual = CHECKED[name], 0, 0
    for text, values in map(unmarked, POSITIVES[recogniser]):
        for value in values:
            start = text.index(value)
            for other in changed(text, range(start, start + len(value))):
                tried += 1
                actual += any(begin < start + len(value) and start < end for begin, end, _ in recogniser(other))
    assert tried >= 3 * 9 * 7
    assert actual <= (0.1 if name in LEFT_OUT else 0.05) * tried


@pytest.mark.parametrize("row", national.ROWS, ids=lambda row: row.module)
def test_a_number_in_a_row_with_words_needs_one_unless_its_spelling_tells(row: national.NationalId) -> None:
    for text in POSITIVES[national.NUMBERS[row.module]]:
        for value in unmarked(text)[1]:
            reported = not row.words or bool(
                row.telling and re.fullmatch(row.telling, value, re.VERBOSE | re.IGNORECASE)
            )
            assert bool(list(national.NUMBERS[row.module](f"was {value}, so"))) is reported


@given(st.sampled_from(national.ROWS), st.data())
def test_whatever_has_the_shape_the_check_gives_a_verdict(row: national.NationalId, data: st.DataObject) -> None:
    shape = data.draw(st.from_regex(re.compile(row.shape, re.VERBOSE | re.ASCII), fullmatch=True))
    assert all(label == "NATIONAL_ID" for _, _, label in national.NUMBERS[row.module](shape))
