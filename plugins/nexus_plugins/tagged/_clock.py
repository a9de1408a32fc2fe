"""Times as the person reads them on the clock where they are."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

from nexus_core import UnknownNameError, UsageError

if TYPE_CHECKING:
    from datetime import tzinfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 24 * 60
_MILLISECONDS = 1e11
"""A larger number counts milliseconds since 1970: as seconds it would be after the year 5000."""


def zone_of(zone: int | str) -> tzinfo:
    """The time zone of an offset or a name.

    Args:
        zone: Minutes west of UTC, as JavaScript's `getTimezoneOffset` gives them (-480 is +08:00), also as text; or a
            name such as `Asia/Shanghai`; "" is UTC.

    Raises:
        UsageError: There is no such offset.
        UnknownNameError: There is no such zone.
    """
    if isinstance(zone, str):
        if not re.fullmatch("[+-]?[0-9]{1,9}", zone):
            return _named(zone)
        zone = int(zone)
    if type(zone) is not int or abs(zone) >= _DAY:
        raise UsageError(
            f"{zone!r} is no offset of a time zone",
            hint="give minutes west of UTC, as JavaScript does (-480 is +08:00), or a name such as Asia/Shanghai",
        )
    return timezone(timedelta(minutes=-zone))


def moment_of(value: object) -> datetime | None:
    """The moment that a timestamp means: a datetime, ISO 8601, seconds or milliseconds since 1970; else None.

    Without an offset it is in UTC.
    """
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > _MILLISECONDS else value
            value = _EPOCH + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def moment_at(milliseconds: int) -> datetime:
    """The moment so many milliseconds after 1970 began; the last there is, if it is beyond that."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def local_time(moment: datetime, zone: tzinfo) -> str:
    """`YYYY-MM-DD HH:MM:SS±HH:MM` on the clocks of a zone."""
    return re.sub(r"([+-]\d\d:\d\d):.*", r"\1", _at(moment, zone).isoformat(" ", "seconds"))


def local_minute(moment: datetime, zone: tzinfo | None) -> str:
    """`YYYY-MM-DD HH:MM` on the clocks of a zone, or of the one that the moment comes with."""
    return (_at(moment, zone) if zone else moment).replace(tzinfo=None).isoformat(" ", "minutes")


def _at(moment: datetime, zone: tzinfo) -> datetime:
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):  # on the first day of the first year, or the last of the last
        return moment


def _named(name: str) -> tzinfo:
    if name in ("", "UTC"):
        return UTC
    from zoneinfo import ZoneInfo, available_timezones  # noqa: PLC0415 - many only know UTC or an offset

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # not there, no name at all, or a directory of zones
        raise UnknownNameError("time zone", name, available_timezones()) from None
