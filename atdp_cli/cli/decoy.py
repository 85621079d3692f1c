"""`atdp decoy`: copies of a corpus with decoys, for any trainer, with the ledger of what they reveal."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atdp_cli.cli.console import progress, say_skipped, show_flagged, write_json
from atdp_cli.cli.help import CorpusArgument, ProgressOptions
from atdp_cli.decoys.request import DecoyOptions, DecoyRequest, decoy

if TYPE_CHECKING:
    from atdp_cli.decoys.run import WrittenCopies


def decoy_command(corpus: CorpusArgument, options: DecoyOptions, printing: ProgressOptions) -> None:
    """Write copies of a corpus with decoys over what is sensitive, one an epoch, to train on anywhere.

    Everything else stays byte for byte, other fields too. All records are in the release and in each copy: what is to
    be held out, keep in another file. A part of a corpus has another release, so there is no --shard.
    """
    from atdp_cli.privacy.wording import guarantee_sentences

    console = printing.console()
    request = DecoyRequest(corpus=corpus, **options.model_dump(exclude_unset=True))
    with progress(console, printing.progress) as notify:
        written = decoy(request, notify)
    if printing.as_json:
        write_json(_result_json(options.output, written))
    console.print(
        f"Copies in {options.output}: {len(written.copies):,}, each of {written.counts.records:,} records.",
        soft_wrap=True,
    )
    for line in guarantee_sentences(written.ledger, written.plan.guarantees):
        console.print(line)
    show_flagged(written.counts.flagged, console)
    say_skipped(console, written.counts.skipped)


def _result_json(output: Path, written: "WrittenCopies") -> dict[str, Any]:
    from atdp_cli.reporting.entries import guarantee_entries

    counts, plan = written.counts, written.plan
    return {
        "schema_version": 1,
        "output": str(output),
        "copies": [str(path) for path in written.copies],
        "records": counts.records,
        "skipped": counts.skipped,
        "release_noise_multiplier": None if plan.release is None else plan.release.noise_multiplier,
        "guarantees": [entry.model_dump(mode="json") for entry in guarantee_entries(plan.guarantees)],
        "crosscheck": None if counts.crosscheck is None else asdict(counts.crosscheck),
    }
