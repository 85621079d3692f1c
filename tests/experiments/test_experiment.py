"""A small table of systems from end to end: run, audited, taken up again."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from atdp_cli.errors import RunError, UsageError
from atdp_cli.files.private import PRIVATE, beside
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import LEDGER_FILE, read_beside
from examples.experiments import experiment as running
from examples.experiments.attack_table import attack_row
from examples.experiments.experiment import (
    MANY_STEPS,
    RELEARNT,
    Experiment,
    Setting,
    audit_nodes,
    folder_of,
    nodes_of,
    prepare,
    run_nodes,
)
from examples.experiments.figures import Row
from examples.experiments.systems import System, system_of
from examples.experiments.table import NO_DP, as_float, measured, rows_of

SETTINGS = tuple(f"{stage}.epochs=1" for stage in ("no-dp", "redacted", "atdp", "noise"))


@pytest.fixture
def experiment(checkpoint_folder: Path, corpus: Path, tmp_path: Path) -> Experiment:
    return Experiment(
        model=checkpoint_folder,
        corpus=corpus,
        out=tmp_path / "out",
        canaries=4,
        repeats=2,
        seeds=2,
        records=100,
        template="My ID is {digits:3}",
    )


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in a thread, where a process would have to import everything first."""
    monkeypatch.setattr(running, "_pool", ThreadPoolExecutor)


def table(experiment: Experiment, systems: list[System]) -> tuple[Row, ...]:
    nodes = nodes_of(systems, experiment.seeds)
    prepare(experiment)
    assert len(list(run_nodes(experiment, nodes, workers=1))) <= len(nodes)
    assert [*audit_nodes(experiment, nodes, workers=1)][-1:] in ([len(nodes)], [])
    return rows_of(experiment, systems)


@pytest.mark.deep
@pytest.mark.parametrize("seeds", [1, 2])
def test_a_table_is_run_once_and_grows(experiment: Experiment, seeds: int, request: pytest.FixtureRequest) -> None:
    """Its first rows in processes, as anyone runs them, and the others in threads."""
    experiment = replace(experiment, seeds=seeds)
    few = [system_of(recipe, SETTINGS) for recipe in ("base", NO_DP)]
    more = [*few, *(system_of(recipe, SETTINGS) for recipe in ("no-dp+noise", "redacted+atdp", "redacted"))]
    first = table(experiment, few)
    request.getfixturevalue("in_this_process")
    made = {path: path.stat().st_mtime_ns for path in experiment.out.rglob("*") if path.name == LEDGER_FILE}
    rows = table(experiment, more)
    assert rows[:2] == first
    assert all(path.stat().st_mtime_ns == when for path, when in made.items())
    base, plain, noise, hardened, redacted = rows
    assert (base.relative_compute, base.exposure_ratio_mean, base.canaries) == (0.0, None, 4 * seeds)
    assert plain.relative_compute == 1.0
    assert noise.seconds > plain.seconds, "what came before counts"
    assert hardened.seconds > redacted.seconds
    assert (hardened.scope, redacted.epsilon) == ("selective", 0.0)
    check_guarantees(experiment, more, rows)
    audited = {path: path.stat().st_mtime_ns for path in experiment.out.rglob("*.audit.json")}
    for sentence in experiment.out.rglob("*.sentence.json"):
        sentence.unlink()
    assert table(experiment, more) == rows
    assert all(path.stat().st_mtime_ns == when for path, when in audited.items()), "no audit is made twice"


