"""Senders of user messages: who opened a turn, and for whom a worker was created."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.types.payloads import InputPayload

if TYPE_CHECKING:
    from nexus_core.types.ledger import Ledger, SessionRecord, Step

UNKNOWN_SENDER = "\ufffd"
"""The sender of an older worker whose parent is deleted: its turns are found for no sender, and it recalls none. A
ledger stores it unchanged."""
MAX_SPAWNING_TURNS = 100
"""Turns of a session, from the newest, among which the one that created a worker is looked for."""


def find_sender(ledger: Ledger, turn: str) -> str:
    """Return the sender of the message that opened a turn, or ""."""
    step = ledger.step(turn)
    return "" if step is None else read_sender(step)


def find_session_sender(ledger: Ledger, name: str) -> str:
    """Return the sender of those messages of a session that have none.

    For a worker, it is the sender of the message for which it was created, `UNKNOWN_SENDER` if that is not known any
    more; for other sessions, "".
    """
    record = ledger.session(name) if name else None
    seen: set[str] = set()
    while record is not None and record.label not in seen:
        stored, parent = record.payload.sender, record.payload.parent
        if stored is not None or parent is None:
            return stored or ""
        maker = ledger.session(parent)  # an older version stored the parent only
        if maker is None or maker.created > record.created:
            return UNKNOWN_SENDER
        sender = find_sender(ledger, _find_spawning_turn(ledger, record, maker))
        if sender:
            return sender
        seen.add(record.label)
        record = maker
    return ""


def _find_spawning_turn(ledger: Ledger, worker: SessionRecord, maker: SessionRecord) -> str:
    """Return the turn of a session in which it created a worker, or ""."""
    call = worker.payload.call
    step = None if call is None else ledger.step(call.step)
    if step is not None:
        return step.turn
    name = maker.tip
    for _ in range(MAX_SPAWNING_TURNS):
        step = None if name is None else ledger.step(name)
        opening = None if step is None else ledger.step(step.turn)
        if opening is None or opening.created <= worker.created:
            break
        name = opening.parent
    return "" if step is None else step.turn


def read_sender(step: Step) -> str:
    """Return the sender of a user message, or "" if it has none."""
    event = step.payload.event if isinstance(step.payload, InputPayload) else None
    sender = event.get("source") if event else None
    return sender if isinstance(sender, str) else ""
