"""Errors of MCP servers."""

from __future__ import annotations

from nexus_core import NexusError


class ToolNotOfferedError(NexusError):
    """Raised when a model calls a server tool that it was not offered."""


class ServerError(NexusError):
    """Raised when a server cannot be started, times out, or sends an invalid response.

    Args:
        server: The name of the server.
        what: The rest of the message after the name, without any value of its settings (they may be secrets).
        hint: What to do about it.
    """

    def __init__(self, server: str, what: str, *, hint: str | None = None) -> None:
        super().__init__(f"server {server!r} {what}", hint=hint)
        self.server = server


class ServerRefusedError(ServerError):
    """Raised when a server must not be reached: disabled, not approved, or at an unsafe address."""
