"""Asking a server: what is read from its answers, what is tried again, and how it fails."""

import json
import time

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.detection.crosscheck import client
from atdp_cli.detection.crosscheck.check import Answer
from atdp_cli.detection.crosscheck.client import Server, opened_server, parsed
from atdp_cli.errors import RunError
from tests.llmserver import NO, YES, ChatServer, Reply, Request, always, chat_server


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two further attempts, without a pause."""
    monkeypatch.setattr(client, "RETRIES", 2)
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.01)


def asking(server: ChatServer, text: str = "hello there") -> Answer:
    """The answer about one text."""
    with opened_server(Server(model="tiny", url=server.url, key="sk-secret"), masked=True) as ask:
        return ask(text)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (YES, True),
        (NO, False),
        ('Here you are:\n```json\n{"sensitive": true}\n```', True),
        ('<think>{"sensitive": true} or not?</think>{"sensitive": false}', False),
        ("Yes, there is a name.", True),
        ("**No**", False),
        ("true", True),
        ('{"sensitive": "maybe"}', None),
        ('{"sensitive": true} {"sensitive": false}', None),
        ('{"sensitive": }', None),
        ("[]", None),
        ("Nothing to see", None),
        ("", None),
    ],
)
def test_answers_are_read_leniently(reply: str, answer: Answer) -> None:
    assert parsed(reply) is answer


@given(st.text())
def test_any_reply_is_read(reply: str) -> None:
    assert parsed(reply) in (True, False, None)


@pytest.mark.parametrize("failing", [Reply(status=500), Reply(status=429), Reply(status=0), Reply(status=503)])
def test_what_passes_is_tried_again(failing: Reply) -> None:
    with chat_server(lambda number, request: failing if number < 3 else YES) as server:
        assert asking(server) is True
    assert len(server.requests) == 3


def test_a_time_out_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TIMEOUT", 0.15)
    with chat_server(lambda number, request: Reply(content=YES, delay=0.4 if number == 1 else 0.0)) as server:
        assert asking(server) is True
    assert len(server.requests) == 2


def test_the_server_may_ask_for_a_pause() -> None:
    busy = Reply(status=429, headers={"Retry-After": "1"})
    with chat_server(lambda number, request: busy if number == 1 else NO) as server:
        started = time.monotonic()
        assert asking(server) is False
        assert 1 <= time.monotonic() - started < 5
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("reply", "said", "attempts"),
    [
        (Reply(status=401), "refuses the key (401)", 1),
        (Reply(status=403), "refuses the key (403)", 1),
        (Reply(status=404), "no model tiny", 1),
        (Reply(status=400), "does not take the request (400)", 1),
        (Reply(status=307, headers={"Location": "http://127.0.0.1:1/"}), "(307)", 1),
        (Reply(status=429), "(429)", 3),
        (Reply(status=500, body=b"TOPSECRET"), "fails (500)", 3),
        (Reply(status=0), "cannot be reached", 3),
        (Reply(delay=0.4), "does not answer in time", 3),
        (Reply(kind="text/html", body=b"<html>TOPSECRET"), "not as an OpenAI-compatible server", 1),
        (Reply(body=b'{"TOPSECRET'), "not as an OpenAI-compatible server", 1),
        (Reply(body=b"{}"), "not as an OpenAI-compatible server", 1),
        (Reply(body=b'{"choices": []}'), "not as an OpenAI-compatible server", 1),
        (Reply(body=b'["TOPSECRET"]'), "not as an OpenAI-compatible server", 1),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else "",
)
def test_a_server_that_fails_for_good_is_one_clear_error(
    monkeypatch: pytest.MonkeyPatch, reply: Reply, said: str, attempts: int
) -> None:
    monkeypatch.setattr(client, "TIMEOUT", 0.15 if reply.delay else 5.0)
    with chat_server(always(reply)) as server, pytest.raises(RunError) as caught:
        asking(server, "my TOPSECRET text")
    assert said in str(caught.value)
    assert server.url in str(caught.value)
    assert "TOPSECRET" not in str(caught.value)
    assert "sk-secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(server.requests) == attempts


def test_what_a_server_does_not_know_is_left_out_from_then_on() -> None:
    refusals = {
        "response_format": Reply(status=422, body=b'{"detail": "response_format: unknown"}'),
        "temperature": Reply(status=400, body=b'{"error": {"message": "Unsupported", "param": "temperature"}}'),
    }

    def answering(number: int, request: Request) -> Reply | str:
        return next((reply for name, reply in refusals.items() if name in request.json), YES)

    with chat_server(answering) as server:
        assert asking(server) is True
    assert [sorted({*request.json} & {*refusals}) for request in server.requests] == [
        ["response_format", "temperature"],
        ["temperature"],
        [],
    ]


def test_a_content_filter_is_an_unusable_answer() -> None:
    body = json.dumps({"error": {"code": "content_filter", "message": "no"}}).encode()
    with chat_server(always(Reply(status=400, body=body))) as server:
        assert asking(server) is None


def test_the_key_is_in_one_header_alone() -> None:
    with chat_server(always(NO)) as server:
        asking(server)
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    carrying = {name.lower(): value for name, value in request.headers.items() if "sk-secret" in value}
    assert carrying == {"authorization": "Bearer sk-secret"}
    assert b"sk-secret" not in request.body
    assert request.json["temperature"] == 0
    assert "sk-secret" not in repr(Server(model="m", url="u", key="sk-secret"))
