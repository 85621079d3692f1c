"""From tags to entities, in every scheme, by whole words."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.detection.token_classifier_folder import TaggedToken, parse_tag, tagged_entities

TEXT = "Ada Byron met Bo - Li, at Kew."


def words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def actual(text: str, names: str) -> list[tuple[str, str]]:
    """What is found where each word is a token, with these classes in order."""
    tokens = [TaggedToken(*place, parse_tag(name), 1.0) for place, name in zip(words(text), names.split(), strict=True)]
    return [(text[start:end], label) for start, end, label, _ in tagged_entities(text, words(text), tokens)]


@pytest.mark.parametrize(
    ("scheme", "names"),
    [
        ("IOB", "I-PER I-PER O I-PER I-PER I-PER O O I-LOC O"),
        ("IOB2", "B-PER I-PER O B-PER I-PER I-PER O O B-LOC O"),
        ("BIOES", "B-PER E-PER O B-PER I-PER E-PER O O S-LOC O"),
        ("BILOU", "B-PER L-PER O B-PER I-PER L-PER O O U-LOC O"),
        ("no prefix", "PER PER O PER PER PER O O LOC O"),
    ],
)
def test_every_scheme_says_the_same(scheme: str, names: str) -> None:
    assert actual(TEXT, names) == [("Ada Byron", "PERSON"), ("Bo - Li", "PERSON"), ("Kew", "LOC")]


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        ("B-PER B-PER O O", ["Ada", "Bo", "PERSON"]),  # IOB2: the second begins
        ("I-PER B-PER O O", ["Ada", "Bo", "PERSON"]),  # IOB: B parts neighbours
        ("S-PER S-PER O O", ["Ada", "Bo", "PERSON"]),
        ("E-PER I-PER O O", ["Ada", "Bo", "PERSON"]),
        ("B-PER I-PER O O", ["Ada Bo", "PERSON"]),
    ],
)
def test_neighbours_of_one_label(names: str, parts: list[str]) -> None:
    *texts, label = parts
    assert actual("Ada Bo met us", names) == [(text, label) for text in texts]


def test_a_change_of_label_parts_too() -> None:
    assert actual("Ada Kew", "B-PER I-LOC") == [("Ada", "PERSON"), ("Kew", "LOC")]


def test_punctuation_neither_begins_nor_ends_an_entity() -> None:
    assert actual("( Ada ) , Bo", "B-PER I-PER I-PER O I-PER") == [("Ada", "PERSON"), ("Bo", "PERSON")]
    assert actual("- - -", "B-PER I-PER S-LOC") == []


def test_the_first_token_of_a_word_speaks_for_it_and_scores_are_means() -> None:
    text = "Waldemar Zorn left"
    tags = {"P": parse_tag("B-PER"), "I": parse_tag("I-PER"), "O": parse_tag("O"), "L": parse_tag("B-LOC")}
    tokens = [
        TaggedToken(0, 3, tags["P"], 0.9),
        TaggedToken(3, 5, tags["O"], 1.0),
        TaggedToken(5, 8, tags["L"], 1.0),
        TaggedToken(8, 11, tags["I"], 0.5),  # with the space before it, as byte-level tokenizers have it
        TaggedToken(11, 13, tags["L"], 1.0),
        TaggedToken(13, 18, tags["O"], 1.0),
    ]
    [entity] = tagged_entities(text, words(text), tokens)
    assert (entity.start, entity.end, entity.label) == (0, 13, "PERSON")
    assert entity.score == pytest.approx(0.7)


def test_a_token_over_two_words_speaks_for_both() -> None:
    text = "AdaBo x"
    tokens = [TaggedToken(0, 5, parse_tag("B-PER"), 1.0), TaggedToken(6, 7, parse_tag("O"), 1.0)]
    actual = tagged_entities(text, [(0, 3), (3, 5), (6, 7)], tokens)
    assert [text[start:end] for start, end, _, _ in actual] == ["Ada", "Bo"]


@given(
    text=st.text(alphabet="aB-, \n日é\u0301", max_size=30),
    cuts=st.lists(st.integers(0, 30)),
    names=st.lists(st.sampled_from(["O", "B-PER", "I-PER", "E-PER", "S-LOC", "I-LOC"]), min_size=31, max_size=31),
)
def test_entities_lie_in_the_text_on_the_borders_of_words(text: str, cuts: list[int], names: list[str]) -> None:
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    tokens = [
        TaggedToken(start, end, parse_tag(name), 0.5) for start, end, name in zip(edges, edges[1:], names, strict=False)
    ]
    places = words(text)
    entities = tagged_entities(text, places, tokens)
    starts, ends = {start for start, _ in places}, {end for _, end in places}
    assert all(entity.start in starts and entity.end in ends for entity in entities)
    assert all(first.end <= second.start for first, second in itertools.pairwise(entities))
