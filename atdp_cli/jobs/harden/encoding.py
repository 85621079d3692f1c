"""From records to windows: detection, redaction and tokens, each record on its own."""

from collections.abc import Iterable, Iterator, Sequence
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
from atdp_cli.text.detection.detect import PLACEHOLDERS, Detection
from atdp_cli.text.detection.function_words import function_word_characters
from atdp_cli.text.detection.span_file import read_spans
from atdp_cli.text.detection.spans import Range, Span, Tier, at_tier
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
        windows: How many windows a record may have.
        masking: The placeholders of redacted text.
        start: The token that the decoder of an encoder-decoder model starts with; None for other models.
    """

    tokenizer: PreTrainedTokenizerFast
    context: int
    windows: int
    masking: Masking = BY_LABEL
    start: int | None = None


def flag_corpus(split: Split, request: HardenRequest, pipeline: Any, notify: Notify) -> tuple[FlaggedRecord, ...]:
    """Each record with its sensitive spans, detected or read from a file, in the order of the records."""
    if request.spans is not None:
        # The spans file covers the whole corpus, also where --max-records takes only its beginning.
        corpus = read_records(request.data[0], unit=request.unit, text_field=request.text_field)
        pairs = islice(read_spans(request.spans, corpus), len(split.records))
        return tuple(FlaggedRecord(record, request.detector.label_filter.apply(spans)) for record, spans in pairs)

    def detect(records: Sequence[Record]) -> Iterator[Detection]:
        folder = private_folder(request.data[0])
        return run_detector(records, request.detector, pipeline, notify, total=len(records), folder=folder)

    return flag(detect(split.records), None if split.sources is None else detect(split.sources), request.detector.tier)


def flag(detections: Iterable[Detection], sources: Iterable[Detection] | None, tier: Tier) -> tuple[FlaggedRecord, ...]:
    """Records with their spans up to a tier, and where they have sources these likewise."""
    flagged = tuple(FlaggedRecord(detection.record, at_tier(detection.spans, tier)) for detection in detections)
    if sources is None:
        return flagged
    return tuple(
        replace(record, source=source) for record, source in zip(flagged, flag(sources, None, tier), strict=True)
    )


def encode(
    flagged: Iterable[FlaggedRecord], text: Text, encoding: Encoding, choose: Choose | None = None
) -> tuple[Windows, ...]:
    """Each record's windows over its raw text, its redacted text, or decoys; one without tokens to predict has none.

    Placeholders are no targets, neither those put in here nor those that an earlier redaction left in the text. Decoys
    are, and count as sensitive.

    Args:
        choose: What decoys are drawn with, for text that has them.
    """
    return tuple(_windows(index, record, text, encoding, choose) for index, record in enumerate(flagged))


def _windows(index: int, flagged: FlaggedRecord, text: Text, encoding: Encoding, choose: Choose | None) -> Windows:
    content, marks = _marked(flagged, text, encoding.masking, choose)
    if flagged.source is None or encoding.start is None:
        return encode_windows(
            encoding.tokenizer, index, content, marks, context=encoding.context, max_windows=encoding.windows
        )
    source, _ = _marked(flagged.source, text, encoding.masking, choose)
    return encode_pair(
        encoding.tokenizer, index, source, content, marks, start=encoding.start, context=encoding.context
    )


def _marked(flagged: FlaggedRecord, text: Text, masking: Masking, choose: Choose | None) -> tuple[str, Marks]:
    if text is Text.REDACTED:
        redacted = redact_text(flagged.record.text, flagged.spans, masking)
        ignored = (*redacted.places, *_earlier_placeholders(redacted.text))
        return redacted.text, Marks(function=function_word_characters(redacted.text), ignored=ignored)
    content, sensitive = flagged.record.text, tuple((span.start, span.end) for span in flagged.spans)
    if text is Text.DECOY:
        if choose is None:
            raise ValueError("decoys need something to draw them with")
        decoyed = decoy(content, flagged.spans, choose)
        content, sensitive = decoyed.text, decoyed.places
    ignored = _earlier_placeholders(content)
    return content, Marks(sensitive=sensitive, function=function_word_characters(content), ignored=ignored)


def _earlier_placeholders(text: str) -> tuple[Range, ...]:
    return tuple(match.span() for match in PLACEHOLDERS.finditer(text))
