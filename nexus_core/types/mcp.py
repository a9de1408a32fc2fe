"""MCP servers, and active settings with the user's decision about them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal

from nexus_core.types.base import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nexus_core.types.settings import SettingOrigin

MCPTransport = Literal["stdio", "http", "sse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPServerConfig:
    """The definition of an MCP server: a command to start, or a URL to connect to.

    Values of `env` and `headers` may be references such as `${TOKEN}`, which are resolved when the server is started.
    Fields that may contain a secret, including commands and URLs, are not in the `repr`.

    Attributes:
        name: The name of the server.
        type: The transport.
        command: The program and its arguments.
        url: The URL.
        env: Environment variables of the program.
        headers: HTTP headers of every request.
        cwd: The working directory of the program.
        env_file: A file with further environment variables, read when the program is started.
        include_tools: The only tools that models are offered; None for all.
        exclude_tools: Tools that models are never offered.
        start_timeout: Timeout of the start in seconds; None for the default.
        call_timeout: Timeout of a tool call in seconds; None for the default.
        enabled: False if the server is disabled.
    """

    name: str
    type: MCPTransport
    command: tuple[str, ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    env_file: str = ""
    include_tools: tuple[str, ...] | None = None
    exclude_tools: tuple[str, ...] = ()
    start_timeout: float | None = None
    call_timeout: float | None = None
    enabled: bool = True

    def offers(self, tool: str) -> bool:
        """Return True if `include_tools` and `exclude_tools` allow a tool of this server."""
        return tool not in self.exclude_tools and (self.include_tools is None or tool in self.include_tools)


@dataclass(frozen=True, slots=True)
class MCPServerWithOrigin:
    """A server with the origin of its definition and the user's decision.

    Attributes:
        config: The definition of the most local layer that has one.
        origin: The name of that layer.
        source_path: The file of the definition.
        line: The line in that file.
        approved: True if it may be started: it is the user's own, or the user has approved exactly this definition.
        denied: True if the user has denied it.
        shadows: The origin of the definition that this one overrides, while this one may not be started.
    """

    config: MCPServerConfig
    origin: str
    source_path: Path
    line: int = 0
    approved: bool = True
    denied: bool = False
    shadows: SettingOrigin | None = None

    @property
    def status(self) -> str:
        """`enabled`, `disabled`, `denied`, or `not approved`."""
        if self.denied:
            return "denied"
        if not self.config.enabled:
            return "disabled"
        return "enabled" if self.approved else "not approved"


TrustDecision = Literal["allowed", "denied", "pending", "changed"]
"""The user's decision; `changed` means that another content was approved under this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveSetting:
    """A setting of a project that starts a program, opens a connection, sets an environment or names a plugin.

    Attributes:
        path: The file that sets it, absolute and without links.
        layer: The name of its layer.
        pointer: The JSON pointer of the setting: `/mcp_servers/github`.
        line: Its line in the file.
        summary: Its complete effect in one line: the whole command, or the URL.
        content: Everything that an approval covers, in canonical form; a changed byte needs a new approval. Contains
            digests of secret values, never the values.
        decision: The user's decision about exactly this content.
    """

    path: Path
    layer: str
    pointer: str
    line: int
    summary: str
    content: str
    decision: TrustDecision = "pending"
