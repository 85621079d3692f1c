"""The files of a report: written to OUT/ and OUT.private/, read again, and given audits, maps and names."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import log2
from pathlib import Path
from typing import Annotated, get_args

import numpy as np
from pydantic import BaseModel, Discriminator, Field, RootModel, Tag

from atdp_cli.audit.exposure import bootstrap
from atdp_cli.audit.results import (
    DISCOVERABLE_QUERIES,
    Audit,
    AuditDocument,
    CanaryResult,
    Membership,
    Relearning,
    Verdict,
)
from atdp_cli.detection.review.summary import ReviewSummary
from atdp_cli.errors import InputError, UsageError
from atdp_cli.files.atomic_write import atomic_write
from atdp_cli.files.documents import copy_fields, read_document
from atdp_cli.files.private import PRIVATE, beside
from atdp_cli.memorisation.results import MemoryDocument, MemoryMap
from atdp_cli.model.hashes import seal_of
from atdp_cli.reporting.annex import with_public, with_verdict
from atdp_cli.reporting.audit_entry import (
    AuditedCanary,
    AuditEntry,
    Bound,
    ExtractionEntry,
    Interval,
    MembershipEntry,
    RelearningEntry,
    ScoreName,
    severity,
)
from atdp_cli.reporting.card import render_card
from atdp_cli.reporting.ci.checks import memory_sentences
from atdp_cli.reporting.document import HTML_FILE, REPORT_FILE, AuditReport, PrivateReport, PublicReport, Report
from atdp_cli.reporting.entries import MemoryEntry
from atdp_cli.reporting.html import render_html
from atdp_cli.reporting.wording import audit_sentence, audit_verdict

CARD_FILE = "README.md"

LONGEST_NAME = 80
"""The most characters of a model's name."""


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
    _write(texts)


def _write(texts: Mapping[Path, str]) -> None:
    for path, text in texts.items():
        with atomic_write(path) as stream:
            stream.write(text.encode())


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
    remedy = "Give a folder that atdp harden wrote, its .private folder, or a privacy_report.json of this version."
    return read_document(path, _ReportFile, name="The report", remedy=remedy).root


def read_private(folder: Path) -> PrivateReport:
    """The whole report in OUT.private/.

    Raises:
        InputError: There is none, or it is damaged or of another version.
    """
    report = read_report(folder)
    if isinstance(report, PublicReport):
        raise InputError(f"{folder} holds a report without private figures.", "Harden again.")
    return report


class _ReportFile(RootModel[Annotated[Report, Field(discriminator="kind")]]):
    pass


def checked_name(name: str) -> str:
    """A name that fits the head of a report.

    Raises:
        UsageError: It is empty, longer than a line, or has characters that do not show.
    """
    if not 0 < len(name.strip()) <= LONGEST_NAME or not name.isprintable():
        raise UsageError(f"The name of a model has 1 to {LONGEST_NAME} characters that show.", "Give another --name.")
    return name.strip()


def rewrite_reports(
    folder: Path,
    change: Callable[[PublicReport], PublicReport],
    change_private: Callable[[PrivateReport], PrivateReport] = lambda private: private,
) -> PublicReport:
    """Change the reports of a model's folder, and write both again in all forms.

    Raises:
        InputError: A report cannot be read.
        RunError: A file cannot be written.
    """
    report = read_report(folder)
    if isinstance(report, PrivateReport) or not folder.is_dir():
        raise InputError(f"{folder} is not the folder of a model, and both of its reports change.", "Give OUT itself.")
    public = change(report)
    private_folder = beside(folder, PRIVATE)
    known = (private_folder / REPORT_FILE).exists()
    whole = with_public(change_private(read_private(private_folder)), public) if known else None
    write_reports(folder, private_folder, public, whole)
    return public


def attach_findings(folder: Path, path: Path) -> None:
    """Put what a file of `audit-corpus --json` or `review --json` says into the private report of a model's folder.

    It takes the place of what the report had.

    Args:
        folder: OUT; its report is that in OUT.private/.

    Raises:
        InputError: There is no private report, the file is neither, or it is not about this model or detector.
        RunError: A file cannot be written.
    """
    private_folder = beside(folder, PRIVATE)
    private = read_private(private_folder)
    found = read_document(path, _FindingsFile, name="The findings", remedy=FINDINGS).root
    if isinstance(found, MemoryDocument):
        change: dict[str, object] = {"maps": _map_entries(private, found.models)}
    elif found.tier != private.public.detector.tier:
        says = f"The review is of tier {found.tier}, and the run flagged by tier {private.public.detector.tier}."
        raise InputError(says, "Review a queue of the run's own tier.")
    else:
        change = {"review": (f"{found.reviewed:,} sentences were reviewed.", *found.says())}
    _write(_rendered(private_folder, private.model_copy(update=change)))


