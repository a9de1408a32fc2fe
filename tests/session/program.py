"""A program with a tool loop that may be killed at any moment and started again: python program.py WORK URL ROUNDS."""

from __future__ import annotations

import sys
from typing import Any

from nexus_core import Nexus
from nexus_core.errors import PendingToolCallsError, TurnError
from nexus_core.session.session import Session
from tests.session.support import TOOLS, calls, says


def main(work: str, url: str, rounds: int) -> None:
    with Nexus(work, ledger=url, installed=False, layers=False) as nexus:
        session = nexus.session("s", model="claude-sonnet-4", tools=TOOLS)
        if session.messages and not is_open(session):
            return
        while not converse(session, rounds):
            pass


def is_open(session: Session) -> bool:
    try:
        session.preview()
    except TurnError:
        return False
    return True


def converse(session: Session, rounds: int) -> bool:
    """One call of the model and all it asks for; says whether that was the last."""
    context = begin(session)
    number = sum(message.role == "assistant" for message in context.progress)
    step = session.record(reply(number, rounds))
    tell(step.id)
    for call in step.tool_calls:
        tell(session.record(call.result(f"result {call.id}")).id)
    return step.done


def begin(session: Session) -> Any:
    try:
        return session.next()
    except PendingToolCallsError:
        for call in session.pending_calls:
            tell(session.record(call.result(f"result {call.id}")).id)
        return session.next()
    except TurnError:
        return session.ask("Why?")


def reply(number: int, rounds: int) -> dict[str, Any]:
    name = f"msg_{number}"
    return calls(f"{number}a", f"{number}b", name=name) if number < rounds else says("Because.", name=name)


def tell(step: str) -> None:
    """Say what is recorded: from here on it must not be lost."""
    print(step, flush=True)  # noqa: T201 - the one who kills is listening


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
