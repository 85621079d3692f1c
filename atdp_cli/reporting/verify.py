"""A model's report compared with its sources: the ledger, the sealed files and the audits."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atdp_cli.errors import InputError
from atdp_cli.files.documents import read_whole
from atdp_cli.files.private import PRIVATE, beside
from atdp_cli.model.hashes import verified_ledger
from atdp_cli.privacy.guarantee import guarantees
from atdp_cli.privacy.ledger import LEDGER_FILE, Ledger, read_ledger
from atdp_cli.reporting.annex import with_public, with_verdict
from atdp_cli.reporting.card import render_card
from atdp_cli.reporting.document import (
    HTML_FILE,
    NOT_COVERED,
    REPORT_FILE,
    PrivateReport,
    PublicReport,
    Report,
)
from atdp_cli.reporting.from_ledger import fields_from_ledger, repeated_steps, stage_differences, stated_flags
from atdp_cli.reporting.html import render_html
from atdp_cli.reporting.wording import audit_sentence
from atdp_cli.reporting.write import CARD_FILE, PUBLISHED, as_json, read_audits, read_report, with_audits

UNVERIFIED = (
    "name",
    "held_out",
    "inherited_ledger",
    "recipe",
    "detector.pipeline",
    "engine",
    "engines_refused",
    "engine_check",
    "verified",
    "sentence",
    "ended_early",
    "start",
    "command",
    "card",
)
"""Fields of the public report that neither the ledger, nor a sealed file, nor an audit says again."""

ROUNDING = 1e-9
"""The largest relative difference: another processor may compute another last digit of an ε."""

LONGEST = 60
"""Characters of a value that a difference shows."""


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """Where a folder does not say what it was made from.

    Attributes:
        file: The file's name.
        path: Of the value in the JSON; empty for a whole file.
        problem: What is stated there and what would be right, as a clause.
    """

    file: str
    path: str = ""
    problem: str


def verify(folder: Path, audits: Path | None = None) -> tuple[Mismatch, ...]:
    """Compare the report of a model's folder with its ledger, its files and its audits.

    The private folder beside it is compared where there is one. Nothing here is a signature: whoever writes ledger,
    report and audits anew, all of them, is not noticed.

    Args:
        folder: OUT, which holds the model.
        audits: What `audit-canary --json` wrote, of which the report has the audits.

    Raises:
        InputError: There is no report or no ledger, a report cannot be read, or the audits cannot be.
    """
    public = read_report(folder)
    if isinstance(public, PrivateReport) or not folder.is_dir():
        raise InputError(f"{folder} is not the folder of a model.", "Give OUT itself; OUT.private is looked at too.")
    if not (folder / LEDGER_FILE).exists():
        raise InputError(f"{folder} has no {LEDGER_FILE}.", "Give the folder as atdp harden wrote it.")
    return (
        *_seal_differences(folder),
        *_ledger_differences(folder, public),
        *_audit_differences(public, audits),
        *_verdict_differences(public),
        *_file_differences(folder, public, card=True),
        *_private_differences(beside(folder, PRIVATE), public),
    )


def _seal_differences(folder: Path) -> Iterator[Mismatch]:
    try:
        verified_ledger(folder)
    except InputError as error:
        yield Mismatch(file=LEDGER_FILE, problem=error.problem.rstrip("."))


def _ledger_differences(folder: Path, public: PublicReport) -> Iterator[Mismatch]:
    try:
        ledger = read_ledger(folder / LEDGER_FILE)
    except InputError:
        return
    audited = {"audit": public.summary.audit}
    for name, value in fields_from_ledger(ledger, guarantees(ledger), public.stages).items():
        made = value.model_copy(update=audited) if name == "summary" else value
        yield from _differences(name, _plain(getattr(public, name)), _plain(made))
    for position, clause in stage_differences(ledger, public.stages):
        yield _stated("stages" if position is None else f"stages.{position}", clause)
    yield from _differences("repeated_steps", public.repeated_steps, repeated_steps(ledger, public.stages))
    yield from _detector_differences(ledger, public)
    # With one run's events alone, its number of records is that of the run.
    first = all(event.run == ledger.run for event in ledger.events)
    if public.records > ledger.records or (first and public.records != ledger.records):
        yield _stated("records", f"says {public.records}, and the ledger says {ledger.records}")
    missing = [sentence for sentence in NOT_COVERED if sentence not in public.not_covered]
    if missing:
        yield _stated("not_covered", f"{len(missing)} of the sentences that every report has are missing")


def _detector_differences(ledger: Ledger, public: PublicReport) -> Iterator[Mismatch]:
    for flags in stated_flags(ledger):
        yield from _differences("detector.tier", public.detector.tier, flags.tier)
        yield from _differences("detector.kept", public.detector.kept, flags.kept)
        yield from _differences("detector.lists", public.detector.lists, bool(flags.human))
        yield from _differences("detector.crosscheck", public.detector.crosscheck is not None, flags.crosscheck)


def _audit_differences(public: PublicReport, audits: Path | None) -> Iterator[Mismatch]:
    yield from _differences("summary.audit", public.summary.audit, audit_sentence(public.audits))
    if audits is not None:
        made = read_audits(audits)
        try:
            publish = any(audit.of not in PUBLISHED for audit in public.audits)
            entries = with_audits(public, made, publish=publish).audits
        except InputError as error:
            yield _stated("audits", error.problem.rstrip("."))
        else:
            yield from _differences("audits", _plain(public.audits), _plain(entries))


def _verdict_differences(public: PublicReport) -> Iterator[Mismatch]:
    """Where verdict and annex are not those of the report's other parts."""
    made = with_verdict(public)
    yield from _differences("release", _plain(public.release), _plain(made.release))
    yield from _differences("annex", _plain(public.annex), _plain(made.annex))


