"""How long things may take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from nexus_core.plugin import Loaded, MCPServerConfig


class Limits(NamedTuple):
    """Seconds that a server may take to start and to list its tools, and that a call may take, all of that included."""

    start: float = 20.0
    call: float = 60.0

    @classmethod
    def of(cls, loaded: Loaded) -> Limits:
        """What the settings say."""
        usual = cls()
        start, call = (loaded.settings.get(f"plugins.mcp.{name}") for name in ("start_timeout", "call_timeout"))
        return cls(
            float(start) if isinstance(start, int | float) else usual.start,
            float(call) if isinstance(call, int | float) else usual.call,
        )

    def for_server(self, config: MCPServerConfig) -> Limits:
        """The same, unless something else is written about a server."""
        start, call = config.start_timeout, config.call_timeout
        return Limits(self.start if start is None else start, self.call if call is None else call)
