"""Choice of the turns that a compaction keeps, or of the part of one long turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.plugin import CompactionPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.plugin import CompactionBudget, ThreadGroup, ThreadOutline, ThreadTurn


def plan_compaction(thread: ThreadOutline, budget: CompactionBudget) -> CompactionPlan | None:
    """Return the first step that is kept, or None if there is nothing to summarize.

    The newest closed turns that fit into the target are kept, but at least `keep_turns`. Fewer are kept only if that
    many do not fit at all. Only if the open turn alone does not fit, the kept part begins inside of it.
    """
    plan = _choose_plan(thread, budget)
    return plan if plan is not None and _summarizes_anything(thread, plan) else None


def _choose_plan(thread: ThreadOutline, budget: CompactionBudget) -> CompactionPlan | None:
    closed = [turn for turn in thread.turns if not turn.is_open]
    open_turn = thread.turns[-1] if thread.turns and thread.turns[-1].is_open else None
    sizes = _ThreadSizes(thread, budget, closed, open_turn)
    keep = max(sizes.count_fitting_turns(), min(budget.keep_turns, len(closed)))
    if keep == len(closed) and all(group.pinned for group in thread.carried):
        if sizes.count_current() <= budget.available:
            return None
        keep = max(keep - 1, 0)
    while keep > 0 and sizes.count_with_turns(keep) + budget.least_summary > budget.available:
        keep -= 1
    if keep > 0:
        return CompactionPlan(first_kept=closed[-keep].first)
    if open_turn is None:
        return CompactionPlan(first_kept=None) if closed else None
    if closed and sizes.count_with_turns(0) + budget.least_summary <= budget.available:
        return CompactionPlan(first_kept=open_turn.first)
    keep = sizes.count_fitting_groups()
    if keep == len(open_turn.groups) - 1 and not closed:
        keep -= 1  # otherwise nothing would be summarized
    return CompactionPlan(first_kept=open_turn.groups[-keep].steps[0]) if keep > 0 else None


def _summarizes_anything(thread: ThreadOutline, plan: CompactionPlan) -> bool:
    """Return True if a plan summarizes anything: pinned groups and the open turn's first group always stay."""
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


class _ThreadSizes:
    """Token counts of a thread, by what is kept of it."""

    def __init__(
        self,
        thread: ThreadOutline,
        budget: CompactionBudget,
        closed: Sequence[ThreadTurn],
        open_turn: ThreadTurn | None,
    ) -> None:
        self._thread = thread
        self._target = min(budget.target, budget.available) - budget.summary
        self._closed = closed
        self._open_turn = open_turn
        self._fixed = sum(budget.fixed.values()) + _count_pinned_tokens(thread.carried)

    def count_current(self) -> int:
        """Return the tokens of the thread without a compaction."""
        unpinned = _count_tokens(group for group in self._thread.carried if not group.pinned)
        turns = sum(turn.tokens for turn in self._thread.turns)
        return self._fixed + unpinned + self._thread.summary_tokens + turns

    def count_with_turns(self, keep: int) -> int:
        """Return the tokens of the newest closed turns, the open one and older pins, without a summary."""
        first = len(self._closed) - keep
        pinned = sum(_count_pinned_tokens(turn.groups) for turn in self._closed[:first])
        open_tokens = self._open_turn.tokens if self._open_turn else 0
        return self._fixed + pinned + sum(turn.tokens for turn in self._closed[first:]) + open_tokens

    def count_fitting_turns(self) -> int:
        """Return how many of the newest closed turns fit into the target beside a summary."""
        available = self._target - self.count_with_turns(0)
        sizes = (turn.tokens - _count_pinned_tokens(turn.groups) for turn in reversed(self._closed))
        return _count_fitting(sizes, available)

    def count_fitting_groups(self) -> int:
        """Return how many of the newest groups of the open turn fit (at least 1), or 0 if it has only one."""
        if self._open_turn is None or len(self._open_turn.groups) < 2:  # noqa: PLR2004 - only the user message
            return 0
        event, *groups, newest = self._open_turn.groups
        pinned = sum(_count_pinned_tokens(turn.groups) for turn in self._closed) + _count_pinned_tokens(groups)
        available = self._target - self._fixed - pinned - event.tokens - newest.tokens
        return 1 + _count_fitting((0 if group.pinned else group.tokens for group in reversed(groups)), available)


def _count_fitting(sizes: Iterable[int], available: int) -> int:
    """Return how many of the first sizes fit together."""
    count = 0
    for size in sizes:
        available -= size
        if available < 0:
            break
        count += 1
    return count


def _count_pinned_tokens(groups: Iterable[ThreadGroup]) -> int:
    return _count_tokens(group for group in groups if group.pinned)


def _count_tokens(groups: Iterable[ThreadGroup]) -> int:
    return sum(group.tokens for group in groups)
