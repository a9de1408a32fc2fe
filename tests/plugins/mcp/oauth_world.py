# ruff: noqa: ARG002 - the SDK passes more than is needed here
"""An authorization server and an MCP server of the official SDK, on the loopback interface, in this process."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

LIFETIME = 3600


class Issuer:
    """Registers anyone, asks nobody, and issues tokens. Implements the SDK's provider of an authorization server.

    Attributes:
        lifetime: Seconds for which the next access token is valid.
        issued: All tokens, to look for them where none may be.
        grants: How each token was obtained.
        refuses: True to refuse whoever signs in.
    """

    def __init__(self) -> None:
        self.lifetime = LIFETIME
        self.issued: list[str] = []
        self.grants: list[str] = []
        self.refuses = False
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}

    def forget_access(self) -> None:
        """Accept none of the access tokens any more, as after a restart."""
        self._access.clear()

    def forget_all(self) -> None:
        self._access.clear()
        self._refresh.clear()

    def rotate(self, refresh_token: str) -> OAuthToken:
        """Spend a refresh token as another process would."""
        spent = self._refresh.pop(refresh_token)
        return self._issue("refresh", self._clients[spent.client_id], spent.scopes)

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self._clients[str(client_info.client_id)] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.refuses:
            return construct_redirect_uri(str(params.redirect_uri), error="access_denied", state=params.state)
        code = secrets.token_urlsafe(24)
        self._codes[code] = AuthorizationCode(
            code=code,
            client_id=str(client.client_id),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        del self._codes[authorization_code.code]
        return self._issue("code", client, authorization_code.scopes)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self._refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        if self._refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        return self._issue("refresh", client, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self._access.get(token)

    async def revoke_token(self, token: Any) -> None:
        self._access.pop(token.token, None)

    async def exchange_identity_assertion(self, client: Any, params: Any) -> OAuthToken:
        raise TokenError("unsupported_grant_type")

    def _issue(self, grant: str, client: Any, scopes: list[str]) -> OAuthToken:
        access, refresh = (secrets.token_hex(24) for _ in range(2))
        name = str(client.client_id)
        # The server itself does not look at the time, so that a test decides when a token is refused.
        self._access[access] = AccessToken(token=access, client_id=name, scopes=scopes, expires_at=None)
        self._refresh[refresh] = RefreshToken(token=refresh, client_id=name, scopes=scopes)
        self.issued += [access, refresh]
        self.grants.append(grant)
        return OAuthToken(
            access_token=access,
            token_type="Bearer",  # noqa: S106 - the scheme
            expires_in=self.lifetime,
            refresh_token=refresh,
            scope="use",
        )


class OAuthWorld:
    """A running server: its address, and who issues its tokens."""

    def __init__(self, url: str, issuer: Issuer) -> None:
        self.url = url
        self.issuer = issuer


@contextmanager
def signing_in() -> Iterator[OAuthWorld]:
    """A server that asks for signing in, with one tool `add`."""
    issuer = Issuer()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings = AuthSettings.model_validate(
            {
                "issuer_url": origin,
                "resource_server_url": f"{origin}/mcp",
                "required_scopes": ["use"],
                "client_registration_options": ClientRegistrationOptions(
                    enabled=True, valid_scopes=["use"], default_scopes=["use"]
                ),
                "validate_token_resource": False,
            }
        )
        server: MCPServer[Any] = MCPServer("locked", auth_server_provider=issuer, auth=settings)

        @server.tool()
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        config = uvicorn.Config(server.streamable_http_app(), log_config=None, ws="none", timeout_graceful_shutdown=1)
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield OAuthWorld(f"{origin}/mcp", issuer)
        finally:
            running.should_exit = True
            thread.join()
