"""Relations intersect, or say why they don't; and what that leaves of a guarantee."""

import math
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import CheckpointHistory, Ledger, LedgerEvent
from atdp_cli.privacy.relation import Neighbours, Relation, commitment, intersect
from atdp_cli.privacy.scope import Guarantee, scope_epsilon
from atdp_cli.privacy.wording import SAME_PATTERN, guarantee_sentences
from atdp_cli.reporting.wording import lay_summary
from tests.privacy.relations import DETECTOR, OTHER_CORPUS, OTHER_DETECTOR, noisy, plain, relation, votes

RELATIONS = st.builds(
    relation,
    st.sampled_from(("none", "bytes", "shape", "pattern", "votes")),
    unit=st.sampled_from(("line", "paragraph")),
    detector=st.sampled_from((DETECTOR, OTHER_DETECTOR, None)),
    tier=st.sampled_from(("low-entity", "high-entity", "high-contextual")),
    human=st.sampled_from(((), ("allow",), ("deny", "review-each-epoch"))),
    crosscheck=st.booleans(),
)
NAMED = st.lists(st.tuples(st.sampled_from("abc"), RELATIONS), min_size=1, max_size=4)


def ledger(*events: LedgerEvent, checkpoint_history: CheckpointHistory = "public") -> Ledger:
    return Ledger(unit="line", checkpoint_history=checkpoint_history, records=400, delta=1e-6, grid=1e-3, events=events)


def by_scope(actual: Ledger) -> dict[str, Guarantee]:
    return {each.scope: each for each in guarantees(actual)}


def words(actual: Ledger) -> str:
    return " ".join(guarantee_sentences(actual, guarantees(actual)))


@given(NAMED)
def test_intersection_does_not_depend_on_the_order(relations: list[tuple[str, Relation]]) -> None:
    kinds = {type(intersect(order)) for order in permutations(relations)}
    assert len(kinds) == 1
    if kinds == {Neighbours}:
        assert len({repr(intersect(order)) for order in permutations(relations)}) == 1


@given(NAMED, NAMED)
def test_more_relations_leave_no_more_neighbours(
    some: list[tuple[str, Relation]], more: list[tuple[str, Relation]]
) -> None:
    together, alone = intersect(some + more), intersect(some)
    if isinstance(together, Neighbours):
        assert isinstance(alone, Neighbours)
        assert alone.shapes <= together.shapes
        assert (alone.unit, alone.flags) == (together.unit, together.flags)


@given(NAMED)
def test_only_what_stays_the_same_between_neighbours_intersects(relations: list[tuple[str, Relation]]) -> None:
    """Written against the fields, apart from the function: every relation hides flagged characters, by flags of the
    record alone from a detector of an entity tier, and all agree."""
    hides = all(each.shape in ("bytes", "shape", "pattern", "votes") for _, each in relations)
    stable = all(
        each.flags is not None
        and each.flags.tier.endswith("entity")
        and each.flags.detector is not None
        and not each.flags.human
        and not each.flags.crosscheck
        for _, each in relations
    )
    agree = len({(each.unit, each.flags) for _, each in relations}) == 1
    assert isinstance(intersect(relations), Neighbours) is (hides and stable and agree)


CHAINED: dict[str, dict[str, Any]] = {
    "another tier": {"tier": "high-entity"},
    "another detector": {"detector": OTHER_DETECTOR},
}


@pytest.mark.parametrize("changed", CHAINED)
@pytest.mark.parametrize("text", ["bytes", "shape", "pattern"])
def test_a_run_that_flags_otherwise_voids_what_the_one_before_hid(changed: str, text: Any) -> None:
    """What the second flags was read by the first as it is, so no ε covers it."""
    first, second = plain("bytes", stage="redacted"), plain(text, stage="again", **CHAINED[changed])
    chained = ledger(first, second, noisy(1.0, 10, **CHAINED[changed]))
    assert "selective" not in by_scope(chained)
    # Noise bounds any change of a record, whatever flags its weights; but a sentence speaks of one detector.
    weighed = by_scope(ledger(first, plain(text, stage="again"), noisy(1.0, 10, **CHAINED[changed])))
    assert ("selective" in weighed) is (changed == "another tier")
    said = words(chained)
    assert "Flagged values: no guarantee, because stages redacted and again do not flag the same" in said
    assert f"ε = {chained.delta:g}" not in said


