"""Signing in to servers over HTTP (OAuth), by the flow of the official SDK.

`nexus mcp login` runs the whole flow: discovery, registration, a page that the user opens, and the exchange of the code
for tokens. The tokens are stored in the user's own directory, readable by the user only. A connection uses and renews
what is stored; it never starts the flow, registers anything or opens a browser. Processes renew one after the other,
and each looks first for what another has stored: most servers accept a refresh token once.
"""

from __future__ import annotations

import html
import logging
import os
import re
import secrets
import time
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from anyio.abc import SocketAttribute
from mcp.client.auth import OAuthClientProvider, OAuthRegistrationError, OAuthTokenError
from mcp.client.streamable_http import MCP_SESSION_ID
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import BaseModel, ValidationError

from nexus_core import FileError, NexusError, __version__
from nexus_core.plugin.files import file_lock, read_bytes, write_text_atomically
from nexus_plugins.mcp._errors import ServerError
from nexus_plugins.mcp._launch import LOOPBACK_HOSTS, find_token_lock
from nexus_plugins.mcp._transport import TransportState, open_http_client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from pathlib import Path

    from anyio.abc import SocketStream

    from nexus_plugins.mcp._launch import ServerLaunch

CALLBACK_PATH = "/callback"
LOOPBACK = "127.0.0.1"
LEEWAY_SECONDS = 30
"""A token is renewed so long before it expires, because a request takes a while."""
MAX_REQUEST_BYTES = 16 * 1024
_VISIBLE_ASCII = re.compile(r"[!-~]+")
_ADVICE = 'put a token into its headers: "Authorization": "Bearer ${NAME}"'
MAX_CALLBACK_SECONDS = 10
"""Seconds for a browser to send its request; another connection is served meanwhile."""

# The SDK logs failed flows with what the server sent, which may hold a token.
logging.getLogger("mcp.client.auth").propagate = False
logging.getLogger("mcp.client.auth").addHandler(logging.NullHandler())


class StoredLogin(BaseModel):
    """The content of a token file.

    Attributes:
        server: The name of the server.
        url: Its address; tokens are used for no other.
        tokens: The tokens that the authorization server issued.
        expires_at: When the access token expires, in seconds since 1970; None if that is unknown.
        client: How Nexus is registered with the authorization server.
        metadata: The endpoints of the authorization server.
        resource: What the server says about itself as a protected resource.
    """

    server: str
    url: str
    tokens: OAuthToken | None = None
    expires_at: float | None = None
    client: OAuthClientInformationFull | None = None
    metadata: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None


