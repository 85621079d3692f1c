"""The questions of NIST SP 800-226: in the order of its pyramid, and nothing is called tested that was not."""

from itertools import groupby

from atdp_cli.reporting.annex import annex_rows
from atdp_cli.reporting.document import AnnexRow, PublicReport, StageEntry
from tests.reporting.documents import public


def rows(report: PublicReport) -> dict[str, AnnexRow]:
    return {row.topic: row for row in annex_rows(report)}


def test_it_goes_down_the_pyramid() -> None:
    levels = [level for level, _ in groupby(annex_rows(public()), lambda row: row.level)]
    assert levels == ["the guarantee", "what can undermine it", "what it stands on"]
    assert len(rows(public())) == len(annex_rows(public()))


def test_what_was_not_tested_is_said_not_to_be() -> None:
    bare = rows(public(audits=(), held_out=0, verified=None))
    assert bare["Correctness"].status == "not tested"
    assert bare["Utility"].status == "not tested"
    assert bare["Algorithms"].status == "stated"
    tested = rows(public(verified="Compared."))
    assert tested["Correctness"].status == "tested"
    assert "The audit's verdict: PASS." in tested["Correctness"].lines
    assert "A lower bound on ε, by rank, does not refute the ledger's claim." in tested["Correctness"].lines
    assert tested["Utility"].status == "tested"
    assert tested["Algorithms"].status == "tested"
    for topic in ("Side channels", "Data security and access control", "Bias", "Data collection exposure"):
        assert bare[topic].status == tested[topic].status == "not tested"


def test_an_audit_of_the_start_tests_nothing_here() -> None:
    only = public().audits[1:]
    assert [audit.of for audit in only] == ["before"]
    assert rows(public(audits=only))["Correctness"].status == "not tested"


def test_without_noise_there_is_no_mechanism_to_speak_of() -> None:
    plain = StageEntry(name="no-dp", text="raw", objective="uniform", mechanism="plain", epochs=1, steps=3)
    row = rows(public(stages=(plain,), sampling=None, epsilon=None))["Algorithms"]
    assert (row.status, row.lines) == ("does not apply", ("No ε of this run rests on noise.",))


def test_a_declared_past_is_declared_and_not_tested() -> None:
    assert "as the user declared. Nothing checked that." in rows(public())["Data collection exposure"].lines[1]
    assert "is unknown" in rows(public(checkpoint_history="unknown"))["Data collection exposure"].lines[1]
