"""A server of this process, and a client that is written from the specification of JSON-RPC 2.0 alone."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from nexus_core import Nexus
from nexus_core.plugin import Provider
from nexus_core.rpc import AgentPool, RpcServer, SharedComponents
from nexus_core.rpc.server import open_listener


class HttpAnswer(NamedTuple):
    """A response: its status, headers and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RunningServer:
    """A server in another thread, and one connection to it."""

    def __init__(self, server: RpcServer, port: int, thread: threading.Thread) -> None:
        self.server = server
        self.thread = thread
        self.port = port
        self.token = server.token
        self.url = f"http://127.0.0.1:{port}"

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def post(self, body: object, *, method: str = "POST", path: str = "/", **headers: str | None) -> HttpAnswer:
        """Send a request; a header that is None is left out."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        usual: dict[str, str | None] = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
        }
        usual |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = self.connect()
        try:
            has_host = "Host" in usual
            connection.putrequest(method, path, skip_host=has_host, skip_accept_encoding=True)
            for name, value in usual.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(sent)))
            connection.endheaders(sent)
            response = connection.getresponse()
            return HttpAnswer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def call(self, method: str, params: object = None, **fields: Any) -> Any:
        """Call a method, and return the whole response."""
        request = {"jsonrpc": "2.0", "method": method, "id": 1, **fields}
        return self.post(request if params is None else request | {"params": params}).json

    def result(self, method: str, **params: Any) -> Any:
        return self.call(method, params)["result"]

    def send(self, agent: str, message: object) -> list[Any]:
        """Send a message, and return all messages of the stream."""
        params = {"agent_id": agent, "message": message}
        request = {"jsonrpc": "2.0", "method": "send", "id": "s", "params": params}
        answer = self.post(request, Accept="text/event-stream")
        assert answer.headers["content-type"].startswith("text/event-stream"), answer
        lines = answer.body.decode().split("\n\n")
        return [json.loads(each.removeprefix("data: ")) for each in lines if each.startswith("data: ")]

    def stop(self) -> None:
        self.server.stop()


@contextmanager
def running_server(nexus: Nexus, provider: Provider | None, **shared: Any) -> Iterator[RunningServer]:
    """Serve a pool in another thread until the end of the block."""
    listener = open_listener(0)
    port = listener.getsockname()[1]
    made: list[RpcServer] = []
    failures: list[BaseException] = []
    ready = threading.Event()

    async def main() -> None:
        pool = AgentPool(SharedComponents(nexus=nexus, provider=provider, mode="server", **shared))
        made.append(RpcServer(pool))
        ready.set()
        await made[0].serve(listener)

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 - raised in the test
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(60)
        assert made, failures
        yield RunningServer(made[0], port, thread)
    finally:
        for server in made:
            server.stop()
        thread.join(60)
        listener.close()
    assert not thread.is_alive()
    assert not failures
