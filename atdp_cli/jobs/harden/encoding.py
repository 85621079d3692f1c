"""From records to windows: detection, redaction and tokens, each record on its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from transformers import PreTrainedTokenizerFast

from atdp_cli.events import Notify
from atdp_cli.files.private import private_folder
from atdp_cli.jobs.detector import run_detector
from atdp_cli.jobs.harden.request import HardenRequest
from atdp_cli.model.windows import Marks, Window, encode_pair, encode_windows
from atdp_cli.text.corpus.records import Record, read_records
from atdp_cli.text.corpus.split import Split
from atdp_cli.text.detection.detect import PLACEHOLDERS
from atdp_cli.text.detection.function_words import function_word_characters
from atdp_cli.text.detection.scan import load_pipeline, pipeline_name
from atdp_cli.text.detection.span_file import read_spans
from atdp_cli.text.detection.spans import Range, Span, at_tier
from atdp_cli.text.redaction.decoys import Choose, decoy
from atdp_cli.text.redaction.edits import BY_LABEL, redact_text
from atdp_cli.text.redaction.placeholders import Masking
from atdp_cli.training.recipe import Text

Windows = tuple[Window, ...]


@dataclass(frozen=True, slots=True)
class FlaggedRecord:
    """A record with its sensitive spans, and for an encoder-decoder model what its encoder reads, likewise."""

    record: Record
    spans: tuple[Span, ...]
    source: "FlaggedRecord | None" = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoding:
    """How records become windows.

    Attributes:
        context: The longest window, in tokens.
        windows: How many of them a record may have.
        masking: How placeholders look in redacted text.
        start: The token that the decoder of an encoder-decoder model begins with; None for other models.
    """

    tokenizer: PreTrainedTokenizerFast
    context: int
    windows: int
    masking: Masking = BY_LABEL
    start: int | None = None


@dataclass(frozen=True, kw_only=True)
class FlaggedCorpus:
    """Every record with its sensitive spans at the run's tier, and the pipeline that found them."""

    records: tuple[FlaggedRecord, ...]
    pipeline: str | None


def flag_corpus(split: Split, request: HardenRequest, notify: Notify) -> FlaggedCorpus:
    """The sensitive spans of each record, detected or read from a file, in the order of the records."""
    records = split.records
    if request.spans is not None:
        # The spans file covers the whole corpus, also where --max-records takes only its beginning.
        corpus = read_records(request.data[0], unit=request.unit, text_field=request.text_field)
        found_before = islice(read_spans(request.spans, corpus), len(records))
        return FlaggedCorpus(records=tuple(FlaggedRecord(*one) for one in found_before), pipeline=None)
    pipeline = load_pipeline(request.detector.pipeline)
    flagged = _flagged(records, request, pipeline, notify)
    if split.sources is not None:
        sources = _flagged(split.sources, request, pipeline, notify)
        flagged = tuple(replace(one, source=source) for one, source in zip(flagged, sources, strict=True))
    return FlaggedCorpus(records=flagged, pipeline=pipeline_name(pipeline))


def _flagged(
    records: Sequence[Record], request: HardenRequest, pipeline: Any, notify: Notify
) -> tuple[FlaggedRecord, ...]:
    detector = request.detector
    found = run_detector(
        records, detector, pipeline, notify, total=len(records), folder=private_folder(request.data[0])
    )
    return tuple(FlaggedRecord(one.record, at_tier(one.spans, detector.tier)) for one in found)


def encode(
    flagged: Iterable[FlaggedRecord], text: Text, encoding: Encoding, choose: Choose | None = None
) -> tuple[Windows, ...]:
    """Each record's windows over its raw text, its redacted text, or decoys; one without tokens to predict has none.

    Placeholders are no targets, neither those put in here nor those that an earlier redaction left in the text. Decoys
    are, and count as sensitive.

    Args:
        choose: What decoys are drawn with, for text that has them.
    """
    return tuple(_windows(index, one, text, encoding, choose) for index, one in enumerate(flagged))


def _windows(index: int, one: FlaggedRecord, text: Text, encoding: Encoding, choose: Choose | None) -> Windows:
    content, marks = _marked(one, text, encoding.masking, choose)
    if one.source is None or encoding.start is None:
        return encode_windows(
            encoding.tokenizer, index, content, marks, context=encoding.context, max_windows=encoding.windows
        )
    source, _ = _marked(one.source, text, encoding.masking, choose)
    return encode_pair(
        encoding.tokenizer, index, source, content, marks, start=encoding.start, context=encoding.context
    )


def _marked(one: FlaggedRecord, text: Text, masking: Masking, choose: Choose | None) -> tuple[str, Marks]:
    if text is Text.REDACTED:
        redacted = redact_text(one.record.text, one.spans, masking)
        ignored = (*redacted.places, *_earlier(redacted.text))
        return redacted.text, Marks(function=function_word_characters(redacted.text), ignored=ignored)
    content, sensitive = one.record.text, tuple((span.start, span.end) for span in one.spans)
    if text is Text.DECOY:
        if choose is None:
            raise ValueError("decoys need something to draw them with")
        decoyed = decoy(content, one.spans, choose)
        content, sensitive = decoyed.text, decoyed.places
    return content, Marks(sensitive=sensitive, function=function_word_characters(content), ignored=_earlier(content))


def _earlier(text: str) -> list[Range]:
    return [match.span() for match in PLACEHOLDERS.finditer(text)]