class TokenFile:
    """Stores the tokens of one server in a file that only the user can read. Implements the SDK's `TokenStorage`.

    Args:
        path: The file.
        name: The name of the server.
        url: Its address.
        remember: Called with each token, so that error messages do not repeat it.
    """

    def __init__(self, path: Path, name: str, url: str, remember: Callable[[str], None] = lambda _: None) -> None:
        self._path = path
        self._remember = remember
        self.login = StoredLogin(server=name, url=url)

    def load(self) -> bool:
        """Read the file. Return False if there is none, or if it cannot be used."""
        try:
            data = read_bytes(self._path)
            stored = None if data is None else StoredLogin.model_validate_json(data)
        except (FileError, ValidationError):
            return False
        if stored is None or stored.url != self.login.url or not _are_usable(stored.tokens):
            return False
        self.login = stored
        self._remember_tokens()
        return True

    def save(self) -> None:
        """Write the file, with permissions for the user only.

        Raises:
            FileError: It cannot be written.
        """
        self._make_directory()
        write_text_atomically(self._path, self.login.model_dump_json(exclude_none=True))

    @property
    def is_stored(self) -> bool:
        """True if there is a file; `nexus mcp logout` deletes it."""
        return self._path.exists()

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Hold the lock of the file across processes: a refresh token may be valid only once.

        Raises:
            FileError: Another process holds it for ten seconds, or it cannot be created.
        """
        self._make_directory()
        with ExitStack() as stack:  # a cancelled wait ends with the lock taken, and the stack gives it back
            held = file_lock(find_token_lock(self._path))
            await anyio.to_thread.run_sync(stack.enter_context, held)
            yield

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens."""
        return self.login.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store new tokens at once, because the old refresh token may no longer be valid.

        Raises:
            OAuthTokenError: A token is empty or not visible ASCII. An error about such a header would show it.
        """
        if not _are_usable(tokens):
            raise OAuthTokenError("a token cannot be sent in a header")
        self.login.tokens = tokens
        self.login.expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        self._remember_tokens()
        self.save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return how Nexus is registered."""
        return self.login.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store how Nexus is registered; it is written with the tokens."""
        self.login.client = client_info
        if client_info.client_secret:
            self._remember(client_info.client_secret)

    def _make_directory(self) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot write: {error.strerror}", where=str(self._path)) from error

    def _remember_tokens(self) -> None:
        tokens, client = self.login.tokens, self.login.client
        found = [tokens.access_token, tokens.refresh_token] if tokens else []
        for each in (*found, client.client_secret if client else None):
            if each:
                self._remember(each)


def _are_usable(tokens: OAuthToken | None) -> bool:
    """Return True if tokens can be sent in a header: visible ASCII."""
    if tokens is None:
        return False
    found = [tokens.access_token, *([] if tokens.refresh_token is None else [tokens.refresh_token])]
    return all(_VISIBLE_ASCII.fullmatch(each) for each in found)


def _build_client_metadata(redirect: str) -> OAuthClientMetadata:
    return OAuthClientMetadata.model_validate(
        {
            "client_name": "Nexus",
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
    )


class StoredTokenAuth(OAuthClientProvider):
    """Adds the stored token to requests and renews it. What needs the user is left to `nexus mcp login`."""

    def __init__(self, storage: TokenFile) -> None:
        self._storage = storage
        super().__init__(storage.login.url, _build_client_metadata(f"http://{LOOPBACK}{CALLBACK_PATH}"), storage)

    async def _initialize(self) -> None:
        await super()._initialize()
        login, context = self._storage.login, self.context
        # The SDK does not store these; without them a token would never be renewed, or at the wrong address.
        context.oauth_metadata, context.protected_resource_metadata = login.metadata, login.resource
        context.token_expiry_time = None if login.expires_at is None else login.expires_at - LEEWAY_SECONDS

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        try:
            return await super()._handle_refresh_response(response)
        except OAuthTokenError:
            self.context.clear_tokens()
            return False

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        async with self.context.lock:
            if not self._initialized:
                await self._initialize()
            is_renewed = False
            if not self.context.is_token_valid():
                async with self._storage.lock():
                    await self._reload()
                    if not self.context.is_token_valid() and self.context.can_refresh_token():
                        is_renewed = await self._handle_refresh_response((yield await self._refresh_token()))
            if self.context.is_token_valid():
                self._add_auth_header(request)
            response = yield request
            is_refused = response.status_code == httpx2.codes.UNAUTHORIZED
            if not is_refused or is_renewed or not self.context.can_refresh_token():
                return
            refused = self.context.current_tokens
            async with self._storage.lock():
                await self._reload()
                is_renewed = self.context.current_tokens != refused and self.context.is_token_valid()
                if not is_renewed and self.context.can_refresh_token():
                    is_renewed = await self._handle_refresh_response((yield await self._refresh_token()))
            if is_renewed:
                self._add_auth_header(request)
            # In any case: what is sent last is taken for the server's answer, and that must not be the token's.
            yield request

    async def _reload(self) -> None:
        """Take over the tokens of the file, which another process may have renewed, or deleted to log out."""
        if self._storage.load():
            await self._initialize()
        elif not self._storage.is_stored:
            self.context.clear_tokens()


class LoginAuth(OAuthClientProvider):
    """The SDK's complete flow, which stores what a connection needs to renew the tokens."""

    def __init__(
        self,
        storage: TokenFile,
        listener: CallbackListener,
        show: Callable[[str], None],
    ) -> None:
        self._storage = storage
        self._listener = listener
        self._show = show
        self.has_signed_in = False
        metadata = _build_client_metadata(listener.url)
        super().__init__(storage.login.url, metadata, storage, self._redirect, listener.wait)

    @property
    def has_found_metadata(self) -> bool:
        """True if the server, or one that it names, describes how to sign in."""
        return self.context.oauth_metadata is not None or self.context.protected_resource_metadata is not None

    async def _redirect(self, url: str) -> None:
        parts, login = urlsplit(url), self._storage.login
        # A server elsewhere must not send the browser to a program on this machine.
        is_local = {parts.hostname, urlsplit(login.url).hostname} <= LOOPBACK_HOSTS
        if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
            what = "cannot be signed in to: its page for signing in is not encrypted"
            raise ServerError(login.server, what, hint=_ADVICE)
        self._listener.state = parse_qs(parts.query).get("state", [""])[-1]
        self._show(url)

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        self._storage.login.metadata = self.context.oauth_metadata
        self._storage.login.resource = self.context.protected_resource_metadata
        async with self._storage.lock():  # a connection that is renewing the older tokens must not store them later
            await super()._handle_token_response(response)
        self.has_signed_in = True


