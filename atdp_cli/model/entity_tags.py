"""From a token classifier's tags to entities: IOB, IOB2, BIOES and BILOU, by whole words. Never imports torch."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from atdp_cli.text.detection.entities import EntityMatch, label_of
from atdp_cli.text.detection.spans import Range

OUTSIDE = "O"


class Tag(NamedTuple):
    """What a class of a model says of a token.

    Attributes:
        label: Ours; None outside of entities.
        begins: It is never part of the entity before it.
        ends: What follows is never part of it.
    """

    label: str | None
    begins: bool
    ends: bool


def parse_tag(name: str) -> Tag:
    """The tag of a class such as O, B-PER, S-LOC or PHONE."""
    if name.upper() == OUTSIDE:
        return Tag(None, begins=False, ends=False)
    prefix, hyphen, label = name.partition("-")
    if not hyphen or not label or prefix not in tuple("BIESLUM"):
        return Tag(label_of(name), begins=False, ends=False)
    return Tag(label_of(label), begins=prefix in "BSU", ends=prefix in "ESLU")


class TaggedToken(NamedTuple):
    """A token of a text, its place in it, and what the model says of it, with its probability."""

    start: int
    end: int
    tag: Tag
    score: float


_NOTHING = Tag(None, begins=False, ends=False)


def tagged_entities(text: str, words: Sequence[Range], tokens: Sequence[TaggedToken]) -> list[EntityMatch]:
    """The entities of a text: words side by side of one label. The first token of a word speaks for it.

    Models are usually trained on that token; see Devlin et al. 2019, section 5.3. A score is the mean of the words'. A
    word without a letter or digit neither begins nor ends an entity.

    Args:
        words: Their places, in order.
        tokens: In order; they need not respect the words.
    """
    entities: list[EntityMatch] = []
    scores: list[float] = []
    ended = True
    for (start, end), (tag, score) in zip(words, _of_words(text, words, tokens), strict=True):
        goes_on = not ended and not tag.begins and tag.label == entities[-1].label
        if tag.label is None or not any(map(str.isalnum, text[start:end])):
            ended = not goes_on
            continue
        if goes_on:
            scores.append(score)
            entities[-1] = entities[-1]._replace(end=end, score=sum(scores) / len(scores))
        else:
            scores = [score]
            entities.append(EntityMatch(start, end, tag.label, score))
        ended = tag.ends
    return entities


def _of_words(text: str, words: Sequence[Range], tokens: Sequence[TaggedToken]) -> Iterator[tuple[Tag, float]]:
    """What the model says of each word: by the first token that begins in it, or else by one that reaches into it."""
    places = list(_without_space(text, tokens))
    at = 0
    for start, end in words:
        while at < len(places) and places[at].end <= start:
            at += 1
        last = at
        while last < len(places) and places[last].start < start:
            last += 1
        speaks = last if last < len(places) and places[last].start < end else at
        covers = speaks < len(places) and places[speaks].start < end
        yield (places[speaks].tag, places[speaks].score) if covers else (_NOTHING, 0.0)


def _without_space(text: str, tokens: Iterable[TaggedToken]) -> Iterator[TaggedToken]:
    for token in tokens:
        name = text[token.start : token.end].strip()
        if name:
            start = text.index(name, token.start)
            yield token._replace(start=start, end=start + len(name))
