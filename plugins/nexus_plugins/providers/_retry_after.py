"""When a provider wants to be asked again."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """In how many seconds a provider wants to be asked again; None where it does not say.

    Args:
        headers: Of its answer, with names in small letters.
        now: The time, in seconds since 1970.
    """
    seconds = _number(headers.get("retry-after-ms", ""), 1000)
    if seconds is None:
        said = headers.get("retry-after", "")
        seconds = _number(said)
        if seconds is None:
            seconds = _until(said, now)
    return None if seconds is None else max(seconds, 0.0)


def _number(text: str, per_second: int = 1) -> float | None:
    with suppress(ValueError):
        number = float(text) / per_second
        return number if math.isfinite(number) else None
    return None


def _until(date: str, now: float) -> float | None:
    """The seconds until a date as HTTP writes it."""
    with suppress(ValueError, TypeError, OverflowError):
        moment = parsedate_to_datetime(date)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now
    return None
