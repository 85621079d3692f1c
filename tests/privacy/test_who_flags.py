"""Flags in which anyone but the detector had a say leave no guarantee: by them one record can change another's."""

import math
from typing import Any

import pytest

from atdp_cli.accounting.run import check_limit
from atdp_cli.audit.stated_epsilon import group_epsilons
from atdp_cli.errors import BudgetError
from atdp_cli.privacy.compose import compose_ledgers
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import LedgerEvent
from atdp_cli.privacy.wording import advice, guarantee_sentences, protection
from atdp_cli.reporting.entries import guarantee_entries
from atdp_cli.reporting.wording import release_verdict
from tests.privacy.relations import noisy, plain, uniform, votes
from tests.reporting.documents import ledger, public

WHO: dict[str, dict[str, Any]] = {
    "--allow": {"human": ("allow",)},
    "--deny": {"human": ("deny",)},
    "--spans": {"human": ("spans",), "detector": None},
    "--extra-spans": {"human": ("extra-spans",)},
    "--review-each-epoch": {"human": ("review-each-epoch",)},
    "the cross-check": {"crosscheck": True},
    "--allow, --deny and the cross-check": {"human": ("allow", "deny"), "crosscheck": True},
}
OPEN = noisy(1.2, 20).model_copy(update={"relation": uniform()})
"""Steps on raw text whose tokens all weigh the same, which read no flags."""


def _read(kind: str, flags: dict[str, Any]) -> tuple[LedgerEvent, ...]:
    """Events with noise that read flags in which somebody had a say, alone and among others."""
    steps = noisy(1.2, 20, **flags)
    return {
        "weights": (steps,),
        "weights of a contextual tier": (noisy(1.2, 20, **flags | {"tier": "high-contextual"}),),
        "redacted text": (noisy(1.2, 20, shape="bytes", **flags),),
        "decoys": (noisy(1.2, 20, shape="shape", **flags),),
        "equal decoys": (noisy(1.2, 20, shape="pattern", **flags),),
        "a release": (votes(4.0, **flags),),
        "after steps that read none": (OPEN, steps),
        "before steps that read none": (steps, OPEN),
        "a single step of many": (noisy(1.2, 20), noisy(50.0, 1, q=0.001, **flags), noisy(1.2, 20)),
        "after redacted text": (plain("bytes"), steps),
        "a release after decoys": (plain("shape"), votes(4.0, **flags)),
    }[kind]


KINDS = (
    *("weights", "weights of a contextual tier", "redacted text", "decoys", "equal decoys", "a release"),
    *("after steps that read none", "before steps that read none", "a single step of many", "after redacted text"),
    "a release after decoys",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("who", WHO)
def test_nothing_is_guaranteed_where_anyone_had_a_say(who: str, kind: str) -> None:
    """A record that people or a model read can decide what is flagged, so what is published, in all others."""
    actual = ledger(*_read(kind, WHO[who]))
    composed = compose_ledgers((actual, ledger(OPEN, run="ab" * 8)))
    for each in (actual, composed):
        supported = guarantees(each)
        assert {one.scope for one in supported} == {"end_to_end", "increment"}
        whole, increment = supported
        assert whole.epsilon == math.inf
        said = " ".join(guarantee_sentences(each, supported))
        assert f"depends on {who}" in said
        assert any("Nor does it count" in text and who in text for text in increment.assumptions)
        stated = {"guarantees": guarantee_entries(supported), "audits": (), "unit": each.unit}
        assert release_verdict(public().model_copy(update=stated)).verdict == "not-releasable"
        assert protection(each, supported)[0].startswith("No line of the corpus has a guarantee")
        with pytest.raises(BudgetError, match="No guarantee has a finite"):
            check_limit(each, supported, 1e6, accept_declared=True)
        assert group_epsilons(each, [10])[0].epsilon is None
    assert f"leave {who} out" in str(advice(actual))


@pytest.mark.parametrize("who", WHO)
def test_steps_that_read_no_flags_keep_theirs(who: str) -> None:
    """Lists beside --recipe dp-sgd change nothing."""
    supported = guarantees(ledger(OPEN))
    assert "depends on" not in " ".join(guarantee_sentences(ledger(OPEN), supported))
    assert supported[0].epsilon is not None
    assert supported[0].epsilon < 10
    assert "depends on" not in str(guarantees(ledger(noisy(1.2, 20))))


@pytest.mark.parametrize("kind", KINDS[:-1])  # the last has a stage without the list, so two detectors
def test_lists_that_are_declared_public_are_part_of_the_detector(kind: str) -> None:
    """A list that is no one's record decides nothing by a record: what holds without lists holds, and says so."""
    reason = "product names, J. Doe"
    without, declared = (guarantees(ledger(*_read(kind, flags))) for flags in ({}, {"public_lists": reason}))
    assert [(each.scope, each.epsilon) for each in declared] == [(each.scope, each.epsilon) for each in without]
    finite = [each for each in declared if each.epsilon is not None and each.scope != "increment"]
    assert finite
    for each in finite:
        says = [text for text in each.assumptions if reason in text]
        assert bool(says) is not math.isinf(each.epsilon or 0), each.scope
    besides = ledger(*_read(kind, {"public_lists": reason, "human": ("review-each-epoch",)}))
    assert {each.scope for each in guarantees(besides)} == {"end_to_end", "increment"}, "people still have a say"
