"""The operations of a session, written once for blocking and async callers.

Nothing is decided from memory: every operation reads the session's state, decides, and appends a step only if no other
writer has appended since; otherwise it reads and decides again. So a program may die between any two lines, and the
next one continues from what is stored.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.compaction.trigger import build_due_finding
from nexus_core.dialects.fields import read_flag, read_text, read_texts
from nexus_core.errors import (
    BudgetError,
    ConflictError,
    PendingToolCallsError,
    TurnError,
    UnknownNameError,
    UsageError,
)
from nexus_core.ledger.store import read_label
from nexus_core.rendering import find_agent_role
from nexus_core.request.build import build_request, find_unsendable, name_largest_pieces
from nexus_core.request.input import add_event, inherit_user_profile, read_input
from nexus_core.request.runtime import SessionRuntime
from nexus_core.request.static_context import LayerCache, StaticContextCache, render_input
from nexus_core.runner import blocking
from nexus_core.session.options import SessionOptions, get_request_options, read_request_input, read_session_options
from nexus_core.session.record import (
    build_agent_step,
    build_incomplete_stream_error,
    build_input_step,
    build_interrupted_step,
    build_reply_step,
    build_result_step,
    read_agent_result,
    read_reply,
    read_results,
)
from nexus_core.session.session_thread import SessionThread
from nexus_core.session.workers import build_report_step, find_worker_report
from nexus_core.thread.calibration import CountedCall
from nexus_core.thread.lookup import find_sessions_with, find_step, read_step_id
from nexus_core.thread.state import (
    MARKER_KINDS,
    MAX_APPEND_ATTEMPTS,
    DuplicateStep,
    build_contention_error,
    build_recorded_step,
    ensure_not_archived,
    get_step_usage,
)
from nexus_core.types.assembled import AgentResult
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Usage
from nexus_core.types.payloads import RevertPayload
from nexus_core.types.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Unpack

    from nexus_core.compaction.compact import AutoCompactionOutcome, CompactionPreview
    from nexus_core.host.manager import Host
    from nexus_core.request.build import CallPlan
    from nexus_core.request.input import UserInput
    from nexus_core.request.static_context import StaticContext
    from nexus_core.runner import Operation
    from nexus_core.session.options import SessionArguments
    from nexus_core.session.workers import SpawnArguments
    from nexus_core.thread.state import Decide, RecordedCall, RecordedStep, SessionState, Turn
    from nexus_core.types.assembled import AssembledContext, CacheReport
    from nexus_core.types.budget import TokenBudget
    from nexus_core.types.compaction import CompactionReport, RevertedCompaction, SummarizeFunction
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.ledger import Ledger, SessionRecord, Step
    from nexus_core.types.messages import Message
    from nexus_core.types.plugins import Finding
    from nexus_core.types.request import AgentMode


class CallInputs(NamedTuple):
    """What a call without a new message depends on; equal if nothing has changed.

    Attributes:
        record: The session with its newest step; None before its first.
        static: Its static context, which is the same object while no file and no option changes.
    """

    record: SessionRecord | None
    static: StaticContext


class Engine:
    """The operations of one session, as generators for `runner.run` and `runner.run_async`.

    Args:
        thread: The session's steps.
    """

    def __init__(self, thread: SessionThread) -> None:
        self.label = thread.label
        self._thread = thread
        self._sent_tip: str | None = None  # the newest step when the last call was assembled; None once it is answered
        self._sent_budget: TokenBudget | None = None
        self._failed_turn = ""  # the turn in which every summarizer failed
        self.compactions = 0  # automatic ones, so far

    def describe(self) -> str:
        """Return the session's name and what is known of it, without reading the ledger."""
        return self._thread.describe()

    # ---- a turn -----------------------------------------------------------------------------------------------

    def ask(self, message: object, *, interrupt: bool, event: Mapping[str, Any]) -> Operation[AssembledContext]:
        """Store a user message and return the assembled call."""
        user_input = read_input(message, event, self._thread.runtime.dialects)
        interrupt = read_flag(interrupt, "interrupt")

        def decide(state: SessionState) -> NewStep:
            ensure_not_archived(state)
            if state.open_turn is None:
                static, now = self._thread.static_context(state), self._thread.runtime.now()
                given = inherit_user_profile(user_input, state.stored_options)
                # An input that cannot be rendered opens no turn: a renderer may refuse some, such as a time zone.
                render_input(static.renderer, add_event(static.request, given.message, given.event), (), now)
                return build_input_step(given, self._thread.model(state, static.settings), now)
            if interrupt:
                return build_interrupted_step(state.open_turn)
            raise build_open_turn_error(self.label, state.open_turn)

        def open_turn() -> SessionState:
            while True:
                step = self._thread.append_decided(decide)
                assert step is not None and not isinstance(step, DuplicateStep)  # noqa: S101, PT018 - it is always new
                if step.kind == "input":
                    return self._thread.get_state_after(step)
                self._announce(step)  # the open turn was interrupted; now the message opens another

        return (yield from self._send_next((yield from blocking(open_turn))))

    def next(self) -> Operation[AssembledContext]:
        """Return the next call of the open turn; the same as before, if nothing was recorded since."""
        return (yield from self._send_next(None))

    def _send_next(self, state: SessionState | None) -> Operation[AssembledContext]:
        """Plan the next call, store its rendered input, and return it; `state` None reads the session."""
        compactions: list[AutoCompactionOutcome] = []
        for _ in range(MAX_APPEND_ATTEMPTS):
            state, tip, plan = yield from blocking(self._plan_next, state)
            is_due = plan.trigger is not None and (plan.overflows or self._failed_turn != plan.turn)
            if is_due and all(each.has_moved for each in compactions):
                compactions.append((yield from self._compact_automatically(state, plan)))
                if compactions[-1].has_moved:
                    state = None
                    continue
            if plan.pending is not None:
                try:
                    stored = yield from blocking(self._thread.store_rendered, plan.pending, state)
                except ConflictError:  # another writer may have stored the rendered input first; then theirs counts
                    state = None
                    continue
                tip, plan = stored.id, plan.with_stored_step(stored)
            return (yield from blocking(self._assemble_next, plan, tip, compactions))
        raise build_contention_error(self.label)

    def _plan_next(self, state: SessionState | None) -> tuple[SessionState, str, CallPlan]:
        """Return the session's state, the id of its newest step, and the plan of the next call."""
        state = state or self._thread.read()
        turn = _require_open_turn(state)
        if turn.pending:
            raise PendingToolCallsError(map(str, turn.pending))
        return state, turn.steps[-1].id, self._thread.plan(state)

    def _assemble_next(
        self, plan: CallPlan, tip: str, compactions: Sequence[AutoCompactionOutcome]
    ) -> AssembledContext:
        """Assemble the call of a plan whose steps are all stored, and notify plugins that it is about to be sent."""
        findings = tuple(each.finding for each in compactions if each.finding is not None)
        try:
            context = build_request(plan._replace(findings=(*plan.findings, *findings)))
        except BudgetError as error:
            floor = next((each.floor for each in compactions if each.floor is not None), error)
            raise name_largest_pieces(floor, plan) from None
        self._sent_tip, self._sent_budget = tip, context.token_budget
        self._thread.clear_announced_findings()
        self._thread.runtime.host.assembled(context)
        return context

    def record(self, reply_or_result: object, *, interrupted: bool | None = None) -> Operation[RecordedStep]:
        """Store a reply, tool results, or a whole turn."""
        interrupted = None if interrupted is None else read_flag(interrupted, "interrupted")

        def record() -> RecordedStep | None:
            return self._append(self._read_recorded(reply_or_result, interrupted=interrupted))

        recorded = yield from blocking(record)
        assert recorded is not None  # noqa: S101 - there is always something to record
        if recorded.done and not recorded.duplicate and self._thread.is_worker:
            yield from self._report_if_awaited()
        return recorded

    def interrupt(self) -> Operation[RecordedStep | None]:
        """End the open turn; None if there is none."""
        recorded = yield from blocking(
            self._append, lambda state: None if state.open_turn is None else build_interrupted_step(state.open_turn)
        )
        if recorded is not None and self._thread.is_worker:
            yield from self._report_if_awaited()
        return recorded

    def reload(self) -> Operation[None]:
        """Begin a new prefix with the next call."""
        yield from blocking(self._thread.reload)

    # ---- looking ----------------------------------------------------------------------------------------------

    def preview(self, message: object, event: Mapping[str, Any]) -> Operation[AssembledContext]:
        """Return what `ask` would return, or `next` without a message. Stores nothing."""
        if message is None and event:
            raise UsageError(f"{next(iter(event))} goes with a message", hint="preview(message, …), as for ask()")
        user_input = None if message is None else read_input(message, event, self._thread.runtime.dialects)
        state = yield from blocking(self._thread.read)
        if user_input is None:
            _require_open_turn(state)
        return (yield from self._preview(state, user_input))

    def peek(self) -> Operation[AssembledContext]:
        """Return what the session would send now, without a message, whether or not it exists or fits."""
        state = yield from blocking(self._thread.read)
        return (yield from self._preview(state, None, must_fit=False))

    def find_call_inputs(self) -> Operation[CallInputs]:
        """Return what `peek` depends on, so that a caller knows whether its last result still holds."""
        state = yield from blocking(self._thread.read)
        static = yield from blocking(self._thread.static_context, state)
        return CallInputs(state.record, static)

    def assemble(self, user_input: UserInput | None, *, must_fit: bool, announce: bool) -> Operation[AssembledContext]:
        """Return what an existing session would send; without a message also if no turn is open.

        Args:
            user_input: The user message; None for none.
            must_fit: Whether it is an error if the call does not fit.
            announce: Whether plugins are notified, because the call will be sent.

        Raises:
            UnknownNameError: There is no such session.
        """
        state = yield from blocking(self._thread.read)
        if self.label and state.record is None:
            known = yield from blocking(self._thread.list_names)
            raise UnknownNameError("session", self.label, known)
        context = yield from self._preview(state, user_input, must_fit=must_fit)
        if announce:
            yield from blocking(self._thread.runtime.host.assembled, context)
        return context

    def _preview(
        self, state: SessionState, user_input: UserInput | None, *, must_fit: bool = True
    ) -> Operation[AssembledContext]:
        if user_input is not None:
            ensure_not_archived(state)
            if state.open_turn is not None:
                raise build_open_turn_error(self.label, state.open_turn)
        plan = yield from blocking(self._thread.plan, state, user_input)
        findings = plan.findings
        if user_input is None and state.turn is not None:
            findings = (*findings, *find_unsendable(state.turn, plan.items))
        if plan.trigger is not None:
            findings = (*findings, build_due_finding(plan.trigger))
        try:
            return (yield from blocking(build_request, plan._replace(must_fit=must_fit, findings=findings)))
        except BudgetError as error:
            raise name_largest_pieces(error, plan) from None

    def replay(self, step: str | RecordedStep | Step) -> Operation[AssembledContext]:
        """Rebuild the call that a reply answered."""
        plan = yield from blocking(self._thread.replay, read_step_id(step))
        return (yield from blocking(build_request, plan))

    def cache(self, step: str | RecordedStep | Step) -> Operation[CacheReport]:
        """Return how much of the call that a reply answered came from the prompt cache."""
        return (yield from blocking(self._thread.find_cache_report, read_step_id(step)))

    def pending(self) -> Operation[tuple[RecordedCall, ...]]:
        """Return the tool calls without a result."""
        state = yield from blocking(self._thread.read)
        return () if state.turn is None else state.turn.pending

    def find_move(self) -> Operation[Finding | None]:
        """Return a finding if the session was last used in another directory, unless the caller expects it."""
        return (yield from blocking(self._thread.find_move))

    def is_open(self) -> Operation[bool]:
        """Return True if a turn is open."""
        state = yield from blocking(self._thread.read)
        return state.open_turn is not None

    def messages(self, *, original: bool = False) -> Operation[tuple[Message, ...]]:
        """Return the messages as they are sent, or user messages as they were given: since the latest summary."""
        state = yield from blocking(self._thread.read)
        return () if state.tip is None else (yield from blocking(self._thread.messages, state.tip, original=original))

    def usage(self) -> Operation[Usage]:
        """Return the tokens used since the first turn."""
        state = yield from blocking(self._thread.read)
        return Usage() if state.tip is None else (yield from blocking(self._thread.sum_usage, state.tip))

    # ---- other sessions ---------------------------------------------------------------------------------------

    def fork(self, label: str, at: str | RecordedStep | Step | None) -> Operation[Engine]:
        """Create a session that branches off after a closed turn, by default the last."""
        turn = None if at is None else read_step_id(at, "at")
        return Engine((yield from blocking(self._thread.fork, read_label(label), turn)))

    def spawn(self, arguments: SpawnArguments) -> Operation[Engine]:
        """Create or reopen a worker; one that has finished reports its result again."""
        worker = Engine((yield from blocking(self._thread.spawn, arguments)))
        yield from worker._report_if_awaited()
        return worker

    def report(self) -> Operation[RecordedStep | None]:
        """Record a worker's final reply as the result of its parent's tool call; None if there is nothing to record."""
        state = yield from blocking(self._thread.read)
        report = find_worker_report(state)
        if report is None:
            return None
        parent = Engine(SessionThread(self._thread.runtime, report.parent, SessionOptions()))
        return (yield from blocking(parent._append, lambda state: build_report_step(state.turn, report)))

    def _report_if_awaited(self) -> Operation[None]:
        with suppress(TurnError):  # the call is no longer pending: the worker's steps are stored all the same
            yield from self.report()

    # ---- compaction -------------------------------------------------------------------------------------------

    def compact(self, focus: str, *, dry_run: bool) -> Operation[CompactionReport | None]:
        """Summarize earlier turns; None if there is nothing to summarize."""
        from nexus_core.compaction.compact import compact

        return (yield from compact(self._thread, read_text(focus, "focus"), dry_run=read_flag(dry_run, "dry_run")))

    def preview_compaction(self, focus: str) -> Operation[CompactionPreview]:
        """Return what `compact` would do, or why it would do nothing."""
        from nexus_core.compaction.compact import preview_compaction

        return (yield from preview_compaction(self._thread, read_text(focus, "focus")))

    def recover(self, error: BaseException) -> Operation[AssembledContext]:
        """Return a shorter call after a provider refused one as too long."""
        from nexus_core.compaction.compact import add_recovery_note, recover

        if not isinstance(error, BaseException):
            raise UsageError("recover() takes what the provider's SDK raised", hint="except … as error: recover(error)")
        yield from recover(self._thread, self._find_sent_budget, error)
        try:
            return (yield from self.next())
        except BudgetError as why:
            raise add_recovery_note(error, why.what) from why

    def undo(self) -> Operation[RevertedCompaction]:
        """Revert the latest compaction."""
        from nexus_core.compaction.undo import undo

        return (yield from undo(self._thread))

    def expand(self, compaction: str | RecordedStep | Step) -> Operation[tuple[Step, ...]]:
        """Return the steps that a compaction replaced."""
        from nexus_core.compaction.undo import list_covered_steps

        step = read_step_id(compaction, "a compaction")
        return (yield from blocking(list_covered_steps, self._thread.runtime.ledger, step))

    def pin(self, step: str | RecordedStep | Step, *, remove: bool = False) -> Operation[bool]:
        """Pin a step, or remove its pin; False if nothing changed."""
        from nexus_core.compaction.undo import pin

        return (yield from pin(self._thread, read_step_id(step), remove=remove))

    def forget_memories(self, ids: Iterable[str], *, steps: Iterable[str] = ()) -> Operation[bool]:
        """Send some memories no more, and take steps out of the index; False if nothing changes."""
        runtime, names = self._thread.runtime, frozenset(read_texts(ids, "ids"))
        named = read_texts(steps, "steps")

        def forget() -> bool:
            found: dict[str, Step] = {}
            if named:
                tip = self._thread.read().tip
                for name in named:
                    step = tip and find_step(runtime.ledger, name, tip)
                    if step is None:
                        raise UsageError(f"there is no step {name!r} in session {self.label!r}")
                    found[step.id] = step
            if not self._append_forget_step(names, [*found]):
                return False
            # Deleting a session erases what it recorded, but not the steps that forks share with it.
            for record, shared in find_sessions_with(runtime.ledger, found.values()):
                if record.label != self.label:
                    other = open_engine(runtime, record.label, any_directory=True)
                    other._append_forget_step(frozenset(), [step.id for step in shared])  # noqa: SLF001 - same class
            return True

        return (yield from blocking(forget))

    def _append_forget_step(self, ids: frozenset[str], steps: Sequence[str]) -> bool:
        """Append the step that says what is forgotten; False if nothing changes."""
        from nexus_core.request.memories import build_forget_step

        ledger = self._thread.runtime.ledger

        def decide(state: SessionState) -> NewStep | None:
            built = build_forget_step(ledger, state, ids, steps)
            if built is None:
                return None
            if built[1]:
                ledger.put_blob(built[1])
            return built[0]

        return self._thread.append_decided(decide) is not None

    def _compact_automatically(self, state: SessionState, plan: CallPlan) -> Operation[AutoCompactionOutcome]:
        """Summarize earlier turns because the next call requires it; once per turn if every summarizer fails."""
        from nexus_core.compaction.compact import compact_automatically

        compaction = yield from compact_automatically(self._thread, state, plan)
        if compaction.has_failed:
            self._failed_turn = plan.turn
        self.compactions += compaction.has_moved
        return compaction

    # ---- recording --------------------------------------------------------------------------------------------

    def _find_sent_budget(self, state: SessionState) -> TokenBudget | None:
        """Return the size of the last call that was sent from a state; None if it cannot be known."""
        if self._sent_tip is not None and self._is_unmoved(state):
            return self._sent_budget
        return None if state.tip is None else self._thread.measure_call(state.tip)

    def _is_unmoved(self, state: SessionState) -> bool:
        """Return True if nothing was recorded since the last call but compactions and pins."""
        tip = None if state.tip is None else state.tip.id
        if self._sent_tip is None or self._sent_tip == tip:
            return True
        since = [] if tip is None else self._thread.cache.read_since(self._sent_tip, tip)[1:]
        return tip is not None and all(step.kind in MARKER_KINDS and not _takes_back(step) for step in since)

    def _read_recorded(self, given: object, *, interrupted: bool | None) -> Decide:
        """Read what is to be recorded, and return the function that makes a step of it.

        Raises:
            MessageError: The format is unknown, or a stream has no end event.
        """
        dialects = self._thread.runtime.dialects
        if isinstance(given, AgentResult):
            result = read_agent_result(given)
            return lambda state: self._decide_agent_turn(state, result)
        results = read_results(given, dialects)
        if results is not None:
            return lambda state: build_result_step(state.turn, results)
        reply = read_reply(given, dialects)
        if reply.stop == "broken" and interrupted is None:
            raise build_incomplete_stream_error()

        def decide(state: SessionState) -> NewStep | DuplicateStep:
            step = build_reply_step(state.turn, reply, interrupted=bool(interrupted))
            if isinstance(step, DuplicateStep):
                return step
            if not self._is_unmoved(state):
                raise _build_moved_error(self.label)
            return self._add_call_data(step, state)

        return decide

    def _add_call_data(self, step: NewStep, state: SessionState) -> NewStep:
        """Return a reply's step with the size of its call, and what the provider's own count teaches about ours."""
        if state.tip is None or state.turn is None:
            return step
        model = state.turn.rendered.model or ""
        reply = step.payload
        changes: dict[str, Any] = {"model": reply.model or model}  # not every API names the model that answered
        if self._sent_tip is not None and self._sent_tip != state.tip.id:
            changes["asked"] = self._sent_tip
        budget, usage = self._find_sent_budget(state), get_step_usage(step)
        if budget is not None:
            # Without the margin, which is not part of the next call.
            call = CountedCall(budget.total - budget.margin, 0 if usage is None else usage.input_tokens)
            samples = self._thread.learn_count(state, model, call, budget.calibration)
            changes |= {"sent": call.sent, "calibration": samples}
        return step.with_payload(reply.replace(**changes))

    def _decide_agent_turn(self, state: SessionState, result: AgentResult) -> NewStep | DuplicateStep:
        newest = self._thread.list_newest(state) if result.id else ()
        step = build_agent_step(state.turn, result, self._thread.runtime.dialects, newest)
        if isinstance(step, NewStep) and step.kind == "turn":
            ensure_not_archived(state)
        return step

    def _append(self, decide: Decide) -> RecordedStep | None:
        """Append the step that `decide` returns, and return it as its caller sees it; None if there is none."""
        step = self._thread.append_decided(decide)
        if step is None:
            return None
        if isinstance(step, DuplicateStep):
            return self._describe_step(step.step, duplicate=True)
        if step.kind == "reply":
            self._sent_tip = None
        return self._announce(step)

    def _announce(self, step: Step) -> RecordedStep:
        """Return a new step as its caller sees it, after plugins were notified. No transaction is open meanwhile."""
        recorded = self._describe_step(step)
        self._thread.runtime.host.recorded(step, self.label, recorded.usage, recorded.cache)
        return recorded

    def _describe_step(self, step: Step, *, duplicate: bool = False) -> RecordedStep:
        recorded = build_recorded_step(step, duplicate=duplicate)
        return replace(recorded, cache=self._thread.get_cache_report(step)) if step.kind == "reply" else recorded


