"""The default compaction plan: the newest turns that fit the target stay.

_plan.py    choice of the turns that stay
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from nexus_core.plugin import CompactionBudget, CompactionPlan, ThreadOutline


@hookimpl
def nexus_compaction_plan(thread: ThreadOutline, budget: CompactionBudget) -> CompactionPlan | None:
    """Return a plan that keeps the newest turns: those that fit the target, and at least `compaction.keep_turns`."""
    from nexus_plugins.compaction._plan import plan_compaction

    return plan_compaction(thread, budget)
