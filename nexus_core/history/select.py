"""Selection of the items that fit a budget, by a truncation strategy.

`select` is the only place that decides which messages stay, for `fit`, sessions and `ContextManager`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from nexus_core.errors import NexusError, PluginError
from nexus_core.history.groups import IndexRange, find_gaps, join_ranges, to_ranges
from nexus_core.host.calls import describe_exception
from nexus_core.host.discovery import OWN_DISTRIBUTION
from nexus_core.types.base import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from nexus_core.types.budget import GroupSizes, TruncationStrategy
    from nexus_core.types.messages import Role

NEWEST_GROUP = slice(-1, None)

OverflowAction = Literal["keep", "drop"]
"""Policy for a newest group that does not fit: `drop` keeps pinned and open items only."""


class SelectableItems(Protocol):
    """Items in groups that are kept or dropped together, as `select` reads them.

    Indices are those of the caller's list. A pinned item may be in no group; then strategies do not see it.

    Attributes:
        bounds: The indices of all items.
        is_whole: True if no item before the first was removed earlier.
        sizes: The sizes of the groups, for a strategy.
    """

    @property
    def bounds(self) -> IndexRange:
        """The indices of all items."""

    @property
    def is_whole(self) -> bool:
        """True if no item before the first was removed earlier."""

    @property
    def sizes(self) -> GroupSizes:
        """The sizes of the groups, for a strategy."""

    def fits(self, budget: int) -> bool:
        """Return True if all items fit together."""

    def ranges(self, slices: Iterable[slice]) -> list[IndexRange]:
        """Return the items of the selected groups: ascending ranges that do not touch."""

    def measure(self, ranges: Iterable[IndexRange]) -> int:
        """Return the size of items."""

    def is_grouped(self, index: int) -> bool:
        """Return True if an item is in a group."""

    def is_open(self, index: int) -> bool:
        """Return True for an item of the open turn, which the model has to read to go on."""

    def sender(self, index: int) -> Role:
        """Return the role of an item's sender."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The items that are kept.

    Attributes:
        bounds: The indices of all items.
        kept: Ascending ranges that do not touch.
        size: The size of the kept items.
        trimmed: The size of the chosen items that are left out because `first_role` must come first.
    """

    bounds: IndexRange
    kept: tuple[IndexRange, ...]
    size: int
    trimmed: int = 0

    @property
    def indices(self) -> list[int]:
        """The indices of the kept items, ascending."""
        return [index for span in self.kept for index in range(*span)]

    @property
    def dropped(self) -> list[IndexRange]:
        """The ranges between and around those that are kept."""
        return find_gaps(self.bounds, self.kept)

    def __len__(self) -> int:
        return sum(end - first for first, end in self.kept)

    def __contains__(self, index: int) -> bool:
        return _contains(self.kept, index)


def select(
    items: SelectableItems,
    budget: int,
    strategy: TruncationStrategy,
    pinned: Collection[int] = (),
    *,
    first_role: Role | None = None,
    low_water: float = 1,
    on_overflow: OverflowAction = "keep",
) -> Selection:
    """Return the items that stay: all if they fit, otherwise the pinned ones and the groups that a strategy chooses.

    The strategy gets the budget without the size of the pinned items that it does not choose. The newest group stays
    too, unless `on_overflow` drops it.

    Args:
        items: The items.
        budget: What they may take, in the unit of their sizes.
        strategy: The truncation strategy.
        pinned: Indices of items that stay in any case.
        first_role: The sender of the first chosen item, if items before it are left out; None for any. Open items may
            be the first as well. If no chosen item qualifies, all of them stay, or none with `on_overflow="drop"`.
        low_water: If not all items fit, the share of the budget that the kept ones may take, so that the next
            selection is not needed soon.
        on_overflow: What to do if the chosen groups do not fit into the whole budget.

    Raises:
        PluginError: The strategy failed, or its result is not a list of slices.
    """
    ungrouped: list[IndexRange] = []
    if items.fits(budget):
        chosen = [items.bounds] if items.bounds.first < items.bounds.end else []
    else:
        ungrouped = to_ranges(index for index in pinned if not items.is_grouped(index))
        reserved = items.measure(ungrouped)
        room = (budget if low_water == 1 else int(budget * low_water)) - reserved
        chosen = _choose_beside(pinned, items, room, strategy)
        if on_overflow == "drop" and items.measure(chosen) > budget - reserved:
            needed = (index for span in chosen for index in range(*span) if items.is_open(index) or index in pinned)
            chosen = to_ranges(needed)
    begun = chosen if first_role is None else _begin_with(first_role, items, chosen, pinned, on_overflow)
    trimmed = 0 if begun is chosen else items.measure(chosen) - items.measure(begun)
    kept = join_ranges([*begun, *ungrouped]) if ungrouped else begun
    return Selection(items.bounds, tuple(kept), items.measure(kept), trimmed)


def _choose_beside(
    pinned: Collection[int], items: SelectableItems, budget: int, strategy: TruncationStrategy
) -> list[IndexRange]:
    """Return the chosen groups and the pinned items of other groups, whose size is reserved."""
    added: list[IndexRange] = []
    while True:
        chosen = join_ranges([*_choose(items, budget - items.measure(added), strategy), *added])
        missing = [index for index in pinned if items.is_grouped(index) and not _contains(chosen, index)]
        if not missing:
            return chosen
        added = join_ranges([*added, *to_ranges(missing)])


def _choose(items: SelectableItems, budget: int, strategy: TruncationStrategy) -> list[IndexRange]:
    newest = items.ranges([NEWEST_GROUP])
    if budget <= 0 or not newest:
        return newest
    return items.ranges(call_strategy(strategy, items.sizes, budget))


def _begin_with(
    role: Role, items: SelectableItems, chosen: list[IndexRange], pinned: Collection[int], on_overflow: OverflowAction
) -> list[IndexRange]:
    """Return the chosen items from the first on that may follow a gap."""
    if not chosen or (items.is_whole and chosen[0].first == items.bounds.first):
        return chosen
    for index in (index for span in chosen for index in range(*span)):
        if items.sender(index) == role or items.is_open(index) or index in pinned:
            return [IndexRange(max(span.first, index), span.end) for span in chosen if span.end > index]
    return chosen if on_overflow == "keep" else []


def _contains(ranges: Iterable[IndexRange], index: int) -> bool:
    return any(first <= index < end for first, end in ranges)


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
