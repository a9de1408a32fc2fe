"""Threads of a million turns, made in seconds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nexus_core.history.ledger.growing import draft, placed
from nexus_core.history.ledger.rows import BranchRow, HistoryRow, Place

if TYPE_CHECKING:
    from nexus_core.values.ledger import NewStep
    from nexus_plugins.ledger.sqlite import SqliteLedger

PIECE = 10_000
"""Turns that are written at once."""


def build_thread(ledger: SqliteLedger, turns: int, step: NewStep) -> str:
    """A session `long` of so many turns that are all alike, put into the tables in large pieces; its tip."""
    ledger.create("long")
    store = ledger.store
    new = draft(step, "", 1_700_000_000_000)
    place: list[Place | None] = [None]

    def fill(numbers: range) -> None:
        for number in numbers:
            row = placed(new._replace(id=f"{number:026d}"), place[0], turn=None, branch=f"{0:026d}")
            if place[0] is None:
                store.add_branch(BranchRow(row.branch, None, -1))
            store.add_steps([row])
            place[0] = Place(*(getattr(row, field) for field in Place._fields))

    for begin in range(0, turns, PIECE):
        store.write(partial(fill, range(begin, min(begin + PIECE, turns))))
    tip = f"{turns - 1:026d}"

    def point() -> None:
        session = store.session("long")
        if session is not None:
            store.save_session(session._replace(head=tip, tip=tip).sealed())
            store.add_history([HistoryRow(session.id, tip, "turn", 0).sealed()])

    store.write(point)
    return tip
