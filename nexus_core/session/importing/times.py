"""When something was said, in the words of programs."""

from __future__ import annotations

from datetime import UTC, datetime

_LATEST = 1 << 50
"""Milliseconds that a ledger takes for a time."""


def read_moment(text: str) -> int | None:
    """Milliseconds since 1970; None where a text is no time, or one that no clock ever showed.

    Args:
        text: As ISO 8601 has it, in UTC where no zone is named, or seconds since 1970.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return _read_seconds(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    try:
        return _within(time.timestamp())
    except (OverflowError, ValueError):  # in the year 0, or after 9999, once the zone is taken off
        return None


def _read_seconds(text: str) -> int | None:
    try:
        return _within(float(text))
    except (OverflowError, ValueError):
        return None


def _within(seconds: float) -> int | None:
    moment = round(seconds * 1000)
    return moment if 0 <= moment < _LATEST else None
