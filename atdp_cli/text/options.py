"""The options by which a corpus is read, and by which the detector looks at it."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from atdp_cli.options import Option, Options
from atdp_cli.text.detection.spans import Tier

DATA, DETECTION, CROSSCHECK, OUTPUT, RUNNING = "Data", "Detection", "Cross-check", "Output", "Running"


class RecordOptions(Options):
    """What a record is."""

    unit: Annotated[
        str,
        Field(
            description="What one record, the unit of privacy, is: line, paragraph, document, or the field (JSON "
            "Lines) or column (CSV, Parquet) whose equal values make one record."
        ),
        Option(panel=DATA, fingerprint="recipe", public=True),
    ] = "line"
    text_field: Annotated[
        str,
        Field(description="JSON Lines, CSV, Parquet: the field or column that holds the text."),
        Option(panel=DATA, fingerprint="records"),
    ] = "text"


class IdOptions(RecordOptions):
    """What a record is, and what it is called."""

    id_field: Annotated[
        str | None,
        Field(
            description="JSON Lines, CSV, Parquet: the field or column that holds the id. Default: the line or row "
            "number."
        ),
        Option(panel=DATA),
    ] = None


class ReadingOptions(IdOptions):
    """How a corpus becomes records."""

    skip_bad: Annotated[
        bool,
        Field(
            description="Count and skip lines and rows that cannot be read (not UTF-8, bad JSON, no text, wrong number "
            "of fields) in place of an error. A redacted corpus leaves them out."
        ),
        Option(panel=DATA),
    ] = False
    shard: Annotated[
        str | None,
        Field(
            description="Read only the I-th of N parts of about equal size, I from 1; a record is in the part where it "
            "begins. Ids are those of the whole, counts those of the part. The outputs of all parts, in order, make "
            "the output of the whole: joined with cat, but for Parquet, of which each is a file."
        ),
        Option(panel=DATA, metavar="I/N"),
    ] = None


class CrosscheckOptions(Options):
    """Whom to ask about what the detector may have missed."""

    crosscheck: Annotated[
        str | None,
        Field(
            description="Ask this language model about each sentence, spans masked; sentences where it finds something "
            "else are sensitive as a whole. ε says nothing about it."
        ),
        Option(panel=CROSSCHECK, metavar="MODEL"),
    ] = None
    crosscheck_url: Annotated[
        str | None,
        Field(
            description="An OpenAI-compatible server, such as http://127.0.0.1:8000/v1. Default: OPENAI_BASE_URL, or "
            "OpenAI."
        ),
        Option(panel=CROSSCHECK, metavar="URL", fingerprint=False),
    ] = None
    send_unmasked: Annotated[
        bool,
        Field(
            description="Send the sentences as they are, secrets and all; then any difference from the detector counts."
        ),
        Option(panel=CROSSCHECK, fingerprint="--crosscheck"),
    ] = False
    on_disagreement: Annotated[
        Literal["sensitive", "review"] | None,
        Field(
            description="Flag the whole sentence, or leave its spans and put it into the queue of detect --review. "
            "Default: sensitive."
        ),
        Option(panel=CROSSCHECK, fingerprint=False),
    ] = None
    llm_key_file: Annotated[
        Path | None,
        Field(description="File with the server's key in its first line. Default: OPENAI_API_KEY."),
        Option(panel=CROSSCHECK, fingerprint=False),
    ] = None


class FindingOptions(Options):
    """What counts as sensitive, and where what is found is kept."""

    tier: Annotated[
        Tier,
        Field(
            description="What counts as sensitive, each with all before it: low-entity (names, dates, places, "
            "identifiers), high-entity (every named entity), low-contextual (also subjects, objects, pronouns), "
            "high-contextual (also verbs)."
        ),
        Option(panel=DETECTION, metavar="TIER", fingerprint="recipe", public=True),
    ] = Tier.HIGH_CONTEXTUAL
    allow: Annotated[
        tuple[Path, ...],
        Field(description="Terms that are not sensitive, one a line; /…/ is a regular expression. Repeatable."),
        Option(panel=DETECTION),
    ] = ()
    deny: Annotated[
        tuple[Path, ...],
        Field(description="Terms that always are sensitive; they win over --allow. Repeatable."),
        Option(panel=DETECTION),
    ] = ()
    spacy_pipeline: Annotated[
        str | None,
        Field(
            description="A spaCy pipeline with tagger, parser and ner: a package or a folder. Default: en_core_web_sm."
        ),
        Option(panel=DETECTION),
    ] = None
    store: Annotated[
        Path | None,
        Field(
            description="Folder, ending in .private, to keep what was found in, so that another tier, other lists or "
            "an interrupted run need not read the corpus again. It holds no text, but stays with you. Default: "
            "CORPUS.private beside the corpus."
        ),
        Option(panel=DETECTION, fingerprint=False),
    ] = None
    no_store: Annotated[
        bool,
        Field(description="Keep no findings for later runs, and look none up."),
        Option(panel=DETECTION, fingerprint=False),
    ] = False
    jobs: Annotated[int, Field(description="Processes for the detector."), Option(panel=RUNNING, fingerprint=False)] = 1


class DetectionOptions(FindingOptions, CrosscheckOptions):
    """How the detector looks at the records."""


class ReplacingOptions(Options):
    """What may be overwritten."""

    force: Annotated[
        bool, Field(description="Replace what is there already."), Option(panel=OUTPUT, fingerprint=False)
    ] = False
