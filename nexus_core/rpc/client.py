"""Client and AsyncClient: the methods of a running `nexus serve` from Python."""

from __future__ import annotations

import json
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from nexus_core.config.durations import require_seconds
from nexus_core.errors import MissingExtraError, UsageError
from nexus_core.files.places import find_nexus_home
from nexus_core.rpc.protocol import (
    EVENT_METHOD,
    RpcConnectionError,
    RpcError,
    RpcTokenError,
    RpcTurnError,
    build_call,
    build_client_error,
    encode_json,
    read_result,
)
from nexus_core.rpc.server_file import ServerAddress, read_server_file
from nexus_core.types.plugins import Extra

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Unpack

    import httpx2

    from nexus_core.rpc.dispatcher import AgentOptions

    CallParams = Mapping[str, Any] | Sequence[Any] | None

SERVE_EXTRA = Extra("serve", modules=("httptools", "httpx2", "starlette", "uvicorn"))
_CONNECT_SECONDS = 5.0
_EVENT_STREAM = "text/event-stream"
_STREAM_HEADERS = {"Accept": _EVENT_STREAM}


class _BaseClient:
    """Base of Client and AsyncClient: the address, the numbers of requests, and the reading of responses.

    A subclass sends `content` to the server, and passes each response on. Arguments are those of `Client`.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        timeout: float | None = 60.0,
    ) -> None:
        seconds = None if timeout is None else require_seconds(timeout, "timeout")
        self._address = _find_address(url, token, home)
        if find_spec("httpx2") is None:
            raise MissingExtraError("rpc", SERVE_EXTRA)
        self._open_http(_build_options(self._address, seconds))
        self._ids = count(1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._address.url!r})"

    def _open_http(self, options: dict[str, Any]) -> None:
        """Set `_http` to a client of httpx2 with these options. Connects to nothing yet."""
        raise NotImplementedError

    def _number(self, method: str, params: CallParams) -> dict[str, Any]:
        """Return a call with the next number, so that it has a response."""
        return build_call(method, params, next(self._ids))

    def _number_all(self, calls: Sequence[tuple[str, CallParams]]) -> list[dict[str, Any]]:
        return [self._number(method, params) for method, params in calls]

    @contextmanager
    def _connection_errors(self) -> Iterator[None]:
        """Raise an RpcConnectionError for one of HTTP."""
        import httpx2

        try:
            yield
        except httpx2.TransportError as error:
            what = f"the server does not answer: {str(error) or type(error).__name__}"
            raise RpcConnectionError(what, where=self._address.url, hint="`nexus serve` starts one") from None

    def _read_body(self, response: httpx2.Response) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON of a response; None for the one to a notification."""
        self._check_status(response)
        if not response.content:
            return None
        try:
            return json.loads(response.content)
        except ValueError:
            raise RpcError("the server's response is not JSON", where=str(response.url)) from None

    def _check_status(self, response: httpx2.Response) -> None:
        """Raise if the server has refused the request before looking at it."""
        if response.status_code in {200, 204, 413}:
            return
        if response.status_code == 401:  # noqa: PLR2004 - HTTP's
            raise RpcTokenError(
                "the server does not accept the token",
                where=self._address.url,
                hint="was it started again? read its file again",
            )
        raise RpcError(f"the server answered with HTTP status {response.status_code}", where=self._address.url)

    def _has_events(self, response: httpx2.Response) -> bool:
        """Return True if a response is a stream of events, False if it is the response itself."""
        self._check_status(response)
        return str(response.headers.get("content-type", "")).startswith(_EVENT_STREAM)


