"""Audits put into a report: read from what `audit-canary --json` wrote, and matched by the hashes of the weights."""

from collections.abc import Mapping, Sequence
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
from pydantic_core import from_json

from atdp_cli.audit.findings import DISCOVERABLE_QUERIES
from atdp_cli.audit.intervals import bootstrap
from atdp_cli.errors import InputError
from atdp_cli.report.auditentry import AuditedCanary, AuditEntry, Bound, Extracted, Interval, Of, Resurfacing, Told
from atdp_cli.report.document import PublicReport
from atdp_cli.report.wording import audited
from atdp_cli.wholefile import read_whole

NULL_BAND = (-log2(0.975), -log2(0.025))
"""Bits: the exposure of a canary that nobody remembers is below x with chance 1 - 2^-x."""

HOW = "Write it by atdp audit-canary MODEL --manifest canaries.json --json > audit.json."


def with_audits(report: PublicReport, entries: Sequence[Mapping[str, Any]]) -> PublicReport:
    """The report with audits in place of those that it had: its own model's first, then the start's, then others'.

    Args:
        entries: Of the `models` list of `audit-canary --json`.

    Raises:
        InputError: None of them is of the report's model.
    """
    found = sorted((_entry(one, report) for one in entries), key=lambda one: ("after", "before", "other").index(one.of))
    if not found or found[0].of != "after":
        raise InputError("None of these audits is of the weights that the report is about.", "Audit that folder too.")
    summary = report.summary.model_copy(update={"audit": audited(found)})
    return report.model_copy(update={"audits": tuple(found), "summary": summary})


def read_audits(path: Path) -> tuple[Mapping[str, Any], ...]:
    """The finished audits of canaries in a file that `audit-canary --json` wrote.

    Raises:
        InputError: It is no such file, or holds none.
    """
    try:
        document = from_json(read_whole(path))
        models = tuple(one for one in document["models"] if one["verdict"] != "ERROR" and one["canaries"])
        _ = [dict(one["weights"]) for one in models]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} cannot be read as the JSON of an audit.", HOW) from error
    if not models:
        raise InputError(f"{path} holds no finished audit of canaries.", HOW)
    return models


def _entry(entry: Mapping[str, Any], report: PublicReport) -> AuditEntry:
    try:
        return _read(entry, _of(entry["weights"], report))
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError) as error:
        raise InputError("An audit lacks a field, or has one that cannot be read.", HOW) from error


def _of(weights: Mapping[str, str], report: PublicReport) -> Of:
    if weights == report.weights:
        return "after"
    return "before" if weights == report.start else "other"


def _read(entry: Mapping[str, Any], of: Of) -> AuditEntry:
    canaries, combined = entry["canaries"], entry["combined"]
    planted = [place for place, one in enumerate(canaries) if one["planted"]]
    # The base model's ratio to itself is the same for all candidates, and says nothing.
    against = entry["tested_against_base"] and not _tied([canaries[place] for place in planted])
    return AuditEntry(
        of=of,
        weights=dict(entry["weights"]),
        verdict=entry["verdict"],
        reasons=tuple(entry["reasons"]),
        alpha=entry["alpha"],
        threshold=log2(len(planted) / combined["level"]) if planted else None,
        null_band=NULL_BAND,
        canaries=tuple(_canary(one, against=against) for one in canaries),
        mean=combined["mean_exposure"],
        mean_interval=_interval(canaries, planted, "exposure"),
        mean_ratio=combined["mean_exposure_ratio"] if against else None,
        mean_ratio_interval=_interval(canaries, planted, "exposure_ratio") if against else None,
        p=combined["fisher_p"],
        p_ratio=combined["fisher_p_ratio"] if against else None,
        extraction=_extracted(entry["extraction"], planted),
        membership=tuple(_told(one) for one in entry["membership"] or ()),
        resurfacing=_resurfacing(entry["resurfaced"], against=against),
        bounds=tuple(
            Bound.model_validate({name: one[name] for name in Bound.model_fields}) for one in entry["epsilon"]
        ),
    )


def _tied(canaries: Sequence[Mapping[str, Any]]) -> bool:
    return all(
        one["rank_ratio_max"] is not None and one["rank_ratio_max"] - one["rank_ratio_min"] + 1 == one["compared"]
        for one in canaries
    )


def _canary(one: Mapping[str, Any], *, against: bool) -> AuditedCanary:
    return AuditedCanary(
        planted=one["planted"],
        repeats=one["repeats"],
        exposure=one["exposure"],
        exposure_ratio=one["exposure_ratio"] if against else None,
        p=one["holm_p"],
        p_ratio=one["holm_p_ratio"] if against else None,
    )


def _interval(canaries: Sequence[Mapping[str, Any]], planted: Sequence[int], field: str) -> Interval | None:
    values = np.array([canaries[place][field] for place in planted], dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("an exposure is no finite number")
    return bootstrap([values]) if len(values) > 1 else None


def _extracted(found: Sequence[Mapping[str, Any]] | None, planted: Sequence[int]) -> Extracted | None:
    if found is None or not planted:
        return None
    queries = [found[place]["queries_half"] for place in planted]
    known = [one for one in queries if one is not None]
    return Extracted(
        greedy=sum(found[place]["greedy"] for place in planted),
        discoverable=sum(one <= DISCOVERABLE_QUERIES for one in known),
        samples=DISCOVERABLE_QUERIES,
        fewest=min(known, default=None),
    )


def _told(one: Mapping[str, Any]) -> Told:
    interval = None if one["auc"] is None else (one["auc_low"], one["auc_high"])
    return Told(attack=one["attack"], auc=one["auc"], auc_interval=interval)


def _resurfacing(found: Mapping[str, Any] | None, *, against: bool) -> Resurfacing | None:
    if found is None:
        return None
    combined = found["combined"]
    return Resurfacing(
        steps=found["steps"],
        verdict=found["verdict"],
        mean=combined["mean_exposure"],
        mean_ratio=combined["mean_exposure_ratio"] if against else None,
    )
