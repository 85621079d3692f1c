"""The sentences for people who know nothing of it: they claim what the guarantees hold, and no more."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import Ledger, LedgerEvent, ReadModel, SubsampledGaussian
from atdp_cli.privacy.relation import hypothetical
from atdp_cli.privacy.wording import epsilon_delta, factor, rounded_up
from atdp_cli.reporting.document import CardEntry, Summary
from atdp_cli.reporting.entries import guarantee_entries
from atdp_cli.reporting.from_ledger import fields_from_ledger
from atdp_cli.reporting.wording import (
    NAMES,
    NO_AUDIT,
    NUMBERS,
    audit_sentence,
    lay_summary,
    model_title,
    protected_kinds,
)
from tests.privacy.relations import plain
from tests.reporting.documents import NOISY, RAW, REDACTED, RELEASE, audit, ledger, public

DECOY = plain("pattern", stage="decoys")


def said(actual: Ledger) -> Summary:
    return lay_summary(actual, guarantees(actual))


def test_a_whole_guarantee_is_for_each_record() -> None:
    actual = said(ledger(NOISY))
    [whole] = [guarantee.epsilon for guarantee in guarantees(ledger(NOISY)) if guarantee.scope == "end_to_end"]
    assert actual.protects.startswith("Each line of the corpus is protected")
    assert f"ε = {rounded_up(whole or 0)} at δ = 1e-06" in actual.protects
    assert "held out" in actual.leaves_open
    assert actual.audit == NO_AUDIT


def test_a_selective_one_is_for_what_is_flagged() -> None:
    actual = said(ledger(REDACTED, NOISY))
    assert actual.protects.startswith("What the detector flagged is protected, and nothing else")
    assert "what the detector missed" in actual.leaves_open


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (ledger(RAW, NOISY), "trained on the corpus without protection"),
        (ledger(NOISY, checkpoint_history="unknown"), "the starting model's past is unknown"),
        (ledger(ReadModel(stage="anchored", past="unknown", weights={}), NOISY), "the reference model is unknown"),
    ],
)
def test_without_one_it_says_so_and_why(broken: Ledger, why: str) -> None:
    actual = said(broken)
    assert actual.protects.startswith("No line of the corpus has a guarantee, because")
    assert why in actual.protects
    assert "is protected" not in actual.protects


def test_a_seed_protects_nobody() -> None:
    actual = said(ledger(NOISY, insecure_seed=True))
    assert actual.protects.startswith("Nothing is protected")
    assert "ε" not in actual.protects


def test_a_weak_one_is_called_weak() -> None:
    weak = SubsampledGaussian(
        stage="atdp", sampling_rate=0.9, noise_multiplier=0.6, clip_norm=1.0, steps=60, relation=hypothetical()
    )
    assert "Nobody should rely on a protection this weak." in said(ledger(weak)).protects
    assert "rely on" not in said(ledger(NOISY)).protects


@given(st.floats(0, 13))
def test_the_factor_is_never_below_the_true_one(epsilon: float) -> None:
    shown = float(factor(epsilon).replace(",", ""))
    assert math.exp(epsilon) <= shown * (1 + 1e-9)
    assert shown <= math.exp(epsilon) * 1.11


def test_the_audit_is_reported_as_it_ended() -> None:
    assert audit_sentence([audit("before")]) == NO_AUDIT
    reported = {
        verdict: audit_sentence([audit("after", verdict=verdict)]) for verdict in ("PASS", "FAIL", "INCONCLUSIVE")
    }
    assert reported["PASS"].startswith("The audit passed")
    assert reported["FAIL"].startswith("The audit failed")
    assert reported["INCONCLUSIVE"].startswith("The audit could not decide")
    for text in reported.values():
        assert "1.81 bits, 1.62 by the ratio" in text
        assert "2 canaries" in text or "2 planted canaries" in text
        assert "Greedy decoding gives 1 of them." in text


def test_a_passed_audit_says_what_it_leaves_possible_and_no_more() -> None:
    reported = audit_sentence([audit("after", detectable=4.7, mean_limit=6.21, mean_limit_ratio=5.0)])
    assert "find a mean exposure of 4.7 bits with probability 0.8, and a smaller one less often." in reported
    assert "at most 6.3 bits by log p and 5.0 by the ratio, if one is remembered independently of " in reported
    assert "did not tell the ranks of 2 planted canaries from chance" in reported
    failed = audit_sentence([audit("after", verdict="FAIL", detectable=4.7, mean_limit=6.21)])
    assert "with probability" not in failed
    assert "95 %" not in failed


def test_a_model_is_called_by_its_name_or_by_what_it_was_made_from() -> None:
    assert model_title(public()) == "A language model hardened by atdp"
    assert model_title(public(epsilon=None)) == "A language model written by atdp"
    card = CardEntry(base_model=("gpt2",))
    assert model_title(public(card=card)) == "gpt2, hardened by atdp"
    assert model_title(public(card=card, name="Helper 3")) == "Helper 3"


@given(
    st.lists(st.sampled_from([RAW, REDACTED, NOISY, DECOY, RELEASE]), unique=True),
    st.sampled_from(["public", "unknown"]),
    st.booleans(),
)
def test_a_kind_of_text_is_protected_where_a_guarantee_of_it_is_finite(
    events: list[LedgerEvent], history: str, seeded: bool
) -> None:
    actual = ledger(*events, checkpoint_history=history, insecure_seed=seeded)
    by_scope = {each.scope: each.epsilon or 0.0 for each in guarantees(actual)}
    kinds = {
        kind.name: kind for kind in protected_kinds(guarantee_entries(guarantees(actual)), "line", insecure_seed=seeded)
    }
    whole = math.isfinite(by_scope["end_to_end"]) and not seeded
    flagged = math.isfinite(by_scope.get("selective", math.inf)) and not seeded
    assert all(kind.protected for kind in kinds.values()) == whole
    assert any(kind.protected for kind in kinds.values()) == (whole or flagged)
    if flagged and not whole:
        [selective] = (each for each in guarantees(actual) if each.scope == "selective")
        assert epsilon_delta(selective.epsilon, selective.delta) in kinds[NAMES].says
        assert kinds[NUMBERS].says.startswith("where flagged, ε = 0 and δ = 0") == (
            "uncounted" in by_scope or by_scope["selective"] == 0
        )


@pytest.mark.parametrize("events", [(NOISY,), (REDACTED, NOISY), (DECOY, RELEASE), (DECOY,), (RAW,), ()])
def test_the_more_records_a_person_has_the_larger_is_epsilon(events: tuple[LedgerEvent, ...]) -> None:
    actual = ledger(*events)
    by_scope = {each.scope: each for each in guarantees(actual)}
    person = fields_from_ledger(actual, tuple(by_scope.values()), ())["person"]
    quoted = by_scope["end_to_end"].epsilon
    if quoted == math.inf and "selective" in by_scope:
        quoted = by_scope["selective"].epsilon
    assert bool(person) == (quoted is not None and 0 < quoted < math.inf)
    if person:
        assert person[0].epsilon == quoted
        epsilons = [group.epsilon for group in person]
        assert epsilons == sorted(set(epsilons))
