"""What GitHub Actions reads."""

import re

from atdp_cli.reporting.ci.baseline import make_baseline, new_failures
from atdp_cli.reporting.ci.checks import ResultFile, checked
from atdp_cli.reporting.ci.formats import annotations, step_summary
from tests.reporting.entries import INNOCENT, audit_of, unfinished

MANIFEST = ResultFile(uri="canaries.json", lines=(6, 20))
COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::(.+)")


def test_annotations_name_the_place_and_say_why() -> None:
    verdict, canary = annotations([checked(audit_of("runs/a", 50_000, 1, *INNOCENT), MANIFEST)])
    actual = COMMAND.fullmatch(canary)
    assert actual is not None
    assert (actual[1], actual[2]) == ("error", "file=canaries.json,line=20,title=runs/a%3A canary 2")
    assert actual[3].startswith("Rank 1 of 100,000")
    assert verdict.startswith("::error file=canaries.json,line=1,")


def test_what_is_not_a_failure_is_less_than_an_error() -> None:
    failed = audit_of("a", 1, *INNOCENT)
    assert {
        line.split()[0] for line in annotations([checked(new_failures(failed, make_baseline([failed])), None)])
    } == {"::notice"}
    assert [line.split()[0] for line in annotations([checked(audit_of("a", 1, mismatch="Other."), None)])] == [
        "::warning"
    ]
    assert annotations([checked(audit_of("a", *INNOCENT), MANIFEST)]) == ()


def test_a_name_cannot_end_a_command() -> None:
    (line,) = annotations([checked(unfinished("a\n::error,b%:c"), None)])
    assert "\n" not in line
    assert line.startswith("::error title=a%0A%3A%3Aerror%2Cb%25%3Ac%3A verdict::")


def test_the_summary_is_one_row_a_model() -> None:
    text = step_summary([audit_of("runs/a", 1, *INNOCENT), audit_of("b|<b>\nc", *INNOCENT), unfinished("c")])
    rows = [line for line in text.split("\n") if line.startswith("| ")]
    assert len(rows) == 4
    assert rows[1].startswith("| runs/a | FAIL | 1 of 11 | 16.61 bits |")
    assert rows[2].startswith("| b\\|\\<b\\> c | PASS | 0 of 10 |")
    assert "| ERROR | 0 of 0 | – |" in rows[3]
