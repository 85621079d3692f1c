"""The report's files: in OUT/ what may be published, in OUT.private/ the whole."""

from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from atdp_cli.errors import InputError, RunError
from atdp_cli.jobs.attaching import read_audits, with_audits
from atdp_cli.jobs.places import PRIVATE, beside
from atdp_cli.report.card import render_card
from atdp_cli.report.comparison import Report
from atdp_cli.report.document import HTML_FILE, REPORT_FILE, PrivateReport, PublicReport
from atdp_cli.report.html import render_html
from atdp_cli.wholefile import read_whole

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


def attach(folder: Path, audits: Path) -> PublicReport:
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
