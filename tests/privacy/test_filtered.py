"""A filter of what the detector finds is a part of every claim about flags, and a share near 0 protects nothing."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from atdp_cli.corpus.spans import Tier
from atdp_cli.detection.detect import LabelFilter
from atdp_cli.detection.detector import Detector, flags_of
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import LedgerEvent, read_ledger, write_ledger
from atdp_cli.privacy.relation import Flags
from atdp_cli.privacy.wording import guarantee_sentences
from atdp_cli.reporting.card import render_card
from atdp_cli.reporting.document import DetectorEntry
from atdp_cli.reporting.html import render_html
from atdp_cli.reporting.wording import lay_summary
from tests.privacy.relations import noisy, plain, votes
from tests.reporting.documents import ledger, public

FILTERS: dict[str, dict[str, Any]] = {
    "(labels CRYPTO only)": {"labels": ("CRYPTO",)},
    "(labels CRYPTO and IP only)": {"labels": ("CRYPTO", "IP")},
    "(without DATE)": {"without": ("DATE",)},
    "(without DATE, GPE and PERSON)": {"without": ("DATE", "GPE", "PERSON")},
    "(confidence of at least 1)": {"least_confidence": 1.0},
    "(confidence of at least 0.95)": {"least_confidence": 0.95},
    "(labels ID only, without DATE, confidence of at least 0.9)": {
        "labels": ("ID",),
        "without": ("DATE",),
        "least_confidence": 0.9,
    },
}
READ: dict[str, tuple[Any, ...]] = {
    "redacted": ("bytes",),
    "decoys": ("shape",),
    "equal decoys": ("pattern",),
    "fitted decoys": ("shape", "votes"),
    "redacted, then noise": ("bytes", "noisy"),
}


def _events(kind: str, flags: dict[str, Any]) -> tuple[LedgerEvent, ...]:
    made: dict[str, Any] = {"votes": partial(votes, 4.0), "noisy": noisy}
    return tuple(made[each](**flags) if each in made else plain(each, **flags) for each in READ[kind])


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("filtered", FILTERS)
def test_every_claim_about_flags_names_the_filter(filtered: str, kind: str) -> None:
    actual = ledger(*_events(kind, FILTERS[filtered]))
    supported = guarantees(actual)
    said = guarantee_sentences(actual, supported)
    tier = f"at tier low-entity {filtered}"
    assert all(tier in sentence for sentence in said if "flagged" in sentence and "ε =" in sentence)
    assert any(tier in sentence for sentence in said)
    assert tier in lay_summary(actual, supported).protects
    for each in supported:
        if each.neighbours is not None:
            assert tier in " ".join(each.assumptions)
    detector = DetectorEntry(tier="low-entity", pipeline="en", lists=False, kept=filtered[1:-1])
    report = public(*actual.events, detector=detector)
    assert report.release is not None
    assert filtered[1:-1] in report.release.reason
    assert all(filtered in page for page in (render_card(report), render_html(report)))


@pytest.mark.parametrize("filtered", FILTERS)
def test_runs_that_filter_otherwise_do_not_flag_the_same(filtered: str) -> None:
    actual = ledger(plain("bytes", stage="first"), plain("bytes", stage="second", **FILTERS[filtered]))
    assert {each.scope for each in guarantees(actual)} == {"end_to_end", "increment"}
    said = " ".join(guarantee_sentences(actual, guarantees(actual)))
    assert f"do not flag the same: one takes all labels, the other {filtered[1:-1]}" in said


@pytest.mark.parametrize("filtered", FILTERS)
def test_the_ledger_keeps_it(filtered: str, tmp_path: Path) -> None:
    actual = ledger(plain("bytes", **FILTERS[filtered]))
    write_ledger(tmp_path / "l.json", actual)
    assert read_ledger(tmp_path / "l.json").events[0].relation.flags.kept == filtered[1:-1]  # type: ignore[union-attr]


def test_the_flags_of_a_run_have_its_filter() -> None:
    """Of a file of spans nothing is filtered, so it has none."""
    chosen = LabelFilter(entities=("CRYPTO",), exclude=("DATE",), min_confidence=1.0)
    detector = Detector(tier=Tier.LOW_ENTITY, label_filter=chosen)
    kept = flags_of(detector, spans=False, review=False)
    assert (kept.labels, kept.without, kept.least_confidence) == (("CRYPTO",), ("DATE",), 1.0)
    assert flags_of(detector, spans=True, review=False).kept == ""
    assert flags_of(Detector(), spans=False, review=False).kept == ""


@pytest.mark.parametrize("field", [{"labels": ("a b",)}, {"without": ("x" * 41,)}, {"least_confidence": 1.5}])
def test_a_foreign_ledger_names_labels_alone(field: dict[str, Any]) -> None:
    """They stand in sentences that are published."""
    with pytest.raises(ValidationError):
        Flags(detector="ab" * 32, tier="low-entity", **field)
