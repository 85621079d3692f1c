"""What spaCy and the recognisers find in a text: spans, tokens and ends of sentences."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from atdp_cli.corpus.spans import Range, Tier
from atdp_cli.detection.entities import EntityMatch, EntityPipeline, entity_tier
from atdp_cli.detection.identifiers import RECOGNISERS
from atdp_cli.detection.identifiers.recogniser import IdentifierMatch
from atdp_cli.detection.plain_copy import PlainCopy, plain_copy

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

Piece = tuple[str, str]
"""A text for spaCy, and one for the recognisers: where a record is cut, they see it whole with its first piece."""

SpanFields = tuple[int, int, str, str, Tier]
"""The fields of a `Span`: cheaper than one to send from process to process."""


class Reading(NamedTuple):
    """What is in a piece.

    Attributes:
        marks: What spaCy found; places are those of the text it was given.
        tokens: The places of its tokens, white space left out.
        ends: Where its sentences end.
        identifiers: What the recognisers found in theirs.
    """

    marks: list[SpanFields]
    tokens: list[Range]
    ends: list[int]
    identifiers: list[IdentifierMatch]


def read(pieces: Sequence[Piece], pipeline: Any) -> list[Reading]:
    """What is in each piece, in order. Plain copies of them are read; places are those of the pieces.

    Args:
        pipeline: From `load_pipeline`, or an `EntityPipeline`.
    """
    find = None
    if isinstance(pipeline, EntityPipeline):
        find, pipeline = pipeline.find, pipeline.pipeline
    copies = [plain_copy(text) for text, _ in pieces]
    wholes = [copy if text == whole else plain_copy(whole) for copy, (text, whole) in zip(copies, pieces, strict=True)]
    # Without a zone the pipeline keeps every word that it ever met.
    with pipeline.memory_zone():
        docs = pipeline.pipe((copy.text for copy in copies), batch_size=len(pieces) or 1)
        recognised: Iterable[list[EntityMatch] | None] = repeat(None, len(pieces))
        if find is not None:
            docs = list(docs)
            recognised = find([(doc.text, [*_words(doc)]) for doc in docs])
        return [
            _placed(_reading(doc, [match for each in RECOGNISERS for match in each(whole.text)], entities), copy, whole)
            for doc, copy, whole, entities in zip(docs, copies, wholes, recognised, strict=True)
        ]


def _placed(reading: Reading, copy: PlainCopy, whole: PlainCopy) -> Reading:
    """What is in a piece, by what is in its copy and in that of what the recognisers read."""
    marks, tokens, ends, identifiers = reading
    if copy.changed:
        marks = [(*place, *mark[2:]) for mark in marks for place in copy.places(mark[0], mark[1])]
        tokens = [copy.place(*token) for token in tokens]
        ends = [copy.ends[end - 1] for end in ends]
    if whole.changed:
        identifiers = [(*place, label) for start, end, label in identifiers for place in whole.places(start, end)]
    return Reading(marks, tokens, ends, identifiers)


def _reading(doc: Any, identifiers: list[IdentifierMatch], recognised: list[EntityMatch] | None) -> Reading:
    marks: list[SpanFields] = []
    tokens: list[Range] = []
    entities = doc.ents if recognised is None else _by_words(doc, recognised)
    for entity in entities:
        label = entity.label_
        name = _name_alone(entity)
        if recognised is not None:
            tier = entity_tier(label)
        else:
            tier = Tier.LOW_ENTITY if label in _LOW_ENTITIES else Tier.HIGH_ENTITY
        marks.append((name.start_char, name.end_char, label, "ner", tier))
    marks += ((start, end, "PROPN", "pos", Tier.LOW_ENTITY) for start, end in _unlabelled_names(doc, entities))
    for token in doc:
        if token.is_space:
            continue
        text, start = token.text, token.idx
        end = start + len(text)
        tokens.append((start, end))
        if not text.isalnum() and not any(character.isalnum() for character in text):
            continue
        pos, dep = token.pos_, token.dep_
        if pos in _TIER_OF_POS:
            marks.append((start, end, pos, "pos", _TIER_OF_POS[pos]))
        # The parser also calls the "to" of "gave it to her" a dative.
        if dep in _LABEL_OF_DEP and pos != "ADP":
            marks.append((start, end, _LABEL_OF_DEP[dep], "dep", Tier.LOW_CONTEXTUAL))
    return Reading(marks, tokens, [sentence.end_char for sentence in doc.sents], identifiers)


def _words(doc: Any) -> Iterator[Range]:
    return ((token.idx, token.idx + len(token)) for token in doc if not token.is_space)


def _by_words(doc: Any, recognised: Iterable[EntityMatch]) -> list[Any]:
    """The entities as spaCy's spans: no half words, and no white space around."""
    text, spans = doc.text, []
    for start, end, label, _ in recognised:  # the score belongs to the marks, once a span has a place for it
        name = text[start:end].strip()
        if name:
            first = text.index(name, start)
            spans.append(doc.char_span(first, first + len(name), label=label, alignment_mode="expand"))
    return spans


def _name_alone(entity: Any) -> Any:
    start, end = 0, len(entity)
    while end - start > 1 and (entity[start].text in _ARTICLES or entity[start].is_quote):
        start += 1
    while end - start > 1 and (entity[end - 1].text in _POSSESSIVES or entity[end - 1].is_quote):
        end -= 1
    return entity[start:end]


def _unlabelled_names(doc: Any, entities: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Names that the entity recogniser missed.

    These are capitalised proper nouns side by side without a label, unless an article stands before them (the
    Ceremony) or none says more than a form of address; and later mentions of a word from a person's name.
    """
    run: list[Any] = []
    labelled = {token.i for entity in entities for token in entity}
    for token in doc:
        if token.pos_ == "PROPN" and token.i not in labelled and token.text[0].isupper():
            run.append(token)
        elif run:
            yield from _name(doc, run)
            run = []
    yield from _name(doc, run)
    people = {
        token.lower_
        for entity in entities
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
