"""`account` and `report`: what runs have spent or would spend, and a run's privacy report."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from atdp_cli.api.inputs import PathLike, recipe_option, scratch
from atdp_cli.api.keywords import AccountKeywords
from atdp_cli.api.options import check_keywords, parse_keywords

if TYPE_CHECKING:
    from pydantic import BaseModel

    from atdp_cli.audit_result import AuditDocument
    from atdp_cli.memory_result import MemoryDocument
    from atdp_cli.report.document import PrivateReport, PublicReport
    from atdp_cli.report.summary.account import AccountSummary
    from atdp_cli.training.recipe import Stage
    from atdp_cli.training.recipe_file import RecipeFile


def account(
    ledgers: PathLike | Sequence[PathLike] = (),
    *,
    recipe: "str | RecipeFile | Sequence[Stage] | None" = None,
    **options: Unpack[AccountKeywords],
) -> "AccountSummary":
    """Say what ε runs have spent, or would spend, as `atdp account` does.

    Args:
        ledgers: Folders of hardened models, or files of ledgers; several compose.
        recipe: Of a run that nobody has run yet: names joined by +, the path of a recipe file, a `RecipeFile`, or
            stages. It goes with `records`.
        options: Those of the command, with _ for -.

    Raises:
        UsageError: Options contradict each other or lie out of range.
        InputError: A ledger or a recipe cannot be read.
        BudgetError: ε is in the thousands, or the target cannot be reached.
    """
    from atdp_cli.cli.account.command import account_command, run_account
    from atdp_cli.cli.account.summary import account_summary

    check_keywords("account", account_command, options)
    paths = [ledgers] if isinstance(ledgers, str | os.PathLike) else ledgers
    with scratch() as place:
        given: dict[str, Any] = {**options, "recipe": recipe_option(place, recipe)}
        groups = parse_keywords(account_command, given)
        del groups["printing"]
        return account_summary(*run_account([Path(path) for path in paths], **groups), groups["figuring"].group)


@overload
def report(
    folder: PathLike, *, audit: "PathLike | AuditDocument", map: "PathLike | MemoryDocument | None" = None
) -> "PublicReport": ...


@overload
def report(
    folder: PathLike, *, audit: None = None, map: "PathLike | MemoryDocument | None" = None
) -> "PublicReport | PrivateReport": ...


def report(
    folder: PathLike, *, audit: "PathLike | AuditDocument | None" = None, map: "PathLike | MemoryDocument | None" = None
) -> "PublicReport | PrivateReport":
    """A run's privacy report, as `atdp report --json` prints it.

    Args:
        folder: What `harden` wrote: OUT/ for the public report, OUT.private/ for the whole one.
        audit: What `audit_canary` returned, or the file of `atdp audit-canary --json`: put into OUT's reports, all of
            which are written again.
        map: The same of `audit_corpus`: put into the report of OUT.private/.

    Raises:
        InputError: A report, the audit or the map cannot be read, or is of another model.
    """
    from atdp_cli.jobs.report import attach_audits, attach_maps, read_maps, read_report

    path = Path(folder)
    with scratch() as place:
        privacy_report = (
            read_report(path) if audit is None else attach_audits(path, _document(place.folder / "audit.json", audit))
        )
        if map is not None:
            attach_maps(path, read_maps(_document(place.folder / "map.json", map)))
        return privacy_report


def _document(path: Path, document: "PathLike | BaseModel") -> Path:
    """The file of a result, which is written where it is in memory."""
    if isinstance(document, str | os.PathLike):
        return Path(document)
    path.write_text(document.model_dump_json(), encoding="utf-8")
    return path
