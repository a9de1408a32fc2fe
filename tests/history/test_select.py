"""The selector against the rules, written down a second time on sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.history.groups import IndexRange, RunningSums, to_ranges
from nexus_core.history.select import OverflowAction, Selection, select
from nexus_core.plugin import GroupSizes, TruncationStrategy
from nexus_core.types.messages import Role
from nexus_plugins.truncation import middle_out, oldest_first
from tests.effort import examples


@dataclass(frozen=True)
class Item:
    size: int
    sender: Role = "user"
    is_open: bool = False
    group: int | None = None
    """Neighbours with the same number are one group; None for an item in no group."""


class Items:
    """A list of items, as `select` reads them."""

    def __init__(self, items: Sequence[Item], *, is_whole: bool = True) -> None:
        self.items = items
        self.is_whole = is_whole
        self.bounds = IndexRange(0, len(items))
        numbers = sorted({item.group for item in items if item.group is not None})
        self.groups = [[at for at, item in enumerate(items) if item.group == number] for number in numbers]
        self.sizes = RunningSums(sum(items[at].size for at in group) for group in self.groups)

    def fits(self, budget: int) -> bool:
        return self.measure([self.bounds]) <= budget

    def ranges(self, slices: Iterable[slice]) -> list[IndexRange]:
        return to_ranges(at for part in slices for group in self.groups[part] for at in group)

    def measure(self, ranges: Iterable[IndexRange]) -> int:
        return sum(self.items[at].size for span in ranges for at in range(*span))

    def is_grouped(self, index: int) -> bool:
        return self.items[index].group is not None

    def is_open(self, index: int) -> bool:
        return self.items[index].is_open

    def sender(self, index: int) -> Role:
        return self.items[index].sender


def every_other(groups: GroupSizes, _budget: int) -> list[slice]:
    return [slice(at, at + 1) for at in range(0, len(groups), 2)]


OLDEST = TruncationStrategy("oldest_first", oldest_first)
STRATEGIES = [OLDEST, TruncationStrategy("middle_out", middle_out), TruncationStrategy("every_other", every_other)]


def by_the_rules(
    items: Items,
    budget: int,
    strategy: TruncationStrategy,
    pinned: Sequence[int],
    *,
    first_role: Role | None,
    low_water: float,
    on_overflow: OverflowAction,
) -> set[int]:
    every = items.items

    def size(indices: Iterable[int]) -> int:
        return sum(every[at].size for at in indices)

    def chosen_for(room: int) -> set[int]:
        slices = strategy.choose(items.sizes, room) if room > 0 and items.groups else []
        # The newest group stays whatever a strategy chooses.
        return {at for part in (*slices, slice(-1, None)) for group in items.groups[part] for at in group}

    loose = {at for at in pinned if every[at].group is None}
    if size(range(len(every))) <= budget:
        chosen, loose = set(range(len(every))), set()
    else:
        # What is kept takes no more than the low-water mark, with the pinned items that the strategy does not choose.
        room = int(budget * low_water) - size(loose)
        missing: set[int] = set()
        while not set(pinned) <= loose | (chosen := chosen_for(room - size(missing)) | missing):
            missing |= set(pinned) - loose - chosen
        if on_overflow == "drop" and size(chosen) > budget - size(loose):
            chosen = {at for at in chosen if every[at].is_open or at in pinned}
    # What follows a gap begins with the role that is asked for, with an open item or with a pinned one.
    if first_role and chosen and not (items.is_whole and 0 in chosen):
        starts = [at for at in chosen if every[at].sender == first_role or every[at].is_open or at in pinned]
        if starts:
            chosen = {at for at in chosen if at >= min(starts)}
        elif on_overflow == "drop":
            chosen = set()
    return chosen | loose


@st.composite
def item_lists(draw: st.DrawFn) -> tuple[Items, list[int]]:
    """Items in groups of one to three, some of them pinned; an item in no group is always pinned."""
    items: list[Item] = []
    pinned: list[int] = []
    for number in range(draw(st.integers(0, 10))):
        for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
            is_pinned = draw(st.integers(0, 5)) == 0
            if is_pinned:
                pinned.append(len(items))
            sender, is_open = draw(st.sampled_from(get_args(Role))), draw(st.integers(0, 4)) == 0
            group = None if is_pinned and draw(st.booleans()) else number
            items.append(Item(draw(st.integers(0, 30)), sender, is_open, group))
    return Items(items, is_whole=draw(st.booleans())), pinned


@settings(max_examples=examples(2000))
@given(
    item_lists(),
    st.integers(-10, 200),
    st.sampled_from(STRATEGIES),
    st.fixed_dictionaries(
        {
            "first_role": st.sampled_from([None, "user"]),
            "low_water": st.sampled_from([1, 0.6]),
            "on_overflow": st.sampled_from(get_args(OverflowAction)),
        }
    ),
)
def test_select_keeps_what_the_rules_say(
    given_items: tuple[Items, list[int]], budget: int, strategy: TruncationStrategy, options: dict[str, Any]
) -> None:
    items, pinned = given_items

    selection = select(items, budget, strategy, pinned, **options)

    assert set(selection.indices) == by_the_rules(items, budget, strategy, pinned, **options)
    assert set(pinned) <= set(selection.indices)
    assert selection.size == items.measure(selection.kept)
    assert len(selection) == len(selection.indices)
    parts = sorted((*selection.kept, *selection.dropped))
    assert [at for span in parts for at in range(*span)] == list(range(len(items.items)))


def items_of(*sizes: int, **options: Any) -> Items:
    return Items([Item(size, group=number, **options) for number, size in enumerate(sizes)])


def test_select_keeps_everything_that_fits() -> None:
    assert select(items_of(5, 5, 5), 15, OLDEST, low_water=0.6) == Selection(IndexRange(0, 3), (IndexRange(0, 3),), 15)


def test_select_leaves_room_below_the_low_water_mark() -> None:
    assert select(items_of(*[1] * 11), 10, OLDEST, low_water=0.6).kept == (IndexRange(5, 11),)


def test_select_reserves_the_size_of_a_pinned_item_that_is_not_chosen() -> None:
    selection = select(items_of(4, 1, 1, 1, 1, 1, 1, 1, 1), 8, OLDEST, [0])

    assert selection.kept == (IndexRange(0, 1), IndexRange(5, 9))
    assert selection.dropped == [IndexRange(1, 5)]


@pytest.mark.parametrize(("on_overflow", "kept"), [("keep", [2]), ("drop", [])])
def test_select_keeps_or_drops_a_newest_group_that_does_not_fit(on_overflow: OverflowAction, kept: list[int]) -> None:
    assert select(items_of(1, 1, 50), 10, OLDEST, on_overflow=on_overflow).indices == kept


def test_select_keeps_open_items_that_do_not_fit() -> None:
    assert select(items_of(1, 1, 50, is_open=True), 10, OLDEST, on_overflow="drop").indices == [2]


def test_select_begins_with_the_first_role_after_a_gap() -> None:
    senders: list[Role] = ["user", "assistant", "user", "assistant"]
    items = Items([Item(5, sender, group=number) for number, sender in enumerate(senders)])

    selection = select(items, 15, OLDEST, first_role="user")

    assert (selection.indices, selection.trimmed) == ([2, 3], 5)