def _file_differences(folder: Path, report: Report, *, card: bool) -> Iterator[Mismatch]:
    """Files that are not what the JSON gives."""
    made = {REPORT_FILE: as_json(report), HTML_FILE: render_html(report)}
    if card and isinstance(report, PublicReport):
        made[CARD_FILE] = render_card(report)
    for name, text in made.items():
        try:
            present = read_whole(folder / name)
        except OSError as error:
            yield Mismatch(file=name, problem=f"cannot be read ({error.strerror})")
            continue
        if present != text.encode():
            line = _alike(present.split(b"\n"), text.encode().split(b"\n")) + 1
            yield Mismatch(file=name, problem=f"line {line} is not what {REPORT_FILE} gives")


def _alike(left: Sequence[object], right: Sequence[object]) -> int:
    """How many of their first parts are the same."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(left), len(right)))


def _private_differences(folder: Path, public: PublicReport) -> Iterator[Mismatch]:
    if not (folder / REPORT_FILE).exists():
        return
    private = read_report(folder)
    if isinstance(private, PublicReport):
        yield Mismatch(file=f"{folder.name}/{REPORT_FILE}", problem="has no private figures")
        return
    if private.public != public:
        yield Mismatch(file=f"{folder.name}/{REPORT_FILE}", path="public", problem="is another report than OUT has")
    if with_public(private, private.public) != private:
        yield Mismatch(
            file=f"{folder.name}/{REPORT_FILE}", path="release", problem="is not what its other figures give"
        )
    for difference in _file_differences(folder, private, card=False):
        yield Mismatch(file=f"{folder.name}/{difference.file}", problem=difference.problem)


def _stated(path: str, problem: str) -> Mismatch:
    return Mismatch(file=REPORT_FILE, path=path, problem=problem)


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def _differences(path: str, stated: Any, made: Any) -> Iterator[Mismatch]:
    """Each place where two values of JSON differ."""
    if isinstance(stated, Mapping) and isinstance(made, Mapping) and stated.keys() == made.keys():
        for key, value in stated.items():
            yield from _differences(f"{path}.{key}", value, made[key])
    elif isinstance(stated, list) and isinstance(made, list) and len(stated) == len(made):
        for position, (stated_item, made_item) in enumerate(zip(stated, made, strict=True)):
            yield from _differences(f"{path}.{position}", stated_item, made_item)
    elif not _same(stated, made):
        yield _stated(path, "says {}, and should say {}".format(*_shown(stated, made)))


def _same(stated: Any, made: Any) -> bool:
    if isinstance(stated, float) and isinstance(made, int | float):
        return math.isclose(stated, made, rel_tol=ROUNDING)
    return bool(stated == made)


def _shown(stated: Any, made: Any) -> tuple[str, str]:
    """Two values as short texts; of long ones the part where they differ."""
    left, right = _word(stated), _word(made)
    start = max(0, _alike(left, right) - LONGEST // 3) if max(len(left), len(right)) > LONGEST else 0
    return _part(left, start), _part(right, start)


def _part(text: str, start: int) -> str:
    before, after = "…" * (start > 0), "…" * (len(text) > start + LONGEST)
    return f"{before}{text[start : start + LONGEST]}{after}"


def _word(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} entries"
    return "null" if value is None else str(value)
