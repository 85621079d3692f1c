"""Identifiers come before entities, and common words are no names."""

from pathlib import Path
from typing import Any

import pytest

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier, at_tier, merge
from atdp_cli.detection.detect import detect_records
from atdp_cli.detection.detector import Detector, flags_of
from atdp_cli.detection.refine import is_public, refined
from atdp_cli.detection.settings import DetectorSettings
from atdp_cli.detection.text_identity import text_identity
from atdp_cli.detection.word_lists import all_names, common_words, commonest_words, given_names, surnames
from atdp_cli.errors import UsageError


def entity(text: str, name: str, label: str, source: str = "ner") -> Span:
    start = text.index(name)
    return Span(start, start + len(name), label, source, Tier.LOW_ENTITY)


def low(text: str, spans: list[Span]) -> list[tuple[str, str]]:
    return [(text[span.start : span.end], span.label) for span in merge(refined(text, spans))]


CUT = [
    ("at 10.0.0.1 now", ("at 10.0.0.1 now", "DATE"), ("10.0.0.1", "IP_ADDRESS"), [("10.0.0.1", "IP_ADDRESS")]),
    (
        "Zorg 10.0.0.1",
        ("Zorg 10.0.0.1", "DATE"),
        ("10.0.0.1", "IP_ADDRESS"),
        [("Zorg", "DATE"), ("10.0.0.1", "IP_ADDRESS")],
    ),
    ("Zorg 1234567", ("Zorg 1234567", "ORG"), ("1234567", "NUMBER"), [("Zorg", "ORG"), ("1234567", "NUMBER")]),
    ("May 1234567", ("May 1234567", "DATE"), ("1234567", "NUMBER"), [("May 1234567", "DATE")]),
    ("Ann B12345", ("Ann B12345", "PERSON"), ("B12345", "CODE"), [("Ann B12345", "PERSON")]),
    ("Ann Lopez", ("Ann Lopez", "PERSON"), ("Ann", "PERSON"), [("Ann Lopez", "PERSON")]),
]


@pytest.mark.parametrize(("text", "guessed", "identifier", "left"), CUT)
def test_an_identifier_ends_an_entity(text: str, guessed: Any, identifier: Any, left: Any) -> None:
    identified = entity(text, identifier[0], identifier[1], "pattern")
    assert low(text, [entity(text, *guessed), identified]) == left


PUBLIC = [
    *[("We ship it [today].", "DATE"), ("Ready by [next week].", "DATE"), ("[Today] it rains.", "DATE")],
    *[("[Thanks] for that.", "ORG"), ("Hello. [Account] is open.", "ORG"), ("that is [GREAT] news", "ORG")],
    *[("[Lmao] ok", "ORG"), ("so [NOOOOO] way", "PROPN"), ("[hahaha] no", "PERSON"), ("nice [😩] day", "PERSON")],
    *[("the [Great Adventure] there", "PROPN"), ("see [Account Settings] there", "PERSON")],
    *[("about [14 days] ago", "DATE"), ("[up to 90 days]", "DATE"), ("[half an hour]", "TIME"), ("[3-5 days]", "DATE")],
    *[("read #[FridayFeeling]", "PROPN"), ("read #[Zworpel]", "PROPN")],
    *[("on [Last Tuesday]", "DATE"), ("come [friday]", "DATE"), ("see [question2] there", "PERSON")],
    *[("[Alright] then", "PROPN"), ("on [Mon]", "DATE"), ("an [other4] came", "ORG")],
    *[("an [order] came", "PERSON"), ("your [Email Address] please", "PERSON"), ("have a [nice day]", "DATE")],
    *[("a [Ralph Lauren Shirt] came", "PERSON"), ("wait a [sec]", "ORG"), ("[couple weeks ago]", "DATE")],
    *[("am a [Platinum] member", "GPE"), ("only [8 days old]", "DATE"), ("wait a [couple more days]", "DATE")],
]
NAMES = [
    *[("He met [Rose] there.", "PERSON"), ("I know [Python] well.", "GPE"), ("[Rose] left.", "PROPN")],
    *[("at [Bank of America] now", "ORG"), ("wears [New Balance] shoes", "GPE"), ("flew [United Airlines]", "ORG")],
    *[
        ("read #[JohnSmith]", "PROPN"),
        ("read #[Zworpel]", "PERSON"),
        ("[Hannah] left", "PERSON"),
        ("[Ty] left", "PROPN"),
    ],
    *[("on [Friday 13 May]", "DATE"), ("is [rose22] here", "PERSON"), ("[zorg4] came", "ORG")],
    *[("she is [34 years]", "DATE"), ("on [June 16]", "DATE"), ("in [1956]", "DATE"), ("paid [900 days] in", "MONEY")],
    *[("Mr. [Carpet] called", "PERSON"), ("J. [Carpet] called", "PERSON"), ("a [Zworpel Account]", "PROPN")],
    *[("[will smith] left", "PERSON"), ("see you in [may]", "DATE"), ("in [the summer]", "DATE")],
    *[("born [the fifth]", "DATE"), ("paid [five hundred dollars]", "MONEY")],
    *[("room [4 today]", "DATE"), ("pay by [Square] now", "ORG"), ("[Standard] Zorg bank", "ORG")],
    *[("Mr. [Silver] called", "PROPN"), ("[Silver] called", "PERSON"), ("ask [Ralph] now", "PERSON")],
    *[("at [Best Western] now", "ORG"), ("[Jack Daniels] called", "PERSON"), ("a [Zorg Order] came", "ORG")],
    *[
        ("[Zorg] called", "ORG"),
        ("Dr. [House] called", "PERSON"),
        ("[May] called", "PERSON"),
        ("[Price] left", "PROPN"),
    ],
]


