"""What speaks against another compaction, told from the steps of a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.compaction.breaker import Gain, why_to_stop
from nexus_core.session.asking.triggering import turns_since
from nexus_core.session.compacting.outlining import gains_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.session.steps.tail import Tail
    from nexus_core.values.ledger import Step

_ANSWERS = ("reply", "turn")


def why_not_again(tail: Tail, tip: Step, keep_turns: int) -> str:
    """Why a thread must not be compacted by itself now; "" where nothing speaks against it.

    Args:
        tail: The thread.
        tip: Its newest step.
        keep_turns: How many turns a compaction keeps.
    """
    if tip.compaction is None:
        gains: tuple[tuple[int, int], ...] = ()
    else:
        gains = gains_of(tail.step(tip.compaction))
    return why_to_stop(
        [Gain(*each) for each in gains],
        since_reply=len(compactions_since_reply(tail, tip)),
        turns_since=turns_since(tail, tip),
        keep_turns=keep_turns,
    )


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
