"""Asks a truncation which groups stay, and holds it to its contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import NexusError, PluginError
from nexus_core.host.candidates import OWN_DISTRIBUTION
from nexus_core.host.implementation import describe

if TYPE_CHECKING:
    from nexus_core.values.budget import GroupSizes, Truncation

NEWEST = slice(-1, None)


def ask_truncation(truncation: Truncation, groups: GroupSizes, budget: int) -> list[slice]:
    """The groups that stay, as slices in any order; the newest group is always among them.

    Raises:
        PluginError: The truncation failed, or its answer is no list of slices.
    """
    try:
        answer: object = truncation.choose(groups, budget)
    except NexusError:
        raise
    except (Exception, SystemExit) as error:
        raise _broken(truncation, describe(error)) from error
    if not isinstance(answer, list | tuple) or not all(map(_is_plain, answer)):
        raise _broken(truncation, f"answered {answer!r}, expected a list of slices without steps")
    return [*answer, NEWEST]


def smaller_room(room: int, taken: int, mended: int, budget: int) -> int:
    """What to choose for next, when mending has made what was chosen too long: at least one more group has to go.

    What mending adds to a group goes with it, so that there must be room for a share, not for all that it added.

    Args:
        room: What was chosen for.
        taken: What the chosen took.
        mended: What they take now.
        budget: What they may take.

    Returns:
        Less than `room`; less than nothing when a truncation chose more than there was room for.
    """
    share = min(taken - 1, taken * budget // max(mended, 1))
    return share if share < room else -1


def _is_plain(part: object) -> bool:
    if not isinstance(part, slice) or part.step not in (None, 1):
        return False
    return all(end is None or isinstance(end, int) for end in (part.start, part.stop))


def _broken(truncation: Truncation, what: str) -> PluginError:
    return PluginError(
        f"its truncation {truncation.name!r} {what}",
        plugin=truncation.plugin or getattr(truncation.choose, "__module__", OWN_DISTRIBUTION),
        hook="nexus_truncations",
    )
