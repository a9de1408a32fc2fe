"""When a conversation is to be compacted by itself, and how short it should become."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.compaction.options import compaction_options
from nexus_core.thread.totals import turns_until
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.compaction.options import CompactionOptions
    from nexus_core.request.build import Plan
    from nexus_core.thread.cache import Tail
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


LEAST_GAIN = 0.1
"""A compaction that takes away less than this share was not worth it."""
MOST_SMALL = 2
"""So many of those in a row are enough."""
MOST_BETWEEN = 2
"""So many compactions there may be without a reply between them."""


class Gain(NamedTuple):
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
        return self.share < LEAST_GAIN


def why_to_stop(recent: Sequence[Gain], *, since_reply: int, turns_since: int, keep_turns: int = 3) -> str:
    """Why a conversation must not be compacted now; "" where nothing speaks against it.

    Args:
        recent: What the latest compactions of the thread brought, the newest last; none where it cannot go on without
            another, however little that brings.
        since_reply: How many compactions there were since the last recorded reply.
        turns_since: How many turns were closed since the last compaction.
        keep_turns: How many turns a compaction keeps: with that many new ones, there is something to take away again.
    """
    if since_reply >= MOST_BETWEEN:
        return f"there were {since_reply} compactions since the last reply"
    last = recent[-MOST_SMALL:]
    if len(last) == MOST_SMALL and all(gain.is_small for gain in last) and turns_since < keep_turns:
        shares = " and ".join(f"{max(gain.share, 0):.0%}" for gain in last)
        return f"the last two compactions saved only {shares}"
    return ""


def gains_of(compaction: Step | None) -> tuple[tuple[int, int], ...]:
    """What a compaction and those before it brought, as it is written down."""
    gains = None if compaction is None else compaction.data.get("gains")
    return tuple((int(before), int(after)) for before, after in gains) if isinstance(gains, list) else ()


_ANSWERS = ("reply", "turn")


def why_not_again(tail: Tail, tip: Step, plan: Plan) -> str:
    """Why a thread must not be compacted by itself now; "" where nothing speaks against it.

    Args:
        tail: The thread.
        tip: Its newest step.
        plan: What would be sent.
    """
    latest = None if tip.compaction is None or plan.overflows else tail.step(tip.compaction)
    since = [step for step in compactions_since_reply(tail, tip) if _was_for(step, plan.window.allowance.available)]
    return why_to_stop(
        [Gain(*each) for each in gains_of(latest)],
        since_reply=len(since),
        turns_since=turns_since(tail, tip),
        keep_turns=compaction_options(plan.standing.settings).keep_turns,
    )


def _was_for(compaction: Step, limit: int) -> bool:
    """Whether a compaction was made for as small a window; one for a larger one was no try to fit into this."""
    available = compaction.data.get("limit")
    return not isinstance(available, int) or available <= limit


def compactions_since_reply(tail: Tail, tip: Step) -> list[Step]:
    """The compactions since something was answered, whether they still count or not."""

    def has_answer(steps: Sequence[Step]) -> bool:
        return any(step.kind in _ANSWERS for step in steps)

    found: list[Step] = []
    for step in reversed(tail.newest(tip.id, has_answer)):
        if step.kind in _ANSWERS:
            break
        if step.kind == "compaction":
            found.append(step)
    return found