def check_guarantees(experiment: Experiment, systems: list[System], rows: tuple[Row, ...]) -> None:
    """Each row has the largest ε of its scope that the ledgers beside the models give."""
    for system, row in zip(systems, rows, strict=True):
        nodes = [node for node in nodes_of([system], experiment.seeds) if node.steps == system.steps]
        ledgers = [read_beside(folder_of(experiment, node)) for node in nodes]
        actual = [guarantee for ledger in ledgers if ledger is not None for guarantee in guarantees(ledger)]
        assert as_float(row.epsilon) == max(
            guarantee.epsilon or 0 for guarantee in actual if guarantee.scope == row.scope
        )
        assert as_float(row.epsilon_end_to_end) == max(
            guarantee.epsilon or 0 for guarantee in actual if guarantee.scope == "end_to_end"
        )


@pytest.mark.ci
def test_models_are_attacked_harder(experiment: Experiment, in_this_process: None) -> None:
    experiment = replace(experiment, seeds=1, attacked=True, attacked_harder=True)
    system = system_of(NO_DP, ["no-dp.epochs=3", "no-dp.learning-rate=0.01"])
    table(experiment, [system])
    run = measured(experiment, system, 1)
    audits = {name: getattr(run, name) for name in ("exposures", "resurfaced", "relearnt", "rounded")}
    assert {len(bits) for bits in audits.values()} == {4}
    assert len(set(audits.values())) >= 3, "they are of different weights"
    assert np.mean(run.rounded) == pytest.approx(np.mean(run.exposures), abs=2)
    after = json.loads(beside(folder_of(experiment, nodes_of([system], 1)[0]), RELEARNT).read_text())["relearning"]
    assert after["steps"] == MANY_STEPS
    row = attack_row(NO_DP, [run], [run])
    assert [score["mean"] for score in row["relearnt_500"]] == pytest.approx(
        [np.mean(run.relearnt), np.mean(run.relearnt_ratios)], abs=1e-3
    )
    assert (row["all"]["mean"], row["unflagged"]["mean"]) == (1, 1)


def test_another_experiment_does_not_mix_with_this_one(experiment: Experiment) -> None:
    prepare(experiment)
    before = json.loads((experiment.out / "experiment.json").read_text())
    prepare(replace(experiment, seeds=3))
    with pytest.raises(UsageError, match="another experiment"):
        prepare(replace(experiment, canaries=5))
    assert json.loads((experiment.out / "experiment.json").read_text()) == before
    drawn = [(experiment.folder(seed) / "canaries.json").read_bytes() for seed in (1, 2, 3)]
    assert len(set(drawn)) == 3, "every repetition has canaries of its own"


@pytest.mark.ci
def test_a_run_that_fails_is_named(experiment: Experiment, in_this_process: None) -> None:
    prepare(experiment)
    systems = [system_of(NO_DP, ["no-dp.epochs=1", "no-dp.learning-rate=1e30"])]
    with pytest.raises(RunError, match=r"no-dp@[0-9a-f]{6}, seed [12]: .*finite"):
        list(run_nodes(experiment, nodes_of(systems, 2), workers=1))


@pytest.mark.parametrize(("setting", "flagged"), [("missed", 0), ("no-miss", 8)])
def test_the_detector_never_or_always_sees_the_canaries(
    experiment: Experiment, setting: Setting, flagged: int, in_this_process: None
) -> None:
    """Four canaries with two records each."""
    experiment = replace(experiment, setting=setting, seeds=1)
    prepare(experiment)
    [node] = run_nodes(experiment, nodes_of([system_of("base")], 1), workers=1)
    lines = (experiment.folder(1) / "planted.txt").read_text().splitlines()
    canaries = {str(place): line for place, line in enumerate(lines, 1) if line.startswith("My ID is ")}
    assert len(canaries) == 8
    private = beside(folder_of(experiment, node), PRIVATE)
    actual = [json.loads(line) for line in (private / "spans.jsonl").read_text().splitlines()[: len(lines)]]
    seen = {entry["id"]: entry["spans"] for entry in actual if entry["id"] in canaries}
    covered = sum(
        any(span["start"] <= len("My ID is ") and span["end"] == len(canaries[key]) for span in spans)
        for key, spans in seen.items()
    )
    assert covered == flagged
