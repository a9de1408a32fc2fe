"""The block `[THIS_MOMENT]`: the time, the occasion, and what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_plugins.tagged._clock import local_time, moment_of, zone_of
from nexus_plugins.tagged._tags import THIS_MOMENT, element, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable


class Surrounding(NamedTuple):
    """A titled text about the moment."""

    title: str
    text: str


class MomentFormatter:
    """Puts what was just said into the block `[THIS_MOMENT]`."""

    @staticmethod
    def format_this_moment(current_input: str, timestamp_utc: object = None, timezone_offset: int | str = 0) -> str:
        """What was said, with the time where the person is.

        Args:
            current_input: What was said.
            timestamp_utc: When: ISO 8601, a datetime, or seconds or milliseconds since 1970. Anything else, and None,
                leaves `<current_time>` out.
            timezone_offset: Where: minutes west of UTC as JavaScript gives them (-480 is +08:00), or the name of a
                zone.

        Raises:
            UsageError: There is no such zone.
        """
        moment, zone = moment_of(timestamp_utc), zone_of(timezone_offset)
        return moment_block(current_input, "" if moment is None else local_time(moment, zone))


def moment_block(
    said: str, time: str, *, facts: Iterable[tuple[str, object]] = (), surroundings: Iterable[Surrounding] = ()
) -> str:
    """The block.

    Args:
        said: What was said.
        time: When, as the model reads it; "" for none.
        facts: What is known about the occasion, by name; one line each.
        surroundings: Titled texts about it.
    """
    lines = "\n".join(f"{one_line(name)}: {one_line(value)}" for name, value in facts)
    return "\n".join(
        [
            THIS_MOMENT,
            *([f"<current_time>{time}</current_time>"] if time else []),
            *([element("current_facts", lines)] if lines else []),
            *(
                element("current_section", f"{one_line(each.title)}\n{each.text}")
                for each in surroundings
                if each.text.strip()
            ),
            element("human_input", said),
        ]
    )
