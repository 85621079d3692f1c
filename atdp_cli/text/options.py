"""The options by which a corpus is read, and by which the detector looks at it."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from atdp_cli.options import Option, Options
from atdp_cli.text.detection.spans import Tier

DATA, DETECTION, CROSSCHECK, OUTPUT, RUNNING = "Data", "Detection", "Cross-check", "Output", "Running"

READERS = ("harden", "detect", "redact", "audit-corpus")
"""Commands that always read a corpus."""


def _labels() -> list[str]:
    from atdp_cli.text.detection.detect import LABELS

    return sorted(LABELS)


class TextFieldOptions(Options):
    """Where a record's text is."""

    text_field: Annotated[str, Option(DATA, main=READERS, fingerprint="records")] = "text"
    """JSON Lines, CSV, Parquet: the field or column that holds the text. In JSON Lines and Parquet it may hold a
    conversation, a list of messages with role and content, as --text-field messages; see docs/chat.md."""


class ChatTemplateOptions(Options):
    """How conversations are rendered."""

    chat_template: Annotated[str | None, Option(DATA, metavar="NAME", fingerprint="records")] = None
    """Conversations: which of the tokenizer's chat templates renders them, where it has several. Default: the one named
    default."""


class RecordOptions(TextFieldOptions):
    """What a record is."""

    unit: Annotated[str, Option(DATA, main=READERS, fingerprint="recipe", public=True)] = "line"
    """What one record, the unit of privacy, is: line, paragraph, document, or the field (JSON Lines) or column (CSV,
    Parquet) whose equal values make one record."""

    turns: Annotated[str | None, Option(DATA, metavar="REGEX", fingerprint="records")] = None
    """Plain text with --unit paragraph: each paragraph is a conversation. A line at whose beginning REGEX matches
    begins a message; the named group that takes part is the role, as in
    '(?P<assistant>SYS|ACT): ?|(?P<user>USR): ?'."""


class IdOptions(RecordOptions):
    """What a record is, and what it is called."""

    id_field: Annotated[str | None, Option(DATA)] = None
    """JSON Lines, CSV, Parquet: the field or column that holds the id. Default: the line or row number."""


class WholeReadingOptions(IdOptions):
    """How a whole corpus becomes records."""

    skip_bad: Annotated[bool, Option(DATA, main=True)] = False
    """Count and skip lines and rows that cannot be read (not UTF-8, bad JSON, no text, wrong number of fields) in
    place of an error. A redacted corpus leaves them out."""


class ReadingOptions(WholeReadingOptions):
    """How a corpus, or a part of it, becomes records."""

    shard: Annotated[str | None, Option(DATA, metavar="I/N")] = None
    """Read only the I-th of N parts of about equal size, I from 1; a record is in the part where it begins. Ids are
    those of the whole, counts those of the part. The outputs of all parts, in order, make the output of the whole:
    joined with cat, but for Parquet, of which each is a file."""


class CrosscheckOptions(Options):
    """Whom to ask about what the detector may have missed."""

    crosscheck: Annotated[str | None, Option(CROSSCHECK, metavar="MODEL")] = None
    """Ask this language model about each sentence, spans masked; sentences where it finds something else are sensitive
    as a whole. ε says nothing about it."""

    crosscheck_url: Annotated[str | None, Option(CROSSCHECK, metavar="URL", fingerprint=False)] = None
    """An OpenAI-compatible server, such as http://127.0.0.1:8000/v1. Default: OPENAI_BASE_URL, or OpenAI."""

    send_unmasked: Annotated[bool, Option(CROSSCHECK, fingerprint="--crosscheck")] = False
    """Send the sentences as they are, secrets and all; then any difference from the detector counts."""

    on_disagreement: Annotated[Literal["sensitive", "review"] | None, Option(CROSSCHECK, fingerprint=False)] = None
    """Flag the whole sentence, or leave its spans and put it into the queue of detect --review. Default: sensitive."""

    llm_key_file: Annotated[Path | None, Option(CROSSCHECK, fingerprint=False)] = None
    """File with the server's key in its first line. Default: OPENAI_API_KEY."""


class FindingOptions(Options):
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

    min_confidence: Annotated[
        Annotated[float, Field(ge=0, le=1)] | None, Option(DETECTION, fingerprint="recipe", public=True)
    ] = None
    """Flag only spans with this confidence or more; see docs/detection.md. At 0.9 identifiers and listed names are
    left. Default: 0."""

    speaker_labels: Annotated[str | None, Option(DETECTION, metavar="LABELS", fingerprint="recipe", public=True)] = None
    """Words, separated by commas, that before : or > at the start of a line only say who speaks, such as USR,SYS,ACT.
    They are never flagged there, nor further on in a line that begins with one. Usual ones are known. State what is
    public; do not read it off private records."""

    allow: Annotated[tuple[Path, ...], Option(DETECTION)] = ()
    """Terms that are not sensitive, one a line; /…/ is a regular expression. Repeatable."""

    deny: Annotated[tuple[Path, ...], Option(DETECTION)] = ()
    """Terms that always are sensitive; they win over --allow. Repeatable."""

    spacy_pipeline: Annotated[str | None, Option(DETECTION)] = None
    """A spaCy pipeline with tagger, parser and ner: a package or a folder. Default: en_core_web_sm."""

    backend: Annotated[str | None, Option(DETECTION, metavar="presidio|hf:FOLDER")] = None
    """What finds named entities in place of the spaCy pipeline: presidio (pip install 'atdp[presidio]'), or a token
    classifier of transformers in a folder, as safetensors. Tokens, sentences and grammar stay spaCy's."""

    store: Annotated[Path | None, Option(DETECTION, fingerprint=False)] = None
    """Folder, ending in .private, to keep what was found in, so that another tier, other lists or an interrupted run
    need not read the corpus again. It holds no text, but stays with you. Default: CORPUS.private beside the corpus."""

    no_store: Annotated[bool, Option(DETECTION, fingerprint=False)] = False
    """Keep no findings for later runs, and look none up."""

    jobs: Annotated[int, Option(RUNNING, fingerprint=False)] = 1
    """Processes for the detector."""


class DetectionOptions(FindingOptions, CrosscheckOptions):
    """How the detector looks at the records."""


class ReplacingOptions(Options):
    """What may be overwritten."""

    force: Annotated[bool, Option(OUTPUT, fingerprint=False)] = False
    """Replace what is there already."""


class AlsoOptions(Options):
    """What is flagged beside what the detector finds."""

    also: Annotated[tuple[Path, ...], Option(DETECTION)] = ()
    """Spans files of --data whose places are flagged as well, such as a map of audit-corpus. Taken from the data, so
    there is no selective guarantee. Repeatable."""


class SpanFileOptions(Options):
    """What takes the detector's place."""

    spans: Annotated[Path | None, Option(DETECTION)] = None
    """Spans of atdp detect, in place of the detector."""
