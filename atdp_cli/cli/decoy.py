"""`atdp decoy`: copies of a corpus with decoys, for any trainer, with the ledger of what they tell."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import PositiveFloat

from atdp_cli.cli.options.generate import stage_group
from atdp_cli.cli.options.shared import (
    CorpusArgument,
    ProgressOptions,
)
from atdp_cli.cli.terminal.console import progress, say_skipped, write_json
from atdp_cli.cli.terminal.flagged import show_flagged
from atdp_cli.options import Option, Options
from atdp_cli.privacy.schedule import NoiseMultiplier
from atdp_cli.text.options import (
    OUTPUT,
    DetectionOptions,
    ExecutorOptions,
    ReplacingOptions,
    SpanFileOptions,
    WholeReadingOptions,
)
from atdp_cli.training.options import PRIVACY, DeltaOptions, SeedOptions

if TYPE_CHECKING:
    from atdp_cli.jobs.decoy.copies import WrittenCopies
    from atdp_cli.jobs.decoy.request import DecoyPlan

COPIES = "Copies"


class CopiesOutputOptions(Options):
    """Where the copies go."""

    output: Annotated[Path, Option(OUTPUT, flags=("--output", "-o"))]
    """Folder to write: epoch-1 and so on, each the whole corpus in its format, and privacy_ledger.json. The key by
    which the ledger commits to the corpus is in OUT.private/."""


_Epochs: Any = stage_group("epochs", panel=COPIES)


class DecoyOptions(Options):
    """How decoys are drawn."""

    recipe: Annotated[Literal["fitted-decoys", "decoys"], Option(COPIES, metavar="fitted-decoys|decoys")] = (
        "fitted-decoys"
    )
    """Whose decoys: those of harden --recipe fitted-decoys, drawn as often as one noisy release says that the corpus
    has them, or those of --recipe decoys, drawn uniformly, which spend nothing."""

    decoy_equality: Annotated[Literal["record"] | None, Option(COPIES, metavar="record")] = None
    """record: equal words and numbers of a record get equal decoys. Default: each is drawn by itself."""


class CopiesEpsilonOptions(Options):
    """What the release may cost."""

    target_epsilon: Annotated[PositiveFloat | None, Option(PRIVACY)] = None
    """Choose the noise of the release so that the guarantee for flagged characters has at most this ε. Default: 3."""

    release_noise: Annotated[NoiseMultiplier | None, Option(PRIVACY)] = None
    """σ of the release, in place of --target-epsilon."""


def decoy_command(
    corpus: CorpusArgument,
    writing: CopiesOutputOptions,
    copying: _Epochs,
    decoys: DecoyOptions,
    spending: CopiesEpsilonOptions,
    bounding: DeltaOptions,
    detection: DetectionOptions,
    working: ExecutorOptions,
    reading: WholeReadingOptions,
    span_file: SpanFileOptions,
    printing: ProgressOptions,
    replacing: ReplacingOptions,
    seed: SeedOptions,
) -> None:
    """Write copies of a corpus with decoys over what is sensitive, one an epoch, to train on anywhere.

    Everything else stays byte for byte, other fields too. All records are in the release and in each copy: what is to
    be held out, keep in another file. A part of a corpus has another release, so there is no --shard.
    """
    from atdp_cli.jobs.decoy.request import DecoyRequest, plan_copies
    from atdp_cli.jobs.detect import corpus_source
    from atdp_cli.jobs.detector import make_detector
    from atdp_cli.privacy.wording import guarantee_sentences

    given = {} if copying.epochs is None else {"epochs": copying.epochs}
    request = DecoyRequest(
        corpus=corpus_source(reading, corpus),
        output=writing.output,
        detector=make_detector(detection, corpus, run_on=working.run_on),
        recipe=decoys.recipe,
        equality=decoys.decoy_equality,
        **dict(spending),
        delta=bounding.delta,
        spans=span_file.spans,
        seed=seed.insecure_seed,
        force=replacing.force,
        **given,
    )
    console = printing.console()
    plan = plan_copies(request)
    from atdp_cli.jobs.decoy.copies import write_copies  # which loads torch

    with progress(console, printing.progress) as notify:
        written = write_copies(request, plan, notify)
    if printing.as_json:
        write_json(_result_json(writing.output, plan, written))
    console.print(
        f"Copies in {writing.output}: {len(written.copies):,}, each of {written.counts.records:,} records.",
        soft_wrap=True,
    )
    for line in guarantee_sentences(written.ledger, plan.guarantees):
        console.print(line)
    show_flagged(written.counts.flagged, console)
    say_skipped(console, written.counts.skipped)


def _result_json(output: Path, plan: "DecoyPlan", written: "WrittenCopies") -> dict[str, Any]:
    from atdp_cli.report.guarantee_entry import guarantee_entries

    counts = written.counts
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