FINDINGS = (
    "Write it by atdp audit-corpus MODEL --data CORPUS --eval-data UNREAD --json, or by atdp review QUEUE --json."
)


def _kind_of(findings: object) -> str:
    return "review" if isinstance(findings, dict) and "queue" in findings else "maps"


_Findings = Annotated[MemoryDocument, Tag("maps")] | Annotated[ReviewSummary, Tag("review")]


class _FindingsFile(RootModel[Annotated[_Findings, Discriminator(_kind_of)]]):
    pass


def _map_entries(private: PrivateReport, maps: Sequence[MemoryMap]) -> tuple[MemoryEntry, ...]:
    """The maps as a report has them, this model's first.

    Raises:
        InputError: None of them is of this model.
    """
    entries = sorted(
        (_memory(memory_map, _models(private.public, private)) for memory_map in maps),
        key=lambda entry: _ORDER.index(entry.of),
    )
    if not entries or entries[0].of != "after":
        raise InputError("None of these maps is of the weights that the report is about.", "Map that folder too.")
    return tuple(entries)


NULL_BAND = (-log2(0.975), -log2(0.025))
"""Bits: the exposure of a canary that nobody remembers is below x with chance 1 - 2^-x."""

_ORDER = get_args(ScoreName)

HOW = "Write it by atdp audit-canary MODEL --manifest canaries.json --json > audit.json."


Models = Mapping[ScoreName, Mapping[str, str]]
"""The models of a report: SHA-256 of each of their files."""


def _models(report: PublicReport, private: PrivateReport | None = None) -> Models:
    known: dict[ScoreName, Mapping[str, str]] = {"after": report.weights, "before": report.start}
    return known if private is None else {**known, "given": private.given or {}}


def attach_audits(folder: Path, audits: Sequence[Audit], *, publish: bool) -> PublicReport:
    """Put audits into the reports of a model's folder, in place of those that they had.

    Those of other models than the result and its start go into the private report alone.

    Args:
        publish: Put those of other models into the public report as well.

    Raises:
        InputError: A report cannot be read, or none of the audits is of this model.
        RunError: A file cannot be written.
    """
    return rewrite_reports(
        folder,
        lambda public: with_audits(public, audits, publish=publish),
        lambda private: private.model_copy(update={"audits": () if publish else _unpublished(private, audits)}),
    )


def _unpublished(private: PrivateReport, audits: Sequence[Audit]) -> tuple[AuditEntry, ...]:
    """The entries of other models."""
    entries = audit_entries(audits, _models(private.public, private))
    return tuple(entry for entry in entries if entry.of not in PUBLISHED)


PUBLISHED: tuple[ScoreName, ...] = ("after", "before")
"""The models whose audits are in the public report in any case; it is about how one became the other."""


def with_audits(report: PublicReport, audits: Sequence[Audit], *, publish: bool = False) -> PublicReport:
    """The report with audits in place of those that it had: its own model's first, then the start's, then others'.

    Args:
        publish: Whether those of other models are in it.

    Raises:
        InputError: None of them is of the report's model.
    """
    made = audit_entries(audits, _models(report))
    entries = tuple(entry for entry in made if publish or entry.of in PUBLISHED)
    summary = report.summary.model_copy(update={"audit": audit_sentence(entries)})
    return with_verdict(report.model_copy(update={"audits": entries, "summary": summary}))


def audit_report(folder: Path, audits: Sequence[Audit]) -> AuditReport:
    """The report of a model of anyone's, by its audits alone.

    Raises:
        InputError: None of them is of the files in `folder`.
    """
    weights = seal_of(folder)
    entries = audit_entries(audits, {"after": weights})
    return AuditReport(release=audit_verdict(entries), audit=audit_sentence(entries), weights=weights, audits=entries)


def audit_entries(audits: Sequence[Audit], models: Models) -> tuple[AuditEntry, ...]:
    """Audits as reports hold them, in the order of `MODEL_NAMES`, the worst of each model first.

    Raises:
        InputError: None of them is of the model `after`.
    """
    made = (_entry(audit, models) for audit in audits)
    entries = sorted(made, key=lambda entry: (_ORDER.index(entry.of), severity(entry)))
    if not entries or entries[0].of != "after":
        raise InputError("None of these audits is of the weights that the report is about.", "Audit that folder too.")
    return tuple(entries)


