"""Which turns stay, and where the part begins that does where one long turn alone is too much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.plugin import CompactionPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.plugin import CompactionBudget, ThreadGroup, ThreadOutline, ThreadTurn


def plan_compaction(thread: ThreadOutline, budget: CompactionBudget) -> CompactionPlan | None:
    """Where the part begins that stays; None where there is nothing to summarise.

    Of the closed turns those stay that fit into the target, but at least `keep_turns`. Fewer stay only where that many
    do not fit at all; and only where the open turn alone does not fit, the part that stays begins inside of it.
    """
    plan = _choose(thread, budget)
    return plan if plan is not None and _covers(thread, plan) else None


def _choose(thread: ThreadOutline, budget: CompactionBudget) -> CompactionPlan | None:
    closed = [turn for turn in thread.turns if not turn.is_open]
    ending = thread.turns[-1] if thread.turns and thread.turns[-1].is_open else None
    weights = _Weights(thread, budget, closed, ending)
    keep = max(weights.most_turns(), min(budget.keep_turns, len(closed)))
    if keep == len(closed) and all(group.pinned for group in thread.carried):
        if weights.as_it_is() <= budget.available:
            return None
        keep = max(keep - 1, 0)
    while keep > 0 and weights.with_turns(keep) + budget.least_summary > budget.available:
        keep -= 1
    if keep > 0:
        return CompactionPlan(first_kept=closed[-keep].first)
    if ending is None:
        return CompactionPlan(first_kept=None) if closed else None
    if closed and weights.with_turns(0) + budget.least_summary <= budget.available:
        return CompactionPlan(first_kept=ending.first)
    keep = weights.most_groups()
    if keep == len(ending.groups) - 1 and not closed:
        keep -= 1  # something has to go
    return CompactionPlan(first_kept=ending.groups[-keep].steps[0]) if keep > 0 else None


def _covers(thread: ThreadOutline, plan: CompactionPlan) -> bool:
    """Whether a plan leaves anything to summarise: what is pinned, and what the open turn is about, stays anyhow."""
    if not all(group.pinned for group in thread.carried):
        return True
    for turn in thread.turns:
        if plan.first_kept == turn.first:
            return False
        for group in turn.groups[1:] if turn.is_open else turn.groups:
            if turn.is_open and plan.first_kept == group.steps[0]:
                return False
            if not group.pinned:
                return True
    return False


class _Weights:
    """What a thread takes, depending on what stays of it."""

    def __init__(
        self, thread: ThreadOutline, budget: CompactionBudget, closed: Sequence[ThreadTurn], ending: ThreadTurn | None
    ) -> None:
        self._thread = thread
        self._target = min(budget.target, budget.available) - budget.summary
        self._closed = closed
        self._ending = ending
        self._always = sum(budget.fixed.values()) + _pins(thread.carried)

    def as_it_is(self) -> int:
        """All of it."""
        unpinned = _tokens(group for group in self._thread.carried if not group.pinned)
        turns = sum(turn.tokens for turn in self._thread.turns)
        return self._always + unpinned + self._thread.summary_tokens + turns

    def with_turns(self, keep: int) -> int:
        """The newest closed turns, the open one, and what is pinned before; without a summary."""
        first = len(self._closed) - keep
        pins = sum(_pins(turn.groups) for turn in self._closed[:first])
        ending = self._ending.tokens if self._ending else 0
        return self._always + pins + sum(turn.tokens for turn in self._closed[first:]) + ending

    def most_turns(self) -> int:
        """How many of the newest closed turns fit into the target beside a summary."""
        room = self._target - self.with_turns(0)
        sizes = (turn.tokens - _pins(turn.groups) for turn in reversed(self._closed))
        return _how_many(sizes, room)

    def most_groups(self) -> int:
        """The same with groups of the open turn; at least one."""
        if self._ending is None or len(self._ending.groups) < 2:  # noqa: PLR2004 - nothing but what it is about
            return 0
        event, *groups, newest = self._ending.groups
        pins = sum(_pins(turn.groups) for turn in self._closed) + _pins(groups)
        room = self._target - self._always - pins - event.tokens - newest.tokens
        return 1 + _how_many((0 if group.pinned else group.tokens for group in reversed(groups)), room)


def _how_many(sizes: Iterable[int], room: int) -> int:
    """How many of the first fit together."""
    many = 0
    for size in sizes:
        room -= size
        if room < 0:
            break
        many += 1
    return many


def _pins(groups: Iterable[ThreadGroup]) -> int:
    return _tokens(group for group in groups if group.pinned)


def _tokens(groups: Iterable[ThreadGroup]) -> int:
    return sum(group.tokens for group in groups)
