"""The files that a gate writes for CI: JUnit, SARIF, a baseline, and GitHub's annotations and step summary."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from atdp_cli import __version__
from atdp_cli.audit.results import AnyAudit
from atdp_cli.cli.escape import escaped_json, escaped_lines, escaped_marks
from atdp_cli.cli.exit import write_error, write_safe
from atdp_cli.detection.options import ReplacingOptions
from atdp_cli.files.atomic_write import atomic_write, check_apart, check_new, real_path
from atdp_cli.files.documents import document_text
from atdp_cli.memorisation.results import MemoryMap
from atdp_cli.model.folder import with_bases
from atdp_cli.reporting.ci.baseline import make_baseline
from atdp_cli.reporting.ci.checks import COMMANDS, CheckedModel, Kind
from atdp_cli.reporting.ci.formats import annotations, junit, sarif
from atdp_cli.settings import OUTPUT, Option, Options, named_paths


class CiOptions(ReplacingOptions):
    """The files to write for CI. They hold neither secret nor text."""

    junit: Annotated[Path | None, Option(OUTPUT, main=True, writes=True)] = None
    """Write JUnit XML: a suite a model, a case a canary or memorised text and one for the verdict."""

    sarif: Annotated[Path | None, Option(OUTPUT, main=True, writes=True)] = None
    """Write SARIF 2.1.0; its locations are lines of the manifest, or of --data where that is plain text."""

    write_baseline: Annotated[Path | None, Option(OUTPUT, main=True, writes=True)] = None
    """Record what was found, for --baseline in later runs."""

    def check(self, request: Options, *others: Path) -> None:
        """Refuse, before anything is scored, to write over what is there or is read, or two files as one.

        Args:
            request: What is read beside the baseline.
            others: Files that the command writes beside those that are named here.

        Raises:
            UsageError: A file exists or is read, or two are the same.
            InputError: A folder does not exist.
        """
        read, written = named_paths(request, self)
        check_apart(with_bases(read), (*written, *others))
        for path in (*written, *others):
            check_new(path, force=self.force)


def write_ci_files(
    files: CiOptions,
    results: Sequence[AnyAudit | MemoryMap],
    models: Sequence[CheckedModel],
    *,
    kind: Kind,
) -> None:
    """Write the files that were asked for.

    Args:
        models: The results' checks, of this kind.
    """
    if files.junit is not None:
        _write(files.junit, escaped_lines(junit(models, COMMANDS[kind])))
    if files.sarif is not None:
        _write(files.sarif, escaped_json(document_text(sarif(models, __version__, kind=kind))))
    if files.write_baseline is not None:
        baseline = make_baseline(results).model_dump(mode="json")
        _write(files.write_baseline, escaped_json(document_text(baseline)))


def tell_github(models: Sequence[CheckedModel], summary: str) -> None:
    """Write annotations and the step summary, if this runs on GitHub Actions.

    Args:
        summary: Markdown.
    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    # Standard output may have to be JSON; GitHub reads both.
    for line in annotations(models):
        write_safe(escaped_marks(line))  # the commands are meant
    if target := os.environ.get("GITHUB_STEP_SUMMARY"):
        _append(Path(target), summary)


def file_uri(path: Path) -> str:
    """A file as reports name it: relative to the working folder where it lies in it."""
    whole, here = real_path(path), Path.cwd()
    return quote(whole.relative_to(here).as_posix()) if whole.is_relative_to(here) else whole.as_uri()


def _write(path: Path, text: str) -> None:
    """Write a report file, or nothing."""
    with atomic_write(path) as stream:
        # A name that is not UTF-8 stays readable, and valid as JSON.
        stream.write(text.encode("utf-8", "backslashreplace"))


def _append(path: Path, text: str) -> None:
    """Add to the step summary. One that cannot be written is no reason to lose the verdict."""
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(escaped_lines(text))
    except OSError as error:
        write_error(f"atdp: the step summary could not be written ({error.strerror}).")
