"""Servers to connect to: honest ones, and hostile ones."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.plugins.mcp.world import FOREVER

HEADER_VALUE = "sk-live-header-0123"

Misdeed = Callable[["Handler", Any], None]
"""What a server does instead of answering a request with an id."""


class Handler(BaseHTTPRequestHandler):
    """A server with one tool; from `at` on, it does its worst."""

    protocol_version = "HTTP/1.1"
    server: World

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, number = message.get("method"), message.get("id")
        self.server.heard.append(str(method))
        with suppress(OSError):
            if self.server.at in {method, "anything"}:
                self.server.misdeed(self, number)
            elif number is None:
                self.reply(202)
            elif method == "initialize":
                info = {"name": "test", "version": "1"}
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
                self.answer(number, result, {"mcp-session-id": "s1"})
            elif method == "tools/list":
                self.answer(number, {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
            elif method == "tools/call":
                self.answer(number, {"content": [{"type": "text", "text": "fine"}]})
            else:
                body = {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "unknown"}}
                self.reply(400, json.dumps(body).encode())

    def do_GET(self) -> None:
        self.server.heard.append("GET")
        with suppress(OSError):
            if self.server.at == "GET":
                self.server.misdeed(self, None)
            else:
                self.reply(405)

    def do_DELETE(self) -> None:
        self.server.heard.append("DELETE")
        with suppress(OSError):
            if self.server.at == "DELETE":
                self.server.misdeed(self, None)
            else:
                self.reply(200)

    def answer(self, number: Any, result: object, headers: dict[str, str] | None = None) -> None:
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode(), headers)

    def reply(self, code: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.begin(code, {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})})
        self.wfile.write(body)

    def begin(self, code: int, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def without_end(self, kind: str, chunk: bytes, pause: float = 0) -> None:
        self.begin(200, {"content-type": kind, "connection": "close"})
        while not self.server.stopping.wait(pause) if pause else not self.server.stopping.is_set():
            self.wfile.write(chunk)

    def hang(self) -> None:
        self.server.stopping.wait(FOREVER)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class World(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, at: str, misdeed: Misdeed) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.at = at
        self.misdeed = misdeed
        self.heard: list[str] = []
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"

    def handle_error(self, *_: object) -> None:
        """Clients that leave are what is tested."""


@contextmanager
def serving(at: str = "", misdeed: Misdeed = lambda _handler, _id: None) -> Iterator[World]:
    with World(at, misdeed) as world:
        thread = threading.Thread(target=world.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield world
        finally:
            world.stopping.set()
            world.shutdown()
            thread.join()


def _moves(to: str) -> Misdeed:
    return lambda handler, _: handler.reply(307, b"", {"location": to})


def _half(handler: Handler, _id: object) -> None:
    handler.begin(200, {"content-type": "application/json", "content-length": "1000"})
    handler.wfile.write(b'{"jsonrpc"')
    handler.wfile.flush()
    handler.close_connection = True


def _bomb(handler: Handler, _id: object) -> None:
    handler.reply(200, gzip.compress(b"[" * 32_000_000, 1), {"content-encoding": "gzip"})


def _large(handler: Handler, _id: object) -> None:
    handler.begin(200, {"content-type": "application/json", "content-length": str(100 * 2**20)})
    for _ in range(1600):
        handler.wfile.write(b" " * 65536)


def _repeats(handler: Handler, number: object) -> None:
    message = f"key {handler.headers['x-key']} is not known"
    body = {"jsonrpc": "2.0", "id": number, "error": {"code": -32000, "message": message}}
    handler.reply(400, json.dumps(body).encode())


def _returns_to_it(handler: Handler, _id: object) -> None:
    handler.begin(200, {"content-type": "text/event-stream", "connection": "close"})
    handler.wfile.write(b"id: 1\nretry: 1\ndata: \n\n")
    handler.close_connection = True


HOSTILE: dict[str, tuple[str, Misdeed, str]] = {
    "hangs before it says who it is": ("initialize", lambda h, _: h.hang(), "did not start within"),
    "hangs before its first headers": ("server/discover", lambda h, _: h.hang(), "did not start within"),
    "hangs when it should take note": ("notifications/initialized", lambda h, _: h.hang(), "within"),
    "hangs at its list": ("tools/list", lambda h, _: h.hang(), "did not list its tools within"),
    "hangs before it answers": ("tools/call", lambda h, _: h.hang(), "did not answer within"),
    "trickles": ("tools/call", lambda h, _: h.without_end("application/json", b" ", 0.01), "did not answer within"),
    "answers without end": ("tools/call", lambda h, _: h.without_end("application/json", b" " * 65536), "16 MiB"),
    "sends events without end": (
        "tools/call",
        lambda h, _: h.without_end(
            "text/event-stream", b'data: {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}\n\n'
        ),
        "did not answer within",
    ),
    "sends one event without end": (
        "tools/call",
        lambda h, _: h.without_end("text/event-stream", b"data: " + b"x" * 65536),
        "SSE stream failed",
    ),
    "ends its events and is asked again": ("tools/call", _returns_to_it, "reconnection attempts were exhausted"),
    "answers with 100 MB": ("tools/call", _large, "16 MiB"),
    "answers with a gzip bomb": ("tools/call", _bomb, "compressed"),
    "sends to another machine": ("anything", _moves("http://127.0.0.2:9/mcp"), "redirects elsewhere (HTTP 307)"),
    "sends to a file": ("anything", _moves("file:///etc/passwd"), "redirects elsewhere (HTTP 307)"),
    "sends to metadata": ("tools/call", _moves("http://169.254.169.254/latest/"), "redirects elsewhere (HTTP 307)"),
    "answers with a page": (
        "tools/call",
        lambda h, _: h.reply(200, b"<html>", {"content-type": "text/html"}),
        "Unexpected content type",
    ),
    "wants to know who asks": (
        "anything",
        lambda h, _: h.reply(401, b"", {"www-authenticate": "Bearer"}),
        "denies access (HTTP 401)",
    ),
    "does not let in": ("initialize", lambda h, _: h.reply(403), "denies access (HTTP 403)"),
    "is not there": ("initialize", lambda h, _: h.reply(404), "responds with HTTP 404"),
    "is broken": ("tools/call", lambda h, _: h.reply(500), "responds with HTTP 500"),
    "has lost the session": ("tools/call", lambda h, _: h.reply(404), "has lost the session (HTTP 404)"),
    "answers with no JSON": (
        "tools/call",
        lambda h, _: h.reply(200, b"{nonsense"),
        "its answer does not follow the protocol",
    ),
    "answers with other JSON": (
        "tools/call",
        lambda h, _: h.reply(200, b'{"a": 1}'),
        "its answer does not follow the protocol",
    ),
    "answers with a wrong result": (
        "tools/call",
        lambda h, number: h.answer(number, {"content": 7}),
        "does not follow the protocol",
    ),
    "answers somebody else": ("tools/call", lambda h, _: h.answer(9999, {"content": []}), "did not answer within"),
    "takes a question for a note": ("tools/call", lambda h, _: h.reply(202), "202 Accepted"),
    "hangs up in the middle": ("tools/call", _half, "failed"),
    "repeats the key": ("tools/call", _repeats, "key *** is not known"),
}
"""When a server begins with it, what it does, and what is said about it."""


def _events(*events: bytes, hang: bool = True) -> Misdeed:
    def misdeed(handler: Handler, _: object) -> None:
        handler.begin(200, {"content-type": "text/event-stream", "connection": "close"})
        for event in events:
            handler.wfile.write(event)
            handler.wfile.flush()
        handler.close_connection = True
        if hang:
            handler.hang()

    return misdeed


_PLACE = b"event: endpoint\ndata: /mcp\n\n"

HOSTILE_STREAMS: dict[str, tuple[Misdeed, str]] = {
    "hangs before its headers": (lambda h, _: h.hang(), "did not start within"),
    "never says where to": (_events(), "did not start within"),
    "ends before it says where to": (_events(hang=False), "closed its event stream before it answered"),
    "says nothing without end": (
        lambda h, _: h.without_end("text/event-stream", b": still here\n\n"),
        "did not start within",
    ),
    "sends one event without end": (
        lambda h, _: h.without_end("text/event-stream", b"x" * 65536),
        "closed its event stream",
    ),
    "names another machine": (
        _events(b"event: endpoint\ndata: http://127.0.0.2:9/\n\n"),
        "did not start within",
    ),
    "never answers": (_events(_PLACE), "did not start within"),
    "ends before it answers": (_events(_PLACE, hang=False), "closed its event stream"),
    "answers with nonsense": (_events(_PLACE, b"data: {nonsense\n\n"), "did not start within"),
    "sends elsewhere": (_moves("http://127.0.0.2:9/sse"), "redirects elsewhere (HTTP 307)"),
    "is not there": (lambda h, _: h.reply(404), "responds with HTTP 404"),
    "wants to know who asks": (lambda h, _: h.reply(401), "denies access (HTTP 401)"),
    "answers with a page": (
        lambda h, _: h.reply(200, b"<html>", {"content-type": "text/html"}),
        "remove its type 'sse'",
    ),
}
"""The same for the older protocol of two channels."""
