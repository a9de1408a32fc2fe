"""Choice of the turns that a compaction keeps, or of parts of long turns."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.plugin import CompactionPlan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.plugin import CompactionBudget, ThreadGroup, ThreadOutline, ThreadTurn

MIN_FREED_SHARE = 0.3
"""A compaction that frees less is hardly worth the prompt cache that it invalidates; then parts of turns go, too."""
EXPECTED_SUMMARY_DIVISOR = 6
"""The part of the summarized tokens that a summary is expected to have, in addition to the present one's and to the
user's own messages, which stay."""
MAX_ENDS_DIVISOR = 4
"""The part of the target up to which questions and answers of turns stay that do not fit whole."""
MIN_SUMMARY_DIVISOR = 32
"""The part of the available tokens below which a summary is useless, so that the target is given up."""


def plan_compaction(thread: ThreadOutline, budget: CompactionBudget) -> CompactionPlan | None:
    """Return the first step that is kept, or None if there is nothing to summarize.

    The newest closed turns that fit into the target are kept, but at least `keep_turns`. Fewer are kept only if that
    many do not fit at all. If that frees too little, or if they do not fit, only the inputs and the answers of these
    turns stay, and of the open turn its input and its newest groups.
    """
    sizes = _ThreadSizes(thread, budget)
    plan = _keep_turns(sizes)
    if plan is not None and not _summarizes_anything(thread, plan):
        plan = None
    freed = MIN_FREED_SHARE if plan is None else min(sizes.compute_freed_share(plan), MIN_FREED_SHARE)
    if budget.target > 0 and (plan is None or freed < MIN_FREED_SHARE or sizes.drops_short_ends(plan)):
        shorter = _keep_ends(sizes)
        if shorter is not None and sizes.compute_freed_share(shorter) >= freed:
            plan = shorter
    if plan is None or budget.target <= 0:
        return plan
    return replace(plan, summary_tokens=sizes.compute_summary_limit(plan))


def _keep_turns(sizes: _ThreadSizes) -> CompactionPlan | None:
    """Return a plan that keeps whole turns, or only a part of the open turn if it does not fit alone."""
    budget, closed, open_turn = sizes.budget, sizes.closed, sizes.open_turn
    keep = max(sizes.count_fitting_turns(), min(budget.keep_turns, len(closed)))
    if keep == len(closed) and all(group.pinned for group in sizes.thread.carried):
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


def _keep_ends(sizes: _ThreadSizes) -> CompactionPlan | None:
    """Return a plan that keeps the ends of the newest closed turns, and as many of the newest groups as it can.

    It keeps whole closed turns, then only the open turn, then only a part of that, until enough is freed.
    """
    thread, closed, open_turn = sizes.thread, sizes.closed, sizes.open_turn
    kept = set(map(id, sizes.list_ends()))
    firsts = [turn.first for turn in closed]
    firsts += [] if open_turn is None else [open_turn.first, *(group.steps[0] for group in open_turn.groups[2:])]
    starts: list[str | None] = [*firsts] if open_turn is not None else [*firsts, None]

    def plan_from(index: int) -> CompactionPlan:
        older = [group for turn in closed[:index] for group in turn.groups if id(group) in kept]
        carried = [group for group in thread.carried if id(group) in kept]
        steps = (step for group in (*carried, *older) if not group.pinned for step in group.steps)
        return CompactionPlan(first_kept=starts[index], kept_steps=tuple(steps))

    wanted = max(sizes.budget.target, int(sizes.count_current() * (1 - MIN_FREED_SHARE)))
    wanted = min(wanted, sizes.budget.available)
    # The later the kept part begins, the fewer tokens are left.
    index = bisect_left(range(len(starts)), True, key=lambda index: sizes.count_after(plan_from(index)) <= wanted)  # noqa: FBT003 - the value to find
    plan = plan_from(min(index, len(starts) - 1)) if starts else None
    if plan is None or sizes.count_kept(plan) + sizes.budget.least_summary > sizes.budget.available:
        return None
    return plan if _summarizes_anything(thread, plan) else None


def _summarizes_anything(thread: ThreadOutline, plan: CompactionPlan) -> bool:
    return any(not group.pinned for group in _list_covered(thread, plan))


def _list_covered(thread: ThreadOutline, plan: CompactionPlan) -> Iterable[ThreadGroup]:
    """Yield the groups before the kept part, without those that stay by name and the open turn's input."""
    kept = set(plan.kept_steps)
    for group in thread.carried:
        if kept.isdisjoint(group.steps):
            yield group
    for turn in thread.turns:
        if plan.first_kept == turn.first:
            return
        for group in turn.groups[1:] if turn.is_open else turn.groups:
            if turn.is_open and plan.first_kept == group.steps[0]:
                return
            if kept.isdisjoint(group.steps):
                yield group


