"""From records to windows: detection, redaction and tokens, each record on its own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from random import SystemRandom
from typing import Any, Literal, NamedTuple, TypeVar

from transformers import PreTrainedTokenizerFast

from atdp_cli.corpus.edits import EditedText
from atdp_cli.corpus.record import Record, select_records
from atdp_cli.corpus.segments import Selection
from atdp_cli.corpus.spans import MEMORISED, FlaggedRecord, Range, Span, Tier, at_tier
from atdp_cli.corpus.split import Split
from atdp_cli.detection.detect import PLACEHOLDERS, Detection
from atdp_cli.detection.detector import detect_begun, run_detector
from atdp_cli.detection.span_file import read_spans
from atdp_cli.detection.word_lists import function_word_characters
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify
from atdp_cli.files.corpus_file import raise_error
from atdp_cli.files.private import private_folder
from atdp_cli.hardening.request import SettledRequest
from atdp_cli.memorisation.ranks import spread
from atdp_cli.memorisation.results import MAP
from atdp_cli.model.chat import ChatTemplate, learnt_messages
from atdp_cli.model.checkpoint import Checkpoint, context_length
from atdp_cli.model.rendered import in_rendered, render_record
from atdp_cli.model.windows import Marks, Window, encode_pair, encode_rendered, encode_windows
from atdp_cli.replacement.decoys import Choose, uniformly
from atdp_cli.replacement.draw import decoy_record
from atdp_cli.replacement.edits import redact_text, turns_after, unedited
from atdp_cli.replacement.equality import DecoyEquality
from atdp_cli.training.recipe import Recipe, TextVariant, Train, reads_records

T = TypeVar("T")

Windows = tuple[Window, ...]

LossOn = Literal["assistant", "all"]
"""The messages of a conversation that are learnt."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoding:
    """How records become windows.

    Attributes:
        context: The longest window, in tokens.
        windows: How many windows a record may have.
        start: The token that the decoder of an encoder-decoder model starts with; None for other models.
        chat: What renders conversations; None where the corpus has none.
        loss_on: Whose messages are learnt.
    """

    tokenizer: PreTrainedTokenizerFast
    context: int
    windows: int
    start: int | None = None
    chat: ChatTemplate | None = None
    loss_on: LossOn = "assistant"


def encoding_for(
    checkpoint: Checkpoint, chat: ChatTemplate | None, *, windows: int, loss_on: LossOn = "assistant"
) -> Encoding:
    """The encoding of records for a model."""
    config = checkpoint.model.config
    return Encoding(
        tokenizer=checkpoint.tokenizer,
        context=context_length(checkpoint.model),
        windows=windows,
        start=config.decoder_start_token_id if config.is_encoder_decoder else None,
        chat=chat,
        loss_on=loss_on,
    )


SCANNED = 200
"""Records that a plan looks at, evenly apart by position."""


def flag_corpus(split: Split, request: SettledRequest, pipeline: Any, notify: Notify) -> tuple[FlaggedRecord, ...]:
    """Each record with its sensitive spans, detected or read from files, in the order of the records."""

    def detect(records: Sequence[Record]) -> Iterator[Detection]:
        folder = private_folder(request.data[0])
        return run_detector(records, request.detector, pipeline, notify, total=len(records), folder=folder)

    return _flag_records(range(len(split.records)), split, request, detect)


def flag_sample(split: Split, request: SettledRequest, pipeline: Any, notify: Notify) -> tuple[FlaggedRecord, ...]:
    """`SCANNED` records as `flag_corpus` flags them, the beginning of each. Nothing is written."""
    detect = partial(detect_begun, detector=request.detector, pipeline=pipeline, notify=notify)
    return _flag_records(spread(len(split.records), SCANNED), split, request, detect)


