"""A token classifier's tags (IOB, IOB2, BIOES, BILOU) turned into entities by whole words. Never imports torch."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from atdp_cli.corpus.spans import Range
from atdp_cli.detection.entities import EntityMatch, label_of
from atdp_cli.detection.identity import add_files
from atdp_cli.errors import InputError
from atdp_cli.files.checkpoint_names import CONFIG, tokenizer_files
from atdp_cli.files.documents import parse_json, read_whole
from atdp_cli.model.folder import check_folder, is_adapter, model_files

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


_ARCHITECTURE = "ForTokenClassification"

_NO_NAME = re.compile(r"LABEL_\d+")
"""What transformers calls a class that was given no name."""

_SOURCES = ("token_classifier_folder.py", "token_classifier.py")


def classifier_labels(folder: Path) -> tuple[str, ...]:
    """The names of the classes of a token classifier, in their order.

    Raises:
        InputError: The folder is no such model saved as safetensors with its fast tokenizer, or its classes have no
            names, or none is `O`.
    """
    check_folder(folder)
    if is_adapter(folder):
        raise InputError(f"{folder} holds an adapter.", "Merge it into its token classifier, and give that.")
    config = parse_json(read_whole(folder / CONFIG).decode("utf-8"))
    architectures = config.get("architectures") or ()
    if not any(str(name).endswith(_ARCHITECTURE) for name in architectures):
        raise InputError(
            f"{folder} is no token classifier: {CONFIG} names no architecture …{_ARCHITECTURE}.",
            "Give a model that was trained to tag tokens.",
        )
    names = config.get("id2label")
    given = names if isinstance(names, dict) else {}
    labels = tuple(str(given.get(str(number), "")) for number in range(len(given)))
    if not labels or not all(labels) or all(map(_NO_NAME.fullmatch, labels)):
        raise InputError(
            f"{folder / CONFIG} does not name the classes (id2label), so nobody knows what they find.",
            'Name them there, as in {"0": "O", "1": "B-PER", "2": "I-PER"}.',
        )
    if OUTSIDE not in map(str.upper, labels) or len(labels) == 1:
        raise InputError(
            f"{folder / CONFIG}: the classes (id2label) are not {OUTSIDE}, for what is no entity, and others.",
            "Name them as in IOB: O, B-PER, I-PER.",
        )
    return labels


def classifier_identity(folder: Path) -> str:
    """SHA-256, in hexadecimal, of all files that a token classifier is loaded from, and of the code that runs it.

    Raises:
        InputError: As `classifier_labels`, or a file cannot be read.
    """
    classifier_labels(folder)
    digest = hashlib.sha256(json.dumps([*map(version, ("torch", "transformers", "tokenizers"))]).encode())
    here = Path(str(files("atdp_cli.detection")))
    try:
        add_files(digest, here, (here / name for name in _SOURCES))
        add_files(digest, folder, (model_files(folder) | tokenizer_files(folder)).values())
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}).", "Check its permissions.") from error
    return digest.hexdigest()