def _takes_back(step: Step) -> bool:
    """Return True if a step takes back messages."""
    return isinstance(step.payload, RevertPayload) and step.payload.popped is not None


def build_open_turn_error(label: str, turn: Turn) -> TurnError:
    """Return the error for a user message while a turn is open."""
    waiting = f", and waits for {', '.join(map(str, turn.pending))}" if turn.pending else ""
    name = quote(label)
    advice = "record these results, then next() goes on with it" if turn.pending else "next() goes on with it"
    return TurnError(
        f"a turn is open in session {label!r} already{waiting}",
        hint=f"{advice}, interrupt=True gives it up; if another program works on it, fork the session",
        command=f"`nexus assemble --session {name}`, without a message, prints what it sends now; "
        f"`nexus session record {name} --discard-open-turn` gives it up; "
        f"`nexus session fork {name} NEW` leaves it alone",
    )


def _build_moved_error(label: str) -> ConflictError:
    """Return the error for a reply to a call that is older than what was recorded since."""
    return ConflictError(
        f"somebody else has gone on with session {label!r} since this call was made",
        hint="this reply is not recorded: call next() to go on from where the session is, or fork it",
        command="this reply is not recorded: `nexus session record NAME` says where the session stands now",
    )


def _require_open_turn(state: SessionState) -> Turn:
    if state.open_turn is None:
        raise TurnError("no turn is open", hint="a message opens one")
    return state.open_turn


