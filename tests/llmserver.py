"""A chat server on loopback that keeps what it was sent and answers as a test says."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

YES, NO = '{"sensitive": true}', '{"sensitive": false}'


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the server sends back.

    Attributes:
        content: What the model says, where `body` is None.
        body: The whole body, in place of a completion.
        status: 0 for a connection that is closed without an answer.
        delay: Seconds before it.
    """

    content: str = NO
    body: bytes | None = None
    status: int = 200
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0

    @property
    def sent(self) -> bytes:
        """The body."""
        if self.body is not None:
            return self.body
        message = {"role": "assistant", "content": self.content}
        return json.dumps({"object": "chat.completion", "choices": [{"index": 0, "message": message}]}).encode()


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the server was sent."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The text that was asked about."""
        return str(json.loads(self.json["messages"][-1]["content"])["text"])


Answering = Callable[[int, Request], Reply | str]
"""Gives the answer to the n-th request, counted from 1; a string is what the model says."""


def always(reply: Reply | str) -> Answering:
    """The same answer to every request."""
    return lambda number, request: reply


@dataclass(frozen=True, kw_only=True)
class ChatServer:
    """A running server."""

    url: str
    requests: list[Request] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The texts that were asked about."""
        return [request.text for request in self.requests]


@contextmanager
def chat_server(answering: Answering) -> Iterator[ChatServer]:
    """A server on a free port of loopback."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = Request(path=self.path, headers=dict(self.headers.items()), body=body)
            with lock:
                running.requests.append(request)
                number = len(running.requests)
            actual = answering(number, request)
            reply = Reply(content=actual) if isinstance(actual, str) else actual
            time.sleep(reply.delay)
            self.close_connection = True
            if not reply.status:
                return
            self.send_response(reply.status)
            for name, value in {"Content-Type": reply.kind, "Connection": "close", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.sent)))
            self.end_headers()
            self.wfile.write(reply.sent)

        def log_message(self, format: str, *args: object) -> None:
            """A test's output is the tool's alone."""

        def handle(self) -> None:
            """A client that did not wait for its answer is no error."""
            with suppress(ConnectionError):
                super().handle()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        running = ChatServer(url=f"http://127.0.0.1:{server.server_port}/v1")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield running
        finally:
            server.shutdown()
            thread.join()
