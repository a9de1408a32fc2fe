"""When a conversation is to be compacted by itself, and how short it should become."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.session.steps.numbering import turns_until
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from nexus_core.compaction.options import CompactionOptions
    from nexus_core.session.steps.tail import Tail
    from nexus_core.types.compaction import CompactionTrigger
    from nexus_core.types.ledger import Step

DUE = "compaction-due"
"""The code of what a preview says about it."""


def find_trigger(options: CompactionOptions, tail: Tail, tip: Step, taken: int, most: int) -> CompactionTrigger | None:
    """Why earlier turns should be summarised before the next call; None where nothing calls for it.

    Args:
        options: What the settings say.
        tail: The thread.
        tip: Its newest step.
        taken: The tokens of the next call, if nothing is left out.
        most: The tokens that a call may use.
    """
    if not options.enabled:
        return None
    if taken >= limit_of(options, most):
        return "context_limit"
    if options.trigger_turns is not None and turns_since(tail, tip) >= options.trigger_turns:
        return "periodic"
    return None


def limit_of(options: CompactionOptions, most: int) -> int:
    """From how many tokens on earlier turns are summarised."""
    return min(int(most * options.trigger_ratio), most if options.trigger_tokens is None else options.trigger_tokens)


def target_of(options: CompactionOptions, trigger: CompactionTrigger, most: int) -> int:
    """What a conversation should come down to; 0 for as little as may stay."""
    if trigger in ("manual", "periodic"):
        return 0
    if trigger == "overflow_recovery":
        return int(most * options.overflow_ratio)
    limit, target = limit_of(options, most), int(most * options.target_ratio)
    return target if target < limit else int(limit * options.target_ratio)  # otherwise it would be due at once


def turns_since(tail: Tail, tip: Step) -> int:
    """How many turns were closed since the latest compaction, or at all."""
    before = 0 if tip.compaction is None else turns_until(tail, tail.step(tip.compaction))
    return turns_until(tail, tip) - before - (not tip.closes)


def due_finding(trigger: CompactionTrigger) -> Finding:
    """What somebody should know who only looks at what would be sent."""
    why = "it does not fit otherwise" if trigger == "context_limit" else "so many turns are there"
    return Finding(DUE, f"earlier turns are summarised before this is sent, because {why}; here, they are left out")