# ---- how a Nexus opens sessions ---------------------------------------------------------------------------------


def open_runtime(
    host: Host,
    load: Callable[[Path, AgentMode], tuple[Request, LoadedLayers]],
    *,
    cwd: Path,
    home: Path,
    ledger: Callable[[], Ledger],
    summarize: SummarizeFunction | None,
) -> SessionRuntime:
    """Return what the sessions of a Nexus share.

    Args:
        host: The plugin manager.
        load: Loads the layers of a directory, uncached.
        cwd: The agent's working directory.
        home: The user's Nexus directory.
        ledger: Opens the ledger, or returns the open one.
        summarize: The caller's own summarizer.
    """
    contexts = StaticContextCache(host, LayerCache(load))
    return SessionRuntime(
        cwd=cwd, home=home, host=host, open_ledger=ledger, static_contexts=contexts, summarize=summarize
    )


def open_engine(
    runtime: SessionRuntime, label: str, *, any_directory: bool = False, **given: Unpack[SessionArguments]
) -> Engine:
    """Return the operations of a session.

    Args:
        runtime: Shared by all sessions of the Nexus.
        label: The session's name.
        any_directory: Whether it may have been used in another directory before.
        given: The arguments of `Nexus.session`.

    Raises:
        UsageError: An argument has the wrong type, or there is no such role.
        MessageError: One of the tools is not a tool definition.
    """
    options = read_session_options(runtime.dialects, **given)
    if options.role:
        find_agent_role(runtime.host, options.role)
    thread = SessionThread(runtime, read_label(label), options)
    thread.any_directory = read_flag(any_directory, "any_directory")
    return Engine(thread)


def replay_step(runtime: SessionRuntime, step: str | RecordedStep | Step) -> Operation[AssembledContext]:
    """Rebuild the call that a reply of any session answered."""
    return Engine(SessionThread(runtime, "", read_session_options(runtime.dialects))).replay(step)


def assemble_request(
    runtime: SessionRuntime, request: object, *, must_fit: bool, announce: bool
) -> Operation[AssembledContext]:
    """Return the call for a request.

    Args:
        runtime: Shared by all sessions of the Nexus.
        request: The request.
        must_fit: Whether it is an error if the call does not fit.
        announce: Whether plugins are notified, because the call will be sent.

    Raises:
        UsageError: It is not a Request, or is about another directory.
    """
    if not isinstance(request, Request):
        raise UsageError("expected a Request", hint="nexus.assemble(nexus.request(message=…))")
    if request.cwd != runtime.cwd:
        raise UsageError(f"this Nexus is about {runtime.cwd}, not {request.cwd}", hint=f"Nexus({str(request.cwd)!r})")
    engine = Engine(SessionThread(runtime, request.session, get_request_options(request, runtime.dialects)))
    user_input = read_request_input(request, runtime.dialects)
    return engine.assemble(user_input, must_fit=must_fit, announce=announce and must_fit)
