"""The verdict on a release: only what a guarantee holds is releasable, and a failed audit rules it out."""

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from atdp_cli.detection.language import LANGUAGES, SCRIPTS, Language, names_missed
from atdp_cli.errors import UsageError
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import Ledger
from atdp_cli.privacy.wording import WEAK
from atdp_cli.reporting.audit_entry import AuditEntry
from atdp_cli.reporting.card import render_card
from atdp_cli.reporting.document import ReleaseVerdict
from atdp_cli.reporting.entries import GuaranteeEntry
from atdp_cli.reporting.from_ledger import fields_from_ledger
from atdp_cli.reporting.html import render_html
from atdp_cli.reporting.wording import release_verdict
from atdp_cli.settings import require_delta
from tests.privacy.relations import noisy
from tests.reporting.documents import NOISY, RAW, REDACTED, RELEASE, audit, ledger, private, public

WEAKLY = noisy(0.6, 200)
FAILED, UNSURE, PASSED = ((audit(verdict=verdict),) for verdict in ("FAIL", "INCONCLUSIVE", "PASS"))


def judged(found: Ledger, *audits: AuditEntry) -> ReleaseVerdict:
    fields = fields_from_ledger(found, guarantees(found), ())
    return release_verdict(public().model_copy(update=fields | {"audits": audits, "records": found.records}))


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
        (ledger(WEAKLY), "not-releasable", "which is too weak to rely on"),
        (ledger(REDACTED, WEAKLY), "not-releasable", "which is too weak to rely on"),
        (ledger(NOISY, insecure_seed=True), "not-releasable", "came from a seed"),
        (ledger(insecure_seed=True), "not-releasable", "came from a seed"),
    ],
)
def test_the_verdict_is_what_the_guarantees_hold(found: Ledger, verdict: str, reason: str) -> None:
    for audits, clause in (((), "no audit has tested it"), (UNSURE, "could not decide"), (PASSED, "audit passed")):
        made = judged(found, *audits)
        assert made.verdict == (verdict if audits == PASSED or verdict == "not-releasable" else "not-audited")
        assert reason in made.reason
        assert not re.search(r"\.\s", made.reason), "one sentence"
        if verdict != "not-releasable":
            assert clause in made.reason
    failed = judged(found, *FAILED)
    assert failed.verdict == "not-releasable"


def test_a_passed_audit_makes_up_for_nothing() -> None:
    made = judged(ledger(RAW, NOISY), *PASSED)
    assert made.verdict == "not-releasable"
    assert "the passed audit does not make up for that" in made.reason


UNITS = ("line", "paragraph", "document", "user", "a field")


@pytest.mark.parametrize("unit", UNITS)
def test_what_can_be_relied_on_depends_on_whose_records_are_one(unit: str) -> None:
    """The issue's case is ε = 10 a line. Ten records together are in every reason that has noise."""
    fields = {"unit": unit, "delta": 1e-6}
    for steps in (NOISY, noisy(0.9, 60), WEAKLY, RELEASE):
        for found in (ledger(steps, **fields), ledger(REDACTED, steps, **fields)):
            made, stated = (
                judged(found),
                [each.epsilon or 0 for each in guarantees(found) if each.scope in ("end_to_end", "selective")],
            )
            holds = min(stated) <= (10 if unit in ("user", "a field") else 3)
            assert (made.verdict != "not-releasable") is holds
            assert f"whoever has ten {unit}s at ε = " in made.reason
    assert "whoever has ten" not in judged(ledger(REDACTED, **fields)).reason


@pytest.mark.parametrize("records", [1000, 12_345, 5_000_000])
@pytest.mark.parametrize("share", [1.0, 1.5, 9.0])
@pytest.mark.parametrize("events", [(NOISY,), (REDACTED, NOISY), (REDACTED, RELEASE)])
def test_delta_is_below_a_tenth_of_a_record(events: Any, share: float, records: int) -> None:
    """At δ = 1/N publishing a record at random is private; a tenth of it is no better than one run in ten."""
    delta = share / (10 * records)
    made = judged(ledger(*events, records=records, delta=delta, unit="user"))
    assert made.verdict == "not-releasable"
    assert "too large" in made.reason or "too weak" in made.reason
    below = judged(ledger(*events, records=records, delta=0.99 / (10 * records), unit="user"))
    assert "too large" not in below.reason
    whole = judged(ledger(REDACTED, records=records, delta=delta), *PASSED)
    assert whole.verdict == "flagged-values-only", "there δ is 0"


