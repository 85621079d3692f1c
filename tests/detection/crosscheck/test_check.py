"""The cross-check: what is sent, what an answer does, and what happens when a server fails."""

import itertools
import random
import re
import sqlite3
import stat
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.record import Record
from atdp_cli.corpus.spans import Span, Tier, at_tier, merge
from atdp_cli.detection.crosscheck import client
from atdp_cli.detection.crosscheck.check import (
    ANSWERS,
    LONGEST,
    Answer,
    Answers,
    crosscheck,
    opened_answers,
    questions,
)
from atdp_cli.detection.crosscheck.client import Server, opened_server
from atdp_cli.detection.detect import Detection, detect_records
from atdp_cli.detection.results import CrosscheckCounts
from atdp_cli.detection.review.sample import sample_sentences, sentences_of
from atdp_cli.errors import RunError
from atdp_cli.replacement.edits import redact_text
from tests.llmserver import NO, YES, Answering, ChatServer, Reply, Request, always, chat_server


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two further attempts, without a pause."""
    monkeypatch.setattr(client, "RETRIES", 2)
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.01)


def detection(text: str, *spans: Span, cuts: Sequence[int] = ()) -> Detection:
    """A record cut into sentences at these places."""
    ends = [0, *cuts, len(text)]
    return Detection(Record("1", text), spans, (), tuple(itertools.pairwise(ends)) if text else ())


def span(start: int, end: int, label: str = "PERSON", tier: Tier = Tier.LOW_ENTITY) -> Span:
    return Span(start, end, label, "ner", tier)


def checked(
    server: ChatServer, actual: Sequence[Detection], *, folder: Path | None = None, masked: bool = True, **options: Any
) -> tuple[list[Detection], CrosscheckCounts]:
    """A whole cross-check against a server."""
    counts = CrosscheckCounts()
    known = Server(model="tiny", url=server.url, key="k")
    with opened_answers(folder, "tiny", masked) as answers, opened_server(known, masked=masked) as ask:
        tier = options.pop("tier", Tier.LOW_ENTITY)
        return list(crosscheck(actual, ask, answers, counts, tier=tier, masked=masked, **options)), counts


def by_text(pattern: str) -> Answering:
    """Yes where the text matches."""
    return lambda number, request: YES if re.search(pattern, request.text) else NO


@st.composite
def flagged(draw: st.DrawFn) -> tuple[Detection, Tier]:
    """A text whose flagged characters are Greek and whose other characters are not, cut anywhere."""
    parts = draw(st.lists(st.tuples(st.text("ab .,\n7", max_size=8), st.text("αβγ δ", max_size=5)), max_size=6))
    text, spans = "", []
    for plain, secret in parts:
        text += plain
        if secret:
            spans.append(span(len(text), len(text) + len(secret), draw(st.sampled_from(["PERSON", "PER", "VERB"]))))
        text += secret
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=4)))
    return detection(text, *spans, cuts=[cut for cut in cuts if cut < len(text)]), draw(st.sampled_from(Tier))


@given(flagged())
def test_masked_nothing_of_a_span_is_sent_and_all_of_the_rest_is(case: tuple[Detection, Tier]) -> None:
    actual, tier = case
    asked = list(questions(actual, tier, masked=True))
    assert not re.search("[α-ω]", "".join(question.text for question in asked))
    text = actual.record.text
    rest = "".join(text[start:end] for start, end in actual.sentences)
    assert rest == text
    for question in asked:
        sentence = text[slice(*question.place)]
        assert sentence == sentence.strip()
        assert re.sub(r"\[(PERSON|PER|VERB)\]|\s", "", question.text) == re.sub(r"[α-ω]|\s", "", sentence)
    places = {place for question in asked for place in range(*question.place)}
    assert all(at in places for at, character in enumerate(text) if character in "ab7")


def test_only_spans_of_the_tier_are_masked() -> None:
    actual = detection("Emma sings", span(0, 4), span(5, 10, "VERB", Tier.HIGH_CONTEXTUAL))
    assert [question.text for question in questions(actual, Tier.LOW_ENTITY, masked=True)] == ["[PERSON] sings"]
    assert list(questions(actual, Tier.HIGH_CONTEXTUAL, masked=True)) == []


@pytest.mark.parametrize("text", ["", "  \n", "[PERSON] … [EMAIL_3]!", "<DATE>, -- ?"])
@pytest.mark.parametrize("masked", [True, False])
def test_where_only_masks_and_punctuation_are_left_nothing_is_asked(text: str, masked: bool) -> None:
    assert list(questions(detection(text), Tier.LOW_ENTITY, masked=masked)) == []


def test_what_people_allow_is_not_asked_about_where_nothing_else_is_left() -> None:
    actual = detection("Rex barks. Rex is a dog of Emma.", span(27, 31), cuts=[10])
    allow = (re.compile("Rex barks|dog"),)
    asked = list(questions(actual, Tier.LOW_ENTITY, masked=True, allow=allow))
    assert [question.text for question in asked] == ["Rex is a dog of [PERSON]."]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40), st.floats(0.01, 1), st.randoms())
def test_every_disputed_sentence_is_in_the_review_sample_and_stands_for_itself(
    kinds: list[tuple[bool, bool]], rate: float, draw: random.Random
) -> None:
    actual = [
        replace(detection(" four words. "), spans=(span(1, 5),) if sensitive else (), disputed=((1, 12),) * disputed)
        for sensitive, disputed in kinds
    ]
    drawn = list(sample_sentences(sentences_of(actual, Tier.LOW_ENTITY), rate, draw))
    disputed = [number for number, (_, so) in enumerate(kinds) if so]
    assert [sampled.sentence.position for sampled in drawn if sampled.sentence.disputed] == disputed
    assert all(sampled.stands_for == 1 for sampled in drawn if sampled.sentence.disputed)
    assert sum(sampled.stands_for for sampled in drawn) == pytest.approx(len(kinds))
    assert [sampled.sentence.position for sampled in drawn] == sorted(sampled.sentence.position for sampled in drawn)


def test_a_long_sentence_is_asked_about_in_parts_that_cut_no_mask_open() -> None:
    text = "x" * (LONGEST - 2) + "emma" + "y" * LONGEST
    actual = detection(text, span(LONGEST - 2, LONGEST + 2))
    asked = list(questions(actual, Tier.LOW_ENTITY, masked=True))
    assert len(asked) == 3
    assert not any(letter in question.text for question in asked for letter in "ema")
    assert [question.place for question in asked] == [(0, LONGEST), (LONGEST, 2 * LONGEST), (2 * LONGEST, len(text))]


def test_half_a_character_can_be_asked_about() -> None:
    with chat_server(always(NO)) as server:
        checked(server, [detection("so \ud83d it is")])
    assert server.texts == ["so \ufffd it is"]


def test_a_disagreement_flags_the_whole_sentence_at_every_tier() -> None:
    text = "Emma came. Her dog is called Rex. All is well. "
    actual = detection(text, span(0, 4), cuts=[10, 33])
    with chat_server(by_text("Rex")) as server:
        (judged,), counts = checked(server, [actual])
    assert set(server.texts) == {"[PERSON] came.", "Her dog is called Rex.", "All is well."}
    assert judged.spans == (span(0, 4), Span(11, 33, "CROSSCHECK", "crosscheck", Tier.LOW_ENTITY))
    assert counts == CrosscheckCounts(asked=3, known=0, disagreements=1, unusable=0)
    assert at_tier(judged.spans, Tier.LOW_ENTITY) == judged.spans
    assert redact_text(text, judged.spans).text == "[PERSON] came. [CROSSCHECK] All is well. "


def test_a_flagged_sentence_swallows_the_spans_in_it() -> None:
    whole = Span(0, 20, "CROSSCHECK", "crosscheck", Tier.LOW_ENTITY)
    inside = (span(0, 4), span(6, 9, "EMAIL"), Span(16, 20, "DENY", "deny", Tier.LOW_ENTITY))
    assert merge((*inside, whole)) == (whole,)
    assert merge((whole, Span(0, 20, "EMAIL", "pattern", Tier.LOW_ENTITY)))[0].label == "EMAIL"


def test_unmasked_the_sentence_is_sent_and_a_different_answer_is_a_disagreement() -> None:
    text = "Emma came. Rex barks. All is well. Omar left."
    actual = detection(text, span(0, 4), span(35, 39), cuts=[10, 21, 34])
    with chat_server(by_text("Emma|Rex")) as server:
        (judged,), counts = checked(server, [actual], masked=False)
    assert set(server.texts) == {"Emma came.", "Rex barks.", "All is well.", "Omar left."}
    places = [(found.start, found.end) for found in judged.spans if found.label == "CROSSCHECK"]
    assert places == [(11, 21), (35, 45)]
    assert counts.disagreements == 2


def test_disagreements_for_people_leave_the_spans_alone() -> None:
    actual = [detection("Rex barks. Fine.", cuts=[10]), detection("Rex sleeps.")]
    with chat_server(by_text("Rex")) as server:
        judged, counts = checked(server, actual, dispute=True)
    assert judged == [replace(actual[0], disputed=((0, 10),)), replace(actual[1], disputed=((0, 11),))]
    assert counts.disagreements == 2


def test_the_order_is_that_of_the_records_and_each_text_is_asked_about_once() -> None:
    actual = [detection(f"record {number % 40} here") for number in range(300)]

    def slow_at_first(number: int, request: Request) -> Reply:
        return Reply(content=YES if request.text.endswith("7 here") else NO, delay=0.05 if number == 1 else 0.0)

    with chat_server(slow_at_first) as server:
        judged, counts = checked(server, actual)
    assert [detected.record for detected in judged] == [detected.record for detected in actual]
    assert [bool(detected.spans) for detected in judged] == [
        detected.record.text.endswith("7 here") for detected in actual
    ]
    assert len(server.texts) == len(set(server.texts)) == counts.asked == 40
    assert counts.known == 260


def test_an_unusable_answer_is_asked_for_once_more_and_then_counts_as_a_disagreement() -> None:
    actual = [detection("one"), detection("two"), detection("two")]

    def answering(number: int, request: Request) -> str:
        again = sum(text == request.text for text in server.texts) > 1
        return NO if request.text == "one" and again else "Well, well."

    with chat_server(answering) as server:
        judged, counts = checked(server, actual)
    assert sorted(server.texts) == ["one", "one", "two", "two"]
    assert [bool(detected.spans) for detected in judged] == [False, True, True]
    assert counts == CrosscheckCounts(asked=2, known=1, disagreements=2, unusable=2)


def test_a_run_that_ends_early_asks_only_the_rest_the_next_time(tmp_path: Path) -> None:
    actual = [detection(f"record number {number}") for number in range(20)]
    folder = tmp_path / "corpus.private"
    with (
        chat_server(lambda number, request: YES if number <= 9 else Reply(status=0)) as server,
        pytest.raises(RunError, match="cannot be reached"),
    ):
        checked(server, actual, folder=folder)
    answered = {request.text for request in server.requests[:9]}
    with chat_server(always(YES)) as second:
        judged, counts = checked(second, actual, folder=folder)
    assert {*second.texts} == {detected.record.text for detected in actual} - answered
    assert counts == CrosscheckCounts(asked=11, known=9, disagreements=20, unusable=0)
    assert all(detected.spans for detected in judged)
    with chat_server(always(NO)) as third:
        assert checked(third, actual, folder=folder)[0] == judged
        assert third.requests == []
        checked(third, actual[:1], folder=folder, masked=False)
        assert len(third.requests) == 1


def test_kept_answers_hold_no_text_and_are_for_the_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    with chat_server(always(YES)) as server:
        checked(server, [detection("Rex barks loudly")], folder=folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / ANSWERS.database).stat().st_mode) == 0o600
    assert b"Rex" not in (folder / ANSWERS.database).read_bytes()


def test_damaged_answers_are_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / ANSWERS.database).write_bytes(b"this is no database, but something else")
    with pytest.raises(RunError, match=ANSWERS.database), opened_answers(tmp_path, "scope") as answers:
        answers.get("text")


def test_an_answer_that_comes_after_the_end_is_no_error(tmp_path: Path) -> None:
    with opened_answers(tmp_path, "scope") as answers:
        pass
    answers.put("late", True)
    with sqlite3.connect(tmp_path / ANSWERS.database) as database:
        assert database.execute("SELECT count(*) FROM answers").fetchone() == (0,)
    database.close()


def test_leaving_early_waits_for_nobody() -> None:
    asked, left = threading.Event(), threading.Event()

    def ask(text: str) -> Answer:
        if text == "first":
            asked.wait()
        else:
            asked.set()
            left.wait(60)
        return False

    actual = [detection("first"), detection("second")]
    run = crosscheck(actual, ask, Answers(), CrosscheckCounts(), tier=Tier.LOW_ENTITY)
    started = time.monotonic()
    assert next(run).record.text == "first"
    run.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 1
    left.set()


def test_what_the_detector_flags_is_masked_on_the_way(pipeline: Any) -> None:
    texts = ["Mail emma.clarke@example.org. The weather is nice.", "Omar Haddad lives at 12 Main Street in Berlin."]
    records = [Record(str(number), text) for number, text in enumerate(texts)]
    actual = list(detect_records(records, pipeline=pipeline))
    with chat_server(always(NO)) as server:
        judged, _ = checked(server, actual)
    assert judged == actual
    sent = b"".join(request.body for request in server.requests)
    for secret in (b"emma", b"example.org", b"Omar", b"Haddad", b"12 Main", b"Berlin"):
        assert secret not in sent
    assert any("weather" in text for text in server.texts)
