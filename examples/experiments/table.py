"""The rows of a table of systems, from what their runs and audits left on disk."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from atdp_cli.audit.exposure import bootstrap
from atdp_cli.audit.hypothesis_tests import fisher
from atdp_cli.audit.results import DISCOVERABLE_QUERIES
from atdp_cli.files.private import PRIVATE, beside
from atdp_cli.reporting.document import REPORT_FILE
from examples.experiments.experiment import (
    AUDITED,
    RELEARNT,
    ROUNDED,
    SENTENCE,
    Experiment,
    Node,
    audit_nodes,
    folder_of,
    nodes_of,
    prepare,
    run_nodes,
)
from examples.experiments.figures import Number, Row, Tokens
from examples.experiments.systems import System

NO_DP = "no-dp"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One system, one repetition.

    Attributes:
        exposures, ratios: Of each planted canary, bits; by log p and by its ratio to the base model's. No ratios
            where all candidates tie.
        p_values, p_ratios: Of the same.
        perplexity: Of the held-out records.
        sentence: Of the sentence.
        seconds: Of the processor, for all stages, those shared with other systems too. A run has one thread, and what
            else the machine does does not count.
        guarantees: As the report has them.
        verdict: Of the audit.
        greedy: How many of the planted canaries greedy decoding gives; None where it was not tried.
        discoverable: How many a thousand samples hold with probability 1/2 or more (Hayes et al. 2024).
        resurfaced, resurfaced_ratios: As `exposures` and `ratios`, of a copy fine-tuned on other text.
        relearnt, relearnt_ratios: Of a copy that was fine-tuned `MANY_STEPS` on it.
        rounded, rounded_ratios: Of the model with weights rounded to int8.
    """

    exposures: tuple[float, ...]
    ratios: tuple[float, ...]
    p_values: tuple[float, ...]
    p_ratios: tuple[float, ...]
    perplexity: Tokens
    sentence: Tokens
    seconds: float
    guarantees: tuple[dict[str, Any], ...]
    verdict: str
    greedy: int | None = None
    discoverable: int | None = None
    resurfaced: tuple[float, ...] = ()
    resurfaced_ratios: tuple[float, ...] = ()
    relearnt: tuple[float, ...] = ()
    relearnt_ratios: tuple[float, ...] = ()
    rounded: tuple[float, ...] = ()
    rounded_ratios: tuple[float, ...] = ()


def measure(
    experiment: Experiment, systems: Sequence[System], *, workers: int, say: Callable[[str], None]
) -> tuple[Row, ...]:
    """Run and audit what has not been, and the row of each system.

    Args:
        workers: Runs at a time, one thread each.
        say: Told a line for everything that is done.

    Raises:
        UsageError: The folder holds another experiment.
        RunError: A run or an audit failed; what is done stays.
    """
    nodes = nodes_of(systems, experiment.seeds)
    prepare(experiment)
    for count, node in enumerate(run_nodes(experiment, nodes, workers=workers), start=1):
        say(f"run {count}: {node.slug}, seed {node.seed}")
    ends = {system.steps for system in systems}
    finished = [node for node in nodes if node.steps in ends]
    for count in audit_nodes(experiment, finished, workers=workers):
        say(f"audited: {count} of {len(finished)}")
    return rows_of(experiment, systems)


def measured(experiment: Experiment, system: System, seed: int) -> Measured:
    """What a repetition of a system left on disk, once it has been run and audited."""
    chain = [Node(seed=seed, steps=system.steps[:length]) for length in range(1, len(system.steps) + 1)]
    reports = [_json(beside(folder_of(experiment, node), PRIVATE) / REPORT_FILE) for node in chain]
    folder = folder_of(experiment, chain[-1])
    audit = _json(beside(folder, AUDITED))
    planted = [canary for canary in audit["canaries"] if canary["planted"]]
    # The base model's ratio to itself says nothing.
    tied = all(canary["rank_ratio_max"] - canary["rank_ratio_min"] + 1 == canary["compared"] for canary in planted)
    return Measured(
        exposures=tuple(canary["exposure"] for canary in planted),
        ratios=() if tied else tuple(canary["exposure_ratio"] for canary in planted),
        p_values=tuple(canary["p_value"] for canary in planted),
        p_ratios=() if tied else tuple(canary["p_value_ratio"] for canary in planted),
        perplexity=_tokens(reports[-1]["perplexity"]["after"]),
        sentence=_tokens(_json(beside(folder, SENTENCE))),
        seconds=sum(stage["processor_seconds"] for report in reports for stage in report["stages"]),
        guarantees=tuple(reports[-1]["public"]["guarantees"]),
        verdict=audit["verdict"],
        **_attacked(audit),
        **(_attacked_harder(folder) if experiment.attacked_harder else {}),
    )


def _attacked(audit: dict[str, Any]) -> dict[str, Any]:
    """What the attacks found, where they were tried."""
    if audit["extraction"] is None or audit["relearning"] is None:
        return {}
    extraction = [audit["extraction"][place] for place in _planted(audit)]
    queries = [canary["queries_half"] for canary in extraction]
    return {
        "greedy": sum(canary["greedy"] for canary in extraction),
        "discoverable": sum(count is not None and count <= DISCOVERABLE_QUERIES for count in queries),
        **_relearnt(audit, "resurfaced"),
    }


