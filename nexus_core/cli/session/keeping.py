"""Recording what was given, one thing after the other, and saying what became of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.cli.session.items import Answer, Ask, Item, Keep
from nexus_core.cli.session.step_facts import call_facts, written_key
from nexus_core.dialects.finding import BUILT_IN
from nexus_core.dialects.neutral import to_json
from nexus_core.errors import BudgetError, TurnError, UnknownNameError, UsageError
from nexus_core.session.asking.inputs import read_input
from nexus_core.session.steps.tail import Tail
from nexus_core.session.steps.turns import Turn

if TYPE_CHECKING:
    from nexus_core.session.session import Session
    from nexus_core.session.steps.recorded import RecordedCall, RecordedStep
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.ledger import Ledger, Step


class Kept(NamedTuple):
    """Something that is recorded.

    Attributes:
        step: The step that has it.
        recorded: What the session says of it; None for a message that opened a turn.
        is_known: Whether it was recorded before.
        does_not_fit: Why nothing can be sent now, though it is recorded.
        context: What is to be sent now, where a message has just opened a turn.
    """

    step: Step
    recorded: RecordedStep | None = None
    is_known: bool = False
    does_not_fit: BudgetError | None = None
    context: AssembledContext | None = None

    def facts(self) -> dict[str, object]:
        """All of it, for JSON."""
        said = self.recorded
        return {
            "step": self.step.id,
            "turn": self.step.turn,
            "kind": self.step.kind,
            "text": said.text if said else "",
            "tool_calls": [call_facts(call) for call in said.tool_calls] if said else [],
            "usage": asdict(said.usage) if said and said.usage else None,
            "done": self.step.closes,
            "duplicate": self.is_known,
        }


def keep(session: Session, ledger: Ledger, item: Item) -> Kept:
    """Record one thing.

    Raises:
        TurnError: The session does not expect it now.
        ConflictError: Somebody else has gone on with the session.
    """
    try:
        if isinstance(item, Ask):
            return _ask(session, ledger, item)
        given = item.given if isinstance(item, Keep) else _result(session, ledger, item)
        interrupted = item.interrupted if isinstance(item, Keep) else None
        return _kept(ledger, session.record(given, interrupted=interrupted))
    except TurnError as error:
        error.command = _what_to_do(session, ledger) or error.command
        raise


def give_up(session: Session, ledger: Ledger) -> Kept | None:
    """End the turn that is open, if there is one."""
    step = session.interrupt()
    return None if step is None else _kept(ledger, step)


def _ask(session: Session, ledger: Ledger, item: Ask) -> Kept:
    opened = _open_step(session, ledger)
    # A script that was killed before it heard that its message is recorded says it again.
    if opened is not None and not item.interrupt and _says(opened, item.message):
        return Kept(opened, is_known=True)
    does_not_fit = context = None
    try:
        context = session.ask(item.message, interrupt=item.interrupt, **item.event)
    except BudgetError as error:
        does_not_fit = error
    opened = _open_step(session, ledger)
    assert opened is not None  # noqa: S101 - it has just been opened
    return Kept(opened, does_not_fit=does_not_fit, context=context)


def _open_step(session: Session, ledger: Ledger) -> Step | None:
    record = ledger.session(session.label)
    return None if record is None or record.open_turn is None else ledger.step(record.open_turn)


def _says(step: Step, message: object) -> bool:
    said = read_input(message, {}, BUILT_IN).message  # read already, or plain words
    return [to_json(each) for each in step.messages] == [to_json(said)]


def _result(session: Session, ledger: Ledger, item: Answer) -> Any:  # noqa: ANN401 - what `record` takes
    return _call(session, ledger, item.call).result(item.content, is_error=item.is_error)


def _call(session: Session, ledger: Ledger, name: str) -> RecordedCall:
    """The call of that id or key, in the turn at the end of the session."""
    from nexus_core.session.steps.recorded import RecordedCall  # noqa: PLC0415 - most results come in an API's shape

    record = ledger.session(session.label)
    if record is None or record.tip is None:
        raise _nothing_waits()
    turn = Turn(Tail(ledger).turn(record.tip))
    found = [RecordedCall(key, call) for key, call in turn.calls.items() if name in (call.id, written_key(key))]
    if len(found) > 1:
        found = [call for call in found if call.key not in turn.answers] or found[-1:]
    if len(found) > 1:
        keys = ", ".join(written_key(call.key) for call in found)
        raise UsageError(f"{len(found)} calls have the id {name!r}", hint=f"name one by its key: {keys}")
    if not found and not turn.pending:
        raise _nothing_waits()
    if not found:
        raise UnknownNameError("call", name, [call.id or written_key(call.key) for call in turn.pending])
    return found[0]


def _nothing_waits() -> TurnError:
    return TurnError("no call waits for a result", command="record the reply first that asks for tools")


def _kept(ledger: Ledger, recorded: RecordedStep) -> Kept:
    step = ledger.step(recorded.id)
    assert step is not None  # noqa: S101 - it has just been recorded
    return Kept(step, recorded, recorded.duplicate)


def _what_to_do(session: Session, ledger: Ledger) -> str:
    """What can be recorded next, in the words of the command line."""
    if not session.is_open:
        record = ledger.session(session.label)
        return "" if record and record.status == "archived" else "a user's message opens a turn: FILE with --as user"
    waiting = [f"{call} --call {written_key(call.key)}" for call in session.pending]
    if waiting:
        return f"these results are missing: {', '.join(waiting)}; a user's message with --interrupt gives them up"
    return "a reply is expected; a user's message with --interrupt gives the turn up"
