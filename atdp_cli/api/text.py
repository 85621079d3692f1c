"""`detect` and `redact`: what is sensitive in records, and records without it."""

import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload

from atdp_cli.api.inputs import Corpus, PathLike, Records, corpus_file, in_memory, scratch
from atdp_cli.api.keywords import DetectKeywords, RedactKeywords
from atdp_cli.api.options import check_keywords, parse_keywords
from atdp_cli.errors import UsageError
from atdp_cli.events import Notify, ignore

if TYPE_CHECKING:
    from atdp_cli.report.summary.text import DetectionSummary, RecordSpans, RedactionSummary


class Detected(NamedTuple):
    """What is sensitive in each record, in their order, and what `atdp detect --json` prints of it."""

    spans: "tuple[RecordSpans, ...]"
    summary: "DetectionSummary"


class Redacted(NamedTuple):
    """The texts of the records with placeholders, in their order, and what `atdp redact --json` prints of it.

    Attributes:
        texts: What the text field holds: strings, or lists of messages.
    """

    texts: tuple[Any, ...]
    summary: "RedactionSummary"


@overload
def detect(
    corpus: Corpus, *, output: None = None, notify: Notify = ignore, **options: Unpack[DetectKeywords]
) -> Detected: ...


@overload
def detect(
    corpus: Corpus, *, output: PathLike, notify: Notify = ignore, **options: Unpack[DetectKeywords]
) -> "DetectionSummary": ...


def detect(
    corpus: Corpus, *, output: PathLike | None = None, notify: Notify = ignore, **options: Unpack[DetectKeywords]
) -> "Detected | DetectionSummary":
    """Find what is sensitive, as `atdp detect` does.

    Args:
        corpus: The path of a file, or records in memory.
        output: A spans file to write; the spans are then in it alone.
        notify: Called with each event of progress.
        options: Those of the command, with _ for -. What is found in records in memory is not stored, unless `store`
            says where.

    Raises:
        UsageError: Options contradict each other or lie out of range.
        InputError: The corpus, a list or the pipeline cannot be used.
    """
    from atdp_cli.cli.detect import detect_command, run_detect
    from atdp_cli.report.summary.text import RecordSpans

    check_keywords("detect", detect_command, options)
    given: dict[str, Any] = {**options, "output": _file(output)}
    lines: list[str] = []
    with scratch() as place:
        if in_memory(corpus):
            if options.get("review") is not None:
                raise UsageError("review names the corpus in its queue, and this one is in memory.", "Give a file.")
            given["no_store"] = options.get("store") is None
        groups = parse_keywords(detect_command, given)
        del groups["printing"]
        path = corpus_file(place, "corpus", corpus, _columns(groups["reading"]))
        summary, _ = run_detect(path, write=lines.append, notify=place.notify(notify), **groups)
    if output is not None:
        return summary
    return Detected(tuple(map(RecordSpans.model_validate_json, lines)), summary)


@overload
def redact(
    corpus: PathLike, *, output: PathLike, notify: Notify = ignore, **options: Unpack[RedactKeywords]
) -> "RedactionSummary": ...


@overload
def redact(corpus: Records, *, notify: Notify = ignore, **options: Unpack[RedactKeywords]) -> Redacted: ...


def redact(
    corpus: Corpus, *, output: PathLike | None = None, notify: Notify = ignore, **options: Unpack[RedactKeywords]
) -> "Redacted | RedactionSummary":
    """Replace what is sensitive by placeholders, as `atdp redact` does.

    Args:
        corpus: The path of a file, which goes with `output`; or records in memory, whose texts are returned.
        output: The redacted corpus to write, in the format of the file.
        notify: Called with each event of progress.
        options: Those of the command, with _ for -. What is found in records in memory is not stored, unless `store`
            says where.

    Raises:
        UsageError: Options contradict each other or lie out of range; a file without `output`, records with it.
        InputError: The corpus, the spans or the key cannot be used.
    """
    from atdp_cli.cli.redact import redact_command, run_redact
    from atdp_cli.files.corpus_file import STANDARD_OUTPUT

    check_keywords("redact", redact_command, options)
    if in_memory(corpus) is (output is not None):
        raise UsageError(
            "output goes with a corpus in a file.", "Name the file to write, or give the records and take their texts."
        )
    given: dict[str, Any] = {**options, "output": _file(output) or STANDARD_OUTPUT}
    redacted = io.BytesIO()
    with scratch() as place:
        if in_memory(corpus):
            given["no_store"] = options.get("store") is None
        groups = parse_keywords(redact_command, given)
        writing = groups.pop("writing")
        del groups["printing"]
        columns = _columns(groups["reading"])
        path = corpus_file(place, "corpus", corpus, columns)
        target = redacted if output is None else writing.output
        summary, _ = run_redact(path, target, notify=place.notify(notify), **groups)
    if output is not None:
        return summary
    return Redacted(tuple(json.loads(line)[columns[0]] for line in redacted.getvalue().splitlines()), summary)


def _columns(reading: Any) -> tuple[str, ...]:
    """The columns that reading needs: that of the text first."""
    return tuple(filter(None, (reading.text_field, reading.id_field, reading.unit)))


def _file(output: PathLike | None) -> PathLike | None:
    if output is not None and str(output) == "-":
        raise UsageError("output is -, and a function has no standard output.", "Name a file, or leave it out.")
    return output