class CallbackListener:
    """Waits on the loopback interface for the browser to come back from the page for signing in.

    Attributes:
        url: The address to which the page sends the browser.
        state: The value by which the browser proves that it comes from that page; "" before there is a page.
    """

    def __init__(self, name: str, port: int) -> None:
        self._name = name
        self._port = port
        self.url = f"http://{LOOPBACK}:{port}{CALLBACK_PATH}"
        self.state = ""
        self._found: list[AuthorizationCodeResult | ServerError] = []
        self._ready = anyio.Event()

    async def wait(self) -> AuthorizationCodeResult:
        """Return the code that the browser brings.

        Raises:
            ServerError: The user or the authorization server refused.
        """
        await self._ready.wait()
        found = self._found[0]
        if isinstance(found, ServerError):
            raise found
        return found

    async def serve(self, stream: SocketStream) -> None:
        """Answer one request of a browser."""
        with anyio.move_on_after(MAX_CALLBACK_SECONDS):
            async with stream:
                try:
                    request = await _read_request(stream)
                    status, text = self._take(request)
                    await stream.send(_format_page(status, text))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError):
                    return

    def _take(self, request: str) -> tuple[str, str]:
        method, _, rest = request.partition(" ")
        parts = urlsplit(rest.partition(" ")[0])
        if method != "GET" or parts.path != CALLBACK_PATH:
            return "404 Not Found", "There is nothing here."
        fields = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if self._found or not fields.keys() & {"code", "error"}:
            return "400 Bad Request", "There is nothing to do here."
        if not self.state or not secrets.compare_digest(fields.get("state", "").encode(), self.state.encode()):
            return "400 Bad Request", "This page belongs to another attempt to sign in."
        if "error" in fields:
            what = f"was not signed in to: {fields['error'][:100]!r}"
            self._found.append(ServerError(self._name, what, hint=f"try `nexus mcp login {self._name}` again"))
            text = "Signing in was refused. You can close this page."
        else:
            result = AuthorizationCodeResult(code=fields["code"], state=fields.get("state"), iss=fields.get("iss"))
            self._found.append(result)
            text = "Go back to the terminal. You can close this page."
        self._ready.set()
        return "200 OK", text


async def _read_request(stream: SocketStream) -> str:
    """Return the first line of a request, once its headers are complete or too long."""
    data = b""
    while b"\r\n\r\n" not in data and len(data) < MAX_REQUEST_BYTES:
        data += await stream.receive()
    return data.partition(b"\r\n")[0].decode("ascii", "replace")


def _format_page(status: str, text: str) -> bytes:
    body = f"<!doctype html><meta charset=utf-8><title>Nexus</title><p>{html.escape(text)}</p>".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode() + body


