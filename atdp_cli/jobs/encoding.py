"""From records to windows: detection, redaction and tokens, each record on its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from transformers import PreTrainedTokenizerFast

from atdp_cli.events import Event, Notify, RecordsRead
from atdp_cli.jobs.detection import find
from atdp_cli.jobs.request import HardenRequest
from atdp_cli.model.windows import Marks, Window, encode_windows
from atdp_cli.text.functionwords import function_word_characters
from atdp_cli.text.records import Record, read_records
from atdp_cli.text.redaction import redact
from atdp_cli.text.scan import load_pipeline, pipeline_name
from atdp_cli.text.spanfile import read_spans
from atdp_cli.text.spans import Span, at_tier
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

    def tell(event: Event) -> None:
        notify(replace(event, total=len(records)) if isinstance(event, RecordsRead) else event)

    found = find(records, detector, pipeline, tell)
    flagged = tuple((one.record, at_tier(one.spans, detector.tier)) for one in found)
    return Spotted(records=flagged, pipeline=pipeline_name(pipeline))


def encode(
    flagged: Iterable[Flagged], text: Text, tokenizer: PreTrainedTokenizerFast, limits: Limits
) -> tuple[Windows, ...]:
    """Each record's windows over its raw or its redacted text; a record without tokens to predict has none."""
    return tuple(
        encode_windows(tokenizer, index, content, marks, context=limits.context, max_windows=limits.windows)
        for index, (content, marks) in enumerate(_marked(record, spans, text) for record, spans in flagged)
    )


def _marked(record: Record, spans: Sequence[Span], text: Text) -> tuple[str, Marks]:
    if text is Text.RAW:
        sensitive = tuple((span.start, span.end) for span in spans)
        return record.text, Marks(sensitive=sensitive, function=function_word_characters(record.text))
    redacted = redact(record.text, spans)
    return redacted.text, Marks(function=function_word_characters(redacted.text), ignored=redacted.placeholders)
