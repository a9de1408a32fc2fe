"""Threads of a million turns, and ledgers of many sessions, made in seconds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nexus_core.ledger.codec import build_step_row, build_step_rows, encode_step
from nexus_core.ledger.store import BranchRow, HistoryRow, ParentRef, SessionRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.types.ledger import NewStep
    from nexus_plugins.ledger.sqlite import SqliteLedger

PIECE = 10_000
"""Turns that are written at once."""
START = 1_700_000_000_000
"""The time of the first step, in milliseconds since 1970."""


def build_thread(ledger: SqliteLedger, turns: int, step: NewStep) -> str:
    """A session `long` of so many turns that are all alike, put into the tables in large pieces; its tip."""
    ledger.create("long")
    store = ledger.store
    new = encode_step(step, "", START)
    place: list[ParentRef | None] = [None]

    def fill(numbers: range) -> None:
        for number in numbers:
            row = build_step_row(new._replace(id=f"{number:026d}"), place[0], turn=None, branch=f"{0:026d}")
            if place[0] is None:
                store.add_branch(BranchRow(row.branch, None, -1))
            store.add_steps([row])
            place[0] = ParentRef(*(getattr(row, field) for field in ParentRef._fields))

    for begin in range(0, turns, PIECE):
        store.write(partial(fill, range(begin, min(begin + PIECE, turns))))
    tip = f"{turns - 1:026d}"

    def point() -> None:
        session = store.session("long")
        if session is not None:
            store.save_session(session._replace(head=tip, tip=tip).with_digest())
            store.add_history([HistoryRow(session.id, tip, "turn", 0).with_digest()])

    store.write(point)
    return tip


def build_sessions(ledger: SqliteLedger, sessions: int, steps: Sequence[NewStep]) -> None:
    """Write so many sessions of the same steps into the tables, in one transaction; `verify` finds nothing wrong."""
    store, new = ledger.store, [encode_step(step, "", START) for step in steps]

    def fill() -> None:
        for number in range(sessions):
            first, created = number * (len(new) + 1), START + number
            named = [each._replace(id=f"{first + place:026d}", created=created) for place, each in enumerate(new, 1)]
            rows = build_step_rows(named, None, turn=None, branch=named[0].id)
            heads = [row for row in rows if row.closes]
            session = SessionRow(
                id=f"{first:026d}",
                label=f"session {number}",
                head=heads[-1].id if heads else None,
                tip=rows[-1].id,
                open_turn=None if rows[-1].closes else rows[-1].turn,
                status="active",
                origin="",
                created=created,
                updated=created,
                data='{"cwd":"/srv/shop","model":"m"}',
            )
            store.add_branch(BranchRow(rows[0].branch, None, -1))
            store.add_steps(rows)
            store.save_session(session.with_digest())
            store.add_history([HistoryRow(session.id, row.id, row.kind, created).with_digest() for row in heads])

    store.write(fill)
