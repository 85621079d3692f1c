"""`atdp redact`: the corpus with placeholders over its sensitive spans."""

from atdp_cli.cli.console import StandardOutput, progress, show_found, write_json
from atdp_cli.cli.help import ProgressOptions
from atdp_cli.detection.redact import RedactRequest, redact
from atdp_cli.errors import UsageError
from atdp_cli.files.corpus_file import STANDARD_OUTPUT


def redact_command(request: RedactRequest, printing: ProgressOptions) -> None:
    """Replace what is sensitive by placeholders; everything else stays byte for byte, in Parquet value for value.

    The default tier masks names, dates, places and identifiers, and leaves text that people can read.
    """
    console, to_file = printing.console(), request.output != STANDARD_OUTPUT
    if printing.as_json and not to_file:
        raise UsageError("-o - and --json both write to standard output.", "Name a file, or leave --json out.")
    with progress(console, printing.progress) as notify:
        summary = redact(request, notify, None if to_file else StandardOutput())
    if printing.as_json:
        write_json(summary.model_dump(mode="json"))
    where = request.output if to_file else "standard output"
    console.print(f"Records redacted into {where}: {summary.records:,}.", soft_wrap=True)
    show_found(summary, console)
