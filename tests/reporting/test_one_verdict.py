"""One verdict over every combination of what is guaranteed, what is known of the past, and what an audit found.

`verdicts.txt` has a row for each. Look at every row that changes, then write it anew:
`python -m tests.reporting.test_one_verdict`.
"""

import math
from collections.abc import Iterator
from functools import cache
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from atdp_cli.audit.results import Audit
from atdp_cli.cli.console import PlainConsole
from atdp_cli.cli.harden_screen import show_result
from atdp_cli.cli.report_screen import show_report
from atdp_cli.errors import InputError
from atdp_cli.hardening.summary import result_summary
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import DeclaredTraining, DecoyedText, Ledger, LedgerEvent, ReadModel
from atdp_cli.reporting.card import render_card
from atdp_cli.reporting.document import PublicReport, ReleaseVerdict
from atdp_cli.reporting.from_ledger import fields_from_ledger
from atdp_cli.reporting.html import VERDICTS, render_html
from atdp_cli.reporting.write import with_audits
from tests.privacy.relations import noisy, plain, relation, votes
from tests.reporting.documents import NOISY, RAW, REDACTED, ledger, private, public
from tests.reporting.test_audit_that_counts import FAILED, PASSED, UNSURE, release, uncalibrated

pytestmark = pytest.mark.ci
"""A small case is in test_release_verdict.py."""

GOLDEN = Path(__file__).parent / "verdicts.txt"

SCOPES: dict[str, tuple[LedgerEvent, ...]] = {
    "whole records": (NOISY,),
    "flagged values": (plain("shape", stage="decoys"), votes(4.0)),
    "IDs and keys": (plain("shape", stage="decoys"), votes(0.1)),
    "noisy stages alone": (RAW, NOISY),
    "none": (RAW,),
    "nothing read": (),
}
"""The strongest scope with an ε that can be relied on, and a run that has it where its start is public."""

TEXT = DecoyedText(run="d", stage="decoys", copies=3, relation=relation("shape"))
ADOPTED = DeclaredTraining(run="m", stage="declared", corpora=("d",), weights={"model.safetensors": "ab"})
BASE = {"stage": "anchored", "weights": {"model.safetensors": "cd"}}

PASTS: dict[str, tuple[LedgerEvent, ...]] = {
    "public": (),
    "inherited, with noise": (noisy(4.0, 20),),
    "inherited, redacted": (REDACTED,),
    "inherited, raw": (RAW,),
    "base as declared": (ReadModel.model_validate({**BASE, "past": "declared"}),),
    "base unknown": (ReadModel.model_validate({**BASE, "past": "unknown"}),),
    "trained as declared": (TEXT, ADOPTED),
    "unknown": (),
}
"""What is known of the start, and the events of its ledger."""

AUDITS: dict[str, tuple[Audit, ...]] = {
    "none": (),
    "PASS": (PASSED,),
    "INCONCLUSIVE": (UNSURE,),
    "FAIL": (FAILED,),
    "PASS and FAIL": (PASSED, FAILED),
    "PASS, uncalibrated": (uncalibrated(PASSED),),
    "FAIL, uncalibrated": (uncalibrated(FAILED),),
    "PASS of another model": (),
    "PASS, another FAIL": (PASSED,),
}
"""The audits of the report's model."""

OTHERS = {"PASS of another model": PASSED, "PASS, another FAIL": FAILED}
"""And of a model with other weights."""

PASSES = ("PASS", "PASS, another FAIL")

ORDER = ("not-releasable", "not-audited", "flagged-values-only", "releasable")
"""The verdicts, from the one that allows least."""

Combination = tuple[str, str, str]

COMBINATIONS: list[Combination] = [(scope, past, audit) for scope in SCOPES for past in PASTS for audit in AUDITS]


def ledger_of(scope: str, past: str) -> Ledger:
    history = "unknown" if past == "unknown" else "public"
    return ledger(*PASTS[past], *SCOPES[scope], checkpoint_history=history)


@cache
def unaudited(scope: str, past: str) -> PublicReport:
    """The report of a run as it ends."""
    found = ledger_of(scope, past)
    fields = fields_from_ledger(found, guarantees(found), ()) | {"weights": {"model.safetensors": "ab12"}}
    return public(audits=(), **fields)


@cache
def reported(scope: str, past: str, audit: str) -> PublicReport:
    """The same with audits, as `atdp report --audit` attaches them; those of other models alone are refused."""
    report = unaudited(scope, past)
    audits = [each.model_copy(update={"weights": dict(report.weights)}) for each in AUDITS[audit]]
    other = [OTHERS[audit].model_copy(update={"weights": {"model.safetensors": "ff99"}})] if audit in OTHERS else []
    if audits:
        return with_audits(report, [*other, *audits])
    if other:
        with pytest.raises(InputError, match="None of these audits is of the weights"):
            with_audits(report, other)
    return report


