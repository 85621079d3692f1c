"""The audit for GitHub Actions: annotations and the step summary."""

from collections.abc import Sequence

from atdp_cli.report.audited import Check, Entry, Outcome, checks_of
from atdp_cli.report.sarif import ManifestFile

_COMMANDS = {Outcome.FAIL: "error", Outcome.ERROR: "error", Outcome.INCONCLUSIVE: "warning", Outcome.KNOWN: "notice"}
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#&~"} | {"\n": " ", "\r": " "})


def annotations(entries: Sequence[Entry], manifest: ManifestFile | None) -> tuple[str, ...]:
    """Workflow commands, a line each: for each verdict that is not PASS, then for each canary that fails.

    GitHub shows the first ten errors of a step, so the verdicts come first.
    """
    found = [
        part
        for entry in entries
        for part in checks_of(entry)
        if part.outcome in _COMMANDS and (part.number is None or part.outcome is not Outcome.INCONCLUSIVE)
    ]
    return tuple(_annotation(part, manifest) for part in sorted(found, key=lambda part: part.number is not None))


def step_summary(entries: Sequence[Entry]) -> str:
    """The Markdown table for the step summary."""
    lines = [
        "### Canary audit",
        "",
        "| model | verdict | canaries failed | highest exposure | why |",
        "|---|---|--:|--:|---|",
    ]
    for entry in entries:
        *canaries, verdict = checks_of(entry)
        failed = sum(part.outcome in (Outcome.FAIL, Outcome.KNOWN) for part in canaries)
        combined = entry["combined"] or {}
        highest = combined.get("max_exposure")
        shown = "–" if highest is None else f"{highest:.2f} bits"
        told = "FAIL, no worse than the baseline" if verdict.outcome is Outcome.KNOWN else str(verdict.outcome)
        why = verdict.says.translate(_MARKDOWN)
        lines.append(
            f"| {entry['model'].translate(_MARKDOWN)} | {told} | {failed} of {len(canaries)} | {shown} | {why} |"
        )
    return "\n".join(lines) + "\n\n"


def _annotation(part: Check, manifest: ManifestFile | None) -> str:
    settings = {"title": f"{part.model}: {part.name}"}
    if manifest is not None:
        settings = {"file": manifest.uri, "line": str(manifest.line(part.number))} | settings
    listed = ",".join(f"{name}={_property(value)}" for name, value in settings.items())
    known = "Fails, no worse than the baseline. " if part.outcome is Outcome.KNOWN else ""
    return f"::{_COMMANDS[part.outcome]} {listed}::{_data(known + part.says)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
