"""MCP servers as the layers define them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Transport = Literal["stdio", "http", "sse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPServerConfig:
    """How to reach a server: a command to start, or an address to connect to.

    Values of `env` and `headers` may be references such as `${TOKEN}`; they stay references until a server is started.
    What may hold a secret, as commands and addresses do too, is not in its `repr`.
    """

    name: str
    type: Transport
    command: tuple[str, ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class MCPServerWithOrigin:
    """A server, and where its definition comes from.

    Attributes:
        config: The definition of the most local layer that has one.
        origin: That layer's name.
        source_path: The file.
        line: Where in the file.
        approved: Whether it may be started: it is the user's own, or the user has approved exactly this definition.
    """

    config: MCPServerConfig
    origin: str
    source_path: Path
    line: int = 0
    approved: bool = True

    @property
    def status(self) -> str:
        """`enabled`, `disabled`, or `not approved`."""
        if not self.config.enabled:
            return "disabled"
        return "enabled" if self.approved else "not approved"
