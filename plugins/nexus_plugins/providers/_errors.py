"""What can go wrong when somebody outside is asked for a summary."""

from __future__ import annotations

from nexus_core import NexusError


class EndpointError(NexusError):
    """Raised when an endpoint gives no summary.

    Args:
        what, hint: As for every error. Neither has a key in it.
        endpoint: Its name in the settings.
        status: The HTTP status of its answer; None where it gave none.
        attempts: How often it was asked.
        said: What it said, shortened.
    """

    def __init__(
        self,
        what: str,
        *,
        endpoint: str,
        hint: str | None = None,
        status: int | None = None,
        attempts: int = 0,
        said: str = "",
    ) -> None:
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        super().__init__(f"{what}{tried}", where=f"plugins.providers.endpoints.{endpoint}", hint=hint)
        self.endpoint = endpoint
        self.status = status
        self.attempts = attempts
        self.said = said


class CommandError(NexusError):
    """Raised when the command that summarises gives no summary.

    Args:
        what, hint: As for every error.
        exit_code: What it ended with; None where it did not start or had to be ended.
    """

    def __init__(self, what: str, *, hint: str | None = None, exit_code: int | None = None) -> None:
        super().__init__(what, where="compaction.command", hint=hint)
        self.exit_code = exit_code
