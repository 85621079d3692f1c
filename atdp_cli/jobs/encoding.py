"""From records to windows: detection, redaction and tokens, each record on its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from transformers import PreTrainedTokenizerFast

from atdp_cli.events import Notify
from atdp_cli.jobs.crosscheck import private_folder
from atdp_cli.jobs.detection import find
from atdp_cli.jobs.request import HardenRequest
from atdp_cli.model.windows import Marks, Window, encode_windows
from atdp_cli.text.detector import PLACEHOLDERS
from atdp_cli.text.functionwords import function_word_characters
from atdp_cli.text.placeholders import Masking
from atdp_cli.text.records import Record, read_records
from atdp_cli.text.redaction import BY_LABEL, redact
from atdp_cli.text.scan import load_pipeline, pipeline_name
from atdp_cli.text.spanfile import read_spans
from atdp_cli.text.spans import Range, Span, at_tier
from atdp_cli.training.recipe import Text

Windows = tuple[Window, ...]
Flagged = tuple[Record, tuple[Span, ...]]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long a window may be, in tokens, and how many of them a record may have."""

    context: int
    windows: int


@dataclass(frozen=True, kw_only=True)
class Spotted:
    """Every record with its sensitive spans at the run's tier, and the pipeline that found them."""

    records: tuple[Flagged, ...]
    pipeline: str | None


def spot(records: Sequence[Record], request: HardenRequest, notify: Notify) -> Spotted:
    """The sensitive spans of each record, detected or read from a file, in the order of the records."""
    if request.spans is not None:
        # The spans file covers the whole corpus, also where --max-records takes only its beginning.
        corpus = read_records(request.data[0], unit=request.unit, text_field=request.text_field)
        found_before = islice(read_spans(request.spans, corpus), len(records))
        return Spotted(records=tuple(found_before), pipeline=None)
    detector = request.detector
    pipeline = load_pipeline(detector.pipeline)
    found = find(records, detector, pipeline, notify, total=len(records), folder=private_folder(request.data[0]))
    flagged = tuple((one.record, at_tier(one.spans, detector.tier)) for one in found)
    return Spotted(records=flagged, pipeline=pipeline_name(pipeline))


def encode(
    flagged: Iterable[Flagged],
    text: Text,
    tokenizer: PreTrainedTokenizerFast,
    limits: Limits,
    masking: Masking = BY_LABEL,
) -> tuple[Windows, ...]:
    """Each record's windows over its raw or its redacted text; a record without tokens to predict has none.

    Placeholders are no targets, neither those put in here nor those that an earlier redaction left in the text.
    """
    return tuple(
        encode_windows(tokenizer, index, content, marks, context=limits.context, max_windows=limits.windows)
        for index, (content, marks) in enumerate(_marked(record, spans, text, masking) for record, spans in flagged)
    )


def _marked(record: Record, spans: Sequence[Span], text: Text, masking: Masking) -> tuple[str, Marks]:
    if text is Text.RAW:
        content, sensitive = record.text, tuple((span.start, span.end) for span in spans)
        return content, Marks(
            sensitive=sensitive, function=function_word_characters(content), ignored=_earlier(content)
        )
    redacted = redact(record.text, spans, masking)
    ignored = (*redacted.placeholders, *_earlier(redacted.text))
    return redacted.text, Marks(function=function_word_characters(redacted.text), ignored=ignored)


def _earlier(text: str) -> list[Range]:
    return [match.span() for match in PLACEHOLDERS.finditer(text)]
