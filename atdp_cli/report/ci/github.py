"""Audits and memory maps for GitHub Actions: annotations and the step summary."""

from collections.abc import Sequence

from atdp_cli.audit_result import AnyAudit
from atdp_cli.memory_result import MemoryMap
from atdp_cli.report.ci.checks import Check, CheckedModel, Outcome, ResultFile, checks_of, memory_sentences

_COMMANDS = {Outcome.FAIL: "error", Outcome.ERROR: "error", Outcome.INCONCLUSIVE: "warning", Outcome.KNOWN: "notice"}
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#&~"} | {"\n": " ", "\r": " "})


def annotations(models: Sequence[CheckedModel]) -> tuple[str, ...]:
    """Workflow commands, a line each: for each verdict that is not PASS, then for each canary or text that fails.

    GitHub shows the first ten errors of a step, so the verdicts come first.
    """
    annotated = [
        (check, model.file)
        for model in models
        for check in model.checks
        if check.outcome in _COMMANDS and (check.number is None or check.outcome is not Outcome.INCONCLUSIVE)
    ]
    return tuple(_annotation(check, file) for check, file in sorted(annotated, key=_after_verdicts))


def step_summary(audits: Sequence[AnyAudit]) -> str:
    """The Markdown table for the step summary."""
    lines = [
        "### Canary audit",
        "",
        "| model | verdict | canaries failed | highest exposure | why |",
        "|---|---|--:|--:|---|",
    ]
    for audit in audits:
        *canaries, verdict = checks_of(audit)
        failed = sum(check.outcome in (Outcome.FAIL, Outcome.KNOWN) for check in canaries)
        highest = None if audit.combined is None else audit.combined.max_exposure
        exposure = "–" if highest is None else f"{highest:.2f} bits"
        outcome = "FAIL, no worse than the baseline" if verdict.outcome is Outcome.KNOWN else verdict.outcome
        model, why = audit.model.translate(_MARKDOWN), verdict.text.translate(_MARKDOWN)
        lines.append(f"| {model} | {outcome} | {failed} of {len(canaries)} | {exposure} | {why} |")
    return "\n".join(lines) + "\n\n"


def memory_summary(maps: Sequence[MemoryMap]) -> str:
    """The Markdown table of memory maps for the step summary."""
    lines = [
        "### Memory map",
        "",
        "| model | verdict | memorised | of | held out | places | why |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for memory_map in maps:
        verdict = (
            "FAIL, no worse than the baseline" if memory_map.baseline == "known" else memory_map.verdict or "no limit"
        )
        model, why = memory_map.model.translate(_MARKDOWN), " ".join(memory_sentences(memory_map)).translate(_MARKDOWN)
        lines.append(
            f"| {model} | {verdict} | {memory_map.memorised:,} | {memory_map.tested:,} | {memory_map.held_out:,} "
            f"| {len(memory_map.places):,} | {why} |"
        )
    return "\n".join(lines) + "\n\n"


def _after_verdicts(annotated: tuple[Check, ResultFile | None]) -> bool:
    return annotated[0].number is not None


def _annotation(check: Check, file: ResultFile | None) -> str:
    settings = {"title": f"{check.model}: {check.name}"}
    if file is not None:
        settings = {"file": file.uri, "line": str(file.line(check.number))} | settings
    listed = ",".join(f"{name}={_property(value)}" for name, value in settings.items())
    return f"::{_COMMANDS[check.outcome]} {listed}::{_data(check.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
