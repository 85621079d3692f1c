"""The baseline of memory maps: what fails is what is worse than recorded, and nothing else is changed."""

from pathlib import Path

import pytest

from atdp_cli.errors import InputError
from atdp_cli.memorisation.results import MemoryMap
from atdp_cli.reporting.ci.baseline import make_baseline, new_memories, read_baseline
from atdp_cli.reporting.ci.checks import Outcome, checked
from atdp_cli.reporting.ci.formats import annotations, memory_summary
from tests.reporting.test_memory_page import PLACES, memory, place

FAILED = memory(*PLACES)


def judged(found: MemoryMap, *recorded: MemoryMap) -> MemoryMap:
    return new_memories(found, make_baseline(recorded))


@pytest.mark.parametrize(
    ("found", "recorded", "state"),
    [
        (FAILED, FAILED, "known"),
        (memory(PLACES[0]), FAILED, "known"),
        (FAILED, memory(PLACES[0]), "worse"),
        (memory(*PLACES, place(2, 0, 3, 1.0, 3)), FAILED, "worse"),
        (FAILED, memory(*PLACES, model="runs/b"), "unrecorded"),
        (FAILED, FAILED.model_copy(update={"held_out": 500}), "unrecorded"),
        (FAILED, FAILED.model_copy(update={"tested": 4}), "unrecorded"),
        (FAILED, FAILED.model_copy(update={"verdict": "PASS"}), "worse"),
        (FAILED, FAILED.model_copy(update={"verdict": None}), "worse"),
        (FAILED.model_copy(update={"verdict": "PASS"}), FAILED, "not-needed"),
        (FAILED.model_copy(update={"verdict": "INCONCLUSIVE"}), FAILED, "not-needed"),
    ],
)
def test_only_what_is_worse_fails(found: MemoryMap, recorded: MemoryMap, state: str) -> None:
    compared = judged(found, recorded)
    assert compared.baseline == state
    assert compared.gate == ("PASS" if state == "known" else found.verdict)
    assert compared.model_copy(update={"baseline": None}) == found


def test_a_known_failure_is_a_notice_and_is_summed_up_as_such() -> None:
    known = judged(FAILED, FAILED)
    checks = checked(known).checks
    assert {check.outcome for check in checks} == {Outcome.KNOWN}
    assert all(line.startswith("::notice ") for line in annotations([checked(known)]))
    assert all(line.startswith("::error ") for line in annotations([checked(FAILED)]))
    rows = [line for line in memory_summary([known, memory(model="b|<b>")]).splitlines() if line.startswith("| ")]
    assert rows[1].startswith("| runs/a | FAIL, no worse than the baseline | 2 | 3 | 1,003 | 3 |")
    assert rows[2].startswith("| b\\|\\<b\\> | FAIL | 0 |")


def test_a_file_is_read_as_it_was_written_and_no_other_is(tmp_path: Path) -> None:
    baseline = make_baseline([FAILED])
    path = tmp_path / "baseline.json"
    path.write_text(baseline.model_dump_json(), encoding="utf-8")
    assert read_baseline(path) == baseline
    for text in (
        "{}",
        '{"schema_version":1,"kind":"atdp-canaries","models":{}}',
        "no",
        baseline.model_dump_json()[:-1],
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="The baseline"):
            read_baseline(path)
