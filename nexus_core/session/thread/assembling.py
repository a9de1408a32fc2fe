"""What would be sent, for whoever only wants to look: nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.assembly.call import assemble
from nexus_core.errors import BudgetError, TurnError, UnknownNameError
from nexus_core.session.drivers import wait
from nexus_core.session.thread.appending import ensure_not_archived

if TYPE_CHECKING:
    from nexus_core.session.asking.inputs import Said
    from nexus_core.session.drivers import Work
    from nexus_core.session.steps.state import State
    from nexus_core.session.steps.turns import Turn
    from nexus_core.session.thread.reader import ThreadReader
    from nexus_core.types.assembled import AssembledContext


def assemble_for(thread: ThreadReader, said: Said | None, *, must_fit: bool) -> Work[AssembledContext]:
    """What a session that has to be there would send; without a message also where no turn is open.

    Args:
        thread: The session.
        said: What is said; None for nothing.
        must_fit: Whether it is an error if it does not fit.
    """
    state = yield from wait(thread.read)
    if thread.label and state.record is None:
        known = yield from wait(thread.labels)
        raise UnknownNameError("session", thread.label, known)
    return (yield from try_out(thread, state, said, must_fit=must_fit))


def try_out(thread: ThreadReader, state: State, said: Said | None, *, must_fit: bool = True) -> Work[AssembledContext]:
    """What a session would send from where it stands; arguments as above."""
    if said is not None:
        ensure_not_archived(state)
        if state.open_turn is not None:
            raise already_open(thread.label, state.open_turn)
    plan = yield from wait(thread.plan, state, said)
    findings = plan.call.findings
    if said is None and state.turn is not None:
        from nexus_core.session.asking.unsendable import find_unsendable

        findings = (*findings, *find_unsendable(state.turn, plan.call.sent))
    if plan.due is not None:
        from nexus_core.session.asking.triggering import due_finding

        findings = (*findings, due_finding(plan.due))
    try:
        return (yield from wait(assemble, plan.call._replace(must_fit=must_fit, findings=findings)))
    except BudgetError as error:
        from nexus_core.session.asking.large_pieces import name_large_pieces

        raise name_large_pieces(error, plan.call.placements()) from None


def already_open(label: str, turn: Turn) -> TurnError:
    """Why nothing can be said now."""
    from shlex import quote

    waiting = f", and waits for {', '.join(map(str, turn.pending))}" if turn.pending else ""
    name = quote(label)
    going_on = "record these results, then next() goes on with it" if turn.pending else "next() goes on with it"
    return TurnError(
        f"a turn is open in session {label!r} already{waiting}",
        hint=f"{going_on}, interrupt=True gives it up; if another program works on it, fork the session",
        command=f"`nexus assemble --session {name}`, without a message, prints what it sends now; "
        f"`nexus session record {name} --discard-open-turn` gives it up; "
        f"`nexus session fork {name} NEW` leaves it alone",
    )
