"""Which steps of a thread are summarised, and which stay as they are, as a plugin has planned it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import BudgetError, PluginError
from nexus_core.types.compaction import CompactionPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.host.manager import Host
    from nexus_core.types.budget import TokenCounter
    from nexus_core.types.compaction import (
        CompactionBudget,
        ThreadGroup,
        ThreadMessage,
        ThreadOutline,
        ThreadTurn,
    )

CORE = "nexus"
"""Who plans where no plugin does."""


class Selection(NamedTuple):
    """What becomes of a thread.

    Attributes:
        plan: Where the part begins that stays.
        planner: The plugin that said so.
        turn: The turn in which that part begins, "" where nothing stays.
        covered: The groups that are summarised, oldest first.
        pinned: The groups before that part that stay all the same.
        kept: The groups from there on; what the open turn is about comes first, wherever it stands.
        room: How many tokens the summary may take.
        is_outgrown: Whether the summary there is does not fit beside what must stay; then a shorter one is written,
            whatever else is summarised with it.
    """

    plan: CompactionPlan
    planner: str
    turn: str
    covered: tuple[ThreadGroup, ...]
    pinned: tuple[ThreadGroup, ...]
    kept: tuple[ThreadGroup, ...]
    room: int
    is_outgrown: bool = False

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

    Plugins say where the part begins that stays (`nexus_compaction_plan`). Where none does, and the summary there is
    does not fit any more because it was written for a larger window, that alone is made shorter.

    Raises:
        BudgetError: What must stay does not fit, whatever is summarised; it lists what that is.
        PluginError: A plugin's plan would tear apart what belongs together.
    """
    require_floor(thread, budget)
    answer = host.compaction_plan(thread, budget, counter)
    if answer is None and is_outgrown(thread, budget) and _fits_whole(thread, budget):
        answer = CompactionPlan(first_kept=thread.turns[0].first if thread.turns else None), CORE
    return None if answer is None else _selected(thread, budget, *answer)


def is_outgrown(thread: ThreadOutline, budget: CompactionBudget) -> bool:
    """Whether the summary of a thread does not fit beside what must stay."""
    return 0 < thread.summary_tokens > budget.available - sum(_floor(thread, budget).values())


def _fits_whole(thread: ThreadOutline, budget: CompactionBudget) -> bool:
    """Whether all of a thread fits beside a summary that is as short as may be."""
    return sum(budget.fixed.values()) + _tokens(_all_groups(thread)) + budget.least_summary <= budget.available


def require_floor(thread: ThreadOutline, budget: CompactionBudget) -> None:
    """Refuse to summarise where what must stay does not fit.

    Raises:
        BudgetError: It lists what must stay: the fixed parts, what the open turn is about and its newest group, what is
            pinned, and the shortest summary.
    """
    parts = _floor(thread, budget)
    if thread.summary_tokens or not all(group.pinned for group in _others(thread)):
        parts["summary"] = budget.least_summary
    needed = sum(parts.values())
    if needed > budget.available:
        raise BudgetError(needed, budget.available, {name: tokens for name, tokens in parts.items() if tokens})


def _floor(thread: ThreadOutline, budget: CompactionBudget) -> dict[str, int]:
    """What must stay besides a summary, tokens by name."""
    parts = dict(budget.fixed)
    for name, group in zip(("event", "newest group"), _ends(thread), strict=False):
        parts[name] = parts.get(name, 0) + group.tokens
    parts["pinned"] = _tokens(group for group in _others(thread) if group.pinned)
    return parts


def _ends(thread: ThreadOutline) -> list[ThreadGroup]:
    """What the open turn is about, and its newest group."""
    ending = _open_turn(thread)
    return [] if ending is None else [*ending.groups[:1], *ending.groups[1:][-1:]]


def _others(thread: ThreadOutline) -> list[ThreadGroup]:
    ends = _ends(thread)
    return [group for group in _all_groups(thread) if all(group is not each for each in ends)]


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
    outgrown = is_outgrown(thread, budget)
    if not covered and not outgrown:
        raise _broken(planner, "summarises nothing")
    if left < budget.least_summary:
        raise _broken(planner, "keeps more than fits")
    room = max(min(wanted, left), 1)
    return Selection(plan, planner, turn, tuple(covered), tuple(pinned), tuple(kept), room, outgrown)


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


def _tokens(groups: Iterable[ThreadGroup]) -> int:
    return sum(group.tokens for group in groups)


def _broken(planner: str, what: str) -> PluginError:
    return PluginError(f"its plan {what}", plugin=planner, hook="nexus_compaction_plan")
