"""What a server is started with: references looked up, a small environment, an address that may be connected to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.plugin import clear_for_start, secrets_in
from nexus_plugins.mcp._errors import RefusedError
from nexus_plugins.mcp._files.references import resolve
from nexus_plugins.mcp._running.addresses import fault_of
from nexus_plugins.mcp._running.env_file import read_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nexus_core import Request
    from nexus_core.plugin import Loaded, MCPServerConfig, MCPServerWithOrigin

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
        is_own: Whether the user wrote it down, rather than a project.
        is_stream: Whether the address speaks the older protocol of two channels (SSE).
        secrets: The values that must not be repeated.
        still_holds: Tells whether all that was approved is as it was when this was prepared.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    url: str
    headers: Mapping[str, str]
    is_own: bool
    is_stream: bool
    secrets: frozenset[str]
    still_holds: Callable[[], bool]

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
        RefusedError: It is switched off, not approved, or changed since; or its address is not acceptable.
        ConfigError: It refers to something that is not there.
    """
    config = server.config
    clearance = clear_for_start(server, loaded, request)
    _require_allowed(server, clearance.decision)
    layer = next((layer for layer in loaded.layers if layer.name == server.origin), None)
    is_own = layer is not None and layer.is_own
    folder = request.cwd if layer is None or is_own else layer.project

    def found(text: str, what: str) -> str:
        return resolve(text, os.environ, folder, f"{what} of server {config.name!r}")

    url = found(config.url, "the address")
    if config.url and (fault := fault_of(url, own=is_own)):
        raise RefusedError(config.name, f"is not connected to: its address {fault}")
    own = {name: found(value, f"variable {name!r}") for name, value in config.env.items() if not _is_unset(name, value)}
    if config.env_file:
        path = folder / Path(found(config.env_file, "the file with variables")).expanduser()
        own = read_variables(path, config.name, None if is_own else folder) | own
    headers = {name: found(value, f"header {name!r}") for name, value in config.headers.items()}
    command = tuple(found(word, "the command") for word in config.command)
    return Launch(
        name=config.name,
        command=command,
        env={name: os.environ[name] for name in USUAL if name in os.environ} | clearance.variables | own,
        cwd=folder / found(config.cwd, "the directory") if config.cwd else folder,
        url=url,
        headers=headers,
        is_own=is_own,
        is_stream=config.type == "sse",
        secrets=_secrets(config, (*own.values(), *headers.values()), (*command, url)),
        still_holds=clearance.still_holds,
    )


def _is_unset(name: str, value: str) -> bool:
    """Whether a variable is only passed through, and there is nothing to pass."""
    return value == f"${{{name}:-}}" and name not in os.environ


def _require_allowed(server: MCPServerWithOrigin, decision: str) -> None:
    name = server.config.name
    if not server.config.enabled:
        raise RefusedError(name, "is switched off", hint=f"nexus mcp enable {name}")
    if decision == "changed":
        hint = "`nexus trust diff` shows how, `nexus trust allow` decides"
        raise RefusedError(name, "has changed since you allowed it", hint=hint)
    if decision != "allowed" or not server.approved:
        raise RefusedError(name, "is not approved", hint="`nexus trust allow` shows what it would do, and decides")


def _secrets(config: MCPServerConfig, values: Sequence[str], words: Sequence[str]) -> frozenset[str]:
    """Every value of a variable or a header, and what was looked up or looks like a password among other words."""
    written = (*config.command, config.url)
    looked_up = [word for word, before in zip(words, written, strict=True) if word != before]
    addresses = [config.url] if "@" in config.url or "?" in config.url else []
    tokens = [value.split()[-1] for value in values if value.strip()]  # `Bearer` is no secret, what follows is
    parts = [part for each in secrets_in(words) for part in each]
    found = (*values, *tokens, *looked_up, *addresses, *parts)
    return frozenset(each for each in found if len(each) >= SHORTEST_SECRET)
