"""Turns, read from the newest back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.session.turns import Turn
from nexus_core.session.walking import walk_back

if TYPE_CHECKING:
    from nexus_core.values.ledger import Ledger, SessionRecord, Step

_FEW = 50
"""Steps that are read in one go where only some turns are wanted."""


def newest_turns(ledger: Ledger, record: SessionRecord, wanted: int | None) -> list[Turn]:
    """The newest turns of a session, oldest first.

    Args:
        ledger: Where it is.
        record: The session.
        wanted: How many; None for all.
    """
    if record.tip is None:
        return []
    turns: list[Turn] = []
    steps: list[Step] = []
    for step in walk_back(ledger, record.tip, at_once=_FEW):
        if steps and step.turn != steps[-1].turn:
            turns.append(Turn(steps[::-1]))
            steps = []
            if len(turns) == wanted:
                break
        steps.append(step)
    else:
        turns.append(Turn(steps[::-1]))
    return turns[::-1]
