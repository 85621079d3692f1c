"""`atdp decoy`: copies of a corpus with decoys, for any trainer, with the ledger of what they reveal."""

from atdp_cli.cli.console import progress, show_found, write_json
from atdp_cli.cli.help import ProgressOptions
from atdp_cli.decoys.request import DecoyRequest, decoy


def decoy_command(request: DecoyRequest, printing: ProgressOptions) -> None:
    """Write copies of a corpus with decoys over what is sensitive, one an epoch, to train on anywhere.

    Everything else stays byte for byte, other fields too. All records are in the release and in each copy: what is to
    be held out, keep in another file.
    """
    console = printing.console()
    with progress(console, printing.progress) as notify:
        summary = decoy(request, notify)
    if printing.as_json:
        write_json(summary.model_dump(mode="json"))
    console.print(
        f"Copies in {request.output}: {len(summary.copies):,}, each of {summary.records:,} records.", soft_wrap=True
    )
    for line in summary.statements:
        console.print(line)
    show_found(summary, console)
