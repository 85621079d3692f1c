"""Options of the command line that several commands share, and what the jobs make of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import PositiveInt

from atdp_cli.cli.terminal.console import stderr_console
from atdp_cli.cli.terminal.json_lines import ProgressOption
from atdp_cli.errors import UsageError
from atdp_cli.options import Option, Options
from atdp_cli.text.detection.spans import DEFAULT_TIER, PAPER_TIER, Tier
from atdp_cli.text.options import (
    OUTPUT,
    RUNNING,
    CrosscheckOptions,
    DetectionOptions,
    FindingOptions,
    ReadingOptions,
    WholeReadingOptions,
)

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.jobs.backend import Backend
    from atdp_cli.jobs.detect import CorpusSource
    from atdp_cli.jobs.detector import Detector
    from atdp_cli.text.crosscheck.request import CrossCheck
    from atdp_cli.text.detection.confidence import LabelFilter

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


class ThreadOptions(Options):
    """How many threads compute."""

    threads: Annotated[PositiveInt | None, Option(RUNNING, fingerprint=False)] = None
    """Threads for the arithmetic. Default: as torch chooses; one to harden under 10 million parameters."""


class BackendOptions(Options):
    """Where work is done."""

    engine: Annotated[Literal["local", "ray"], Option(RUNNING, fingerprint=False)] = "local"
    """local: on this machine. ray: as tasks of Ray, restarted where a worker ends; what is written is the same.
    Batches of private text, or of an audit the secrets, go to its workers. Needs pip install 'atdp[ray]'."""

    ray_address: Annotated[str | None, Option(RUNNING, metavar="HOST:PORT", fingerprint=False)] = None
    """The cluster of --engine ray; auto on one of its machines. Default: Ray is started here for the run."""

    def backend(self, processes: int) -> "Backend":
        """The same for the jobs, with as many processes as are started here.

        Raises:
            UsageError: Options contradict each other, or Ray is not installed.
        """
        from atdp_cli.jobs.backend import Local
        from atdp_cli.jobs.ray import Ray, require_ray

        if self.engine == "ray":
            require_ray()
            return Ray(address=self.ray_address, processors=processes)
        if self.ray_address is not None:
            raise UsageError("--ray-address goes with --engine ray.", "Add that engine, or leave the address out.")
        return Local(jobs=processes)


def corpus_source(options: WholeReadingOptions, path: Path) -> "CorpusSource":
    """A corpus as the jobs read it."""
    from atdp_cli.jobs.detect import CorpusSource
    from atdp_cli.text.corpus.shards import parse_shard

    part = options.shard if isinstance(options, ReadingOptions) else None
    return CorpusSource(path=path, **dict(options) | {"shard": None if part is None else parse_shard(part)})


def make_detector(
    options: DetectionOptions, corpus: Path, backend: BackendOptions | None = None, *, recipe: str | None = None
) -> "Detector":
    """The detector as the jobs take it, on this corpus.

    Args:
        recipe: The recipe's name; its default tier differs.

    Raises:
        UsageError: Options contradict each other, or Ray is not installed.
    """
    from atdp_cli.jobs.detector import Detector
    from atdp_cli.jobs.entities import parse_entity_backend
    from atdp_cli.text.detection.structure import parse_speaker_labels

    backend = backend or BackendOptions()
    if backend.ray_address is not None and options.jobs != 1:
        raise UsageError("--jobs is about this machine, and --ray-address about others.", "Leave one of them out.")
    return Detector(
        tier=options.tier or default_tier(recipe),
        speaker_labels=parse_speaker_labels(options.speaker_labels or ""),
        label_filter=_label_filter(options),
        allow=options.allow,
        deny=options.deny,
        pipeline=options.spacy_pipeline,
        entities=None if options.backend is None else parse_entity_backend(options.backend),
        engine=backend.backend(options.jobs),
        store=_store(options, corpus),
        crosscheck=_crosscheck(options),
    )


def default_tier(recipe: str | None) -> Tier:
    """What counts as sensitive where nobody says."""
    return PAPER_TIER if recipe == "atdp" else DEFAULT_TIER


def _label_filter(options: FindingOptions) -> "LabelFilter":
    """Which spans count.

    Raises:
        UsageError: A label is not known, or is both wanted and excluded.
    """
    from atdp_cli.text.detection.confidence import LabelFilter, parse_labels

    if options.entities is None and options.exclude is None:
        return LabelFilter(min_confidence=options.min_confidence or 0.0)
    from atdp_cli.text.detection.detect import LABELS

    known = LABELS if options.spacy_pipeline is None and options.backend is None else None
    entities = () if options.entities is None else parse_labels("entities", options.entities, known)
    exclude = () if options.exclude is None else parse_labels("exclude", options.exclude, known)
    if both := sorted(set(entities) & set(exclude)):
        raise UsageError(f"--entities and --exclude both name {both[0]}.", "Leave it out of one of them.")
    return LabelFilter(entities=entities, exclude=exclude, min_confidence=options.min_confidence or 0.0)


def _store(options: FindingOptions, corpus: Path) -> Path | None:
    from atdp_cli.files.private import private_folder

    if options.store is None:
        return None if options.no_store else private_folder(corpus)
    if options.no_store:
        raise UsageError("--store and --no-store contradict each other.", "Leave one of them out.")
    if options.store.suffix != ".private":
        raise UsageError(
            f"--store {options.store} does not end in .private.",
            f"What was found says something about the records and stays with you; call it {options.store}.private.",
        )
    return options.store


def _crosscheck(options: CrosscheckOptions) -> "CrossCheck | None":
    from atdp_cli.text.crosscheck.request import CrossCheck

    if options.crosscheck is None:
        for name in ("crosscheck_url", "send_unmasked", "on_disagreement", "llm_key_file"):
            if getattr(options, name) not in (None, False):
                option = "--" + name.replace("_", "-")
                raise UsageError(f"{option} goes with --crosscheck.", "Name a model by --crosscheck, or leave it out.")
        return None
    return CrossCheck(
        model=options.crosscheck,
        url=options.crosscheck_url,
        key_file=options.llm_key_file,
        masked=not options.send_unmasked,
        review=options.on_disagreement == "review",
    )
