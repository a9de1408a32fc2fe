"""MCP servers as the layers define them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal

from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nexus_core.values.settings import Origin

Transport = Literal["stdio", "http", "sse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPServerConfig:
    """How to reach a server: a command to start, or an address to connect to.

    Values of `env` and `headers` may be references such as `${TOKEN}`; they stay references until a server is started.
    What may hold a secret, as commands and addresses do too, is not in its `repr`.

    Attributes:
        name: Its name.
        type: How it is spoken with.
        command: The program and its arguments.
        url: The address.
        env: Variables of the program.
        headers: What is sent along with every request.
        cwd: Where the program is started.
        env_file: A file with further variables, which is read when the program is started.
        include_tools: The only tools that models are offered; None for all.
        exclude_tools: Tools that models are never offered.
        start_timeout: Seconds it may take to start; None for the usual limit.
        call_timeout: Seconds one of its tools may take; None for the usual limit.
        enabled: Whether it is switched on.
    """

    name: str
    type: Transport
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
        """Whether models are offered a tool of this server, by what is written about it."""
        return tool not in self.exclude_tools and (self.include_tools is None or tool in self.include_tools)


@dataclass(frozen=True, slots=True)
class MCPServerWithOrigin:
    """A server, and where its definition comes from.

    Attributes:
        config: The definition of the most local layer that has one.
        origin: That layer's name.
        source_path: The file.
        line: Where in the file.
        approved: Whether it may be started: it is the user's own, or the user has approved exactly this definition.
        denied: Whether the user has decided that it may not.
        shadows: While it may not be started, where the definition stands that would count without it.
    """

    config: MCPServerConfig
    origin: str
    source_path: Path
    line: int = 0
    approved: bool = True
    denied: bool = False
    shadows: Origin | None = None

    @property
    def status(self) -> str:
        """`enabled`, `disabled`, `denied`, or `not approved`."""
        if self.denied:
            return "denied"
        if not self.config.enabled:
            return "disabled"
        return "enabled" if self.approved else "not approved"
