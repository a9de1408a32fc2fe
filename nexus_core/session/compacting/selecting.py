"""What is summarised of a session and what stays, on which occasion."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.compaction.composing import summary_room
from nexus_core.compaction.options import compaction_options
from nexus_core.compaction.planning import select_steps
from nexus_core.session.asking.triggering import target_of
from nexus_core.session.compacting.outlining import outline_session
from nexus_core.types.compaction import CompactionBudget, CompactionReport

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from nexus_core.compaction.options import CompactionOptions
    from nexus_core.compaction.planning import Selection
    from nexus_core.session.asking.planning import Plan
    from nexus_core.session.compacting.compact import CompactionThread
    from nexus_core.session.compacting.outlining import Outlined
    from nexus_core.session.steps.state import State
    from nexus_core.types.compaction import CompactionTrigger


LEAST = 100
"""Tokens. Less is not worth a summary: what stands around it takes half of that."""
WORTH = 0.75
"""A summary takes no more than this share of what it stands for, beside what an earlier one took."""


class CompactionReason(NamedTuple):
    """Why a session is compacted.

    Attributes:
        trigger: Why.
        focus: What the user wants to be kept above all.
        most: The tokens that a call may use; None for what is known of the model.
        learnt: What was just learnt of a provider, as a step says it: how it counts, and its window.
    """

    trigger: CompactionTrigger
    focus: str = ""
    most: int | None = None
    learnt: Mapping[str, object] = MappingProxyType({})


class Chosen(NamedTuple):
    """What becomes of a session.

    Attributes:
        occasion: Why.
        options: What the settings say.
        outlined: The session as it is.
        selection: What is summarised, and what stays.
        budget: How short it should become.
    """

    occasion: CompactionReason
    options: CompactionOptions
    outlined: Outlined
    selection: Selection
    budget: CompactionBudget

    @property
    def before(self) -> int:
        """What the next call would take as it is."""
        return self.fixed + self.outlined.tokens

    @property
    def fixed(self) -> int:
        """What system prompt and tools take."""
        return sum(self.budget.fixed.values())

    @property
    def room(self) -> int:
        """What the summary may take: no more than there is room for, and than is worth it."""
        worth = self.outlined.thread.summary_tokens + int(self.selection.covered_tokens * WORTH)
        return max(min(self.selection.room, worth), 1)

    @property
    def pinned(self) -> tuple[str, ...]:
        """The steps that stay although what comes behind them is summarised."""
        return tuple(dict.fromkeys(step for group in self.selection.pinned for step in group.steps))

    def concerns(self, steps: Collection[str]) -> bool:
        """Whether it matters that somebody pins some of the steps, or lets go of them."""
        groups = (*self.selection.covered, *self.selection.pinned)
        return any(each.step in steps or each.turn in steps for group in groups for each in group.messages)

    def report(self) -> CompactionReport:
        """What is going to be done."""
        covered = self.selection.covered_messages
        return CompactionReport(
            step=None,
            trigger=self.occasion.trigger,
            turns=len({each.turn for each in covered if each.turn}),
            messages=len(covered),
            first_kept=self.selection.plan.first_kept,
            pinned=self.pinned,
            tokens_before=self.before,
            tokens_after=self.fixed + self.selection.kept_tokens + self.room,
            available=self.budget.available,
            planner=self.selection.planner,
        )


def choose(thread: CompactionThread, state: State, plan: Plan, occasion: CompactionReason) -> Chosen | None:
    """What becomes of a session; None where there is nothing that is worth a summary.

    Raises:
        BudgetError: What must stay does not fit, whatever is summarised.
        PluginError: A plugin's plan would tear apart what belongs together.
    """
    if state.tip is None:
        return None
    options, scales = compaction_options(plan.standing.settings), plan.window.scales
    most = plan.window.most if occasion.most is None else occasion.most
    outlined = outline_session(thread.tail, state, scales, plan.event)
    budget = CompactionBudget(
        available=most,
        target=target_of(options, occasion.trigger, most),
        fixed=plan.call.fixed,
        summary=summary_room(options, most),
        keep_turns=options.keep_turns,
    )
    selection = select_steps(thread.place.host, outlined.thread, budget, scales.counter)
    if selection is None or (selection.covered_tokens < LEAST and not selection.is_outgrown):
        return None
    return Chosen(occasion, options, outlined, selection, budget)
