"""Options of the command line that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atdp_cli.cli.terminal.console import stderr_console
from atdp_cli.cli.terminal.json_lines import ProgressOption
from atdp_cli.errors import UsageError
from atdp_cli.options import Option, Options
from atdp_cli.text.options import OUTPUT

if TYPE_CHECKING:
    from rich.console import Console

CorpusArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CORPUS",
        help="Corpus: .txt, .jsonl, .csv, .tsv (also .gz or .zst) or .parquet; - for standard input, plain text.",
    ),
]


class JsonOptions(Options):
    """Whether the result is for a program."""

    as_json: Annotated[bool, Option(OUTPUT, main=True, flags=("--json",), fingerprint=False)] = False
    """Print the result as JSON on standard output."""


class OutputOptions(JsonOptions):
    """What a command prints."""

    quiet: Annotated[bool, Option(OUTPUT, flags=("--quiet", "-q"), fingerprint=False)] = False
    """Say nothing but errors on standard error."""


class ProgressOptions(OutputOptions):
    """What a command prints, its progress included."""

    progress: Annotated[ProgressOption, Option(OUTPUT, fingerprint=False)] = ProgressOption.AUTO
    """auto: bars on a terminal, else lines. json: each event as a line of JSON on standard error, and nothing else
    there but errors. As the screen, the events of harden tell perplexities of held-out text."""

    def console(self) -> "Console":
        """The console for people; a silent one where standard error is a machine's.

        Raises:
            UsageError: The events were asked for, and silence too.
        """
        as_events = self.progress is ProgressOption.JSON
        if as_events and self.quiet:
            raise UsageError("--quiet silences what --progress json writes.", "Leave one of them out.")
        return stderr_console(quiet=self.quiet or as_events)
