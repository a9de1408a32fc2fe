"""What speaks against another compaction, told from the steps of a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.compaction.breaker import Gain, gains_of, why_to_stop
from nexus_core.compaction.options import compaction_options
from nexus_core.session.asking.triggering import turns_since

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.session.asking.planning import Plan
    from nexus_core.session.steps.tail import Tail
    from nexus_core.types.ledger import Step

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
