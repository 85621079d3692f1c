"""The detector: one pass, four nested tiers."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest
import spacy

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Tier, at_tier, merge
from atdp_cli.detection import scan
from atdp_cli.detection.detect import Detection, detect_records
from atdp_cli.detection.executor import MAX_WORKERS, processes
from atdp_cli.detection.scan import BATCH, LONGEST_WORD, PIECE, load_pipeline
from atdp_cli.detection.term_lists import literal
from atdp_cli.errors import InputError, UsageError
from atdp_cli.events import Event, RecordsRead
from atdp_cli.files.private import KEY_BYTES
from atdp_cli.replacement.edits import redact_text
from atdp_cli.replacement.placeholders import Masking, Style


def one(text: str, pipeline: Any, **options: Any) -> Detection:
    [detection] = detect_records([Record("1", text)], pipeline=pipeline, **options)
    return detection


def words(detection: Detection, tier: Tier) -> dict[str, str]:
    text = detection.record.text
    return {text[span.start : span.end]: span.label for span in merge(at_tier(detection.spans, tier))}


def test_the_four_tiers_of_a_sentence(pipeline: Any) -> None:
    actual = one("In 1999 Maria Garcia paid 40 dollars to the bank in Berlin, and she told him a story.", pipeline)
    low = {"1999": "DATE", "Maria Garcia": "PERSON", "Berlin": "GPE"}
    high = low | {"40 dollars": "MONEY"}
    contextual = high | {"bank": "OBJ", "she": "PRON", "him": "PRON", "story": "OBJ"}
    assert words(actual, Tier.LOW_ENTITY) == low
    assert words(actual, Tier.HIGH_ENTITY) == high
    assert words(actual, Tier.LOW_CONTEXTUAL) == contextual
    assert words(actual, Tier.HIGH_CONTEXTUAL) == contextual | {"paid": "VERB", "told": "VERB"}


def test_an_entity_is_flagged_without_what_the_sentence_puts_around_it(pipeline: Any) -> None:
    actual = words(one("Maria Garcia's brother left the United States in the 1990s.", pipeline), Tier.LOW_ENTITY)
    assert actual == {"Maria Garcia": "PERSON", "United States": "GPE", "1990s": "DATE"}


def test_a_proper_noun_without_a_label_is_taken_for_a_name(pipeline: Any) -> None:
    doc = pipeline("Have you been to a Ravil Yefimov concert? I met Teresa and Željko there.")
    detection = one(doc.text, pipeline)
    named = {place for span in at_tier(detection.spans, Tier.LOW_ENTITY) for place in range(span.start, span.end)}
    for name in ("Teresa", "Željko"):
        start = doc.text.index(name)
        assert set(range(start, start + len(name))) <= named


@pytest.mark.parametrize(
    "text",
    [
        "The President said nothing.",
        "She asked the Captain.",
        "Madam, the King is here.",
        "He saw a cat.",
        "It was well @-@ known.",
        "He saw the Captain.",
        "The blue book is here.",
        "Yes, we can.",
        "My mother called.",
        "Every dog barked.",
    ],
)
def test_forms_of_address_and_common_nouns_are_no_names(pipeline: Any, text: str) -> None:
    assert words(one(text, pipeline), Tier.LOW_ENTITY) == {}


def test_a_later_mention_of_a_person_is_flagged_too(pipeline: Any) -> None:
    text = "Maria Garcia moved to Berlin. Garcia: hello. Ask Maria."
    flagged = {text[span.start : span.end] for span in at_tier(one(text, pipeline).spans, Tier.LOW_ENTITY)}
    low = {at for span in at_tier(one(text, pipeline).spans, Tier.LOW_ENTITY) for at in range(span.start, span.end)}
    for name in ("Garcia", "Maria"):
        for match in re.finditer(name, text):
            assert set(range(*match.span())) <= low, flagged


def test_punctuation_is_no_proper_noun(pipeline: Any) -> None:
    text = "= = A well @-@ known man = ="
    assert not any(span.source in ("pos", "dep") and text[span.start] in "=@" for span in one(text, pipeline).spans)


def test_subjects_are_words_and_auxiliaries_are_not_verbs(pipeline: Any) -> None:
    actual = one("The old dog of the house was sleeping and has been fed.", pipeline)
    assert words(actual, Tier.HIGH_CONTEXTUAL) == {"dog": "SUBJ", "house": "OBJ", "sleeping": "VERB", "fed": "VERB"}


def test_an_indirect_object_is_flagged_without_its_preposition(pipeline: Any) -> None:
    actual = words(one("The teacher gave the prize to the girl.", pipeline), Tier.LOW_CONTEXTUAL)
    assert actual == {"teacher": "SUBJ", "prize": "OBJ", "girl": "OBJ"}


def test_sources(pipeline: Any) -> None:
    actual = one("Maria wrote to jo@x.com about cats.", pipeline, deny=[literal("cats")])
    sources = {(actual.record.text[s.start : s.end], s.source, s.tier) for s in actual.spans}
    assert {
        ("Maria", "ner", Tier.LOW_ENTITY),
        ("Maria", "pos", Tier.LOW_CONTEXTUAL),
        ("Maria", "dep", Tier.LOW_CONTEXTUAL),
        ("wrote", "pos", Tier.HIGH_CONTEXTUAL),
        ("jo@x.com", "pattern", Tier.LOW_ENTITY),
        ("cats", "deny", Tier.LOW_ENTITY),
    } <= sources


def test_only_known_placeholders_are_left_alone(pipeline: Any) -> None:
    text = "[PERSON] met [MARIA GARCIA] in <GPE>."
    actual = words(one(text, pipeline, deny=[literal("met")]), Tier.HIGH_CONTEXTUAL)
    assert any("MARIA" in word for word in actual)
    assert not any("PERSON" in word or "GPE" in word for word in actual)


@pytest.mark.parametrize("style", Style)
@pytest.mark.parametrize("tier", [Tier.LOW_ENTITY, Tier.HIGH_ENTITY])
def test_redacting_a_redacted_text_changes_nothing(pipeline: Any, style: Style, tier: Tier) -> None:
    """On plain sentences at the entity tiers; for any text at any tier see tests/detection/test_unicode.py."""
    masking = Masking(style, bytes(KEY_BYTES))
    text = "Maria Garcia met Tom Jones in Berlin. Tom Jones paid 40 dollars to the bank. Mail jo@x.com."
    once = redact_text(text, at_tier(one(text, pipeline).spans, tier), masking).text
    assert redact_text(once, at_tier(one(once, pipeline).spans, tier), masking).text == once


def test_no_list_reaches_into_a_placeholder(pipeline: Any) -> None:
    text = "[PERSON_1] met the person [NUMBER] 17 times."
    deny = [literal("person"), re.compile(r"\d+"), re.compile(r"\] 17")]
    assert words(one(text, pipeline, deny=deny), Tier.LOW_ENTITY) == {"person": "DENY", "17": "DENY"}


def test_offsets_are_code_points(pipeline: Any) -> None:
    text = "😀 e\u0301 \ud83d😀\ud800 mail jo@x.com"
    [span] = [span for span in one(text, pipeline).spans if span.label == "EMAIL"]
    assert text[span.start : span.end] == "jo@x.com"


@pytest.mark.parametrize("piece", [5_000, pytest.param(PIECE, marks=pytest.mark.ci)])
def test_long_texts_are_cut_at_white_space_and_offsets_shifted(
    pipeline: Any, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "PIECE", piece)
    sentence = "Maria Garcia went to Berlin. "
    text = sentence * (piece // len(sentence) + 40)
    actual = one(text, pipeline)
    assert len(actual.tokens) == len(pipeline.make_doc(text))
    places = [s.start for s in at_tier(actual.spans, Tier.LOW_ENTITY) if text[s.start : s.end] == "Berlin"]
    expected = [match.start() for match in re.finditer("Berlin", text)]
    assert len(set(expected) & set(places)) > 0.98 * len(expected)
    assert {place % len(sentence) for place in places} == {sentence.index("Berlin")}
    assert [place for place in places if place > piece]


def test_an_identifier_across_a_cut_is_found(pipeline: Any) -> None:
    text = "x" * (LONGEST_WORD - 4) + " " + "a" * (LONGEST_WORD - 3) + ".b@example.com"
    text += " " * (PIECE - len(text) - 4) + "212 456 7890"
    actual = {text[s.start : s.end] for s in one(text, pipeline).spans if s.source == "pattern"}
    assert "212 456 7890" in actual


@pytest.mark.one_in(3)
@pytest.mark.parametrize("length", [3_000, pytest.param(8_000, marks=pytest.mark.ci)])
@pytest.mark.parametrize("seed", ["(", "'", "a", "é", " ", "a-", "\u2028"])
def test_words_without_end_do_not_hang(pipeline: Any, seed: str, length: int) -> None:
    text = (seed * length)[:length]
    actual = one(text, pipeline)
    assert len(actual.tokens) <= len(text)
    assert all(span.end <= len(text) for span in actual.spans)


@pytest.mark.parametrize("length", [0, 1, LONGEST_WORD, LONGEST_WORD + 1, PIECE, PIECE + 1])
def test_pieces_cover_the_text_and_keep_to_the_limits(length: int) -> None:
    for text in ("a" * length, ("b" * 7 + " ") * (length // 8), " " * length):
        cuts = scan._cuts(text)
        pieces = [text[start:end] for start, end in itertools.pairwise(cuts)]
        assert "".join(pieces) == text
        assert len(pieces) == max(len(pieces), 1)
        assert all(len(piece) <= PIECE for piece in pieces)
        assert all(len(word) <= LONGEST_WORD for piece in pieces for word in piece.split())
        assert all(pieces) or text == ""


RECORDS = [Record(str(n), f"{'' if n % 7 else 'x'}Maria {n} met Tom Jones on May {n % 28 + 1}.") for n in range(150)]


@pytest.mark.ci
def test_order_is_kept_and_processes_do_not_change_the_result(pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "PIECE", 300)
    records = [*RECORDS[:70], Record("long", "Anna went home. " * 50), *RECORDS[70:], Record("", "")]
    alone = list(detect_records(records, pipeline=pipeline))
    assert [actual.record for actual in alone] == records
    assert list(detect_records(records, pipeline=pipeline, engine=processes(2))) == alone


def test_memory_is_bounded_by_a_few_batches(pipeline: Any) -> None:
    taken = 0

    def endless() -> Iterator[Record]:
        nonlocal taken
        for taken in itertools.count(1):
            yield Record(str(taken), "Maria sang.")

    actual = detect_records(endless(), pipeline=pipeline)
    for number in range(1, 3 * BATCH):
        assert next(actual).record.id == str(number)
        assert taken - number <= 2 * BATCH


def test_progress_is_told(pipeline: Any) -> None:
    heard: list[Event] = []
    list(detect_records(RECORDS[:3], pipeline=pipeline, notify=heard.append))
    assert heard == [RecordsRead(task="detect", done=done, total=None) for done in (1, 2, 3)]


def test_deny_wins_over_allow(pipeline: Any) -> None:
    text = "Maria Garcia met Tom Jones."
    allowed = one(text, pipeline, allow=[literal("Tom Jones"), literal("Maria")])
    assert words(allowed, Tier.HIGH_ENTITY) == {"Garcia": "PERSON"}
    both = one(text, pipeline, allow=[literal("Maria Garcia")], deny=[literal("Garcia")])
    assert words(both, Tier.HIGH_ENTITY) == {"Garcia": "DENY", "Tom Jones": "PERSON"}


@pytest.mark.parametrize("workers", [-1, 0, MAX_WORKERS + 1])
def test_numbers_of_workers_are_within_bounds(workers: int) -> None:
    with pytest.raises(UsageError, match="workers is"):
        processes(workers)


def test_a_pipeline_by_name_has_no_lemmatizer(pipeline: Any) -> None:
    assert "lemmatizer" not in pipeline.pipe_names
    installed = next(name for name in scan.PIPELINES if spacy.util.is_package(name))
    assert load_pipeline(installed).pipe_names == pipeline.pipe_names


def test_a_missing_pipeline_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"no spaCy pipeline xx_none_sm\. Install it"):
        load_pipeline("xx_none_sm")
    monkeypatch.setattr(scan, "PIPELINES", ("xx_none_sm", "xx_none_too"))
    with pytest.raises(InputError, match=r"pip install xx-none-too==3\.8\.0"):
        load_pipeline()


def test_a_pipeline_without_a_parser_is_refused(tmp_path: Any) -> None:
    blank = spacy.blank("en")
    blank.add_pipe("ner")
    blank.initialize()
    blank.to_disk(tmp_path / "blank")
    with pytest.raises(InputError, match="has no parser"):
        load_pipeline(str(tmp_path / "blank"))
