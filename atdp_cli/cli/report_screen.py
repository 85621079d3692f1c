"""A report on the terminal: the sentences first, then a table for each kind of measurement."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Column
from rich.text import Text

from atdp_cli.cli.console import make_table
from atdp_cli.cli.escape import escaped
from atdp_cli.cli.harden_screen import show_measured
from atdp_cli.privacy.wording import SCOPES
from atdp_cli.reporting.audit_entry import MODEL_NAMES, AuditEntry, own_audit
from atdp_cli.reporting.document import (
    AuditReport,
    PrivateReport,
    PublicReport,
    ReleaseVerdict,
    Report,
    listed_audits,
    public_of,
)
from atdp_cli.reporting.html import VERDICTS, render_value
from atdp_cli.reporting.stage_facts import stated_guarantees
from atdp_cli.reporting.verify import UNVERIFIED, Mismatch
from atdp_cli.reporting.wording import model_title


def show_report(report: Report, console: Console) -> None:
    """Print a report."""
    public = public_of(report)
    _show_face(public, report.release, console)
    for title, text in (
        ("Audit", public.summary.audit),
        ("What is protected", public.summary.protects),
        ("What is not", public.summary.leaves_open),
    ):
        console.print(title, style="bold")
        console.print(text)
        console.print()
    _show_guarantees(public, console)
    _show_stages(public, console)
    _show_audits([audit for _, audit in listed_audits(report)], console)
    if isinstance(report, PrivateReport):
        _show_private(report, console)
    console.print("Not covered by ε:", style="bold")
    for line in public.not_covered:
        console.print(f"- {line}")


def show_audit_report(report: AuditReport, console: Console) -> None:
    """Print the report of a model of which nothing but its audits is known."""
    console.print(f"{VERDICTS[report.release.verdict]}. {report.release.reason}", style="bold")
    console.print()
    console.print(report.audit)
    console.print()
    _show_audits(report.audits, console)


def _show_face(public: PublicReport, release: ReleaseVerdict | None, console: Console) -> None:
    """Print the model and its verdict."""
    digests = [digest for name, digest in public.weights.items() if name.endswith(".safetensors")]
    console.print(model_title(public), style="bold", soft_wrap=True)
    console.print(
        f"{public.created[:10]}, recipe {public.recipe}, atdp {public.software.get('atdp', '–')}", soft_wrap=True
    )
    for digest in digests[:1]:
        console.print(f"SHA-256 of its weights: {digest}", soft_wrap=True)
    console.print()
    if release is not None:
        console.print(f"{VERDICTS[release.verdict]}. {release.reason}", style="bold")
        console.print()


def show_table(reports: Mapping[str, Report], console: Console) -> None:
    """Print several reports as a table, the models of equal rows in one."""
    models = defaultdict[tuple[str, ...], list[str]](list)
    for name, report in reports.items():
        models[_row(report)].append(name)
    rows: list[tuple[str | Text, ...]] = [(Text("\n".join(map(escaped, names))), *row) for row, names in models.items()]
    model = Column("model", overflow="fold")
    head = (model, "verdict", SCOPES["selective"], SCOPES["end_to_end"], "exposure", "said right")
    console.print(make_table(head, rows, right=range(2, len(head))))
    console.print("ε of flagged values and of whole records. Mean exposure of the audit in bits; chance gives 1.44.")
    console.print("Said right: of values that a record repeats, by the report in OUT.private.")


def _row(report: Report) -> tuple[str, ...]:
    public, audited = public_of(report), own_audit(public_of(report).audits)
    by_scope = {guarantee.scope: guarantee.epsilon for guarantee in public.guarantees}
    usefulness = report.usefulness if isinstance(report, PrivateReport) else ()
    after = next((entry for entry in usefulness if entry.of == "after" and entry.values), None)
    return (
        "–" if report.release is None else VERDICTS[report.release.verdict],
        render_value(by_scope.get("selective", by_scope.get("declared", math.inf)), "epsilon"),
        render_value(by_scope["end_to_end"], "epsilon"),
        render_value(None if audited is None else audited.mean, "fixed"),
        render_value(None if after is None else after.whole / after.values, "share"),
    )


def show_verification(folder: Path, differences: Sequence[Mismatch], console: Console, *, unchecked: bool) -> None:
    """Print where a model's folder differs from its sources, and what could not be compared.

    Args:
        unchecked: The report has audits, and what they were made from was not given.
    """
    for difference in differences:
        where = f"{difference.file}, {difference.path}" if difference.path else difference.file
        console.print(f"{where}: {difference.problem}.", soft_wrap=True)
    verdict = f"Differences: {len(differences)}." if differences else "The report is what the ledger gives."
    console.print(f"{folder}: {verdict}", style="bold", soft_wrap=True)
    if unchecked:
        console.print("Audits not checked. Give what audit-canary --json wrote as --audit.", style="bold")
    console.print(f"Not verified, as only the report says it: {', '.join(UNVERIFIED)}.")
    console.print("Ledger and audits are taken as they are. They carry no signature.")


def _show_guarantees(public: PublicReport, console: Console) -> None:
    rows = [
        (
            SCOPES[guarantee.scope],
            render_value(guarantee.epsilon, "epsilon"),
            f"{guarantee.delta:g}",
            guarantee.adjacency,
        )
        for _, guarantee in stated_guarantees(public)
    ]
    console.print(
        make_table(("scope", "ε", "δ", "adjacency"), rows, title=f"For one {public.unit} of {public.records:,}")
    )


def _show_stages(public: PublicReport, console: Console) -> None:
    rows = [
        (
            stage.name,
            stage.text or "none",
            stage.mechanism,
            f"{stage.steps:,}" if stage.ended_after is None else f"{stage.ended_after:,} of {stage.steps:,}",
            "–" if stage.sampling_rate is None else f"{stage.sampling_rate:.4g}",
            _sigmas(stage.noise_multipliers, stage.release_noise_multiplier),
        )
        for stage in public.stages
    ]
    console.print(make_table(("stage", "text", "mechanism", "steps", "q", "σ"), rows, title=f"Recipe {public.recipe}"))
    if public.ended_early is not None:
        console.print(public.ended_early)
    if public.repeated_steps:
        console.print(
            "Steps with noise that were repeated after an interruption, and are in the ledger twice: "
            f"{public.repeated_steps:,}."
        )


def _sigmas(sigmas: Sequence[float], released: float | None) -> str:
    if sigmas:
        return f"{min(sigmas):.4g}" if min(sigmas) == max(sigmas) else f"{min(sigmas):.4g}–{max(sigmas):.4g}"
    return "none" if released is None else f"{released:.4g} once"


def _show_audits(audits: Sequence[AuditEntry], console: Console) -> None:
    if not audits:
        return
    rows = [
        (
            MODEL_NAMES[audit.of],
            ", ".join(audit.artefact),
            audit.verdict,
            _within(audit.mean, audit.mean_interval),
            _within(audit.mean_ratio, audit.mean_ratio_interval),
        )
        for audit in audits
    ]
    columns = ("model", "SHA-256", "verdict", "by log p", "by the ratio")
    console.print(make_table(columns, rows, title="Mean exposure in bits; chance gives 1.44"))
    for audit in audits:
        if (extraction := audit.extraction) is not None:
            console.print(
                f"Extraction from {MODEL_NAMES[audit.of]}: {extraction.greedy} of {_planted(audit)} canaries by greedy "
                f"decoding, {extraction.discoverable} that {extraction.samples:,} samples give with even odds."
            )
        if (relearning := audit.relearning) is not None:
            console.print(
                f"Relearning, {MODEL_NAMES[audit.of]} after {relearning.steps} steps on other text: "
                f"{render_value(relearning.mean, 'fixed')} bits, "
                f"{render_value(relearning.mean_ratio, 'fixed')} by the ratio; {relearning.verdict}."
            )


def _planted(audit: AuditEntry) -> int:
    return sum(canary.planted for canary in audit.canaries)


def _within(value: float | None, interval: tuple[float, float] | None) -> str:
    return render_value(value, "fixed") + ("" if interval is None else f" ({interval[0]:.2f}–{interval[1]:.2f})")


def _show_private(report: PrivateReport, console: Console) -> None:
    show_measured(report, console)
    for sentence in report.review:
        console.print(f"Private: {sentence}")
    for memory in report.maps:
        console.print(f"Private: memory map of {MODEL_NAMES[memory.of]}: {' '.join(memory.sentences)}")
    for stage in report.stages:
        if stage.unlisted_words:
            console.print(
                f"Private: {stage.name} publishes words of no public list, which many records have: "
                f"{', '.join(stage.unlisted_words)}. --privacy-unit FIELD makes a person's records one."
            )
    stages = [
        (
            stage.name,
            f"{stage.seconds:.0f}",
            f"{stage.tokens / stage.seconds:,.0f}" if stage.seconds else "–",
            str(stage.not_finite),
        )
        for stage in report.stages
    ]
    head = ("stage", "seconds", "tokens a second", "records not finite")
    console.print(make_table(head, stages, title=f"Private: {report.seconds:.0f} seconds in all"))
