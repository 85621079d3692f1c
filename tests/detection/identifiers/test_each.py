"""Each recogniser alone: what it finds, and what only looks like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.detection.identifiers import IDENTIFIER_LABELS, RECOGNISERS, Recogniser
from tests.detection.identifiers.every import NAMES, NEAR_MISSES, POSITIVES, unmarked


@pytest.mark.parametrize("recogniser", RECOGNISERS, ids=NAMES.get)
def test_positives_are_found_exactly_and_near_misses_are_left_alone(recogniser: Recogniser) -> None:
    """Each row of its tables; a failure names every row that fails."""
    rows = [*map(unmarked, POSITIVES[recogniser]), *((text, list[str]()) for text in NEAR_MISSES[recogniser])]
    matched = [(text, [text[start:end] for start, end, _ in recogniser(text)], expected) for text, expected in rows]
    wrong = [f"{text!r}: {values}, not {expected}" for text, values, expected in matched if values != expected]
    assert not wrong, "\n".join(wrong)


def test_every_recogniser_has_three_positives_and_twenty_near_misses_of_its_own() -> None:
    assert len(set(RECOGNISERS)) == len(RECOGNISERS)
    assert set(POSITIVES) == set(NEAR_MISSES) == set(RECOGNISERS)
    for place, recogniser in enumerate(RECOGNISERS):
        actual = {value for text in POSITIVES[recogniser] for value in unmarked(text)[1]}
        assert len(actual) >= 3, f"recogniser {place}: {actual}"
        assert len(set(NEAR_MISSES[recogniser])) >= 20, f"recogniser {place}: {NEAR_MISSES[recogniser][:3]}"


def test_the_labels_are_those_that_are_found() -> None:
    actual = [recogniser(unmarked(text)[0]) for recogniser, texts in POSITIVES.items() for text in texts]
    assert {label for matches in actual for _, _, label in matches} == IDENTIFIER_LABELS


PIECES = [unmarked(each)[0] for texts in POSITIVES.values() for each in texts]


@given(st.lists(st.one_of(st.text(st.characters(), max_size=5), st.sampled_from(PIECES)), max_size=6))
def test_offsets_are_in_range_for_any_text(pieces: list[str]) -> None:
    text = " ".join(pieces)
    for recogniser in RECOGNISERS:
        for start, end, label in recogniser(text):
            assert 0 <= start < end <= len(text)
            assert label in IDENTIFIER_LABELS