class _ThreadSizes:
    """Token counts of a thread, by what is kept of it.

    Attributes:
        thread: The thread.
        budget: The limits.
        closed: Its closed turns.
        open_turn: Its open turn; None if there is none.
        fixed: Tokens that stay in any case: system prompt, tools and carried pins.
        target: Tokens to reach besides the summary.
    """

    def __init__(self, thread: ThreadOutline, budget: CompactionBudget) -> None:
        self.thread = thread
        self.budget = budget
        self.closed = [turn for turn in thread.turns if not turn.is_open]
        self.open_turn = thread.turns[-1] if thread.turns and thread.turns[-1].is_open else None
        self.fixed = sum(budget.fixed.values()) + _count_pinned_tokens(thread.carried)
        summary = self.expect_summary(group for turn in thread.turns for group in turn.groups)
        self.target = min(budget.target, budget.available) - summary

    def expect_summary(self, covered: Iterable[ThreadGroup]) -> int:
        """Return the tokens that a summary with these groups is expected to have."""
        messages = [each for group in covered for each in group.messages]
        quoted = sum(each.tokens for each in messages if each.is_input)
        others = sum(each.tokens for each in messages) - quoted
        expected = self.thread.summary_tokens + quoted + others // EXPECTED_SUMMARY_DIVISOR
        return min(self.budget.summary, max(expected, self.budget.least_summary))

    def compute_summary_limit(self, plan: CompactionPlan) -> int:
        """Return the tokens of a summary with which a plan reaches the target, or half of the limit if none does.

        A summary may always be as long as the one before, so that what was kept can stay.
        """
        left = min(self.budget.target, self.budget.available) - self.count_kept(plan)
        is_useful = left >= self.budget.available // MIN_SUMMARY_DIVISOR
        wanted = left if is_useful else self.budget.summary // 2
        return min(self.budget.summary, max(wanted, self.thread.summary_tokens))

    def count_after(self, plan: CompactionPlan) -> int:
        """Return the tokens that are expected to be left after a plan."""
        covered = [group for group in _list_covered(self.thread, plan) if not group.pinned]
        return self.count_kept(plan) + self.expect_summary(covered)

    def count_kept(self, plan: CompactionPlan) -> int:
        """Return the tokens that a plan keeps, without the summary."""
        covered = _count_unpinned_tokens(_list_covered(self.thread, plan))
        return self.count_current() - self.thread.summary_tokens - covered

    def count_current(self) -> int:
        """Return the tokens of the thread without a compaction."""
        unpinned = _count_unpinned_tokens(self.thread.carried)
        turns = sum(turn.tokens for turn in self.thread.turns)
        return self.fixed + unpinned + self.thread.summary_tokens + turns

    def compute_freed_share(self, plan: CompactionPlan) -> float:
        """Return the share of the present tokens that a plan is expected to free."""
        before = self.count_current()
        return 1 - self.count_after(plan) / before if before else 0.0

    def count_with_turns(self, keep: int) -> int:
        """Return the tokens of the newest closed turns, the open one and older pins, without a summary."""
        first = len(self.closed) - keep
        pinned = sum(_count_pinned_tokens(turn.groups) for turn in self.closed[:first])
        open_tokens = self.open_turn.tokens if self.open_turn else 0
        return self.fixed + pinned + sum(turn.tokens for turn in self.closed[first:]) + open_tokens

    def count_fitting_turns(self) -> int:
        """Return how many of the newest closed turns fit into the target beside a summary."""
        available = self.target - self.count_with_turns(0)
        sizes = (_count_unpinned_tokens(turn.groups) for turn in reversed(self.closed))
        return _count_fitting(sizes, available)

    def count_fitting_groups(self) -> int:
        """Return how many of the newest groups of the open turn fit (at least 1), or 0 if it has only one."""
        if self.open_turn is None or len(self.open_turn.groups) < 2:  # noqa: PLR2004 - only the user message
            return 0
        event, *groups, newest = self.open_turn.groups
        pinned = sum(_count_pinned_tokens(turn.groups) for turn in self.closed) + _count_pinned_tokens(groups)
        available = self.target - self.fixed - pinned - event.tokens - newest.tokens
        return 1 + _count_fitting((0 if group.pinned else group.tokens for group in reversed(groups)), available)

    def drops_short_ends(self, plan: CompactionPlan) -> bool:
        """True if a plan summarizes questions and answers of the newest closed turns, although they are short."""
        covered = set(map(id, _list_covered(self.thread, plan)))
        dropped = [group for group in self.list_ends() if id(group) in covered and not group.pinned]
        return 0 < _count_tokens(dropped) <= self.budget.target // MAX_ENDS_DIVISOR

    def list_ends(self) -> list[ThreadGroup]:
        """Return inputs and answers of the newest closed turns, and pinned groups, oldest first.

        Ends of turns that an earlier compaction shortened are among the carried groups.
        """
        wanted = self.budget.keep_turns
        turns = self.closed[-wanted:]
        carried = [group for group in self.thread.carried if not group.pinned]
        ends = carried[-2 * (wanted - len(turns)) :] if len(turns) < wanted else []
        for turn in self.closed:
            kept = {id(group) for group in _list_turn_ends(turn)} if turn in turns else set()
            ends += [group for group in turn.groups if group.pinned or id(group) in kept]
        return ends


def _list_turn_ends(turn: ThreadTurn) -> list[ThreadGroup]:
    """Return the input and the answer of a turn. A last group with tool calls does not count as an answer."""
    last = turn.groups[-1]
    is_answer = len(turn.groups) > 1 and len(last.messages) == 1 and last.messages[0].message.role == "assistant"
    return [turn.groups[0], last] if is_answer else [turn.groups[0]]


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


def _count_unpinned_tokens(groups: Iterable[ThreadGroup]) -> int:
    return _count_tokens(group for group in groups if not group.pinned)


def _count_tokens(groups: Iterable[ThreadGroup]) -> int:
    return sum(group.tokens for group in groups)
