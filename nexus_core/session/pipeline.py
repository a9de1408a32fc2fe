"""What each verb of a session does, written once for those who wait and those who await.

Nothing is decided from memory: every verb reads where the session stands, decides, and appends only if the session
still stands there. If somebody else was faster, it reads again; so a program may die between any two lines, and the
next one goes on from what is recorded.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.assembly.asking_renderer import write_current
from nexus_core.assembly.call import assemble
from nexus_core.errors import BudgetError, ConflictError, PendingToolCallsError, TurnError, UsageError
from nexus_core.session.announcing import announce_call, announce_step
from nexus_core.session.arguments import read_flag, read_label, read_text
from nexus_core.session.asking.inputs import inherit_user_profile, read_input
from nexus_core.session.asking.large_pieces import name_large_pieces
from nexus_core.session.asking.occasion import with_event
from nexus_core.session.drivers import wait
from nexus_core.session.options import Options
from nexus_core.session.recording.new_steps import input_step, interrupted_step
from nexus_core.session.spawning import report_of, reported_step
from nexus_core.session.steps.naming import read_step
from nexus_core.session.thread.appending import (
    ATTEMPTS,
    RecordedBefore,
    append,
    build_contention_error,
    ensure_not_archived,
)
from nexus_core.session.thread.assembling import already_open, try_out
from nexus_core.session.thread.deciding import Deciding
from nexus_core.session.thread.last_call import LastCall
from nexus_core.session.thread.thread import SessionThread
from nexus_core.types.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.session.asking.planning import Plan
    from nexus_core.session.compacting.compact import Relief
    from nexus_core.session.drivers import Work
    from nexus_core.session.spawning import Orders
    from nexus_core.session.steps.recorded import RecordedCall, RecordedStep
    from nexus_core.session.steps.state import State
    from nexus_core.session.steps.turns import Turn
    from nexus_core.types.assembled import AssembledContext, CacheReport
    from nexus_core.types.compaction import CompactionReport, RevertedCompaction
    from nexus_core.types.ledger import NewStep, Step
    from nexus_core.types.messages import Message
    from nexus_core.types.plugins import Finding


class Pipeline:
    """The verbs of one session, as generators.

    Args:
        thread: Its steps.
    """

    def __init__(self, thread: SessionThread) -> None:
        self.label = thread.label
        self._thread = thread
        self._last = LastCall(thread)
        self._deciding = Deciding(thread, self._last)
        self._unrelieved = ""  # the turn in which nobody could summarise

    def describe(self) -> str:
        """Which session it is, in a few words; nothing is looked up."""
        return self._thread.describe()

    # ---- verbs ----------------------------------------------------------------------------------------------

    def ask(self, message: object, *, interrupt: bool, event: Mapping[str, Any]) -> Work[AssembledContext]:
        """Open a turn and give what is to be sent."""
        said = read_input(message, event, self._thread.place.dialects)
        interrupt = read_flag(interrupt, "interrupt")

        def decide(state: State) -> NewStep:
            ensure_not_archived(state)
            if state.open_turn is None:
                standing, now = self._thread.standing(state), self._thread.place.now()
                told = inherit_user_profile(said, state.kept)
                # What nobody could send must not open a turn: a renderer may refuse some of it, such as a time zone.
                write_current(standing.renderer, with_event(standing.request, told.message, told.event), (), now)
                return input_step(told, self._thread.model(state, standing.settings), now)
            if interrupt:
                return interrupted_step(state.open_turn)
            raise already_open(self.label, state.open_turn)

        while True:
            step = yield from append(self._thread, decide)
            if isinstance(step, RecordedBefore) or step is None or step.kind == "input":
                return (yield from self.next())
            yield from self._told(step)
            # A turn was given up; now there is room for another.

    def next(self) -> Work[AssembledContext]:
        """What is to be sent now; the same as before, if nothing was recorded since."""
        reliefs: list[Relief] = []
        for _ in range(ATTEMPTS):
            state = yield from wait(self._thread.read)
            turn = _open(state)
            if turn.pending:
                raise PendingToolCallsError(map(str, turn.pending))
            plan = yield from wait(self._thread.plan, state)
            is_too_long = plan.due is not None and (plan.overflows or self._unrelieved != plan.call.turn)
            if is_too_long and all(relief.has_moved for relief in reliefs):
                reliefs.append((yield from self._relieve(state, plan)))
                if reliefs[-1].has_moved:
                    continue
            if plan.seal is None:
                return (yield from self._send(plan, turn.steps[-1].id, reliefs))
            with suppress(ConflictError):  # somebody else may have sealed the turn meanwhile; then theirs counts
                yield from wait(self._thread.seal, plan.seal, state)
        raise build_contention_error(self.label)

    def preview(self, message: object, event: Mapping[str, Any]) -> Work[AssembledContext]:
        """What `ask` would give, or `next` without a message; nothing is written."""
        if message is None and event:
            raise UsageError(f"{next(iter(event))} goes with a message", hint="preview(message, …), as for ask()")
        said = None if message is None else read_input(message, event, self._thread.place.dialects)
        state = yield from wait(self._thread.read)
        if said is None:
            _open(state)
        return (yield from try_out(self._thread, state, said))

    def replay(self, step: str | RecordedStep | Step) -> Work[AssembledContext]:
        """What was sent before a reply."""
        call = yield from wait(self._thread.replay, read_step(step))
        return (yield from wait(assemble, call))

    def cache(self, step: str | RecordedStep | Step) -> Work[CacheReport]:
        """What became of the provider's cache in the call that a reply answers."""
        return (yield from wait(self._thread.cache, read_step(step)))

    def reload(self) -> Work[None]:
        """Have the next call begin with everything as it is then."""
        yield from wait(self._thread.reload)

    def record(self, given: object, *, interrupted: bool | None) -> Work[RecordedStep]:
        """Keep a reply, results, or a whole turn."""
        interrupted = None if interrupted is None else read_flag(interrupted, "interrupted")
        decide = yield from wait(self._deciding.about, given, interrupted=interrupted)
        step = yield from append(self._thread, decide)
        assert step is not None  # noqa: S101 - there is always something to record
        if isinstance(step, RecordedBefore):
            return (yield from wait(self._recorded, step.step, duplicate=True))
        if step.kind == "reply":
            self._last.forget()
        recorded = yield from self._told(step)
        if step.closes:
            yield from self._report_if_awaited()
        return recorded

    def spawn(self, orders: Orders) -> Work[Pipeline]:
        """Make a worker; one that is done already reports once more."""
        thread = yield from wait(self._thread.spawn, orders)
        worker = Pipeline(thread)
        yield from worker._report_if_awaited()
        return worker

    def report(self) -> Work[RecordedStep | None]:
        """Record a worker's answer as the result of the call that it was made for; None where there is none."""
        state = yield from wait(self._thread.read)
        report = report_of(state)
        if report is None:
            return None
        parent = Pipeline(SessionThread(self._thread.place, report.parent, Options()))
        step = yield from append(parent._thread, lambda state: reported_step(state.turn, report))
        assert step is not None  # noqa: S101 - there is something to record
        if isinstance(step, RecordedBefore):
            return (yield from wait(parent._recorded, step.step, duplicate=True))
        return (yield from parent._told(step))

    def _report_if_awaited(self) -> Work[None]:
        with suppress(TurnError):  # nobody waits any more: what the worker did is kept all the same
            yield from self.report()

    def interrupt(self) -> Work[RecordedStep | None]:
        """End the turn that is open, if there is one."""
        step = yield from append(
            self._thread, lambda state: None if state.open_turn is None else interrupted_step(state.open_turn)
        )
        if step is None or isinstance(step, RecordedBefore):
            return None
        recorded = yield from self._told(step)
        yield from self._report_if_awaited()
        return recorded

    def pending(self) -> Work[tuple[RecordedCall, ...]]:
        """The calls that wait for their result."""
        state = yield from wait(self._thread.read)
        return () if state.turn is None else state.turn.pending

    def find_move(self) -> Work[Finding | None]:
        """Find out whether the session was last used in another directory, if its caller does not expect that."""
        return (yield from wait(self._thread.find_move))

    def is_open(self) -> Work[bool]:
        """Whether a turn is open."""
        state = yield from wait(self._thread.read)
        return state.open_turn is not None

    def messages(self, *, as_said: bool = False) -> Work[tuple[Message, ...]]:
        """What was said, as it is sent or in its own words: the latest summary and what it keeps, or all."""
        state = yield from wait(self._thread.read)
        return () if state.tip is None else (yield from wait(self._thread.messages, state.tip, as_said=as_said))

    def usage(self) -> Work[Usage]:
        """What the thread has cost, from its first turn on."""
        state = yield from wait(self._thread.read)
        return Usage() if state.tip is None else (yield from wait(self._thread.spent, state.tip))

    def fork(self, label: str, at: str | RecordedStep | Step | None) -> Work[Pipeline]:
        """Make a session that begins where a closed turn of this one ended, by default the last."""
        turn = None if at is None else read_step(at, "at")
        thread = yield from wait(self._thread.fork, read_label(label), turn)
        return Pipeline(thread)

    # ---- making it shorter ----------------------------------------------------------------------------------

    def compact(self, focus: str, *, dry_run: bool) -> Work[CompactionReport | None]:
        """Summarise earlier turns because somebody asks for it; None where there is nothing to summarise."""
        from nexus_core.session.compacting.compact import compact

        return (yield from compact(self._thread, read_text(focus, "focus"), dry_run=read_flag(dry_run, "dry_run")))

    def recover(self, error: BaseException) -> Work[AssembledContext]:
        """What to send after a provider refused a call as too long."""
        from nexus_core.session.compacting.recovering import noted, recover

        if not isinstance(error, BaseException):
            raise UsageError("recover() takes what the provider's SDK raised", hint="except … as error: recover(error)")
        yield from recover(self._thread, self._last.taken, error)
        try:
            return (yield from self.next())
        except BudgetError as why:
            raise noted(error, why.what) from why

    def undo(self) -> Work[RevertedCompaction]:
        """Take the latest compaction back that counts."""
        from nexus_core.session.compacting.undoing import undo

        return (yield from undo(self._thread))

    def expand(self, compaction: str | RecordedStep | Step) -> Work[tuple[Step, ...]]:
        """The steps that a compaction stands for."""
        from nexus_core.session.compacting.covering import covered_steps

        return (yield from wait(covered_steps, self._thread.place.ledger, read_step(compaction, "a compaction")))

    def pin(self, step: str | RecordedStep | Step, *, remove: bool = False) -> Work[bool]:
        """Have a step stay as it is, or no longer; whether that changed anything."""
        from nexus_core.session.compacting.pinning import pin

        return (yield from pin(self._thread, read_step(step), remove=remove))

    # ---- sending --------------------------------------------------------------------------------------------

    def _relieve(self, state: State, plan: Plan) -> Work[Relief]:
        """Make the session shorter where the next call asks for it; at most once in a turn where nobody can."""
        from nexus_core.session.compacting.compact import relieve

        relief = yield from relieve(self._thread, state, plan)
        if relief.has_failed:
            self._unrelieved = plan.call.turn
        return relief

    def _send(self, plan: Plan, tip: str, reliefs: Sequence[Relief]) -> Work[AssembledContext]:
        findings = tuple(relief.finding for relief in reliefs if relief.finding is not None)
        try:
            context = yield from wait(assemble, plan.call._replace(findings=(*plan.call.findings, *findings)))
        except BudgetError as error:
            told = next((relief.floor for relief in reliefs if relief.floor is not None), error)
            raise name_large_pieces(told, plan.call.placements()) from None
        self._last.remember(tip, context.token_budget)
        self._thread.left = self._thread.lost_prompt = ""  # its caller is told now
        yield from announce_call(self._thread.place.host, context)
        return context

    # ---- telling --------------------------------------------------------------------------------------------

    def _told(self, step: Step) -> Work[RecordedStep]:
        """A step that has just been added, as its caller sees it; whoever watches is told of it."""
        recorded = yield from wait(self._recorded, step)
        yield from announce_step(self._thread.place.host, step, self.label, recorded.usage, recorded.cache)
        return recorded

    def _recorded(self, step: Step, *, duplicate: bool = False) -> RecordedStep:
        recorded = self._thread.turn(step).recorded(step, duplicate=duplicate)
        return replace(recorded, cache=self._thread.cache_of(step)) if step.kind == "reply" else recorded


def _open(state: State) -> Turn:
    if state.open_turn is None:
        raise TurnError("no turn is open", hint="ask(…) opens one")
    return state.open_turn
