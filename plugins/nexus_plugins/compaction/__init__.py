"""Decides what stays when a conversation gives way to a summary: the newest turns, as many as fit into the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from nexus_core.plugin import CompactionBudget, CompactionPlan, ThreadOutline


@hookimpl
def nexus_compaction_plan(thread: ThreadOutline, budget: CompactionBudget) -> CompactionPlan | None:
    """At least `compaction.keep_turns` closed turns, as long as that many fit at all; then a part of the open one."""
    from nexus_plugins.compaction._planning import plan_compaction  # noqa: PLC0415 - most conversations are short

    return plan_compaction(thread, budget)
