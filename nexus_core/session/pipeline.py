"""What each verb of a session does, written once for those who wait and those who await.

Nothing is decided from memory: every verb reads where the session stands, decides, and appends only if the session
still stands there. If somebody else was faster, it reads again; so a program may die between any two lines, and the
next one goes on from what is recorded.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from nexus_core.assembly.calibration import learn
from nexus_core.assembly.call import assemble
from nexus_core.errors import ConflictError, PendingCalls, TurnError
from nexus_core.session.assembling import already_open, ensure_in_use, try_out
from nexus_core.session.drivers import wait
from nexus_core.session.inputs import read_input
from nexus_core.session.options import Options
from nexus_core.session.recording import Known, agent_step, input_step, interrupted_step, reply_step, result_step
from nexus_core.session.replies import read_reply
from nexus_core.session.results import read_results
from nexus_core.session.spawning import report_of, reported_step
from nexus_core.session.thread import Thread
from nexus_core.session.turns import read_usage
from nexus_core.values.assembled import AgentResult
from nexus_core.values.conversation import Usage
from nexus_core.values.ledger import NewStep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nexus_core.session.drivers import Work
    from nexus_core.session.recorded import RecordedCall, RecordedStep
    from nexus_core.session.spawning import Orders
    from nexus_core.session.state import State
    from nexus_core.session.turns import Turn
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.cache import CacheReport
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
        self._sent = 0  # the tokens of that

    # ---- verbs ----------------------------------------------------------------------------------------------

    def ask(self, message: object, *, interrupt: bool, event: Mapping[str, Any]) -> Work[AssembledContext]:
        """Open a turn and give what is to be sent."""
        said = read_input(message, event)

        def decide(state: State) -> NewStep:
            ensure_in_use(state)
            if state.open_turn is None:
                standing = self._thread.standing(state)  # what nobody could send must not open a turn
                return input_step(said, self._thread.model(state, standing.settings), self._thread.place.now())
            if interrupt:
                return interrupted_step(state.open_turn)
            raise already_open(self.label, state.open_turn)

        while True:
            step = yield from self._append(decide)
            if isinstance(step, Known) or step is None or step.kind == "input":
                return (yield from self.next())
            # A turn was given up; now there is room for another.

    def next(self) -> Work[AssembledContext]:
        """What is to be sent now; the same as before, if nothing was recorded since."""
        for _ in range(ATTEMPTS):
            state = yield from wait(self._thread.read)
            turn = _open(state)
            if turn.pending:
                raise PendingCalls(map(str, turn.pending))
            plan = yield from wait(self._thread.plan, state)
            if plan.seal is None:
                context = yield from wait(assemble, plan.call)
                self._sent_from, self._sent = turn.steps[-1].id, context.token_budget.total
                return context
            # A step in between, such as a compaction, would have its place here. Somebody else may have sealed the turn
            # meanwhile; then theirs counts.
            with suppress(ConflictError):
                yield from wait(self._thread.seal, plan.seal, state)
        raise _never_still(self.label)

    def preview(self, message: object, event: Mapping[str, Any]) -> Work[AssembledContext]:
        """What `ask` would give, or `next` without a message; nothing is written."""
        said = None if message is None else read_input(message, event)
        state = yield from wait(self._thread.read)
        if said is None:
            _open(state)
        return (yield from try_out(self._thread, state, said))

    def replay(self, step: str) -> Work[AssembledContext]:
        """What was sent before a reply."""
        call = yield from wait(self._thread.replay, step)
        return (yield from wait(assemble, call))

    def cache(self, step: str) -> Work[CacheReport]:
        """What became of the provider's cache in the call that a reply answers."""
        return (yield from wait(self._thread.cache, step))

    def reload(self) -> Work[None]:
        """Have the next call begin with everything as it is then."""
        yield from wait(self._thread.reload)

    def record(self, given: object, *, interrupted: bool) -> Work[RecordedStep]:
        """Keep a reply, results, or a whole turn."""
        decide = yield from wait(self._read_given, given, interrupted=interrupted)
        step = yield from self._append(decide)
        assert step is not None  # noqa: S101 - there is always something to record
        if isinstance(step, Known):
            return (yield from wait(self._recorded, step.step, duplicate=True))
        if step.kind == "reply":
            self._sent_from = None
        if step.closes:
            with suppress(TurnError):  # nobody waits any more: what the worker did is kept all the same
                yield from self.report()
        return (yield from wait(self._recorded, step))

    def spawn(self, orders: Orders) -> Work[Pipeline]:
        """Make a worker; one that is done already reports once more."""
        thread = yield from wait(self._thread.spawn, orders)
        worker = Pipeline(thread)
        with suppress(TurnError):
            yield from worker.report()
        return worker

    def report(self) -> Work[RecordedStep | None]:
        """Record a worker's answer as the result of the call that it was made for; None where there is none."""
        state = yield from wait(self._thread.read)
        report = report_of(state)
        if report is None:
            return None
        parent = Pipeline(Thread(self._thread.place, report.parent, Options()))
        step = yield from parent._append(lambda state: reported_step(state.turn, report))
        assert step is not None  # noqa: S101 - there is something to record
        if isinstance(step, Known):
            return (yield from wait(parent._recorded, step.step, duplicate=True))
        return (yield from wait(parent._recorded, step))

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
        raise _never_still(self.label)

    def _recorded(self, step: Step, *, duplicate: bool = False) -> RecordedStep:
        recorded = self._thread.turn(step).recorded(step, duplicate=duplicate)
        return replace(recorded, cache=self._thread.cache_of(step)) if step.kind == "reply" else recorded

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
            if isinstance(decided, Known):
                return decided
            self._ensure_unmoved(state)
            return self._measured(decided, state)

        return decide

    def _measured(self, step: NewStep, state: State) -> NewStep:
        """A reply with what was sent to get it, and what its provider's count of that teaches."""
        if state.tip is None or state.turn is None:
            return step
        sent = self._sent if self._sent_from == state.tip.id else self._thread.sent_at(state.tip)
        if sent is None:
            return step
        data: dict[str, Any] = {**step.data, "sent": sent}
        usage = read_usage(step.data.get("usage"))
        if usage is not None:
            data["calibration"] = learn(state.ratios, str(state.turn.sealed("model")), sent, usage.input_tokens)
        return replace(step, data=data)

    def _decide_agent(self, state: State, given: AgentResult) -> NewStep | Known:
        newest = self._thread.newest(state) if given.id else ()
        decided = agent_step(state.turn, given, newest)
        if isinstance(decided, NewStep) and decided.kind == "turn":
            ensure_in_use(state)
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


def _never_still(label: str) -> ConflictError:
    return ConflictError(
        f"session {label!r} never stood still long enough", hint="fewer programs at once, or a fork for each"
    )


def _open(state: State) -> Turn:
    if state.open_turn is None:
        raise TurnError("no turn is open", hint="ask(…) opens one")
    return state.open_turn