def test_what_a_corpus_is_does_not_matter_to_what_is_hidden() -> None:
    """Each event is stable between corpora that differ in a record of its own corpus, or in none."""
    assert "selective" in by_scope(ledger(plain("bytes"), plain("shape", corpus=OTHER_CORPUS)))


def test_equal_decoys_leave_open_which_values_are_equal() -> None:
    """Every sentence about the neighbours has it; decoys that are drawn one by one say nothing of it."""
    shape, pattern = (ledger(plain(text), votes(2.0)) for text in ("shape", "pattern"))
    apart, equal = (by_scope(actual) for actual in (shape, pattern))
    assert apart.keys() == equal.keys() >= {"selective", "uncounted"}
    for scope in ("selective", "uncounted"):
        assert (apart[scope].epsilon, apart[scope].delta) == (equal[scope].epsilon, equal[scope].delta)
        assert SAME_PATTERN.format(unit="line") in equal[scope].assumptions
        assert set(equal[scope].assumptions) - set(apart[scope].assumptions) == {SAME_PATTERN.format(unit="line")}
    assert "of the same shapes and the same equalities within the line that" in words(pattern)
    assert "Which values of a line are equal or made of one another is left open." in words(pattern)
    reported = [lay_summary(actual, guarantees(actual)) for actual in (shape, pattern)]
    assert "which flagged values of a line are equal or made of one another" in str(reported[1])
    assert "equal" not in words(shape) + str(reported[0])


def test_a_ledger_of_decoys_drawn_apart_and_equal_says_both() -> None:
    both = by_scope(ledger(plain("shape"), plain("pattern")))["selective"]
    assert both.neighbours is not None
    assert both.neighbours.shapes == {"shape", "pattern"}
    assert SAME_PATTERN.format(unit="line") in both.assumptions


@pytest.mark.ci
@settings(deadline=None, max_examples=20)
@given(st.floats(0.8, 4.0), st.integers(1, 8))
def test_what_no_release_counts_costs_nothing(sigma: float, records: int) -> None:
    fitted = ledger(plain("shape", stage="fitted-decoys"), votes(sigma))
    actual = by_scope(fitted)
    assert (actual["uncounted"].epsilon, actual["uncounted"].delta) == (0, 0)
    assert (actual["selective"].epsilon or 0) > 0
    assert scope_epsilon(fitted, "uncounted", records) == 0
    for event in (noisy(sigma, 3), votes(sigma, tier="high-entity")):
        assert "uncounted" not in by_scope(ledger(*fitted.events, event))
    on_decoys = by_scope(ledger(*fitted.events, noisy(sigma, 3, shape="shape")))
    assert on_decoys["uncounted"].epsilon == 0


def test_without_noise_the_selective_scope_is_exact() -> None:
    actual = by_scope(ledger(plain("bytes")))
    assert "uncounted" not in actual
    assert actual["selective"].exact
    assert scope_epsilon(ledger(plain("bytes")), "selective", 50) == 0
    assert "for any number of lines: ε = 0 and δ = 0" in words(ledger(plain("bytes")))


def test_the_scopes_figures_are_in_their_own_adjacency() -> None:
    actual = ledger(plain("shape"), votes(2.0))
    alone, ten = scope_epsilon(actual, "selective"), scope_epsilon(actual, "selective", 10)
    zeroed = scope_epsilon(actual, "increment", 10)
    assert alone is not None
    assert ten is not None
    assert zeroed is not None
    assert alone < zeroed < ten < math.inf
    # Votes never are negative, so a replaced record moves them √2 times as far as one that is zeroed out.
    assert ten == pytest.approx(scope_epsilon(ledger(plain("shape"), votes(2.0 / 2**0.5)), "increment", 10), rel=2e-3)


def test_a_commitment_needs_its_key() -> None:
    texts = ["Emma has 3 cats.", "Bob has none."]
    assert commitment(b"k" * 32, texts) == commitment(b"k" * 32, list(texts))
    others = {commitment(b"l" * 32, texts), commitment(b"k" * 32, texts[::-1]), commitment(b"k" * 32, ["".join(texts)])}
    assert len(others | {commitment(b"k" * 32, texts)}) == 4
