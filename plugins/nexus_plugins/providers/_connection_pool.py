"""Connections to endpoints, which all providers and summarizers of the process share.

A connection serves one request at a time and is kept open for the next one to the same server, with the same
certificates and the same proxy. It holds no key, cookie or other header: each request brings its own.
"""

from __future__ import annotations

import atexit
import os
import socket
import time
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from nexus_core.plugin.settings import is_encrypted

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping

    import httpx2

    from nexus_core.plugin import CancelSignal

CONNECT_SECONDS = 10.0
"""Timeout of the connection in seconds."""
MAX_IDLE_SECONDS = 30.0
"""An idle connection is not used after that time; servers and firewalls forget one after about a minute."""
MAX_IDLE_CONNECTIONS = 64
"""Idle connections that are kept in all, those used last."""
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")
_PROXY_VARIABLES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")


class ConnectionKey(NamedTuple):
    """Requests with equal keys can use the same connection.

    Attributes:
        server: Scheme, host and port.
        encrypted: Whether the connection is encrypted; others ignore the environment.
        certificates: The environment variables about certificates.
        proxies: The environment variables about proxies.
    """

    server: tuple[str, str | None, int | None]
    encrypted: bool
    certificates: tuple[str | None, ...]
    proxies: tuple[str | None, ...]


class EndpointConnection:
    """A client with one connection, used by one request at a time.

    Attributes:
        key: What it can be used for.
        idle_since: When its last request ended, on the monotonic clock.
        is_reused: True if the last request was sent over a connection that was open before.
        has_answered: True if the last request got a response.

    Args:
        key: What it can be used for.
    """

    def __init__(self, key: ConnectionKey) -> None:
        import httpx2

        self.key = key
        self.idle_since = 0.0
        self.is_reused = self.has_answered = False
        self._client = httpx2.Client(
            follow_redirects=False,
            trust_env=key.encrypted,
            verify=get_ssl_context(encrypted=key.encrypted),
            limits=httpx2.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=MAX_IDLE_SECONDS),
            cookies=_refuse_cookies(),
        )
        self._streams: list[Any] = []
        self._parser: Any = None

    @property
    def is_clean(self) -> bool:
        """True if nothing was received after the last response, which would be taken for the next one."""
        # What arrives later makes the socket readable, and httpcore2 does not use such a connection again.
        return self._parser is not None and not self._parser.trailing_data[0]

    def send(
        self, url: str, body: bytes, headers: Mapping[str, str], seconds: float, cancel: CancelSignal
    ) -> httpx2.Response:
        """Send a request and return the response, whose body is not read yet.

        Args:
            url: The address.
            body: The body.
            headers: All headers.
            seconds: The longest silence, and the time to connect.
            cancel: When it is set while the connection is being made, the request is not sent.
        """
        import httpx2

        self.is_reused, self.has_answered, self._parser = True, False, None

        def note_connection(name: str, info: Mapping[str, Any]) -> None:
            if name.endswith("connect_tcp.started"):
                self.is_reused = False
                self._streams = []
            elif name.endswith(("connect_tcp.complete", "start_tls.complete")):
                self._streams.append(info["return_value"])
                if cancel.is_set:
                    self.shut()

        request = self._client.build_request(
            "POST",
            url,
            content=body,
            headers=headers,
            timeout=httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
            extensions={"trace": note_connection},
        )
        response = self._client.send(request, stream=True)
        self.has_answered = True
        self._parser = _find_parser(response)
        return response

    def shut(self) -> None:
        """End the connection at once, from any thread. A thread that reads from it gets an error."""
        for stream in self._streams:
            with suppress(Exception):  # it may be closed already
                stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it. The thread that uses it calls this, or the one that has taken it."""
        self._client.close()


class ConnectionPool:
    """Idle connections, for all threads of the process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[EndpointConnection] = []  # those used last at the end

    def acquire(self, url: str) -> EndpointConnection:
        """Return an idle connection to the server of an address, or a new one."""
        key = build_connection_key(url)
        oldest = time.monotonic() - MAX_IDLE_SECONDS
        with self._lock:
            found = next((each for each in reversed(self._idle) if each.key == key), None)
            expired = [each for each in self._idle if each.idle_since < oldest and each is not found]
            self._idle = [each for each in self._idle if each is not found and each not in expired]
        _close_all(expired)
        return EndpointConnection(key) if found is None else found

    def release(self, connection: EndpointConnection) -> None:
        """Keep a connection for the next request."""
        connection.idle_since = time.monotonic()
        with self._lock:
            self._idle.append(connection)
            surplus = self._idle[:-MAX_IDLE_CONNECTIONS]
            self._idle = self._idle[-MAX_IDLE_CONNECTIONS:]
        _close_all(surplus)

    def close_idle(self) -> None:
        """Close all connections that no request uses. Others are kept when their requests have ended."""
        with self._lock:
            idle, self._idle = self._idle, []
        _close_all(idle)

    def forget_all(self) -> None:
        """Close the copies of a forked process, which must not use the connections of its parent."""
        self._lock = Lock()  # another thread of the parent may have held it
        idle, self._idle = self._idle, []
        _close_all(idle)


