"""Numbers of seconds from callers, options and settings."""

from __future__ import annotations

from nexus_core.errors import UsageError

MAX_SECONDS = 604_800
"""A week: what waits longer is not waiting for anything, and timers of the system have limits."""


def is_duration(value: object, *, limit: float = MAX_SECONDS, allows_zero: bool = False) -> bool:
    """True for a number of seconds up to a limit: neither negative, nor infinite, nor NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (value == 0 and allows_zero) or 0 < value <= limit


def require_seconds(value: object, name: str, *, limit: float = MAX_SECONDS, allows_zero: bool = False) -> float:
    """Return a number of seconds.

    Args:
        value: The number.
        name: The name for errors: `--timeout`.
        limit: The largest number.
        allows_zero: True if 0 has a meaning.

    Raises:
        UsageError: It is not a number of seconds up to the limit.
    """
    if not is_duration(value, limit=limit, allows_zero=allows_zero):
        least = "at least 0" if allows_zero else "more than 0"
        hint = f"{least}, and {limit:,} seconds at most"
        raise UsageError(f"{name} must be a number of seconds, not {value!r}", hint=hint)
    return float(value)  # type: ignore[arg-type] # it is a number