@asynccontextmanager
async def listen_for_callback(name: str, port: int = 0) -> AsyncIterator[CallbackListener]:
    """Listen on the loopback interface for the end of signing in.

    Args:
        name: The name of the server, for errors.
        port: The port; 0 for any that is free.

    Raises:
        ServerError: The port is in use.
    """
    try:
        multi = await anyio.create_tcp_listener(local_host=LOOPBACK, local_port=port)
    except OSError as error:
        what = f"cannot be signed in to: port {port} cannot be used ({os.strerror(error.errno or 0)})"
        raise ServerError(name, what, hint="leave out --port") from None
    async with multi, anyio.create_task_group() as tasks:
        address = multi.extra(SocketAttribute.local_address)  # noqa: S610 - of anyio, not of Django
        listener = CallbackListener(name, int(address[1]))
        tasks.start_soon(multi.serve, listener.serve)
        try:
            yield listener
        finally:
            tasks.cancel_scope.cancel()


async def sign_in(launch: ServerLaunch, show: Callable[[str], None], *, port: int, seconds: float) -> bool:
    """Sign in to a server and store its tokens. Return False if it does not ask for that.

    Args:
        launch: The server, which the user has approved.
        show: Shows the address of the page for signing in.
        port: The port to which the page sends the browser; 0 for any that is free.
        seconds: The longest wait for the user.

    Raises:
        ServerError: Signing in failed, was refused, or took too long. No message has a token.
        FileError: The tokens cannot be stored.
    """
    if launch.token_file is None:
        raise ServerError(launch.name, "has a header Authorization of its own", hint="remove that header to sign in")
    state = TransportState(launch)
    storage = TokenFile(launch.token_file, launch.name, launch.url, state.add_token)
    auth: LoginAuth | None = None
    try:
        with anyio.fail_after(seconds):
            async with listen_for_callback(launch.name, port) as listener:
                auth = LoginAuth(storage, listener, show)
                async with open_http_client(state, auth) as client:
                    status = await _send_first_message(client, launch)
    except TimeoutError:
        hint = "open the page that is printed; --timeout gives you more time"
        raise ServerError(launch.name, f"was not signed in to within {seconds:g} seconds", hint=hint) from None
    except BaseExceptionGroup as group:
        offers_oauth = auth is None or auth.has_found_metadata
        raise _explain_failure(launch.name, _unwrap(group), offers_oauth=offers_oauth) from None
    if status >= httpx2.codes.BAD_REQUEST:
        raise ServerError(launch.name, f"responds with HTTP {status}", hint="check its address")
    return auth.has_signed_in


async def _send_first_message(client: httpx2.AsyncClient, launch: ServerLaunch) -> int:
    """Send what a server answers only to those who have signed in, and return the HTTP status."""
    if launch.is_stream:
        async with client.stream("GET", launch.url, headers={"Accept": "text/event-stream"}) as response:
            return int(response.status_code)
    params = {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "nexus", "version": __version__},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    headers = {"Accept": "application/json, text/event-stream"}
    async with client.stream("POST", launch.url, json=message, headers=headers) as response:
        status, session = int(response.status_code), response.headers.get(MCP_SESSION_ID)
    if session:
        with suppress(httpx2.HTTPError):
            await client.delete(launch.url, headers={MCP_SESSION_ID: session})
    return status


def _explain_failure(name: str, error: BaseException, *, offers_oauth: bool) -> BaseException:
    """Return why signing in failed, without anything that the servers sent."""
    if isinstance(error, NexusError) or not isinstance(error, Exception):
        return error
    what = "an answer of its authorization server cannot be used"
    if isinstance(error, OAuthRegistrationError) and not offers_oauth:
        return ServerError(name, "cannot be signed in to: it does not offer OAuth", hint=_ADVICE)
    if isinstance(error, OAuthRegistrationError):
        what = "its authorization server does not register Nexus"
    elif isinstance(error, OAuthTokenError):
        what = "its authorization server does not issue a token"
    elif isinstance(error, httpx2.TransportError):
        what = "it or its authorization server cannot be reached"
    return ServerError(name, f"cannot be signed in to: {what}", hint=f"try again, or {_ADVICE}")


def _unwrap(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