def _close_all(connections: list[EndpointConnection]) -> None:
    for connection in connections:
        with suppress(Exception):  # the server may have closed it in any way
            connection.close()


CONNECTIONS = ConnectionPool()
atexit.register(CONNECTIONS.close_idle)
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=CONNECTIONS.forget_all)


class ConnectionLease:
    """The use of a connection by one request, which a signal can end.

    Args:
        connection: The connection.
    """

    def __init__(self, connection: EndpointConnection) -> None:
        self._connection = connection
        self._lock = Lock()
        self._is_ended = self._is_released = False

    def end(self) -> None:
        """Shut the connection, unless it is released already and may serve another request."""
        with self._lock:
            if not self._is_released:
                self._is_ended = True
                self._connection.shut()

    def release(self) -> bool:
        """Release the connection; return True if it can be used again."""
        with self._lock:
            self._is_released = True
            return not self._is_ended


@contextmanager
def open_response(
    url: str, body: bytes, headers: Mapping[str, str], seconds: float, cancel: CancelSignal
) -> Iterator[httpx2.Response]:
    """Send a POST request over a shared connection, and yield the response. Errors are those of httpx2.

    If the server has closed an idle connection at the same moment, the request is sent again over a new one.

    Args:
        url: The address.
        body: The body.
        headers: All headers.
        seconds: The longest silence, and the time to connect.
        cancel: Ends the connection, from any thread.
    """
    import httpx2

    connection = CONNECTIONS.acquire(url)
    try:
        with _lease(connection, cancel), closing(connection.send(url, body, headers, seconds, cancel)) as response:
            yield response
            return
    except (httpx2.NetworkError, httpx2.RemoteProtocolError):
        # A response that breaks off is the caller's to handle.
        if not connection.is_reused or connection.has_answered or cancel.is_set:
            raise
    connection = EndpointConnection(connection.key)
    with _lease(connection, cancel), closing(connection.send(url, body, headers, seconds, cancel)) as response:
        yield response


@contextmanager
def _lease(connection: EndpointConnection, cancel: CancelSignal) -> Iterator[None]:
    """Let a signal shut a connection meanwhile; keep the connection afterwards if nothing went wrong."""
    lease = ConnectionLease(connection)
    can_keep = False
    cancel.on_cancel(lease.end)
    try:
        yield
        can_keep = True
    finally:
        cancel.forget(lease.end)
        # The signal may have called `end` at this very moment.
        if lease.release() and can_keep and connection.is_clean:
            CONNECTIONS.release(connection)
        else:
            connection.close()


def _find_parser(response: httpx2.Response) -> Any:  # noqa: ANN401 - an `h11.Connection`, or None
    """Return the HTTP parser of a response; None if it cannot be found, so that its connection is not kept.

    httpx2 has no public way to it. Each stream wraps the next, and the last one names its connection.
    """
    stream: Any = response.stream
    while stream is not None and not hasattr(stream, "_connection"):
        stream = getattr(stream, "_httpcore_stream", None) or getattr(stream, "_stream", None)
    return getattr(getattr(stream, "_connection", None), "_h11_state", None)


def build_connection_key(url: str) -> ConnectionKey:
    """Return what a connection to the server of an address depends on."""
    parts = urlsplit(url)
    encrypted = is_encrypted(url)
    certificates = tuple(os.environ.get(name) if encrypted else None for name in _CERTIFICATE_VARIABLES)
    proxies = tuple(
        os.environ.get(name) if encrypted else None for each in _PROXY_VARIABLES for name in (each, each.lower())
    )
    return ConnectionKey((parts.scheme, parts.hostname, parts.port), encrypted, certificates, proxies)


def get_ssl_context(*, encrypted: bool) -> ssl.SSLContext:
    """Return the TLS settings of a connection, the same for all clients, agents and threads.

    Loading the certificate authorities takes longer than all else that a client does before it connects.

    Args:
        encrypted: False for a connection without TLS, whose settings trust no authority at all.
    """
    return _load_ssl_context(
        encrypted, *(os.environ.get(name) if encrypted else None for name in _CERTIFICATE_VARIABLES)
    )


@lru_cache(maxsize=8)
def _load_ssl_context(encrypted: bool, *_variables: str | None) -> ssl.SSLContext:
    import ssl

    import httpx2

    return httpx2.create_ssl_context() if encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _refuse_cookies() -> Any:  # noqa: ANN401 - a cookie jar, whose module is slow to import
    """Return a cookie jar that stays empty, so that no request carries what a server has set for another."""
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))
