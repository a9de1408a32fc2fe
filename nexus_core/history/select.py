"""Calls of truncation strategies, and validation of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import NexusError, PluginError
from nexus_core.host.calls import describe_exception
from nexus_core.host.discovery import OWN_DISTRIBUTION

if TYPE_CHECKING:
    from nexus_core.types.budget import GroupSizes, TruncationStrategy

NEWEST_GROUP = slice(-1, None)


def call_strategy(truncation: TruncationStrategy, groups: GroupSizes, budget: int) -> list[slice]:
    """Call a truncation strategy and return the groups to keep, as slices in any order, including the newest group.

    Raises:
        PluginError: The strategy failed, or its result is not a list of slices.
    """
    try:
        answer: object = truncation.choose(groups, budget)
    except NexusError:
        raise
    except (Exception, SystemExit) as error:
        raise _truncation_error(truncation, describe_exception(error)) from error
    if not isinstance(answer, list | tuple) or not all(map(_is_plain_slice, answer)):
        raise _truncation_error(truncation, f"returned {answer!r}, expected a list of slices without steps")
    return [*answer, NEWEST_GROUP]


def shrink_budget(room: int, taken: int, mended: int, budget: int) -> int:
    """Return a smaller budget for the next selection, after repair has made the selected messages too long.

    At least one more group must be left out. What repair added to a group is left out with it, so the budget shrinks in
    proportion, not by everything that repair added.

    Args:
        room: The budget of the last selection, in tokens.
        taken: Tokens of the selected messages before repair.
        mended: Their tokens after repair.
        budget: The tokens that they may have.

    Returns:
        Less than `room`; negative if the strategy has selected more than fits.
    """
    share = min(taken - 1, taken * budget // max(mended, 1))
    return share if share < room else -1


def _is_plain_slice(part: object) -> bool:
    if not isinstance(part, slice) or part.step not in (None, 1):
        return False
    return all(end is None or isinstance(end, int) for end in (part.start, part.stop))


def _truncation_error(truncation: TruncationStrategy, what: str) -> PluginError:
    return PluginError(
        f"its truncation {truncation.name!r} {what}",
        plugin=truncation.plugin or getattr(truncation.choose, "__module__", OWN_DISTRIBUTION),
        hook="nexus_truncation_strategies",
    )
