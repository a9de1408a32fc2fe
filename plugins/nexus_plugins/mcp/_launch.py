"""What a server is started with: references looked up, a small environment, an address that may be connected to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.plugin import decide_again
from nexus_plugins.mcp._addresses import fault_of
from nexus_plugins.mcp._errors import ServerError
from nexus_plugins.mcp._references import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nexus_core import Request
    from nexus_core.plugin import Loaded, MCPServerWithOrigin

USUAL = (
    *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "TZ", "USER"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
    *("SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE"),
)
"""The environment variables that every server is given; none of them holds a key."""
SHORTEST_SECRET = 4  # characters; whatever is shorter would mask half of what is said


class Launch(NamedTuple):
    """How to reach a server at this moment. It holds secrets: never print it, never keep it.

    Attributes:
        name: The server's name.
        command: The program and its arguments; none for a server that is connected to.
        env: The whole environment of the program.
        cwd: Where the program is started.
        url: The address.
        headers: What is sent along with every request.
        is_stream: Whether the address speaks the older protocol of two channels (SSE).
        secrets: The values that must not be repeated.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    url: str
    headers: Mapping[str, str]
    is_stream: bool
    secrets: frozenset[str]

    def __repr__(self) -> str:
        return f"Launch({self.name!r})"

    def mask(self, text: str) -> str:
        """A text without the secrets."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def prepare(server: MCPServerWithOrigin, loaded: Loaded, request: Request) -> Launch:
    """How to reach a server, if it may be reached.

    Raises:
        ServerError: It is switched off, not approved, or changed since; or its address is not acceptable.
        ConfigError: It refers to something that is not there.
    """
    config = server.config
    if not config.enabled:
        raise ServerError(config.name, "is switched off", hint=f"nexus mcp enable {config.name}")
    decision = decide_again(server, loaded, request) if server.approved else "pending"
    if decision != "allowed":
        state = "has changed since you allowed it" if decision == "changed" else "is not approved"
        raise ServerError(config.name, state, hint="`nexus trust allow` shows what it would do, and decides")
    layer = next((layer for layer in loaded.layers if layer.name == server.origin), None)
    folder = request.cwd if layer is None or layer.is_own else layer.project
    environment = os.environ

    def found(text: str, what: str) -> str:
        return resolve(text, environment, folder, f"{what} of server {config.name!r}")

    url = found(config.url, "the address")
    if config.url and (fault := fault_of(url, own=layer is not None and layer.is_own)):
        raise ServerError(config.name, f"is not connected to: its address {fault}")
    own = {name: found(value, f"variable {name!r}") for name, value in config.env.items()}
    headers = {name: found(value, f"header {name!r}") for name, value in config.headers.items()}
    usual = {name: environment[name] for name in USUAL if name in environment}
    return Launch(
        name=config.name,
        command=tuple(found(word, "the command") for word in config.command),
        env={**usual, **own},
        cwd=folder / found(config.cwd, "the directory") if config.cwd else folder,
        url=url,
        headers=headers,
        is_stream=config.type == "sse",
        secrets=frozenset(value for value in (*own.values(), *headers.values()) if len(value) >= SHORTEST_SECRET),
    )
