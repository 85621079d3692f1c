"""Which candidates are alike to a detector, by spans written out and by the detector itself."""

import random
from typing import Any

import pytest

from atdp_cli.audit.canary import Target, Template, parse_template
from atdp_cli.audit.epsilon_games import (
    CHECKED,
    OTHER_DETECTOR,
    UNEQUAL,
    UNLIKE,
    candidate_records,
    compare_flagged,
    detector_invariance,
)
from atdp_cli.corpus.spans import Span, Tier
from atdp_cli.detection.text_identity import text_identity
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.privacy.relation import Shape
from atdp_cli.replacement.decoys import lists
from tests.privacy.relations import plain


def flag(text: str, *actual: tuple[str, str]) -> tuple[str, tuple[Span, ...]]:
    """A text with these words flagged, each under a label."""
    return text, tuple(
        Span(text.index(word), text.index(word) + len(word), label, "ner", Tier.LOW_ENTITY) for word, label in actual
    )


SHAPE: frozenset[Shape] = frozenset({"shape"})
PATTERN: frozenset[Shape] = frozenset({"pattern"})
ID = [flag(f"My ID is {digits}", (digits, "NUMBER")) for digits in ("123456", "908070")]
NAME = [flag(f"I am {name}", (name, "PERSON")) for name in ("Emma", "Omar")]


def test_digits_without_votes_and_words_with_votes() -> None:
    assert (compare_flagged(ID, SHAPE).unlike, compare_flagged(ID, SHAPE).voted) == (None, False)
    assert (compare_flagged(NAME, SHAPE).unlike, compare_flagged(NAME, SHAPE).voted) == (None, True)
    dates = [flag(f"Due {date}", (date, "DATE")) for date in ("1/2/2020", "3/4/2021")]
    assert compare_flagged(dates, SHAPE).voted, "the digits of dates have votes"


def test_candidates_are_unlike_where_the_pattern_counts_and_differs() -> None:
    twice = [
        flag(f"{first} {second}!", (first, "NUMBER"), (second, "NUMBER"))
        for first, second in (("123", "456"), ("908", "070"))
    ]
    equal = (f"{'777'} {'777'}!", tuple(Span(at, at + 3, "NUMBER", "ner", Tier.LOW_ENTITY) for at in (0, 4)))
    assert compare_flagged(twice, PATTERN).unlike is None
    assert compare_flagged([*twice, equal], SHAPE).unlike is None
    assert compare_flagged([*twice, equal], PATTERN).unlike == UNEQUAL


def test_labels_of_one_law_are_alike_unless_redacted_text_was_read() -> None:
    """A number may be an account, but no card: a card's decoys have a right check digit."""
    number, account, card = ([flag(f"Mine is {d}.", (d, label))] for d, label in
                             (("123456", "NUMBER"), ("908070", "ACCOUNT"), ("110005", "CREDIT_CARD")))  # fmt: skip
    assert compare_flagged([*number, *account], PATTERN).unlike is None
    assert compare_flagged([*number, *account], PATTERN | {"bytes"}).unlike == UNLIKE
    assert compare_flagged([*number, *card], PATTERN).unlike == UNLIKE
    lengths = [flag(f"Mine is {d}.", (d, "NUMBER")) for d in ("123456", "12")]
    assert compare_flagged(lengths, frozenset({"bytes"})).unlike is None
    assert compare_flagged(lengths, SHAPE).unlike == UNLIKE


def test_votes_count_only_where_the_candidates_differ() -> None:
    both = [flag(f"Emma's ID is {digits}", ("Emma", "PERSON"), (digits, "NUMBER")) for digits in ("123456", "908070")]
    assert compare_flagged(both, SHAPE) == compare_flagged(ID, SHAPE)


@pytest.mark.parametrize(
    "other",
    [
        flag("My ID is 908070", ("908070", "DATE")),  # another label
        flag("My ID is 90807", ("90807", "NUMBER")),  # another shape
        flag("My ID is 908070"),  # not flagged
        flag("My id is 908070", ("908070", "NUMBER")),  # another word around it
        flag("My ID is 908070", ("9080", "NUMBER")),  # a part alone
    ],
)
def test_whatever_redaction_or_shape_tells_apart_is_unlike(other: tuple[str, tuple[Span, ...]]) -> None:
    assert compare_flagged([*ID, other], SHAPE).unlike == UNLIKE


def test_a_small_pool_is_read_whole_and_a_large_one_with_all_secrets() -> None:
    small = parse_template("My ID is {digits:2}")
    assert list(candidate_records(small, [])) == list(small.candidates())
    large = parse_template("My ID is {digits:6}")
    read = list(candidate_records(large, [Target(index=341752, repeats=1)]))
    assert read[:2] == ["My ID is 341752", "My ID is 658247"]
    assert len(read) == CHECKED + 2


def ledger(shape: Shape = "shape", **flags: Any) -> Ledger:
    """A ledger of decoys flagged by the installed detector, unless `flags` say otherwise."""
    stage = plain(shape, **{"detector": text_identity(None), **flags})
    return Ledger(unit="line", checkpoint_history="public", records=400, delta=1e-6, grid=1e-3, events=(stage,))


NAMES = lists()["given"].common
HER = parse_template("Her name is {choice:names}", {"names": NAMES})


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("template", "unlike", "voted"),
    [
        (parse_template("My ID is {digits:6}"), None, False),
        (HER, None, True),
        (parse_template("My ID is {digits:4}"), UNLIKE, True),  # some are dates
    ],
)
def test_the_detector_of_the_run_looks_at_the_candidates(template: Template, unlike: str | None, voted: bool) -> None:
    dice = random.Random(1)
    targets = [Target(index=dice.randrange(template.pool), repeats=1) for _ in range(5)]
    alike = detector_invariance(ledger(), template, targets)
    assert (alike.unlike, alike.voted) == (unlike, voted)


@pytest.mark.ci
def test_candidates_that_repeat_a_number_or_not_are_unlike_after_equal_decoys() -> None:
    once, twice = parse_template("My ID is {digits:6}"), parse_template("My ID is {digits:3}-{digits:3}")
    assert detector_invariance(ledger("pattern"), once, []).unlike is None
    repeated = Target(index=int("417417"), repeats=1)
    assert detector_invariance(ledger(), twice, [repeated]).unlike != UNEQUAL
    assert detector_invariance(ledger("pattern"), twice, [repeated]).unlike is not None


def test_a_detector_that_cannot_be_asked_makes_no_claim() -> None:
    assert detector_invariance(ledger(detector="a" * 64), HER, []).unlike == OTHER_DETECTOR
    assert "lists" in str(detector_invariance(ledger(human=("allow",)), HER, []).unlike)
    assert detector_invariance(ledger(), HER, []).unlike is None
