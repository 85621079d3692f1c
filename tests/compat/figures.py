"""What is compared of what commands say: figures, never words."""

import json
from collections.abc import Mapping
from math import isclose
from pathlib import Path
from typing import Any


def guarantees(document: Mapping[str, Any]) -> dict[str, Any]:
    """ε of each scope."""
    return {guarantee["scope"]: guarantee["epsilon"] for guarantee in document["guarantees"]}


def accounted(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Of `account --json`."""
    names = ("epsilon", "delta", "grid", "insecure_seed", "group", "replace_one", "floor")
    return {name: answer[name] for name in names if name in answer} | {"guarantees": guarantees(answer)}


def planned(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Of `harden --dry-run --json`."""
    names = ("name", "text", "mechanism", "epochs", "steps", "batch", "sampling_rate", "clip_norm", "noise_multipliers")
    stages = [{name: stage[name] for name in names} for stage in answer["stages"]]
    reported = {name: answer[name] for name in ("recipe", "steps", "insecure_seed")}
    return reported | {"stages": stages, "guarantees": guarantees(answer)}


def audited(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of `audit-canary --json`."""
    return [_audited(entry) for entry in answer["models"]]


def _audited(entry: Mapping[str, Any]) -> dict[str, Any]:
    names = ("repeats", "pool", "stratum_size", "exposure", "exposure_ratio", "p_value", "p_value_ratio")
    judged = {name: entry[name] for name in ("verdict", "gate", "weights")}
    baseline = entry["baseline"] and {name: entry["baseline"][name] for name in ("state", "known", "worse")}
    canaries = [{name: canary[name] for name in names} for canary in entry["canaries"]]
    return judged | {"baseline": baseline, "canaries": canaries}


def finished(out: Path) -> dict[str, Any]:
    """Of the files of a finished run: what it spent, and how it went on."""
    private = out.with_name(f"{out.name}.private")
    ledger, report = _read(out / "privacy_ledger.json"), _read(private / "privacy_report.json")
    journal = [json.loads(line) for line in (private / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    public = report["public"]
    return {
        "spent": _spent(ledger["events"]),
        "records": ledger["records"],
        "steps in the ledger": sum(event.get("steps", 0) for event in ledger["events"]),
        "steps in the journal": sum(event.get("steps", 0) for event in journal),
        "steps in the plan": [stage["steps"] for stage in public["stages"]],
        "repeated steps": public["repeated_steps"],
        "interruptions": report["interruptions"],
        "ended early": public["ended_early"],
        "epsilon": public["epsilon"],
        "guarantees": guarantees(public),
        "released": [[stage["released_share"], stage["released_weight"]] for stage in public["stages"]],
    }


def _spent(written: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events without what later versions add, equal neighbours as one."""
    spent: list[dict[str, Any]] = []
    for event in written:
        figures = {name: value for name, value in event.items() if name not in ("run", "relation")}
        if spent and "steps" in figures and {**spent[-1], "steps": 0} == {**figures, "steps": 0}:
            spent[-1]["steps"] += figures["steps"]
        else:
            spent.append(figures)
    return spent


def measured(out: Path) -> dict[str, Any]:
    """What a finished run measured: held-out perplexities before, after each epoch, and of the file as written."""
    report = _read(out.with_name(f"{out.name}.private") / "privacy_report.json")
    return {"perplexity": report["perplexity"], "epochs": [stage["perplexities"] for stage in report["stages"]]}


def events(said: str, kind: str) -> list[dict[str, Any]]:
    """The events of a kind among the lines of `--progress json`."""
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return [event for event in lines if event["event"] == kind]


GONE = {"selective"}
"""A scope that a ledger without relations has no more."""


def differences(then: Any, now: Any, *, absolute: float = 0.0, relative: float = 0.0, at: str = "") -> list[str]:
    """Where what is said now differs from what was said; keys that have come since are no difference."""
    tolerance = {"absolute": absolute, "relative": relative}
    if isinstance(then, dict) and isinstance(now, dict):
        inner = {
            name: (value, now.get(name, "absent")) for name, value in then.items() if name not in GONE or name in now
        }
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        inner = {str(place): pair for place, pair in enumerate(zip(then, now, strict=True))}
    elif isinstance(then, float) and isinstance(now, int | float):
        return [] if isclose(then, now, abs_tol=absolute, rel_tol=relative) else [f"{at}: {then!r}, now {now!r}"]
    else:
        return [] if then == now else [f"{at}: {then!r}, now {now!r}"]
    return [
        difference for name, pair in inner.items() for difference in differences(*pair, **tolerance, at=f"{at}/{name}")
    ]


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