@pytest.mark.parametrize(("marked", "label"), PUBLIC)
def test_common_words_are_no_names(marked: str, label: str) -> None:
    assert is_public(*place(marked), label)


@pytest.mark.parametrize(("marked", "label"), NAMES)
def test_names_stay(marked: str, label: str) -> None:
    assert not is_public(*place(marked), label)


def place(marked: str) -> tuple[str, int, int]:
    start, end = marked.index("["), marked.index("]") - 1
    return marked.replace("[", "").replace("]", ""), start, end


@pytest.mark.parametrize("source", ["deny", "file", "crosscheck", "pattern"])
def test_only_guesses_are_vetoed(source: str) -> None:
    span = entity("an order came", "order", "PERSON", source)
    assert refined("an order came", [span]) == [span]


def test_contextual_flags_of_common_words_stay() -> None:
    text = "an order came"
    spans = [Span(3, 8, "SUBJ", "dep", Tier.LOW_CONTEXTUAL), Span(3, 8, "PROPN", "pos", Tier.LOW_CONTEXTUAL)]
    assert refined(text, spans) == sorted(spans)


SENTENCES = [
    ("My SSN is 078-05-1120 and my IBAN is DE89370400440532013000.", {"SSN", "IBAN"}),
    ("The server 10.20.30.40 rebooted.", {"IP_ADDRESS"}),
    ("Thanks for the order today.", set()),
]


@pytest.mark.parametrize(("text", "labels"), SENTENCES)
def test_sentences(pipeline: Any, text: str, labels: set[str]) -> None:
    [actual] = detect_records([Record("1", text)], pipeline=pipeline)
    assert {span.label for span in merge(at_tier(actual.spans, Tier.LOW_ENTITY))} == labels


def test_the_lists_are_what_they_say() -> None:
    assert {"today", "accounts", "thanks", "colour"} & common_words() == {"today", "accounts", "thanks"}
    assert commonest_words() < common_words()
    assert {"maria", "chantal", "will"} <= given_names()
    assert {"garcia", "nguyen", "smith"} <= surnames()
    assert {"python", "apple", "june", "march"} <= all_names()
    assert not {"the", "she", "my"} & all_names()
    assert all(word == word.casefold() and " " not in word for word in common_words() | all_names())


def test_settings_belong_to_the_identity_of_the_detector() -> None:
    plain = text_identity(None)
    assert text_identity(None, {}) == plain
    settings: list[dict[str, object]] = [
        {"speaker_labels": ["USR"]}, {"speaker_labels": ["SYS", "USR"]}, {"entities": ["USR"]}, {"min_confidence": 0.5}
    ]  # fmt: skip
    assert len({plain, *(text_identity(None, each) for each in settings)}) == 1 + len(settings)
    both = Detector(speaker_labels=("USR", "SYS")), Detector(speaker_labels=("SYS", "USR", "USR"))
    assert len({flags_of(each, spans=False, review=False).detector for each in both}) == 1
    assert flags_of(Detector(), spans=False, review=False).detector == plain


def test_public_lists_are_part_of_the_detector_by_their_contents(tmp_path: Path) -> None:
    names = ("a", "same as a", "b")
    for name, text in zip(names, ("Emma\n", "Emma\n", "Omar\n"), strict=True):
        (tmp_path / name).write_text(text)
    reason = "staff handbook, J. Doe"
    flags = [
        flags_of(Detector(deny=(tmp_path / name,), public_lists=reason), spans=False, review=False) for name in names
    ]
    assert flags[0] == flags[1], "wherever a list lies"
    assert flags[0].detector != flags[2].detector
    assert {each.human for each in flags} == {()}
    assert {each.public_lists for each in flags} == {reason}
    private = flags_of(Detector(deny=(tmp_path / "a",)), spans=False, review=False)
    assert (private.human, private.public_lists) == (("deny",), "")
    without = flags_of(Detector(public_lists=reason), spans=False, review=False)
    assert without == flags_of(Detector(), spans=False, review=False), "a reason without a list says nothing"
    for text in ("x" * 201, "a\x1b[31m"):
        with pytest.raises(UsageError, match="public_lists"):
            DetectorSettings(public_lists=text)
