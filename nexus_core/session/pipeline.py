"""What each verb of a session does, written once for those who wait and those who await.

Nothing is decided from memory: every verb reads where the session stands, decides, and appends only if the session
still stands there. If somebody else was faster, it reads again; so a program may die between any two lines, and the
next one goes on from what is recorded.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any, NoReturn

from nexus_core.errors import ConflictError, PendingCalls, TurnError
from nexus_core.session.assembling import TRIED
from nexus_core.session.drivers import wait
from nexus_core.session.inputs import read_input
from nexus_core.session.recording import Known, agent_step, input_step, interrupted_step, reply_step, result_step
from nexus_core.session.replies import read_reply
from nexus_core.session.results import read_results
from nexus_core.values.assembled import AgentResult
from nexus_core.values.conversation import Usage
from nexus_core.values.ledger import NewStep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nexus_core.session.drivers import Work
    from nexus_core.session.epochs import Epoch
    from nexus_core.session.recorded import RecordedCall, RecordedStep
    from nexus_core.session.thread import State, Thread
    from nexus_core.session.turns import Turn
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.ledger import Step
    from nexus_core.values.message import Message

    Decide = Callable[[State], NewStep | Known | None]

ATTEMPTS = 100
"""So often a step is tried again when others were faster; each time one of them has got on."""


class Pipeline:
    """The verbs of one session, as generators.

    Args:
        thread: Its steps.
    """

    def __init__(self, thread: Thread) -> None:
        self.label = thread.label
        self._thread = thread
        self._sent_from: str | None = None  # the newest step when something was last put together to be sent

    # ---- verbs ----------------------------------------------------------------------------------------------

    def ask(self, message: object, *, interrupt: bool, event: Mapping[str, Any]) -> Work[AssembledContext]:
        """Open a turn and give what is to be sent."""
        said = read_input(message, event)

        def decide(state: State) -> NewStep:
            _ensure_in_use(state)
            if state.open_turn is None:
                self._thread.tools(state)  # what nobody could send must not open a turn
                return input_step(said, self._thread.model(state))
            if interrupt:
                return interrupted_step(state.open_turn)
            raise _already_open(self.label, state.open_turn)

        while True:
            step = yield from self._append(decide)
            if isinstance(step, Known) or step is None or step.kind == "input":
                return (yield from self.next())
            # A turn was given up; now there is room for another.

    def next(self) -> Work[AssembledContext]:
        """What is to be sent now; the same as before, if nothing was recorded since."""
        while True:
            state = yield from wait(self._thread.read)
            turn = _open(state)
            if turn.pending:
                raise PendingCalls(map(str, turn.pending))
            epoch = yield from wait(self._thread.epoch, state)
            if _is_sealed(turn, epoch):
                break
            seal = NewStep(kind="sealed", data={"epoch": epoch.digest, "model": self._thread.model(state)})
            try:
                yield from wait(self._thread.append, seal, state)
            except ConflictError:
                continue
        context = yield from wait(self._thread.assemble, state, epoch, turn.steps[0].id, None)
        self._sent_from = turn.steps[-1].id
        return context

    def preview(self, message: object, event: Mapping[str, Any]) -> Work[AssembledContext]:
        """What `ask` would give, or `next` without a message; nothing is written."""
        said = None if message is None else read_input(message, event)
        state = yield from wait(self._thread.read)
        if said is not None:
            _ensure_in_use(state)
            if state.open_turn is not None:
                raise _already_open(self.label, state.open_turn)
        turn = TRIED if said is not None else _open(state).steps[0].id
        epoch = yield from wait(self._thread.epoch, state, keep=False)
        return (yield from wait(self._thread.assemble, state, epoch, turn, said))

    def record(self, given: object, *, interrupted: bool) -> Work[RecordedStep]:
        """Keep a reply, results, or a whole turn."""
        decide = yield from wait(self._read_given, given, interrupted=interrupted)
        step = yield from self._append(decide)
        assert step is not None  # noqa: S101 - there is always something to record
        if isinstance(step, Known):
            turn = yield from wait(self._thread.turn, step.step)
            return turn.recorded(step.step, duplicate=True)
        if step.kind == "reply":
            self._sent_from = None
        turn = yield from wait(self._thread.turn, step)
        return turn.recorded(step)

    def interrupt(self) -> Work[RecordedStep | None]:
        """End the turn that is open, if there is one."""
        step = yield from self._append(
            lambda state: None if state.open_turn is None else interrupted_step(state.open_turn)
        )
        if step is None or isinstance(step, Known):
            return None
        turn = yield from wait(self._thread.turn, step)
        return turn.recorded(step)

    def pending(self) -> Work[tuple[RecordedCall, ...]]:
        """The calls that wait for their result."""
        state = yield from wait(self._thread.read)
        return () if state.turn is None else state.turn.pending

    def messages(self) -> Work[tuple[Message, ...]]:
        """What was said: the latest summary and what it keeps, or all."""
        state = yield from wait(self._thread.read)
        return () if state.tip is None else (yield from wait(self._thread.messages, state.tip))

    def usage(self) -> Work[Usage]:
        """What the thread has cost, from its first turn on."""
        state = yield from wait(self._thread.read)
        return Usage() if state.tip is None else (yield from wait(self._thread.spent, state.tip))

    def fork(self, label: str, at: str | None) -> Work[Pipeline]:
        """Make a session that begins where a closed turn of this one ended, by default the last."""
        thread = yield from wait(self._thread.fork, label, at)
        return Pipeline(thread)

    # ---- deciding -------------------------------------------------------------------------------------------

    def _append(self, decide: Decide) -> Work[Step | Known | None]:
        """Add what is decided where the session stands; decide again where somebody else was faster."""
        for _ in range(ATTEMPTS):
            state, decided = yield from wait(self._decide, decide)
            if decided is None or isinstance(decided, Known):
                return decided
            try:
                return (yield from wait(self._thread.append, decided, state))
            except ConflictError:
                continue
        raise ConflictError(
            f"session {self.label!r} never stood still long enough", hint="fewer programs at once, or a fork for each"
        )

    def _decide(self, decide: Decide) -> tuple[State, NewStep | Known | None]:
        state = self._thread.read()
        return state, decide(state)

    def _read_given(self, given: object, *, interrupted: bool) -> Decide:
        """Read what is to be recorded, and say how it is decided about."""
        if isinstance(given, AgentResult):
            return lambda state: self._decide_agent(state, given)
        brought = read_results(given)
        if brought is not None:
            return lambda state: result_step(state.turn, brought)
        reply = read_reply(given)

        def decide(state: State) -> NewStep | Known:
            decided = reply_step(state.turn, reply, interrupted=interrupted)
            if isinstance(decided, NewStep):
                self._ensure_unmoved(state)
            return decided

        return decide

    def _decide_agent(self, state: State, given: AgentResult) -> NewStep | Known:
        newest = self._thread.newest(state) if given.id else ()
        decided = agent_step(state.turn, given, newest)
        if isinstance(decided, NewStep) and decided.kind == "turn":
            _ensure_in_use(state)
        return decided

    def _ensure_unmoved(self, state: State) -> None:
        """A reply to something older than what is recorded is no reply to that."""
        tip = state.tip.id if state.tip else None
        if self._sent_from not in (None, tip):
            raise ConflictError(
                f"somebody else has gone on with session {self.label!r} since this call was made",
                hint="this reply is not recorded: call next() to go on from where the session is, or fork it",
            )


def reraise(error: BaseException) -> NoReturn:
    """Nothing can be done about an error yet."""
    raise error


def _is_sealed(turn: Turn, epoch: Epoch) -> bool:
    return any(step.kind == "sealed" for step in turn.steps) and turn.steps[-1].data.get("epoch") == epoch.digest


def _ensure_in_use(state: State) -> None:
    """An archived session opens no turn; one that is open may be finished."""
    if state.record is not None and state.record.status == "archived":
        undo = f"nexus session archive --undo {quote(state.record.label)}"
        raise TurnError(
            f"session {state.record.label!r} is archived",
            hint=f"`{undo}` takes it back into use; it can be read and forked as it is",
        )


def _open(state: State) -> Turn:
    if state.open_turn is None:
        raise TurnError("no turn is open", hint="ask(…) opens one")
    return state.open_turn


def _already_open(label: str, turn: Turn) -> TurnError:
    waiting = f", and waits for {', '.join(map(str, turn.pending))}" if turn.pending else ""
    return TurnError(
        f"a turn is open in session {label!r} already{waiting}",
        hint="next() goes on with it, interrupt=True gives it up; if another program works on it, fork the session",
    )