def verdict_of(scope: str, past: str, audit: str) -> ReleaseVerdict:
    return release(reported(scope, past, audit))


def rows() -> Iterator[str]:
    head = ("guaranteed", "past of the start", "audit", "verdict", "of")
    yield "{:<20}{:<24}{:<24}{:<22}{}".format(*head)
    for scope, past, audit in COMBINATIONS:
        if audit == "none":
            yield ""
        made = verdict_of(scope, past, audit)
        yield f"{scope:<20}{past:<24}{audit:<24}{made.verdict:<22}{made.scope or '–'}"


def test_every_combination_has_the_verdict_of_the_golden_file() -> None:
    assert len(COMBINATIONS) > 300
    assert "\n".join(rows()) + "\n" == GOLDEN.read_text(encoding="utf-8")


def test_the_scopes_are_what_they_are_called() -> None:
    """With a public start: which guarantees are finite, and which of them can be relied on."""
    for scope, held in {
        "whole records": {"end_to_end", "increment"},
        "flagged values": {"selective", "uncounted", "increment"},
        "IDs and keys": {"selective", "uncounted", "increment"},
        "noisy stages alone": {"increment"},
        "none": set(),
        "nothing read": set(),
    }.items():
        epsilons = {each.scope: each.epsilon for each in guarantees(ledger_of(scope, "public"))}
        assert {name for name, epsilon in epsilons.items() if epsilon is not None and epsilon < math.inf} == held
    weak = {each.scope: each.epsilon or 0 for each in guarantees(ledger_of("IDs and keys", "public"))}
    assert weak["selective"] > 10 > weak["uncounted"] == 0


def test_nothing_is_releasable_without_a_calibrated_pass_of_this_model() -> None:
    for each in COMBINATIONS:
        if each[2] not in PASSES:
            assert ORDER.index(verdict_of(*each).verdict) <= ORDER.index("not-audited"), each


def test_a_failed_audit_improves_nothing() -> None:
    """Nor does one that could not decide, or that nobody calibrated."""
    for scope, past, audit in COMBINATIONS:
        rank = ORDER.index(verdict_of(scope, past, audit).verdict)
        assert rank <= ORDER.index(verdict_of(scope, past, "PASS").verdict)
        if audit not in PASSES:
            assert rank <= ORDER.index(verdict_of(scope, past, "none").verdict), (scope, past, audit)
        if "FAIL" in audit and audit not in PASSES:
            assert rank == 0, (scope, past, audit)


def test_an_unknown_past_leaves_no_finite_guarantee() -> None:
    """Neither for whole records nor for flagged values, whatever an audit finds."""
    for scope, past, audit in COMBINATIONS:
        epsilons = {each.scope: each.epsilon for each in reported(scope, past, audit).guarantees}
        assert (verdict_of(scope, past, audit).scope is None) or past not in ("unknown", "base unknown")
        if past in ("unknown", "base unknown"):
            assert epsilons["end_to_end"] == math.inf
            assert epsilons.keys() <= {"end_to_end", "increment"}
        if past in ("inherited, raw", "trained as declared"):
            assert epsilons["end_to_end"] == math.inf
            assert "selective" not in epsilons


def said(text: str) -> set[str]:
    """The verdicts that a text says, each a sentence of its own."""
    plain_text = " ".join(text.replace("**", "").split())
    badges = {badge: verdict for verdict, badge in VERDICTS.items()}
    return {badges[badge] for badge in badges if f"{badge}. " in plain_text or f">{badge}<" in plain_text}


def screen() -> tuple[StringIO, Console]:
    file = StringIO()
    return file, PlainConsole.on(file=file, width=80)


def test_every_place_says_the_same_verdict() -> None:
    """harden's last lines, the terminal of `report`, the card and the page: one of each verdict of a scope and past."""
    shown = {(scope, past, verdict_of(scope, past, audit).verdict): audit for scope, past, audit in COMBINATIONS}
    assert len(shown) > 60
    for (scope, past, _), audit in shown.items():
        each = (scope, past, audit)
        made = reported(*each)
        whole = private(public=made)
        assert whole.release is not None
        assert whole.release.verdict == release(made).verdict
        ended, console = screen()
        show_result(result_summary(Path("out"), whole, steps=1), console)
        for report in (made, whole):
            show_report(report, (printed := screen())[1])
            assert said(printed[0].getvalue()) == {release(made).verdict}, each
        assert said(ended.getvalue()) == {release(made).verdict}, each
        assert said(render_card(made)) == {release(made).verdict}, each
        assert said(render_html(made)) == {release(made).verdict}, each


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(rows()) + "\n", encoding="utf-8")
