"""A server on this machine that answers as it is told, well or badly, and writes down what it was sent."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message as Headers
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Semaphore, Thread
from typing import Any

from nexus_core.plugin import SummaryRequest
from nexus_core.types.assembled import AssembledContext
from nexus_plugins.providers._endpoint import ModelEndpoint, RetryTiming
from nexus_plugins.providers._summarizers import EndpointSummarizer

KEY = "sk-test-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c"
SUMMARY = "The user fixed login.py."


@dataclass(frozen=True)
class Answer:
    """What the server does with one request.

    Attributes:
        body: What it sends: JSON, or bytes as they are.
        raw: Whether the bytes are all it sends, without status and headers.
        pause: Seconds between two bytes; forever, if there is nothing to send.
        holds: Whether the connection stays open after raw bytes.
    """

    body: object = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bool = False
    pause: float = 0
    holds: bool = False


@dataclass
class Server:
    """Where it listens, what it was sent, and what it answers: one after the other, the last one ever again.

    `connections` counts those that were made, and `ended_connections` is released once for each that has ended.
    """

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    heard: Event = field(default_factory=Event)
    connections: int = 0
    ended_connections: Semaphore = field(default_factory=lambda: Semaphore(0))
    closing: Event = field(default_factory=Event)

    @property
    def body(self) -> Any:
        """The only request so far."""
        (only,) = self.bodies
        return only

    def next(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class _Handler(BaseHTTPRequestHandler):
    told: Server

    def setup(self) -> None:
        super().setup()
        self.told.connections += 1

    def finish(self) -> None:
        super().finish()
        self.told.ended_connections.release()

    def do_POST(self) -> None:
        self.told.paths.append(self.path)
        self.told.headers.append(self.headers)
        self.told.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.told.heard.set()
        answer = self.told.next()
        sent = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self._send_head(answer, len(sent))
        self._send(sent, answer.pause)

    def _send_head(self, answer: Answer, size: int) -> None:
        if answer.raw:
            self.close_connection = not answer.holds
            return
        self.send_response(answer.status)
        for name, value in ({"Content-Length": str(size)} | dict(answer.headers)).items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, sent: bytes, pause: float) -> None:
        try:
            for part in [sent] if not pause else [bytes([each]) for each in sent]:
                self.wfile.write(part)
                if pause and self.told.closing.wait(pause):
                    return
        except OSError:  # whoever asked has gone
            return
        if pause and not sent:
            self.told.closing.wait()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(*answers: Answer, certificate: Path | None = None, keeps: bool = False) -> Iterator[Server]:
    """A server on the loopback interface, for as long as it is needed; with a certificate, an encrypted one.

    `keeps` lets it keep connections open for the next request.
    """
    server = Server(answers=list(answers))

    fields = {"told": server, "protocol_version": "HTTP/1.1" if keeps else "HTTP/1.0"}
    listening = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), fields))
    listening.daemon_threads = True
    server.url = f"http://127.0.0.1:{listening.server_port}"
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        listening.socket = tls.wrap_socket(listening.socket, server_side=True)
        server.url = f"https://127.0.0.1:{listening.server_port}"
    thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        listening.shutdown()
        thread.join()
        listening.server_close()


def chat(content: object = SUMMARY, *, ended: str = "stop", **fields: Any) -> dict[str, Any]:
    """An answer in the form of chat completions."""
    message = {"role": "assistant", "content": content, **fields}
    choices = [{"index": 0, "message": message, "finish_reason": ended, "logprobs": None}]
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}


def message(text: str | None = SUMMARY, *, ended: str = "end_turn") -> dict[str, Any]:
    """An answer in the form of Anthropic's messages."""
    content = [] if text is None else [{"type": "text", "text": text}]
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": content} | {
        "stop_reason": ended,
        "stop_sequence": None,
        "usage": usage,
    }


GOOD = {"openai": Answer(chat()), "anthropic": Answer(message())}


def request(
    prompt: str = "Summarise: he fixed login.py.",
    *,
    context: AssembledContext | None = None,
    timeout: float = 30.0,
    model: str = "",
) -> SummaryRequest:
    return SummaryRequest(
        prompt=prompt,
        messages=(),
        instruction="Summarize.",
        max_tokens=500,
        context=context,
        timeout=timeout,
        model=model,
    )


def summarizer(
    url: str,
    api: str = "openai",
    waits: list[float] | None = None,
    *,
    chance: float = 1.0,
    otherwise: str = "",
    **fields: Any,
) -> EndpointSummarizer:
    """An endpoint at that address, which does not really wait: `waits` has how long it would have.

    `otherwise` is the model that `compaction.model` names.
    """
    endpoint = ModelEndpoint(**{"api": api, "model": "m", "base_url": url, **fields})
    pause = waits.append if waits is not None else lambda _seconds: None
    return EndpointSummarizer("fast", endpoint, otherwise, RetryTiming(pause, lambda: chance))
