"""Options that several commands share."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atdp_cli.cli.options.crosscheck import (
    CrosscheckModel,
    CrosscheckUrl,
    LlmKeyFile,
    OnDisagreement,
    SendUnmasked,
    cross_check,
)
from atdp_cli.cli.terminal.console import stderr_console
from atdp_cli.cli.terminal.json_lines import ProgressOption
from atdp_cli.errors import UsageError
from atdp_cli.text.detection.spans import Tier

if TYPE_CHECKING:
    from rich.console import Console

    from atdp_cli.jobs.detect import CorpusSource
    from atdp_cli.jobs.detector import Detector
    from atdp_cli.jobs.ray import Backend

Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON on standard output.", rich_help_panel="Output")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing but errors on standard error.", rich_help_panel="Output")
]
ProgressHow = Annotated[
    ProgressOption,
    typer.Option(
        help="auto: bars on a terminal, else lines. json: each event as a line of JSON on standard error, and nothing "
        "else there but errors. As the screen, the events of harden tell perplexities of held-out text.",
        rich_help_panel="Output",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there already.", rich_help_panel="Output")]
Threads = Annotated[
    int | None,
    typer.Option(
        help="Threads for the arithmetic. Default: as torch chooses; one to harden under 10 million parameters.",
        rich_help_panel="Running",
    ),
]
Jobs = Annotated[int, typer.Option(help="Processes for the detector.", rich_help_panel="Running")]


class BackendName(StrEnum):
    """Where work is done."""

    LOCAL = "local"
    RAY = "ray"


BackendOption = Annotated[
    BackendName,
    typer.Option(
        help="local: on this machine. ray: as tasks of Ray, begun again where a worker ends; what is written is the "
        "same. Batches of private text, or of an audit the secrets, go to its workers. Needs pip install 'atdp[ray]'.",
        rich_help_panel="Running",
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="The cluster of --engine ray; auto on one of its machines. Default: Ray is started here for the run.",
        rich_help_panel="Running",
    ),
]
TierOption = Annotated[
    Tier,
    typer.Option(
        metavar="TIER",
        help="What counts as sensitive, each with all before it: low-entity (names, dates, places, identifiers), "
        "high-entity (every named entity), low-contextual (also subjects, objects, pronouns), high-contextual (also "
        "verbs).",
        rich_help_panel="Detection",
    ),
]
Allow = Annotated[
    list[Path] | None,
    typer.Option(
        help="Terms that are not sensitive, one a line; /…/ is a regular expression. Repeatable.",
        rich_help_panel="Detection",
    ),
]
Deny = Annotated[
    list[Path] | None,
    typer.Option(
        help="Terms that always are sensitive; they win over --allow. Repeatable.", rich_help_panel="Detection"
    ),
]
UnitOption = Annotated[
    str,
    typer.Option(
        help="What one record, the unit of privacy, is: line, paragraph, document, or the field (JSON Lines) or "
        "column (CSV, Parquet) whose equal values make one record.",
        rich_help_panel="Data",
    ),
]
TextField = Annotated[
    str,
    typer.Option(help="JSON Lines, CSV, Parquet: the field or column that holds the text.", rich_help_panel="Data"),
]
IdField = Annotated[
    str | None,
    typer.Option(
        help="JSON Lines, CSV, Parquet: the field or column that holds the id. Default: the line or row number.",
        rich_help_panel="Data",
    ),
]
SkipBad = Annotated[
    bool,
    typer.Option(
        "--skip-bad",
        help="Count and skip lines and rows that cannot be read (not UTF-8, bad JSON, no text, wrong number of "
        "fields) in place of an error. A redacted corpus leaves them out.",
        rich_help_panel="Data",
    ),
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        metavar="I/N",
        help="Read only the I-th of N parts of about equal size, I from 1; a record is in the part where it begins. "
        "Ids are those of the whole, counts those of the part. The outputs of all parts, in order, make the output of "
        "the whole: joined with cat, but for Parquet, of which each is a file.",
        rich_help_panel="Data",
    ),
]
CorpusArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CORPUS",
        help="Corpus: .txt, .jsonl, .csv, .tsv (also .gz or .zst) or .parquet; - for standard input, plain text.",
    ),
]
SpacyPipeline = Annotated[
    str | None,
    typer.Option(
        help="A spaCy pipeline with tagger, parser and ner: a package or a folder. Default: en_core_web_sm.",
        rich_help_panel="Detection",
    ),
]
Store = Annotated[
    Path | None,
    typer.Option(
        help="Folder, ending in .private, to keep what was found in, so that another tier, other lists or an "
        "interrupted run need not read the corpus again. It holds no text, but stays with you. Default: "
        "CORPUS.private beside the corpus.",
        rich_help_panel="Detection",
    ),
]
NoStore = Annotated[
    bool,
    typer.Option("--no-store", help="Keep no findings for later runs, and look none up.", rich_help_panel="Detection"),
]


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What a command prints."""

    as_json: Json = False
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class ProgressOptions(OutputOptions):
    """What a command prints that tells how far it is."""

    progress: ProgressHow = ProgressOption.AUTO

    def console(self) -> "Console":
        """The console for people; a silent one where standard error is a machine's.

        Raises:
            UsageError: The events were asked for, and silence too.
        """
        as_events = self.progress is ProgressOption.JSON
        if as_events and self.quiet:
            raise UsageError("--quiet silences what --progress json writes.", "Leave one of them out.")
        return stderr_console(quiet=self.quiet or as_events)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a corpus becomes records."""

    unit: UnitOption = "line"
    text_field: TextField = "text"
    id_field: IdField = None
    skip_bad: SkipBad = False
    shard: ShardOption = None

    def corpus(self, path: Path) -> "CorpusSource":
        """The same for the jobs."""
        from atdp_cli.jobs.detect import CorpusSource
        from atdp_cli.text.corpus.shards import parse_shard

        return CorpusSource(
            path=path,
            unit=self.unit,
            text_field=self.text_field,
            id_field=self.id_field,
            skip_bad=self.skip_bad,
            shard=None if self.shard is None else parse_shard(self.shard),
        )


@dataclass(frozen=True, kw_only=True)
class BackendOptions:
    """Where work is done."""

    engine: BackendOption = BackendName.LOCAL
    ray_address: RayAddress = None

    def chosen(self, processes: int) -> "Backend":
        """The same for the jobs, with as many processes as are started here.

        Raises:
            UsageError: Options contradict each other, or Ray is not installed.
        """
        from atdp_cli.jobs.ray import Local, Ray, require_ray

        if self.engine is BackendName.RAY:
            require_ray()
            return Ray(address=self.ray_address, processors=processes)
        if self.ray_address is not None:
            raise UsageError("--ray-address goes with --engine ray.", "Add that engine, or leave the address out.")
        return Local(jobs=processes)


@dataclass(frozen=True, kw_only=True)
class DetectionOptions:
    """How the detector looks at the records."""

    tier: TierOption = Tier.HIGH_CONTEXTUAL
    allow: Allow = None
    deny: Deny = None
    spacy_pipeline: SpacyPipeline = None
    store: Store = None
    no_store: NoStore = False
    jobs: Jobs = 1
    crosscheck: CrosscheckModel = None
    crosscheck_url: CrosscheckUrl = None
    send_unmasked: SendUnmasked = False
    on_disagreement: OnDisagreement = None
    llm_key_file: LlmKeyFile = None

    def detector(self, corpus: Path, working: BackendOptions = BackendOptions()) -> "Detector":
        """The same for the jobs, on this corpus."""
        from atdp_cli.jobs.detector import Detector

        if working.ray_address is not None and self.jobs != 1:
            raise UsageError("--jobs is about this machine, and --ray-address about others.", "Leave one of them out.")

        return Detector(
            tier=self.tier,
            allow=tuple(self.allow or ()),
            deny=tuple(self.deny or ()),
            pipeline=self.spacy_pipeline,
            engine=working.chosen(self.jobs),
            store=self._store(corpus),
            crosscheck=cross_check(
                self.crosscheck,
                self.crosscheck_url,
                send_unmasked=self.send_unmasked,
                on_disagreement=self.on_disagreement,
                key_file=self.llm_key_file,
            ),
        )

    def _store(self, corpus: Path) -> Path | None:
        from atdp_cli.files.private import private_folder

        if self.store is None:
            return None if self.no_store else private_folder(corpus)
        if self.no_store:
            raise UsageError("--store and --no-store contradict each other.", "Leave one of them out.")
        if self.store.suffix != ".private":
            raise UsageError(
                f"--store {self.store} does not end in .private.",
                f"What was found says something about the records and stays with you; call it {self.store}.private.",
            )
        return self.store