def _flag_records(
    places: Sequence[int], split: Split, request: SettledRequest, detect: Callable[..., Iterator[Detection]]
) -> tuple[FlaggedRecord, ...]:
    def chosen(rows: Sequence[T]) -> list[T]:
        return [rows[place] for place in places]

    def spans_of(file: Path) -> list[tuple[Span, ...]]:
        # A file covers --data; the records of --eval-data stand behind those.
        return chosen([*_spans_in(file, split, request), *repeat((), len(split.held_out))])

    records, sources = chosen(split.records), None if split.sources is None else chosen(split.sources)
    if request.spans is not None:
        keep = request.detector.label_filter.apply
        flagged = tuple(map(FlaggedRecord, records, map(keep, spans_of(request.spans))))
    else:
        flagged = flag(detect(records), None if sources is None else detect(sources), request.detector.tier)
    for file in request.extra_spans:
        flagged = tuple(map(_with_spans, flagged, spans_of(file)))
    return flagged


def _with_spans(flagged: FlaggedRecord, spans: Iterable[Span]) -> FlaggedRecord:
    """A record, or its beginning, with more spans.

    A place of a map is one that the model remembers, whatever label a detector gives it.
    """
    inside = (span for span in spans if span.end <= len(flagged.record.text))
    more = (replace(span, label=MEMORISED) if span.source == MAP else span for span in inside)
    return replace(flagged, spans=tuple(sorted((*flagged.spans, *more))))


def _spans_in(file: Path, split: Split, request: SettledRequest) -> Iterator[tuple[Span, ...]]:
    """The spans of a file for each record of --data, or for the first ones if run.max-records takes fewer."""
    selection = Selection(request.privacy_unit, request.text_field, turns=request.turns)
    corpus = select_records(request.data[0], selection, (lambda _: None) if request.skip_bad else raise_error)
    taken = len(split.records) - (0 if request.eval_data is None else len(split.held_out))
    return (spans for _, spans in islice(read_spans(file, corpus), taken))


def flag(detections: Iterable[Detection], sources: Iterable[Detection] | None, tier: Tier) -> tuple[FlaggedRecord, ...]:
    """Records with their spans up to a tier, and with those of their sources if they have any."""
    flagged = tuple(FlaggedRecord(detection.record, at_tier(detection.spans, tier)) for detection in detections)
    if sources is None:
        return flagged
    return tuple(
        replace(record, source=source) for record, source in zip(flagged, flag(sources, None, tier), strict=True)
    )


def encode(
    flagged: Iterable[FlaggedRecord],
    text: TextVariant,
    encoding: Encoding,
    choose: Choose | None = None,
    equality: DecoyEquality = "record",
) -> tuple[Windows, ...]:
    """Each record's windows over raw text, redacted text or decoys; none for a record without tokens to predict.

    Placeholders are no targets, neither those put in here nor those that an earlier redaction left in the text. Decoys
    are, and count as sensitive.

    Args:
        choose: What decoys are drawn with, for text that has them.
        equality: Whether values of a record, and of its source, are linked.
    """
    if text is not TextVariant.DECOY:
        return tuple(_windows(index, record, text, encoding) for index, record in enumerate(flagged))
    if choose is None:
        raise ValueError("decoys need something to draw them with")
    return tuple(
        _windows(index, record, text, encoding, _decoys(record, encoding, choose, equality))
        for index, record in enumerate(flagged)
    )


def _decoys(
    flagged: FlaggedRecord, encoding: Encoding, choose: Choose, equality: DecoyEquality
) -> tuple[EditedText, ...]:
    """A record with decoys, followed by its source if an encoder reads one."""
    sides = (flagged,) if flagged.source is None or encoding.start is None else (flagged, flagged.source)
    return decoy_record([(side.record.text, side.spans) for side in sides], choose, equality)


