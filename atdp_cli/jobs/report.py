"""The report's files: in OUT/ what may be published, in OUT.private/ the whole."""

from collections.abc import Mapping, Sequence
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from atdp_cli.audit.exposure import bootstrap
from atdp_cli.audit.result import DISCOVERABLE_QUERIES
from atdp_cli.errors import InputError, RunError
from atdp_cli.files.bounded_read import read_whole
from atdp_cli.files.private import PRIVATE, beside
from atdp_cli.report.audit_entry import (
    AuditedCanary,
    AuditEntry,
    Bound,
    ExtractionEntry,
    Interval,
    MembershipEntry,
    RelearningEntry,
    ScoreName,
)
from atdp_cli.report.comparison import Report
from atdp_cli.report.document import HTML_FILE, REPORT_FILE, PrivateReport, PublicReport
from atdp_cli.report.html import render_html
from atdp_cli.report.markdown import render_card
from atdp_cli.report.wording import audited

CARD_FILE = "README.md"


def write_reports(folder: Path, private_folder: Path, public: PublicReport, private: PrivateReport | None) -> None:
    """JSON, HTML and model card into the model's folder, JSON and HTML of the whole report into the private one.

    Each file is replaced in one rename.

    Args:
        private: None leaves the private folder as it is.

    Raises:
        RunError: A file cannot be written.
    """
    texts = {folder / CARD_FILE: render_card(public), **_rendered(folder, public)}
    if private is not None:
        texts |= _rendered(private_folder, private)
    try:
        for path, text in texts.items():
            partial = path.with_name(f"{path.name}.partial")
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
    except OSError as error:
        raise RunError("The report cannot be written.", "Check the folder's permissions and the space left.") from error


def _rendered(folder: Path, report: Report) -> dict[Path, str]:
    return {folder / REPORT_FILE: as_json(report), folder / HTML_FILE: render_html(report)}


def as_json(report: BaseModel) -> str:
    """A report as its file has it."""
    return report.model_dump_json(indent=2) + "\n"


def read_report(place: Path) -> Report:
    """The report in a file, or in a folder that `harden` wrote: the whole one in OUT.private/.

    Raises:
        InputError: There is none, or it is damaged or of another version.
    """
    path = place / REPORT_FILE if place.is_dir() else place
    how = "Give a folder that atdp harden wrote, its .private folder, or a privacy_report.json."
    try:
        document = from_json(read_whole(path))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a report.", how) from error
    kinds: dict[str, type[Report]] = {"atdp-report": PublicReport, "atdp-private-report": PrivateReport}
    name = document.get("kind") if isinstance(document, dict) else None
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InputError(f"{path} is no report of atdp.", how)
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "the whole"
        raise InputError(
            f"{path} is damaged or of another version of atdp: {where} is not as this one writes it.",
            "Restore the file, or harden again.",
        ) from error


def attach_audits(folder: Path, audits: Path) -> PublicReport:
    """Put audits into the reports of a model's folder and of its private one, and write all renderings again.

    Args:
        audits: What `audit-canary --json` wrote.

    Raises:
        InputError: A report or the audits cannot be read, or none is of this model.
        RunError: A file cannot be written.
    """
    found = read_report(folder)
    if isinstance(found, PrivateReport) or not folder.is_dir():
        raise InputError(
            f"{folder} is not the folder of a model, and audits are put into both of its reports.", "Give OUT itself."
        )
    public = with_audits(found, read_audits(audits))
    private_folder = beside(folder, PRIVATE)
    private = read_report(private_folder) if (private_folder / REPORT_FILE).exists() else None
    if isinstance(private, PublicReport):
        raise InputError(f"{private_folder} holds a report without private figures.", "Harden again.")
    whole = None if private is None else private.model_copy(update={"public": public})
    write_reports(folder, private_folder, public, whole)
    return public


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


def _of(weights: Mapping[str, str], report: PublicReport) -> ScoreName:
    if weights == report.weights:
        return "after"
    return "before" if weights == report.start else "other"


def _read(entry: Mapping[str, Any], of: ScoreName) -> AuditEntry:
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


def _extracted(found: Sequence[Mapping[str, Any]] | None, planted: Sequence[int]) -> ExtractionEntry | None:
    if found is None or not planted:
        return None
    queries = [found[place]["queries_half"] for place in planted]
    known = [one for one in queries if one is not None]
    return ExtractionEntry(
        greedy=sum(found[place]["greedy"] for place in planted),
        discoverable=sum(one <= DISCOVERABLE_QUERIES for one in known),
        samples=DISCOVERABLE_QUERIES,
        fewest=min(known, default=None),
    )


def _told(one: Mapping[str, Any]) -> MembershipEntry:
    interval = None if one["auc"] is None else (one["auc_low"], one["auc_high"])
    return MembershipEntry(attack=one["attack"], auc=one["auc"], auc_interval=interval)


def _resurfacing(found: Mapping[str, Any] | None, *, against: bool) -> RelearningEntry | None:
    if found is None:
        return None
    combined = found["combined"]
    return RelearningEntry(
        steps=found["steps"],
        verdict=found["verdict"],
        mean=combined["mean_exposure"],
        mean_ratio=combined["mean_exposure_ratio"] if against else None,
    )