@pytest.mark.parametrize("delta", [9.9e-13, 1e-13, 1e-20, 1e-100, 5e-324])
def test_no_delta_below_what_noise_in_floating_point_has(delta: float) -> None:
    with pytest.raises(UsageError, match=r"at least 1e-12: noise in floating point ends near 8\.65"):
        require_delta(delta)
    with pytest.raises(ValidationError):
        ledger(NOISY, delta=delta)
    require_delta(1e-12)


@pytest.mark.parametrize(
    ("spans", "share", "verdict", "reason"),
    [
        (0, 0.0, "not-releasable", "Nothing is flagged"),
        (1, 1e-7, "not-audited", "0.0% of the text is flagged: hardly anything is protected. What the"),
        (3, 0.00099, "not-audited", "0.1% of the text is flagged: hardly anything"),
        (9, 0.001, "not-audited", "0.1% of the text is flagged. What the detector flagged"),
        (99, 0.314, "not-audited", "31.4% of the text is flagged. What the detector flagged"),
    ],
)
def test_the_owner_is_told_where_hardly_anything_is_flagged(
    spans: int, share: float, verdict: str, reason: str
) -> None:
    """The published verdict is silent: how much is flagged is measured on private text."""
    actual = private(public=public(REDACTED, audits=()), flagged_spans=spans, flagged_share=share)
    assert actual.release is not None
    assert actual.release.verdict == verdict
    assert actual.release.reason.startswith(reason)
    assert actual.public.release is not None
    assert actual.public.release.verdict == "not-audited"
    assert reason in render_html(actual)
    assert "hardly" not in render_html(actual.public) + render_card(actual.public)
    whole = private(public=public(NOISY, unit="user", audits=()), flagged_spans=spans, flagged_share=share)
    assert whole.release == whole.public.release, "what flags nothing needs none"


@pytest.mark.parametrize(("spans", "share"), [(0, 0.0), (4, 0.0021), (900, 0.2)])
@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        (SCRIPTS["ARABIC"]["ar"], "The text looks like Arabic script, and the pipeline reads English: most names are"),
        (SCRIPTS["DEVANAGARI"]["hi"], "The text looks like Devanagari script, and the pipeline reads English: most"),
        (LANGUAGES["tr"], "The text looks like Turkish, and the pipeline reads English: most names are missed."),
    ],
)
def test_the_owner_is_told_where_the_detector_reads_another_language(
    language: Language, sentence: str, spans: int, share: float
) -> None:
    missed = names_missed(language, "en")
    actual = private(
        public=public(REDACTED, audits=PASSED), flagged_spans=spans, flagged_share=share, missed_names=missed
    )
    assert actual.release is not None
    assert actual.release.reason.startswith(sentence)
    assert ("Nothing is flagged" in actual.release.reason) is (spans == 0)
    assert f"{share:.1%} of the text is flagged" in actual.release.reason or not spans
    assert sentence in render_html(actual)
    assert "most names" not in render_html(actual.public) + render_card(actual.public)


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


@given(
    EPSILONS,
    st.one_of(st.just(math.inf), st.floats(0, 4 * WEAK)),
    st.sampled_from([(), UNSURE, PASSED]),
    st.sampled_from(UNITS),
)
def test_noise_added_alone_never_makes_a_model_releasable(
    whole: object, selective: object, audits: tuple[AuditEntry, ...], unit: str
) -> None:
    entries = (entry("end_to_end", whole), entry("selective", selective), entry("increment", 0.1))
    said = {"guarantees": entries, "audits": audits, "unit": unit, "records": 1000, "person": ()}
    made = release_verdict(public().model_copy(update=said))
    most = 3 if unit in ("line", "paragraph", "document") else WEAK
    holds = [isinstance(epsilon, float) and epsilon <= most for epsilon in (selective, whole)]
    best = 2 if whole is None or holds[1] else 1 if holds[0] else 0
    assert made.verdict == ("not-audited" if best and audits != PASSED else ORDER[best])