def _windows(
    index: int,
    flagged: FlaggedRecord,
    text: TextVariant,
    encoding: Encoding,
    decoys: Sequence[EditedText | None] = (None, None),
) -> Windows:
    """A record's windows, of its decoys and those of its source where it has them."""
    content, marks = _marked(flagged, text, decoys[0])
    if encoding.chat is not None and flagged.record.turns:
        edited = turns_after(flagged.record, flagged.spans, content)
        said = (_conversation_windows(index, one, marks, encoding) for one in edited.conversations)
        return tuple(islice(chain.from_iterable(said), encoding.windows))
    if flagged.source is None or encoding.start is None:
        return encode_windows(
            encoding.tokenizer, index, content.text, marks, context=encoding.context, max_windows=encoding.windows
        )
    source, _ = _marked(flagged.source, text, decoys[1])
    return encode_pair(
        encoding.tokenizer, index, source.text, content.text, marks, start=encoding.start, context=encoding.context
    )


def _conversation_windows(index: int, record: Record, marks: Marks, encoding: Encoding) -> Windows:
    """The windows of a conversation as its template renders it.

    Args:
        record: One conversation of it, with the contents that are rendered, which the marks are of.
    """
    if encoding.chat is None:
        raise ValueError("conversations need a chat template")
    rendered = render_record(encoding.chat, record)
    starts = [turn.start for turn in record.turns]
    return encode_rendered(
        encoding.chat,
        index,
        rendered,
        Marks(
            sensitive=in_rendered(rendered, starts, marks.sensitive),
            function=in_rendered(rendered, starts, marks.function),
            ignored=in_rendered(rendered, starts, marks.ignored),
        ),
        learnt=learnt_messages(record, everybody=encoding.loss_on == "all"),
        context=encoding.context,
        max_windows=encoding.windows,
    )


def _marked(flagged: FlaggedRecord, text: TextVariant, decoyed: EditedText | None) -> tuple[EditedText, Marks]:
    if text is TextVariant.REDACTED:
        redacted = redact_text(flagged.record.text, flagged.spans)
        ignored = (*redacted.places, *_earlier_placeholders(redacted.text))
        return redacted, Marks(function=function_word_characters(redacted.text), ignored=ignored)
    content = decoyed or unedited(flagged.record.text, flagged.spans)
    ignored = _earlier_placeholders(content.text)
    return content, Marks(sensitive=content.places, function=function_word_characters(content.text), ignored=ignored)


def _earlier_placeholders(text: str) -> tuple[Range, ...]:
    return tuple(match.span() for match in PLACEHOLDERS.finditer(text))


class Replaced(NamedTuple):
    """A text before and after replacement, each with the places of its flagged values: as many, in one order."""

    record: str
    before: EditedText
    after: EditedText


def preview(recipe: Recipe, sample: Sequence[FlaggedRecord], most: int) -> tuple[Train, list[Replaced]]:
    """The last stage that reads records, and how it reads some that have flagged values: so many at most, evenly apart.

    Decoys are drawn from the public lists by the operating system: no stream of the run moves, and none of its
    decoys are these.

    Args:
        sample: Records as the run will flag them.

    Raises:
        UsageError: No stage reads records.
    """
    stages = [stage for stage in recipe if reads_records(stage)]
    if not stages:
        raise UsageError("No stage reads the corpus, so nothing is replaced.", "Leave --preview out.")
    stage, choose = stages[-1], uniformly(SystemRandom().randrange)
    flagged = [each for each in sample if each.spans]
    records = [each for at in spread(len(flagged), most) for each in _replaced(flagged[at], stage, choose)]
    return stage, records


def _replaced(flagged: FlaggedRecord, stage: Train, choose: Choose) -> Iterator[Replaced]:
    """A record, and what its encoder reads if that has flagged values."""
    texts = [(side.record.text, side.spans) for side in (flagged, flagged.source) if side is not None]
    before = after = tuple(unedited(*each) for each in texts)
    if stage.text is TextVariant.DECOY:
        after = decoy_record(texts, choose, stage.decoy_equality)
    elif stage.text is TextVariant.REDACTED:
        after = tuple(redact_text(*each) for each in texts)
    for name, was, becomes in zip(("", ", source"), before, after, strict=False):
        if was.places:
            yield Replaced(f"{flagged.record.id}{name}", was, becomes)
