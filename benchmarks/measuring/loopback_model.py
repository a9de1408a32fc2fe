"""A model server on the loopback interface that answers every call with the same reply."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler


class LoopbackModel(BaseHTTPRequestHandler):
    """Answers every chat completion at once, in three pieces."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Stream a reply."""
        self.rfile.read(int(self.headers["Content-Length"]))
        pieces = [{"role": "assistant", "content": "Hello"}, {"content": " there"}, {}]
        choices = [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"} for delta in pieces]
        chunk = {"id": "r1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
        sent = "".join(f"data: {json.dumps(chunk | {'choices': [choice]})}\n\n" for choice in choices)
        body = (sent + "data: [DONE]\n\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""
