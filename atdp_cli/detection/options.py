"""The options of reading a corpus and of the detector."""

from pathlib import Path
from typing import Annotated

from atdp_cli.corpus.spans import Tier
from atdp_cli.settings import DATA, DETECTION, OUTPUT, Option, Options

READERS = ("harden", "detect", "redact", "audit-corpus")
"""Commands that always read a corpus."""


def _labels() -> list[str]:
    from atdp_cli.detection.detect import LABELS

    return sorted(LABELS)


class TextFieldOptions(Options):
    """Where a record's text is."""

    text_field: Annotated[str, Option(DATA, main=READERS, fingerprint="records")] = "text"
    """The field or column that holds the text, or a conversation: see docs/chat.md."""


class ChatTemplateOptions(Options):
    """How conversations are rendered."""

    chat_template: Annotated[str | None, Option(flag=False, fingerprint="records")] = None
    """Conversations: which of the tokenizer's chat templates renders them, where it has several. Default: the one named
    default."""


class RecordOptions(TextFieldOptions):
    """What a record is."""

    privacy_unit: Annotated[str, Option(DATA, main=READERS, fingerprint="recipe", public=True)] = "line"
    """What one record is: line, paragraph, document, or the field or column whose equal values make one record."""

    turns: Annotated[str | None, Option(flag=False, fingerprint="records")] = None
    """Plain text with --privacy-unit paragraph: each paragraph is a conversation. A line at whose beginning REGEX
    matches begins a message; the named group that takes part is the role, as in
    '(?P<assistant>SYS|ACT): ?|(?P<user>USR): ?'."""


class IdOptions(RecordOptions):
    """What a record is, and what it is called."""

    id_field: Annotated[str | None, Option(flag=False)] = None
    """JSON Lines, CSV, Parquet: the field or column that holds the id. Default: the line or row number."""


class SkipOptions(Options):
    """What is done with lines that cannot be read."""

    skip_bad: Annotated[bool, Option(DATA, main=("detect", "redact", "decoy"), fingerprint="records")] = False
    """Count and skip lines and rows that cannot be read (not UTF-8, bad JSON, no text, wrong number of fields) in
    place of an error. A redacted corpus leaves them out."""


class ReadingOptions(IdOptions, SkipOptions):
    """How a corpus becomes records."""


class DetectionOptions(Options):
    """What counts as sensitive, and where what is found is kept."""

    tier: Annotated[Tier | None, Option(DETECTION, main=True, metavar="TIER", fingerprint="recipe", public=True)] = None
    """What counts as sensitive, each with all before it: low-entity (names, dates, places, identifiers), high-entity
    (every named entity), low-contextual (also subjects, objects, pronouns), high-contextual (also verbs). Default:
    low-entity; for the recipe atdp high-contextual, as in the paper."""

    entities: Annotated[
        str | None,
        Option(DETECTION, metavar="LABELS", words=_labels, joined=",", fingerprint="recipe", public=True),
    ] = None
    """Labels that count, separated by commas, such as PERSON,PHONE; all others are not flagged. Default: all."""

    exclude: Annotated[
        str | None,
        Option(DETECTION, metavar="LABELS", words=_labels, joined=",", fingerprint="recipe", public=True),
    ] = None
    """Labels that do not count, separated by commas."""

    allow: Annotated[tuple[Path, ...], Option(DETECTION)] = ()
    """Terms that are not sensitive, one a line; /…/ is a regular expression. Repeatable."""

    deny: Annotated[tuple[Path, ...], Option(DETECTION)] = ()
    """Terms that always are sensitive; they win over --allow. Repeatable."""

    detector: Annotated[Path | None, Option(DETECTION, metavar="FILE.toml", fingerprint=False)] = None
    """Other settings of the detector, and a language model that checks it; detect --write-detector writes such a file.
    What it says is part of what was run, as if it were said here."""

    store: Annotated[Path | None, Option(flag=False, fingerprint=False)] = None
    """Folder, ending in .private, to keep what was found in, so that another tier, other lists or an interrupted run
    need not read the corpus again. It holds no text, but stays with you. none: keep nothing, look nothing up. Default:
    CORPUS.private beside the corpus."""

    workers: Annotated[int, Option(flag=False, fingerprint=False)] = 1
    """Processes for the detector."""


class ExecutorOptions(Options):
    """Where work is done."""

    run_on: Annotated[str, Option(flag=False, fingerprint=False)] = "local"
    """local: on this machine. ray: as tasks of a Ray that is started here, or of the cluster at HOST:PORT (ray:auto on
    one of its machines), restarted where a worker ends; what is written is the same. Batches of private text, or of an
    audit the secrets, go to its workers. Needs pip install 'atdp[ray]'."""


class ReplacingOptions(Options):
    """What may be overwritten."""

    force: Annotated[bool, Option(OUTPUT, fingerprint=False)] = False
    """Replace what is there already."""


class CorpusRequest(DetectionOptions, ExecutorOptions, ReadingOptions, ReplacingOptions):
    """What a pass over one corpus is asked for."""

    corpus: Annotated[Path, Option(main=True, argument=True, metavar="CORPUS")]
    """Corpus: .txt, .jsonl, .csv, .tsv (also .gz or .zst) or .parquet; - for standard input, plain text."""


class ExtraSpansOptions(Options):
    """What is flagged beside what the detector finds."""

    extra_spans: Annotated[tuple[Path, ...], Option(DETECTION)] = ()
    """Spans files of --data whose places are flagged as well, such as a map of audit-corpus. Taken from the data, so
    there is no guarantee. Repeatable."""


class SpanFileOptions(Options):
    """What takes the detector's place."""

    spans: Annotated[Path | None, Option(DETECTION)] = None
    """Spans of atdp detect, in place of the detector."""
