"""The four tiers by their definitions: which labels, parts of speech and dependencies each flags."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Tier, at_tier
from atdp_cli.detection.detect import Detection, detect_records
from atdp_cli.replacement.edits import redact_text

LOW, HIGH, LOW_CONTEXTUAL, HIGH_CONTEXTUAL = Tier


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (
            "Emma works for Siemens in Berlin, and on 4 May her French colleague showed her two paintings.",
            [
                "[PERSON] works for [ORG] in [GPE], and on [DATE] her French colleague showed her two paintings.",
                "[PERSON] works for [ORG] in [GPE], "
                "and on [DATE] her [NORP] colleague showed her [CARDINAL] paintings.",
                "[PERSON] works for [ORG] in [GPE], and on [DATE] [PRON] [NORP] [SUBJ] showed [PRON] [CARDINAL] [OBJ].",
                "[PERSON] [VERB] for [ORG] in [GPE], "
                "and on [DATE] [PRON] [NORP] [SUBJ] [VERB] [PRON] [CARDINAL] [OBJ].",
            ],
        ),
        (
            "In May the teacher told Emma that the second train to Berlin had left.",
            [
                "In [DATE] the teacher told [PERSON] that the second train to [GPE] had left.",
                "In [DATE] the teacher told [PERSON] that the [ORDINAL] train to [GPE] had left.",
                "In [DATE] the [SUBJ] told [PERSON] that the [ORDINAL] [SUBJ] to [GPE] had left.",
                "In [DATE] the [SUBJ] [VERB] [PERSON] that the [ORDINAL] [SUBJ] to [GPE] had [VERB].",
            ],
        ),
    ],
)
def test_two_sentences_at_the_four_tiers(pipeline: Any, text: str, redacted: list[str]) -> None:
    """Sentences after the paper's table, labels by the paper's definitions of the four tiers.

    Its table leaves "Berlin" and "Emma" as they are at the low-entity tier, against its own definition of that
    tier (person, organisation, date, location); the definition is followed here.
    """
    [actual] = detect_records([Record("1", text)], pipeline=pipeline)
    assert [redact_text(text, at_tier(actual.spans, tier)).text for tier in Tier] == redacted


@pytest.mark.parametrize(
    ("dependency", "text", "word", "label"),
    [
        ("nsubj", "The dog slept.", "dog", "SUBJ"),
        ("nsubjpass", "The book was sold.", "book", "SUBJ"),
        ("csubj", "Whether they win remains unknown.", "win", "SUBJ"),
        ("csubjpass", "How they escaped was never explained.", "escaped", "SUBJ"),
        ("dobj", "They read the letter.", "letter", "OBJ"),
        ("dative", "The teacher gave the girl a prize.", "girl", "OBJ"),
        ("pobj", "The letter lay under the table.", "table", "OBJ"),
        ("oprd", "They elected him captain.", "captain", "OBJ"),
    ],
)
def test_a_sentence_for_each_dependency(pipeline: Any, dependency: str, text: str, word: str, label: str) -> None:
    """The parser gives this dependency, and the word is flagged for it from the low-contextual tier on."""
    assert [token.dep_ for token in pipeline(text) if token.text == word] == [dependency]
    [actual] = detect_records([Record("1", text)], pipeline=pipeline)
    places = {(s.start, s.end, s.label, s.tier) for s in actual.spans if s.source == "dep"}
    assert (text.index(word), text.index(word) + len(word), label, LOW_CONTEXTUAL) in places


@cache
def blank() -> Any:
    """A pipeline without a model."""
    return spacy.blank("en")


def flagged(**annotations: Sequence[str]) -> dict[Tier, str | None]:
    """The label that each tier gives the middle one of three words, None where it is not flagged; no other word is.

    They are annotated by hand, so that no model's guess enters. The middle one is no English word: a
    common one would be vetoed (`is_public`).
    """
    plain = {"pos": ["ADV", "NOUN", "ADV"], "deps": ["ROOT", "dep", "advmod"], "ents": ["O", "O", "O"]}
    by_hand = blank()
    by_hand.tokenizer = lambda text: Doc(by_hand.vocab, words=text.split(), heads=[0, 0, 0], **plain | annotations)
    [actual] = detect_records([Record("1", "here zworp now")], pipeline=by_hand)
    assert {(span.start, span.end) for span in actual.spans} <= {(5, 10)}
    return {tier: _label(actual, tier) for tier in Tier}


def _label(actual: Detection, tier: Tier) -> str | None:
    text = redact_text(actual.record.text, at_tier(actual.spans, tier)).text
    middle = text.removeprefix("here ").removesuffix(" now")
    return None if middle == "zworp" else middle.strip("[]")


def from_tier(first: Tier | None, label: str) -> dict[Tier, str | None]:
    """What `flagged` gives where `first` and every later tier flag the word."""
    tiers = list(Tier)
    return {tier: label if first and tiers.index(tier) >= tiers.index(first) else None for tier in tiers}


ENTITIES = {
    **dict.fromkeys(("PERSON", "ORG", "DATE", "GPE", "LOC", "FAC"), LOW),
    **dict.fromkeys(("CARDINAL", "EVENT", "LANGUAGE", "LAW", "MONEY", "NORP", "ORDINAL", "PERCENT"), HIGH),
    **dict.fromkeys(("PRODUCT", "QUANTITY", "TIME", "WORK_OF_ART"), HIGH),
}


@pytest.mark.parametrize(("label", "first"), ENTITIES.items())
def test_every_ontonotes_type_belongs_to_an_entity_tier(label: str, first: Tier) -> None:
    assert flagged(ents=["O", f"B-{label}", "O"]) == from_tier(first, label)


def test_no_type_of_the_pipeline_is_forgotten(pipeline: Any) -> None:
    assert set(pipeline.get_pipe("ner").labels) == set(ENTITIES)


PARTS_OF_SPEECH = {
    **{"PROPN": LOW_CONTEXTUAL, "PRON": LOW_CONTEXTUAL, "VERB": HIGH_CONTEXTUAL},
    **dict.fromkeys(("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PUNCT")),
    **dict.fromkeys(("SCONJ", "SYM", "X")),
}


@pytest.mark.parametrize(("part", "first"), PARTS_OF_SPEECH.items())
def test_every_part_of_speech(part: str, first: Tier | None) -> None:
    """A proper noun counts here without being a name: it is not capitalised."""
    assert flagged(pos=["ADV", part, "ADV"]) == from_tier(first, part)


SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass", "nsubj:pass", "csubj:pass")
OBJECTS = ("dobj", "iobj", "dative", "pobj", "oprd", "obj")


@pytest.mark.parametrize("dependency", SUBJECTS + OBJECTS)
def test_every_subject_and_object(dependency: str) -> None:
    label = "SUBJ" if dependency in SUBJECTS else "OBJ"
    assert flagged(deps=["ROOT", dependency, "advmod"]) == from_tier(LOW_CONTEXTUAL, label)


def test_no_other_dependency_of_the_pipeline_flags_a_word(pipeline: Any) -> None:
    others = set(pipeline.get_pipe("parser").labels) - {*SUBJECTS, *OBJECTS, "ROOT"}
    assert len(others) > 30
    for dependency in others:
        assert flagged(deps=["ROOT", dependency, "advmod"]) == from_tier(None, ""), dependency


def test_the_preposition_of_an_indirect_object_is_no_object() -> None:
    assert flagged(pos=["ADV", "ADP", "ADV"], deps=["ROOT", "dative", "advmod"]) == from_tier(None, "")


def test_an_entity_takes_precedence_over_what_the_word_is_in_the_sentence() -> None:
    """At the tiers that flag both, the label is that of the earliest tier."""
    actual = flagged(pos=["ADV", "PRON", "ADV"], deps=["ROOT", "nsubj", "advmod"], ents=["O", "B-MONEY", "O"])
    assert actual == from_tier(HIGH, "MONEY")
