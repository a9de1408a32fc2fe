"""Turns, read from the newest back; how much there is to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.history.ledger.reading import skip_reverted
from nexus_core.session.steps.numbering import continues, opens_turn
from nexus_core.session.steps.turns import Turn
from nexus_core.session.steps.walking import walk_back

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.ledger import Ledger, SessionRecord, Step

_FEW = 50
"""Steps that are read in one go where only some turns are wanted."""


def newest_turns(ledger: Ledger, record: SessionRecord, wanted: int | None) -> list[Turn]:
    """The newest turns of a session, oldest first, with the compactions, reverts and pins between and behind them.

    A turn that was kept in several pieces is one. What an import took back is left out.

    Args:
        ledger: Where it is.
        record: The session.
        wanted: How many turns of the conversation; None for all.
    """
    turns: list[Turn] = []
    counted = 0
    steps: list[Step] = []
    for step in skip_reverted(walk_back(ledger, record.tip, at_once=_FEW)):
        if steps and step.turn != steps[-1].turn and not continues(steps[-1]):
            turns.append(Turn(steps[::-1]))
            counted += opens_turn(steps[-1])
            steps = []
            if counted == wanted:
                break
        steps.append(step)
    else:
        turns += [Turn(steps[::-1])] if steps else []
    return turns[::-1]


def steps_up_to(ledger: Ledger, tips: Iterable[str | None]) -> int:
    """About how many steps lead to some; those that several share are counted more than once."""
    ends = [ledger.step(tip) for tip in tips if tip is not None]
    return sum(end.position + 1 for end in ends if end is not None)
