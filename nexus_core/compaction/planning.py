"""Which steps of a thread are summarised, and which stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import BudgetError, PluginError
from nexus_core.values.compaction import CompactionPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nexus_core.host.host import Host
    from nexus_core.values.compaction import CompactionBudget, ThreadGroup, ThreadMessage, ThreadOutline, ThreadTurn
    from nexus_core.values.counting import TokenCounter

LEAST_SUMMARY = 200
"""Tokens without which a summary says nothing."""


class Selection(NamedTuple):
    """What becomes of a thread.

    Attributes:
        plan: Where the part begins that stays.
        planner: The plugin that said so, "" for Nexus itself.
        turn: The turn in which that part begins, "" where nothing stays.
        covered: The groups that are summarised, oldest first.
        pinned: The groups before that part that stay all the same.
        kept: The groups from there on; what the open turn is about comes first, wherever it stands.
        room: How many tokens the summary may take.
    """

    plan: CompactionPlan
    planner: str
    turn: str
    covered: tuple[ThreadGroup, ...]
    pinned: tuple[ThreadGroup, ...]
    kept: tuple[ThreadGroup, ...]
    room: int

    @property
    def covered_tokens(self) -> int:
        """What is summarised takes."""
        return _tokens(self.covered)

    @property
    def kept_tokens(self) -> int:
        """What stays takes."""
        return _tokens(self.kept) + _tokens(self.pinned)

    @property
    def covered_messages(self) -> tuple[ThreadMessage, ...]:
        """What is summarised."""
        return tuple(each for group in self.covered for each in group.messages)

    @property
    def kept_messages(self) -> tuple[ThreadMessage, ...]:
        """What stays."""
        return tuple(each for group in (*self.pinned, *self.kept) for each in group.messages)


def select_steps(
    host: Host, thread: ThreadOutline, budget: CompactionBudget, counter: TokenCounter
) -> Selection | None:
    """What becomes of a thread; None where there is nothing to summarise.

    A plugin may say where the part begins that stays (`nexus_compaction_plan`); otherwise `plan_compaction` does.

    Raises:
        BudgetError: What must stay does not fit, whatever is summarised; it lists what that is.
        PluginError: A plugin's plan would tear apart what belongs together.
    """
    require_floor(thread, budget)
    answer = host.compaction_plan(thread, budget, counter)
    if answer is not None:
        plan, plugin = answer
        return _selected(thread, budget, plan, plugin)
    own = plan_compaction(thread, budget)
    return None if own is None else _selected(thread, budget, own, "")


def plan_compaction(thread: ThreadOutline, budget: CompactionBudget) -> CompactionPlan | None:
    """Nexus's own plan; None where there is nothing to summarise.

    Of the closed turns those stay that fit into the target, but at least `keep_turns`. Fewer stay only where that many
    do not fit at all; and only where the open turn alone does not fit, the part that stays begins inside of it.
    """
    closed = [turn for turn in thread.turns if not turn.is_open]
    ending = _open_turn(thread)
    weights = _Weights(thread, budget, closed, ending)
    keep = max(weights.most_turns(), min(budget.keep_turns, len(closed)))
    if keep == len(closed) and all(group.pinned for group in thread.carried):
        if weights.as_it_is() <= budget.available:
            return None
        keep = max(keep - 1, 0)
    while keep > 0 and weights.with_turns(keep) + least_summary(budget) > budget.available:
        keep -= 1
    if keep > 0:
        return CompactionPlan(first_kept=closed[-keep].first)
    if ending is None:
        return CompactionPlan(first_kept=None) if closed else None
    if closed and weights.with_turns(0) + least_summary(budget) <= budget.available:
        return CompactionPlan(first_kept=ending.first)
    keep = weights.most_groups()
    if keep == len(ending.groups) - 1 and not closed:
        keep -= 1  # something has to go
    return CompactionPlan(first_kept=ending.groups[-keep].steps[0]) if keep > 0 else None


def require_floor(thread: ThreadOutline, budget: CompactionBudget) -> None:
    """Refuse to summarise where what must stay does not fit.

    Raises:
        BudgetError: It lists what must stay: the fixed parts, what the open turn is about and its newest group, what is
            pinned, and the shortest summary.
    """
    parts = dict(budget.fixed)
    ending = _open_turn(thread)
    stays = [] if ending is None else [*ending.groups[:1], *ending.groups[1:][-1:]]
    for name, group in zip(("event", "newest group"), stays, strict=False):
        parts[name] = parts.get(name, 0) + group.tokens
    others = [group for group in _all_groups(thread) if all(group is not each for each in stays)]
    parts["pinned"] = _tokens(group for group in others if group.pinned)
    parts["summary"] = (
        least_summary(budget) if thread.summary_tokens or not all(group.pinned for group in others) else 0
    )
    needed = sum(parts.values())
    if needed > budget.available:
        raise BudgetError(needed, budget.available, {name: tokens for name, tokens in parts.items() if tokens})


def least_summary(budget: CompactionBudget) -> int:
    """The room without which nothing is summarised."""
    return min(LEAST_SUMMARY, budget.summary)


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


def _selected(thread: ThreadOutline, budget: CompactionBudget, plan: CompactionPlan, planner: str) -> Selection:
    """What a plan means, group by group."""
    turn = _turn_of(thread, plan, planner)
    covered = [group for group in thread.carried if not group.pinned]
    pinned = [group for group in thread.carried if group.pinned]
    kept: list[ThreadGroup] = []
    has_begun = False
    for each, group in _groups_of_turns(thread):
        has_begun = has_begun or (each.id == turn and _begins(each, group, plan.first_kept))
        is_event = each.is_open and group is each.groups[0]
        if has_begun or is_event:
            kept.append(group)
        else:
            (pinned if group.pinned else covered).append(group)
    left = budget.available - sum(budget.fixed.values()) - _tokens(kept) - _tokens(pinned)
    wanted = budget.summary if plan.summary_tokens is None else min(plan.summary_tokens, budget.summary)
    if planner and (left < least_summary(budget) or not covered):
        raise _broken(planner, "keeps more than fits" if covered else "summarises nothing")
    return Selection(plan, planner, turn, tuple(covered), tuple(pinned), tuple(kept), max(min(wanted, left), 1))


def _turn_of(thread: ThreadOutline, plan: CompactionPlan, planner: str) -> str:
    """The turn in which what stays begins."""
    if plan.first_kept is None:
        if _open_turn(thread) is not None:
            raise _broken(planner, "keeps nothing of the open turn")
        return ""
    for turn, group in _groups_of_turns(thread):
        if _begins(turn, group, plan.first_kept):
            return turn.id
    raise _broken(planner, f"begins with step {plan.first_kept}, which begins no turn and no group of the open one")


def _begins(turn: ThreadTurn, group: ThreadGroup, step: str | None) -> bool:
    if group is turn.groups[0]:
        return step == turn.first
    return turn.is_open and step == group.steps[0]


def _open_turn(thread: ThreadOutline) -> ThreadTurn | None:
    return thread.turns[-1] if thread.turns and thread.turns[-1].is_open else None


def _groups_of_turns(thread: ThreadOutline) -> Iterator[tuple[ThreadTurn, ThreadGroup]]:
    return ((turn, group) for turn in thread.turns for group in turn.groups)


def _all_groups(thread: ThreadOutline) -> Iterator[ThreadGroup]:
    yield from thread.carried
    yield from (group for _, group in _groups_of_turns(thread))


def _pins(groups: Iterable[ThreadGroup]) -> int:
    return _tokens(group for group in groups if group.pinned)


def _tokens(groups: Iterable[ThreadGroup]) -> int:
    return sum(group.tokens for group in groups)


def _broken(planner: str, what: str) -> PluginError:
    return PluginError(f"its plan {what}", plugin=planner or "nexus", hook="nexus_compaction_plan")