class Client(_BaseClient):
    """The methods of a running server. Use it in a `with` block, or close it; safe to use from several threads.

    Args:
        url: The server's address; None for that in the file of the running server.
        token: Its token; None for that in the file.
        home: The Nexus home with that file; None for the user's own.
        timeout: Seconds without a byte from the server; None for no limit. A turn sends a byte every 15 seconds.

    Raises:
        RpcConnectionError: No server is running.
        UsageError: The address or the token cannot be one.
        MissingExtraError: httpx2 is not installed.
    """

    _http: httpx2.Client

    def _open_http(self, options: dict[str, Any]) -> None:
        import httpx2

        self._http = httpx2.Client(**options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The server and its turns go on."""
        self._http.close()

    # ---- requests ---------------------------------------------------------------------------------------------------

    def call(self, method: str, params: CallParams = None) -> Any:  # noqa: ANN401 - JSON
        """Call a method and return its result.

        Raises:
            RpcError: The method fails; the subclass says why.
        """
        return read_result(self._post(self._number(method, params)))

    def notify(self, method: str, params: CallParams = None) -> None:
        """Call a method without waiting for its end. Its errors are not reported."""
        self._post(build_call(method, params, None))

    def call_batch(self, calls: Sequence[tuple[str, CallParams]]) -> list[Any]:
        """Call methods in one request, one after the other. Return their results; an `RpcError` for one that failed."""
        if not calls:
            return []
        batch = self._number_all(calls)
        return _read_batch(batch, self._post(batch))

    def stream(self, method: str, params: CallParams = None) -> Iterator[dict[str, Any]]:
        """Call `send` or `resume` and yield the events of the turn. The turn goes on if they are not read."""
        content = _encode_body(self._number(method, params))
        with (
            self._connection_errors(),
            self._http.stream("POST", "/", content=content, headers=_STREAM_HEADERS) as response,
        ):
            if not self._has_events(response):
                response.read()
                read_result(self._read_body(response))
                return
            for line in response.iter_lines():
                if (event := _read_line(line)) is not None:
                    yield event

    def _post(self, body: object) -> Any:  # noqa: ANN401 - JSON
        with self._connection_errors():
            response = self._http.post("/", content=_encode_body(body))
        return self._read_body(response)

    # ---- methods ----------------------------------------------------------------------------------------------------

    def create_agent(self, agent_id: str | None = None, **options: Unpack[AgentOptions]) -> dict[str, Any]:
        """Create an agent, as `Dispatcher.create_agent` does."""
        return _object(self.call("create_agent", {"agent_id": agent_id, **options}))

    def list_agents(self) -> list[dict[str, Any]]:
        """Return what is known of each agent."""
        return list(self.call("list_agents"))

    def destroy_agent(self, agent_id: str) -> list[str]:
        """End an agent and its workers, and return their ids."""
        return list(self.call("destroy_agent", {"agent_id": agent_id})["destroyed"])

    def send(self, agent_id: str, message: object, *, delivery: str = "queue") -> Iterator[dict[str, Any]]:
        """Send a message and yield the events of its turn. Nothing is sent before the first event is asked for.

        Args:
            agent_id: The agent.
            message: A text, or a user message or its parts in any API's format.
            delivery: `queue`, `steer` or `interrupt`, if a turn is running.
        """
        return self.stream("send", {"agent_id": agent_id, "message": message, "delivery": delivery})

    def answer(self, agent_id: str, message: object, *, delivery: str = "queue") -> str:
        """Send a message and return the text of the final reply.

        Raises:
            RpcTurnError: The turn was cancelled.
        """
        last: dict[str, Any] | None = None
        for event in self.send(agent_id, message, delivery=delivery):
            last = event
        return _read_reply(agent_id, last)

    def resume(self, agent_id: str) -> Iterator[dict[str, Any]]:
        """Continue the open turn of an agent, and yield its events."""
        return self.stream("resume", {"agent_id": agent_id})

    def cancel(self, agent_id: str) -> bool:
        """End the running turn of an agent; False if none was running."""
        return bool(self.call("cancel", {"agent_id": agent_id})["cancelled"])

    def answer_permission(self, agent_id: str, question: str, *, allow: bool) -> None:
        """Let a tool call run that waits for permission, or refuse it. The event `permission` has the question's id."""
        self.call("answer_permission", {"agent_id": agent_id, "question": question, "allow": allow})

    def get_tokens(self, agent_id: str) -> dict[str, Any]:
        """Return the tokens of what an agent would send now."""
        return _object(self.call("get_tokens", {"agent_id": agent_id}))

    def get_context(self, agent_id: str) -> dict[str, Any]:
        """Return what an agent would send now."""
        return _object(self.call("get_context", {"agent_id": agent_id}))

    def get_messages(self, agent_id: str, *, offset: int = 0, limit: int = 100) -> dict[str, Any]:
        """Return messages of an agent since its latest summary."""
        return _object(self.call("get_messages", {"agent_id": agent_id, "offset": offset, "limit": limit}))

    def compact(self, agent_id: str, focus: str = "") -> dict[str, Any]:
        """Replace earlier turns of an agent by a summary."""
        return _object(self.call("compact", {"agent_id": agent_id, "focus": focus}))

    def fork(self, agent_id: str, name: str) -> dict[str, Any]:
        """Create an agent whose session branches off that of another."""
        return _object(self.call("fork", {"agent_id": agent_id, "name": name}))

    def memory_search(self, text: str, *, agent_id: str | None = None, limit: int = 10) -> list[dict[str, Any]]:
        """Return memories, the best first."""
        found = self.call("memory_search", {"text": text, "agent_id": agent_id, "limit": limit})
        return list(found["memories"])

    def shutdown(self) -> list[str]:
        """End the server, and return the agents whose turns are cancelled."""
        return list(self.call("shutdown")["running"])


class AsyncClient(_BaseClient):
    """The methods of a running server for an asynchronous program: `Client` with `await` and `async for`.

    Args:
        url, token, home, timeout: As for `Client`.
    """

    _http: httpx2.AsyncClient

    def _open_http(self, options: dict[str, Any]) -> None:
        import httpx2

        self._http = httpx2.AsyncClient(**options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. The server and its turns go on."""
        await self._http.aclose()

    # ---- requests ---------------------------------------------------------------------------------------------------

    async def call(self, method: str, params: CallParams = None) -> Any:  # noqa: ANN401 - JSON
        """Call a method and return its result, as `Client.call` does."""
        return read_result(await self._post(self._number(method, params)))

    async def notify(self, method: str, params: CallParams = None) -> None:
        """Call a method without waiting for its end. Its errors are not reported."""
        await self._post(build_call(method, params, None))

    async def call_batch(self, calls: Sequence[tuple[str, CallParams]]) -> list[Any]:
        """Call methods in one request, as `Client.call_batch` does."""
        if not calls:
            return []
        batch = self._number_all(calls)
        return _read_batch(batch, await self._post(batch))

    async def stream(self, method: str, params: CallParams = None) -> AsyncIterator[dict[str, Any]]:
        """Call `send` or `resume` and yield the events of the turn. The turn goes on if they are not read."""
        content = _encode_body(self._number(method, params))
        with self._connection_errors():
            async with self._http.stream("POST", "/", content=content, headers=_STREAM_HEADERS) as response:
                if not self._has_events(response):
                    await response.aread()
                    read_result(self._read_body(response))
                    return
                async for line in response.aiter_lines():
                    if (event := _read_line(line)) is not None:
                        yield event

    async def _post(self, body: object) -> Any:  # noqa: ANN401 - JSON
        with self._connection_errors():
            response = await self._http.post("/", content=_encode_body(body))
        return self._read_body(response)

    # ---- methods ----------------------------------------------------------------------------------------------------

    async def create_agent(self, agent_id: str | None = None, **options: Unpack[AgentOptions]) -> dict[str, Any]:
        """Create an agent, as `Dispatcher.create_agent` does."""
        return _object(await self.call("create_agent", {"agent_id": agent_id, **options}))

    async def list_agents(self) -> list[dict[str, Any]]:
        """Return what is known of each agent."""
        return list(await self.call("list_agents"))

    async def destroy_agent(self, agent_id: str) -> list[str]:
        """End an agent and its workers, and return their ids."""
        return list((await self.call("destroy_agent", {"agent_id": agent_id}))["destroyed"])

    def send(self, agent_id: str, message: object, *, delivery: str = "queue") -> AsyncIterator[dict[str, Any]]:
        """Send a message and yield the events of its turn, as `Client.send` does."""
        return self.stream("send", {"agent_id": agent_id, "message": message, "delivery": delivery})

    async def answer(self, agent_id: str, message: object, *, delivery: str = "queue") -> str:
        """Send a message and return the text of the final reply; the errors are those of `Client`."""
        last: dict[str, Any] | None = None
        async for event in self.send(agent_id, message, delivery=delivery):
            last = event
        return _read_reply(agent_id, last)

    def resume(self, agent_id: str) -> AsyncIterator[dict[str, Any]]:
        """Continue the open turn of an agent, and yield its events."""
        return self.stream("resume", {"agent_id": agent_id})

    async def cancel(self, agent_id: str) -> bool:
        """End the running turn of an agent; False if none was running."""
        return bool((await self.call("cancel", {"agent_id": agent_id}))["cancelled"])

    async def answer_permission(self, agent_id: str, question: str, *, allow: bool) -> None:
        """Let a tool call run that waits for permission, or refuse it, as `Client.answer_permission` does."""
        await self.call("answer_permission", {"agent_id": agent_id, "question": question, "allow": allow})

    async def get_tokens(self, agent_id: str) -> dict[str, Any]:
        """Return the tokens of what an agent would send now."""
        return _object(await self.call("get_tokens", {"agent_id": agent_id}))

    async def get_context(self, agent_id: str) -> dict[str, Any]:
        """Return what an agent would send now."""
        return _object(await self.call("get_context", {"agent_id": agent_id}))

    async def get_messages(self, agent_id: str, *, offset: int = 0, limit: int = 100) -> dict[str, Any]:
        """Return messages of an agent since its latest summary."""
        return _object(await self.call("get_messages", {"agent_id": agent_id, "offset": offset, "limit": limit}))

    async def compact(self, agent_id: str, focus: str = "") -> dict[str, Any]:
        """Replace earlier turns of an agent by a summary."""
        return _object(await self.call("compact", {"agent_id": agent_id, "focus": focus}))

    async def fork(self, agent_id: str, name: str) -> dict[str, Any]:
        """Create an agent whose session branches off that of another."""
        return _object(await self.call("fork", {"agent_id": agent_id, "name": name}))

    async def memory_search(self, text: str, *, agent_id: str | None = None, limit: int = 10) -> list[dict[str, Any]]:
        """Return memories, the best first."""
        found = await self.call("memory_search", {"text": text, "agent_id": agent_id, "limit": limit})
        return list(found["memories"])

    async def shutdown(self) -> list[str]:
        """End the server, and return the agents whose turns are cancelled."""
        return list((await self.call("shutdown"))["running"])


# ---- what both share ------------------------------------------------------------------------------------------------


def _find_address(url: str | None, token: str | None, home: str | os.PathLike[str] | None) -> ServerAddress:
    if url is not None and token is not None:
        return ServerAddress(url, token)
    found = read_server_file(find_nexus_home(Path.cwd()) if home is None else Path(home))
    return found._replace(url=url or found.url, token=token or found.token)


def _build_options(address: ServerAddress, seconds: float | None) -> dict[str, Any]:
    import httpx2

    try:
        url = httpx2.URL(address.url)
    except httpx2.InvalidURL as error:
        raise UsageError(f"the server's address is not a URL: {error}", hint="http://127.0.0.1:8765") from None
    if not address.token.isascii() or not address.token.isprintable():
        raise UsageError("the token has characters that no token has", hint="`nexus serve` prints it")
    return {
        "base_url": url,
        "headers": {"Authorization": f"Bearer {address.token}", "Content-Type": "application/json"},
        "timeout": httpx2.Timeout(seconds, connect=_CONNECT_SECONDS),
        "trust_env": False,  # a proxy must not see the token
        "follow_redirects": False,
    }


def _encode_body(body: object) -> bytes:
    try:
        return encode_json(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the parameters are not JSON: {error}", hint="pass texts, numbers, lists and dicts") from None


def _read_line(line: str) -> dict[str, Any] | None:
    """Return the event in a line of a stream; None for other lines. The final response raises if it is an error."""
    if not line.startswith("data:"):
        return None
    message = json.loads(line[5:])
    if isinstance(message, dict) and message.get("method") == EVENT_METHOD:
        event: dict[str, Any] = message["params"]["event"]
        return event
    read_result(message)
    return None


def _read_reply(agent_id: str, last: dict[str, Any] | None) -> str:
    """Return the text of the final reply from the last event of a turn; raise if the turn has none."""
    if last is None or last["type"] != "done" or last["cancelled"]:
        what = f"the turn of agent {agent_id!r} was cancelled"
        raise build_client_error(RpcTurnError, what, type_name="TurnError", hint="send the message again")
    return str(last["text"])


def _read_batch(batch: Sequence[dict[str, Any]], answer: object) -> list[Any]:
    if not isinstance(answer, list):
        read_result(answer)
        raise RpcError("the server's response to a batch is not an array")
    by_id = {each.get("id"): each for each in answer if isinstance(each, dict)}
    results: list[Any] = []
    for call in batch:
        try:
            results.append(read_result(by_id.get(call["id"])))
        except RpcError as error:
            results.append(error)
    return results


def _object(value: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return dict(value)
