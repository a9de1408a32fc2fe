"""What can go wrong with a server."""

from __future__ import annotations

from nexus_core import NexusError


class NotOfferedError(NexusError):
    """Raised when a model asks for a tool of a server that it was not offered."""


class ServerError(NexusError):
    """Raised when a server cannot be started, does not answer in time, or answers nonsense.

    Args:
        server: Its name.
        what: What happened, without any value of its settings.
        hint: What to do about it.
    """

    def __init__(self, server: str, what: str, *, hint: str | None = None) -> None:
        super().__init__(f"server {server!r} {what}", hint=hint)
        self.server = server


class RefusedError(ServerError):
    """Raised when a server must not be reached: it is switched off, not approved, or at no acceptable address."""
