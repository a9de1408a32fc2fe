"""When a conversation is to be compacted by itself, and how short it should become."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.compaction.options import read_compaction_options
from nexus_core.thread.totals import count_turns
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.compaction.options import CompactionOptions
    from nexus_core.request.build import CallPlan
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.types.compaction import CompactionTrigger
    from nexus_core.types.ledger import Step

COMPACTION_DUE = "compaction-due"
"""The code of what a preview says about it."""


def find_trigger(
    options: CompactionOptions, cache: ThreadCache, tip: Step, taken: int, most: int
) -> CompactionTrigger | None:
    """Why earlier turns should be summarised before the next call; None where nothing calls for it.

    Args:
        options: What the settings say.
        cache: The thread.
        tip: Its newest step.
        taken: The tokens of the next call, if nothing is left out.
        most: The tokens that a call may use.
    """
    if not options.enabled:
        return None
    if taken >= compute_trigger_tokens(options, most):
        return "context_limit"
    if options.trigger_turns is not None and count_turns_since_compaction(cache, tip) >= options.trigger_turns:
        return "periodic"
    return None


def compute_trigger_tokens(options: CompactionOptions, most: int) -> int:
    """From how many tokens on earlier turns are summarised."""
    return min(int(most * options.trigger_ratio), most if options.trigger_tokens is None else options.trigger_tokens)


def compute_target_tokens(options: CompactionOptions, trigger: CompactionTrigger, most: int) -> int:
    """What a conversation should come down to; 0 for as little as may stay."""
    if trigger in ("manual", "periodic"):
        return 0
    if trigger == "overflow_recovery":
        return int(most * options.overflow_ratio)
    limit, target = compute_trigger_tokens(options, most), int(most * options.target_ratio)
    return target if target < limit else int(limit * options.target_ratio)  # otherwise it would be due at once


def count_turns_since_compaction(cache: ThreadCache, tip: Step) -> int:
    """How many turns were closed since the latest compaction, or at all."""
    before = 0 if tip.compaction is None else count_turns(cache, cache.get_step(tip.compaction))
    return count_turns(cache, tip) - before - (not tip.closes)


def build_due_finding(trigger: CompactionTrigger) -> Finding:
    """What somebody should know who only looks at what would be sent."""
    why = "it does not fit otherwise" if trigger == "context_limit" else "so many turns are there"
    return Finding(
        COMPACTION_DUE, f"earlier turns are summarised before this is sent, because {why}; here, they are left out"
    )


MIN_SAVINGS_SHARE = 0.1
"""A compaction that takes away less than this share was not worth it."""
MAX_SMALL_SAVINGS = 2
"""So many of those in a row are enough."""
MAX_COMPACTIONS_PER_REPLY = 2
"""So many compactions there may be without a reply between them."""


class Savings(NamedTuple):
    """What a compaction brought: tokens before and after."""

    before: int
    after: int

    @property
    def share(self) -> float:
        """The share that it took away; negative where it made things worse."""
        return (self.before - self.after) / self.before if self.before > 0 else 0.0

    @property
    def is_small(self) -> bool:
        """Whether it was not worth it."""
        return self.share < MIN_SAVINGS_SHARE


def find_stop_reason(recent: Sequence[Savings], *, since_reply: int, turns_since: int, keep_turns: int = 3) -> str:
    """Why a conversation must not be compacted now; "" where nothing speaks against it.

    Args:
        recent: What the latest compactions of the thread brought, the newest last; none where it cannot go on without
            another, however little that brings.
        since_reply: How many compactions there were since the last recorded reply.
        turns_since: How many turns were closed since the last compaction.
        keep_turns: How many turns a compaction keeps: with that many new ones, there is something to take away again.
    """
    if since_reply >= MAX_COMPACTIONS_PER_REPLY:
        return f"there were {since_reply} compactions since the last reply"
    last = recent[-MAX_SMALL_SAVINGS:]
    if len(last) == MAX_SMALL_SAVINGS and all(gain.is_small for gain in last) and turns_since < keep_turns:
        shares = " and ".join(f"{max(gain.share, 0):.0%}" for gain in last)
        return f"the last two compactions saved only {shares}"
    return ""


def read_savings(compaction: Step | None) -> tuple[tuple[int, int], ...]:
    """What a compaction and those before it brought, as it is written down."""
    gains = None if compaction is None else compaction.data.get("gains")
    return tuple((int(before), int(after)) for before, after in gains) if isinstance(gains, list) else ()


_ANSWERS = ("reply", "turn")


def find_cooldown_reason(cache: ThreadCache, tip: Step, plan: CallPlan) -> str:
    """Why a thread must not be compacted by itself now; "" where nothing speaks against it.

    Args:
        cache: The thread.
        tip: Its newest step.
        plan: What would be sent.
    """
    latest = None if tip.compaction is None or plan.overflows else cache.get_step(tip.compaction)
    since = [step for step in list_compactions_since_reply(cache, tip) if _was_for(step, plan.window.budget.available)]
    return find_stop_reason(
        [Savings(*each) for each in read_savings(latest)],
        since_reply=len(since),
        turns_since=count_turns_since_compaction(cache, tip),
        keep_turns=read_compaction_options(plan.window.settings).keep_turns,
    )


def _was_for(compaction: Step, limit: int) -> bool:
    """Whether a compaction was made for as small a window; one for a larger one was no try to fit into this."""
    available = compaction.data.get("limit")
    return not isinstance(available, int) or available <= limit


def list_compactions_since_reply(cache: ThreadCache, tip: Step) -> list[Step]:
    """The compactions since something was answered, whether they still count or not."""

    def has_answer(steps: Sequence[Step]) -> bool:
        return any(step.kind in _ANSWERS for step in steps)

    found: list[Step] = []
    for step in reversed(cache.read_newest(tip.id, has_answer)):
        if step.kind in _ANSWERS:
            break
        if step.kind == "compaction":
            found.append(step)
    return found