def read_audits(path: Path) -> tuple[Audit, ...]:
    """The completed audits of canaries in a file that `audit-canary --json` wrote.

    Raises:
        InputError: It is no such file, or holds none.
    """
    document = read_document(path, AuditDocument, name="The audit", remedy=HOW)
    audits = tuple(audit for audit in document.models if isinstance(audit, Audit) and audit.canaries)
    if not audits:
        raise InputError(f"{path} holds no completed audit of canaries.", HOW)
    return audits


UNTESTED = "The audit is uncalibrated: nobody drew its canaries at random, so no test made its pass."


def _entry(audit: Audit, models: Models) -> AuditEntry:
    combined, planted = audit.combined, [canary for canary in audit.canaries if canary.planted]
    # The base model's ratio to itself is the same for all candidates, and says nothing.
    by_ratio = audit.tested_against_base and not all(map(_tied, planted))
    untested = audit.verdict is Verdict.PASS and combined.fisher_p is None
    return copy_fields(
        AuditEntry,
        audit,
        combined,
        of=_of(audit.weights, models),
        verdict=Verdict.INCONCLUSIVE if untested else audit.verdict,
        reasons=(UNTESTED, *audit.reasons) if untested else audit.reasons,
        threshold=log2(len(planted) / combined.level) if planted else None,
        null_band=NULL_BAND,
        canaries=tuple(
            copy_fields(
                AuditedCanary,
                canary,
                exposure_ratio=canary.exposure_ratio if by_ratio else None,
                p=canary.holm_p,
                p_ratio=canary.holm_p_ratio if by_ratio else None,
            )
            for canary in audit.canaries
        ),
        mean=combined.mean_exposure,
        mean_interval=_interval([canary.exposure for canary in planted]),
        mean_ratio=combined.mean_exposure_ratio if by_ratio else None,
        mean_ratio_interval=_interval([canary.exposure_ratio for canary in planted]) if by_ratio else None,
        p=combined.fisher_p,
        p_ratio=combined.fisher_p_ratio if by_ratio else None,
        mean_limit_ratio=combined.mean_limit_ratio if by_ratio else None,
        extraction=_extraction(audit) if planted else None,
        membership=tuple(map(_membership, audit.membership or ())),
        relearning=None if audit.relearning is None else _relearning(audit.relearning, by_ratio=by_ratio),
        bounds=tuple(copy_fields(Bound, bound) for bound in audit.epsilon),
    )


def _of(audited: Mapping[str, str], models: Models) -> ScoreName:
    """Which of the report's models was audited."""
    return next((name for name, weights in models.items() if weights and weights == audited), "other")


def _memory(memory_map: MemoryMap, models: Models) -> MemoryEntry:
    return copy_fields(
        MemoryEntry,
        memory_map,
        of=_of(memory_map.weights, models),
        sentences=tuple(memory_sentences(memory_map)),
        texts=len({place.value for place in memory_map.places}),
        labels=tuple(Counter(place.label for place in memory_map.places).most_common()),
    )


def _tied(canary: CanaryResult) -> bool:
    """Whether all candidates have one ratio."""
    best, worst = canary.rank_ratio_min, canary.rank_ratio_max
    return best is not None and worst is not None and worst - best + 1 == canary.compared


def _interval(exposures: Sequence[float | None]) -> Interval | None:
    values = [exposure for exposure in exposures if exposure is not None]
    return bootstrap([np.array(values)]) if len(values) > 1 else None


def _extraction(audit: Audit) -> ExtractionEntry | None:
    if audit.extraction is None:
        return None
    planted = audit.planted_extraction()
    queries = [entry.queries_half for entry in planted if entry.queries_half is not None]
    return ExtractionEntry(
        greedy=sum(entry.greedy for entry in planted),
        discoverable=sum(samples <= DISCOVERABLE_QUERIES for samples in queries),
        samples=DISCOVERABLE_QUERIES,
        fewest=min(queries, default=None),
    )


def _membership(membership: Membership) -> MembershipEntry:
    low, high = membership.auc_low, membership.auc_high
    interval = None if low is None or high is None else (low, high)
    return MembershipEntry(attack=membership.attack, auc=membership.auc, auc_interval=interval)


def _relearning(relearning: Relearning, *, by_ratio: bool) -> RelearningEntry:
    mean, ratio = relearning.combined.mean_exposure, relearning.combined.mean_exposure_ratio
    return copy_fields(RelearningEntry, relearning, mean=mean, mean_ratio=ratio if by_ratio else None)