def _attacked_harder(folder: Path) -> dict[str, Any]:
    rounded = _json(beside(folder, ROUNDED))
    canaries = [rounded["canaries"][place] for place in _planted(rounded)]
    return {
        **_relearnt(_json(beside(folder, RELEARNT)), "relearnt"),
        "rounded": tuple(canary["exposure"] for canary in canaries),
        "rounded_ratios": tuple(canary["exposure_ratio"] for canary in canaries),
    }


def _relearnt(audit: dict[str, Any], name: str) -> dict[str, tuple[float, ...]]:
    after, planted = audit["relearning"], _planted(audit)
    return {
        name: tuple(after["exposures"][place] for place in planted),
        f"{name}_ratios": tuple(after["exposures_ratio"][place] for place in planted),
    }


def _planted(audit: dict[str, Any]) -> list[int]:
    return [place for place, canary in enumerate(audit["canaries"]) if canary["planted"]]


def rows_of(experiment: Experiment, systems: Sequence[System]) -> tuple[Row, ...]:
    """A row for each system, over all repetitions."""
    seeds = range(1, experiment.seeds + 1)
    return rows_from({system.name: [measured(experiment, system, seed) for seed in seeds] for system in systems})


def rows_from(runs: Mapping[str, Sequence[Measured]]) -> tuple[Row, ...]:
    """A row for each system; the cost is over that of `no-dp`, where it is among them."""
    plain = [run.seconds for run in runs.get(NO_DP, ())]
    return tuple(row_of(name, own, plain=float(np.mean(plain)) if plain else None) for name, own in runs.items())


def row_of(name: str, runs: Sequence[Measured], *, plain: float | None) -> Row:
    """The row of one system.

    Args:
        runs: One a repetition; their canaries were drawn independently.
        plain: Mean seconds of `no-dp`; None where that was not run.
    """
    by_log_p = [np.array(run.exposures) for run in runs]
    by_ratio = [np.array(run.ratios) for run in runs if run.ratios]
    scores = [[p for run in runs for p in run.p_values], [p for run in runs for p in run.p_ratios]]
    p = [fisher(values) for values in scores if values]
    seconds = float(np.mean([run.seconds for run in runs]))
    # Repetitions differ in the jitter of σ, and with it in ε: the largest is that of none too few.
    scope, chosen = max((strongest(run.guarantees) for run in runs), key=lambda pair: as_float(pair[1]["epsilon"]))
    whole = max((_in(run.guarantees, "end_to_end")["epsilon"] for run in runs), key=as_float)
    return Row(
        recipe=name,
        exposure_mean=float(np.concatenate(by_log_p).mean()),
        exposure_interval=bootstrap(by_log_p),
        exposure_ratio_mean=float(np.concatenate(by_ratio).mean()) if by_ratio else None,
        exposure_ratio_interval=bootstrap(by_ratio) if by_ratio else None,
        fisher_p=min(1.0, len(p) * min(p)),
        perplexity=_mean([run.perplexity.all for run in runs]),
        perplexity_tokens=_average([run.perplexity for run in runs]),
        sentence_tokens=_average([run.sentence for run in runs]),
        relative_compute=None if not plain else seconds / plain,
        seconds=seconds,
        epsilon=chosen["epsilon"],
        scope=scope,
        epsilon_end_to_end=whole,
        delta=chosen["delta"],
        assumptions=tuple(chosen["assumptions"]),
        canaries=sum(len(run.exposures) for run in runs),
        seeds=len(runs),
        failed=sum(run.verdict == "FAIL" for run in runs),
        greedy=_sum([run.greedy for run in runs]),
        discoverable=_sum([run.discoverable for run in runs]),
        resurfaced_mean=_mean([bits for run in runs for bits in run.resurfaced]),
        resurfaced_ratio_mean=_mean([bits for run in runs for bits in run.resurfaced_ratios]),
    )


def strongest(guarantees: Sequence[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The guarantee of the strongest scope that is finite, with that scope; the increment where there is no other."""
    whole = _in(guarantees, "end_to_end")
    if whole["epsilon"] != "inf":
        return "end_to_end", whole
    selective = [guarantee for guarantee in guarantees if guarantee["scope"] == "selective"]
    return ("selective", selective[0]) if selective else ("increment", _in(guarantees, "increment"))


def as_float(epsilon: Number) -> float:
    """ε as the JSON has it as a number; where nothing was spent, 0."""
    return 0.0 if epsilon is None else float(epsilon)


def _in(guarantees: Sequence[dict[str, Any]], scope: str) -> dict[str, Any]:
    return next(guarantee for guarantee in guarantees if guarantee["scope"] == scope)


def _tokens(measured: dict[str, Any]) -> Tokens:
    return Tokens(all=measured["all"], sensitive=measured["sensitive"], other=measured["other"])


def _average(runs: Sequence[Tokens]) -> Tokens:
    return Tokens(
        all=_mean([run.all for run in runs]),
        sensitive=_mean([run.sensitive for run in runs]),
        other=_mean([run.other for run in runs]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _json(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
