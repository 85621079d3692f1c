"""The verdict on a release: only what a guarantee holds is releasable, and a failed audit rules it out."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.privacy.wording import WEAK
from atdp_cli.reporting.audit_entry import AuditEntry
from atdp_cli.reporting.document import ReleaseVerdict
from atdp_cli.reporting.entries import GuaranteeEntry, guarantee_entries
from atdp_cli.reporting.wording import release_verdict
from tests.privacy.relations import noisy
from tests.reporting.documents import NOISY, RAW, REDACTED, RELEASE, audit, ledger

WEAKLY = noisy(0.6, 200)
FAILED, UNSURE, PASSED = ((audit(verdict=verdict),) for verdict in ("FAIL", "INCONCLUSIVE", "PASS"))


def judged(found: Ledger, *audits: AuditEntry) -> ReleaseVerdict:
    entries = guarantee_entries(guarantees(found))
    return release_verdict(entries, audits, unit=found.unit, insecure_seed=found.insecure_seed)


@pytest.mark.parametrize(
    ("found", "verdict", "reason"),
    [
        (ledger(NOISY), "releasable", "Each line of the corpus is protected at ε = "),
        (ledger(), "releasable", "No stage read the corpus"),
        (ledger(REDACTED), "flagged-values-only", "at ε = 0 and δ = 0; what it missed has no guarantee"),
        (ledger(REDACTED, NOISY), "flagged-values-only", "What the detector flagged is protected at ε = "),
        (ledger(NOISY, checkpoint_history="unknown"), "not-releasable", "No finite ε holds"),
        (ledger(REDACTED, checkpoint_history="unknown"), "not-releasable", "No finite ε holds"),
        (ledger(RAW, NOISY), "not-releasable", "No finite ε holds"),
        (ledger(RAW, RELEASE), "not-releasable", "No finite ε holds"),
        (ledger(WEAKLY), "not-releasable", "is too weak to rely on"),
        (ledger(REDACTED, WEAKLY), "not-releasable", "is too weak to rely on"),
        (ledger(NOISY, insecure_seed=True), "not-releasable", "came from a seed"),
        (ledger(insecure_seed=True), "not-releasable", "came from a seed"),
    ],
)
def test_the_verdict_is_what_the_guarantees_hold(found: Ledger, verdict: str, reason: str) -> None:
    for audits, clause in (((), "no audit has tested it"), (UNSURE, "could not decide"), (PASSED, "audit passed")):
        made = judged(found, *audits)
        assert made.verdict == verdict
        assert reason in made.reason
        assert not re.search(r"\.\s", made.reason), "one sentence"
        if verdict != "not-releasable":
            assert clause in made.reason
    failed = judged(found, *FAILED)
    assert failed.verdict == "not-releasable"


def test_only_the_audit_of_this_model_counts() -> None:
    assert judged(ledger(NOISY), audit("before", verdict="FAIL"), audit("other", verdict="FAIL")) == judged(
        ledger(NOISY)
    )


def test_a_passed_audit_makes_up_for_nothing() -> None:
    made = judged(ledger(RAW, NOISY), *PASSED)
    assert made.verdict == "not-releasable"
    assert "the passed audit does not make up for that" in made.reason


ORDER = ("not-releasable", "flagged-values-only", "releasable")
EPSILONS = st.one_of(st.none(), st.just(math.inf), st.floats(0, 4 * WEAK))


def entry(scope: str, epsilon: object) -> GuaranteeEntry:
    adjacency = "replace-one" if scope == "selective" else "zero-out"
    return GuaranteeEntry.model_validate(
        {
            "scope": scope,
            "epsilon": epsilon,
            "delta": 1e-6,
            "adjacency": adjacency,
            "accountant": None,
            "assumptions": (),
        }
    )


@given(EPSILONS, st.one_of(st.just(math.inf), st.floats(0, 4 * WEAK)), st.sampled_from([(), UNSURE, PASSED]))
def test_noise_added_alone_never_makes_a_model_releasable(
    whole: object, selective: object, audits: tuple[AuditEntry, ...]
) -> None:
    entries = (entry("end_to_end", whole), entry("selective", selective), entry("increment", 0.1))
    made = release_verdict(entries, audits, unit="line", insecure_seed=False)
    holds = [isinstance(epsilon, float) and epsilon <= WEAK for epsilon in (selective, whole)]
    best = 2 if whole is None or holds[1] else 1 if holds[0] else 0
    assert made.verdict == ORDER[best]
