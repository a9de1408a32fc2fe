"""Tells plugins that watch what has happened; without any, nobody waits."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.errors import BudgetError, ConflictError, PendingToolCallsError, TurnError, UnknownNameError, UsageError
from nexus_core.rendering import find_agent_role
from nexus_core.request.build import build_request, name_largest_pieces
from nexus_core.request.input import add_event, inherit_user_profile, read_input
from nexus_core.request.renderer import render_input
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
from nexus_core.session.session_thread import SessionThread, ThreadReader
from nexus_core.session.workers import build_report_step, find_worker_report
from nexus_core.thread.append import (
    MAX_APPEND_ATTEMPTS,
    RecordedBefore,
    append,
    build_contention_error,
    ensure_not_archived,
)
from nexus_core.thread.arguments import read_flag, read_label, read_text
from nexus_core.thread.lookup import read_step_id
from nexus_core.thread.state import add_calibration_sample
from nexus_core.thread.totals import MARKER_KINDS
from nexus_core.thread.turns import read_usage
from nexus_core.types.assembled import AgentResult
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Usage
from nexus_core.types.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Unpack

    from nexus_core.compaction.compact import AutoCompaction, CompactionPreview
    from nexus_core.host.manager import Host
    from nexus_core.request.build import CallPlan
    from nexus_core.request.input import UserInput
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.runner import Operation
    from nexus_core.session.options import SessionArguments
    from nexus_core.session.workers import SpawnArguments
    from nexus_core.thread.append import Decide
    from nexus_core.thread.state import SessionState
    from nexus_core.thread.turns import RecordedCall, RecordedStep, Turn
    from nexus_core.types.assembled import AssembledContext, CacheReport
    from nexus_core.types.budget import TokenBudget
    from nexus_core.types.compaction import CompactionReport, RevertedCompaction, SummarizeFunction
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.messages import Message
    from nexus_core.types.plugins import Finding
    from nexus_core.types.request import AgentMode


def announce_call(host: Host, context: AssembledContext) -> Operation[None]:
    """Tell them of a call that is about to be sent."""
    if host.listens("nexus_call_assembled"):
        yield from blocking(host.assembled, context)


def announce_step(host: Host, step: Step, session: str, usage: Usage | None, cache: CacheReport) -> Operation[None]:
    """Tell them of a step that is in the ledger; no transaction is open meanwhile.

    Args:
        host: The plugins.
        step: The step.
        session: The name of the session.
        usage: What the call cost that it answers.
        cache: What became of the provider's cache in that.
    """
    if host.listens("nexus_step_recorded"):
        yield from blocking(host.recorded, step, session, usage, cache)


class LastSentCall:
    """The newest step when something was last put together to be sent, and what that took.

    Args:
        thread: The session.
    """

    def __init__(self, thread: SessionThread) -> None:
        self._thread = thread
        self._tip: str | None = None
        self._taken: TokenBudget | None = None

    def remember(self, tip: str, taken: TokenBudget) -> None:
        """Something is about to be sent."""
        self._tip, self._taken = tip, taken

    def forget(self) -> None:
        """It was answered."""
        self._tip = None

    def taken(self, state: SessionState) -> TokenBudget | None:
        """What was taken by what was sent from where a session stands; None where nobody can know."""
        if self._tip is not None and self.is_unmoved(state):
            return self._taken
        return None if state.tip is None else self._thread.sent_at(state.tip)

    def sent_from(self, state: SessionState) -> str | None:
        """The step from which it was sent, where that is not the newest any more."""
        return None if state.tip is None or self._tip == state.tip.id else self._tip

    def is_unmoved(self, state: SessionState) -> bool:
        """Whether nothing was said since; a summary may have been made, or something pinned."""
        tip = None if state.tip is None else state.tip.id
        if self._tip is None or self._tip == tip:
            return True
        since = [] if tip is None else self._thread.cache.since(self._tip, tip)[1:]
        return tip is not None and all(step.kind in MARKER_KINDS and "popped" not in step.data for step in since)

    def ensure_unmoved(self, state: SessionState) -> None:
        """A reply to something older than what is recorded is no reply to that.

        Raises:
            ConflictError: Something was said since.
        """
        if not self.is_unmoved(state):
            raise ConflictError(
                f"somebody else has gone on with session {self._thread.label!r} since this call was made",
                hint="this reply is not recorded: call next() to go on from where the session is, or fork it",
                command="this reply is not recorded: `nexus session record LABEL` says where the session stands now",
            )


class RecordDecision:
    """Decides about what is given, wherever the session stands then.

    Args:
        thread: The session.
        last: What was last sent.
    """

    def __init__(self, thread: SessionThread, last: LastSentCall) -> None:
        self._thread = thread
        self._last = last

    def about(self, given: object, *, interrupted: bool | None) -> Decide:
        """Read what is to be recorded, and say how it is decided about.

        Raises:
            MessageError: It is in no shape that is known, or a stream whose end is missing.
        """
        if isinstance(given, AgentResult):
            result = read_agent_result(given)
            return lambda state: self._agent(state, result)
        dialects = self._thread.runtime.dialects
        brought = read_results(given, dialects)
        if brought is not None:
            return lambda state: build_result_step(state.turn, brought)
        reply = read_reply(given, dialects)
        if reply.stop == "broken" and interrupted is None:
            raise build_incomplete_stream_error()

        def decide(state: SessionState) -> NewStep | RecordedBefore:
            decided = build_reply_step(state.turn, reply, interrupted=bool(interrupted))
            if isinstance(decided, RecordedBefore):
                return decided
            self._last.ensure_unmoved(state)
            return self._measured(decided, state)

        return decide

    def _measured(self, step: NewStep, state: SessionState) -> NewStep:
        """A reply with what was sent to get it and to whom, and what its provider's count of that teaches."""
        if state.tip is None or state.turn is None:
            return step
        taken, sent_from = self._last.taken(state), self._last.sent_from(state)
        data: dict[str, Any] = dict(step.data)
        data["model"] = data["model"] or state.turn.sealed("model") or ""  # not every API says who has answered
        if sent_from is not None:
            data["asked"] = sent_from
        if taken is not None:
            data["sent"] = sent = taken.total
            usage = read_usage(step.data.get("usage"))
            if usage is not None:
                data["calibration"] = add_calibration_sample(
                    state.ratios, str(state.turn.sealed("model")), sent, usage.input_tokens
                )
        return replace(step, data=data)

    def _agent(self, state: SessionState, given: AgentResult) -> NewStep | RecordedBefore:
        newest = self._thread.newest(state) if given.id else ()
        decided = build_agent_step(state.turn, given, self._thread.runtime.dialects, newest)
        if isinstance(decided, NewStep) and decided.kind == "turn":
            ensure_not_archived(state)
        return decided


def assemble_existing(thread: ThreadReader, said: UserInput | None, *, must_fit: bool) -> Operation[AssembledContext]:
    """What a session that has to be there would send; without a message also where no turn is open.

    Args:
        thread: The session.
        said: What is said; None for nothing.
        must_fit: Whether it is an error if it does not fit.
    """
    state = yield from blocking(thread.read)
    if thread.label and state.record is None:
        known = yield from blocking(thread.labels)
        raise UnknownNameError("session", thread.label, known)
    return (yield from preview_call(thread, state, said, must_fit=must_fit))


def preview_call(
    thread: ThreadReader, state: SessionState, said: UserInput | None, *, must_fit: bool = True
) -> Operation[AssembledContext]:
    """What a session would send from where it stands; arguments as above."""
    if said is not None:
        ensure_not_archived(state)
        if state.open_turn is not None:
            raise build_open_turn_error(thread.label, state.open_turn)
    plan = yield from blocking(thread.plan, state, said)
    findings = plan.findings
    if said is None and state.turn is not None:
        from nexus_core.request.build import find_unsendable

        findings = (*findings, *find_unsendable(state.turn, plan.items))
    if plan.trigger is not None:
        from nexus_core.compaction.trigger import build_due_finding

        findings = (*findings, build_due_finding(plan.trigger))
    try:
        return (yield from blocking(build_request, plan._replace(must_fit=must_fit, findings=findings)))
    except BudgetError as error:
        raise name_largest_pieces(error, plan) from None


def build_open_turn_error(label: str, turn: Turn) -> TurnError:
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


class Engine:
    """The verbs of one session, as generators.

    Args:
        thread: Its steps.
    """

    def __init__(self, thread: SessionThread) -> None:
        self.label = thread.label
        self._thread = thread
        self._last = LastSentCall(thread)
        self._deciding = RecordDecision(thread, self._last)
        self._unrelieved = ""  # the turn in which nobody could summarise

    def describe(self) -> str:
        """Which session it is, in a few words; nothing is looked up."""
        return self._thread.describe()

    # ---- verbs ----------------------------------------------------------------------------------------------

    def ask(self, message: object, *, interrupt: bool, event: Mapping[str, Any]) -> Operation[AssembledContext]:
        """Open a turn and give what is to be sent."""
        said = read_input(message, event, self._thread.runtime.dialects)
        interrupt = read_flag(interrupt, "interrupt")

        def decide(state: SessionState) -> NewStep:
            ensure_not_archived(state)
            if state.open_turn is None:
                static, now = self._thread.static_context(state), self._thread.runtime.now()
                told = inherit_user_profile(said, state.kept)
                # What nobody could send must not open a turn: a renderer may refuse some of it, such as a time zone.
                render_input(static.renderer, add_event(static.request, told.message, told.event), (), now)
                return build_input_step(told, self._thread.model(state, static.settings), now)
            if interrupt:
                return build_interrupted_step(state.open_turn)
            raise build_open_turn_error(self.label, state.open_turn)

        while True:
            step = yield from append(self._thread, decide)
            if isinstance(step, RecordedBefore) or step is None or step.kind == "input":
                return (yield from self.next())
            yield from self._told(step)
            # A turn was given up; now there is room for another.

    def next(self) -> Operation[AssembledContext]:
        """What is to be sent now; the same as before, if nothing was recorded since."""
        reliefs: list[AutoCompaction] = []
        for _ in range(MAX_APPEND_ATTEMPTS):
            state = yield from blocking(self._thread.read)
            turn = _open(state)
            if turn.pending:
                raise PendingToolCallsError(map(str, turn.pending))
            plan = yield from blocking(self._thread.plan, state)
            is_too_long = plan.trigger is not None and (plan.overflows or self._unrelieved != plan.turn)
            if is_too_long and all(relief.has_moved for relief in reliefs):
                reliefs.append((yield from self._relieve(state, plan)))
                if reliefs[-1].has_moved:
                    continue
            if plan.pending is None:
                return (yield from self._send(plan, turn.steps[-1].id, reliefs))
            with suppress(ConflictError):  # somebody else may have sealed the turn meanwhile; then theirs counts
                yield from blocking(self._thread.seal, plan.pending, state)
        raise build_contention_error(self.label)

    def preview(self, message: object, event: Mapping[str, Any]) -> Operation[AssembledContext]:
        """What `ask` would give, or `next` without a message; nothing is written."""
        if message is None and event:
            raise UsageError(f"{next(iter(event))} goes with a message", hint="preview(message, …), as for ask()")
        said = None if message is None else read_input(message, event, self._thread.runtime.dialects)
        state = yield from blocking(self._thread.read)
        if said is None:
            _open(state)
        return (yield from preview_call(self._thread, state, said))

    def replay(self, step: str | RecordedStep | Step) -> Operation[AssembledContext]:
        """What was sent before a reply."""
        call = yield from blocking(self._thread.replay, read_step_id(step))
        return (yield from blocking(build_request, call))

    def cache(self, step: str | RecordedStep | Step) -> Operation[CacheReport]:
        """What became of the provider's cache in the call that a reply answers."""
        return (yield from blocking(self._thread.find_cache_report, read_step_id(step)))

    def reload(self) -> Operation[None]:
        """Have the next call begin with everything as it is then."""
        yield from blocking(self._thread.reload)

    def record(self, given: object, *, interrupted: bool | None) -> Operation[RecordedStep]:
        """Keep a reply, results, or a whole turn."""
        interrupted = None if interrupted is None else read_flag(interrupted, "interrupted")
        decide = yield from blocking(self._deciding.about, given, interrupted=interrupted)
        step = yield from append(self._thread, decide)
        assert step is not None  # noqa: S101 - there is always something to record
        if isinstance(step, RecordedBefore):
            return (yield from blocking(self._recorded, step.step, duplicate=True))
        if step.kind == "reply":
            self._last.forget()
        recorded = yield from self._told(step)
        if step.closes:
            yield from self._report_if_awaited()
        return recorded

    def spawn(self, orders: SpawnArguments) -> Operation[Engine]:
        """Make a worker; one that is done already reports once more."""
        thread = yield from blocking(self._thread.spawn, orders)
        worker = Engine(thread)
        yield from worker._report_if_awaited()
        return worker

    def report(self) -> Operation[RecordedStep | None]:
        """Record a worker's answer as the result of the call that it was made for; None where there is none."""
        state = yield from blocking(self._thread.read)
        report = find_worker_report(state)
        if report is None:
            return None
        parent = Engine(SessionThread(self._thread.runtime, report.parent, SessionOptions()))
        step = yield from append(parent._thread, lambda state: build_report_step(state.turn, report))
        assert step is not None  # noqa: S101 - there is something to record
        if isinstance(step, RecordedBefore):
            return (yield from blocking(parent._recorded, step.step, duplicate=True))
        return (yield from parent._told(step))

    def _report_if_awaited(self) -> Operation[None]:
        with suppress(TurnError):  # nobody waits any more: what the worker did is kept all the same
            yield from self.report()

    def interrupt(self) -> Operation[RecordedStep | None]:
        """End the turn that is open, if there is one."""
        step = yield from append(
            self._thread, lambda state: None if state.open_turn is None else build_interrupted_step(state.open_turn)
        )
        if step is None or isinstance(step, RecordedBefore):
            return None
        recorded = yield from self._told(step)
        yield from self._report_if_awaited()
        return recorded

    def pending(self) -> Operation[tuple[RecordedCall, ...]]:
        """The calls that wait for their result."""
        state = yield from blocking(self._thread.read)
        return () if state.turn is None else state.turn.pending

    def find_move(self) -> Operation[Finding | None]:
        """Find out whether the session was last used in another directory, if its caller does not expect that."""
        return (yield from blocking(self._thread.find_move))

    def is_open(self) -> Operation[bool]:
        """Whether a turn is open."""
        state = yield from blocking(self._thread.read)
        return state.open_turn is not None

    def messages(self, *, as_said: bool = False) -> Operation[tuple[Message, ...]]:
        """What was said, as it is sent or in its own words: the latest summary and what it keeps, or all."""
        state = yield from blocking(self._thread.read)
        return () if state.tip is None else (yield from blocking(self._thread.messages, state.tip, as_said=as_said))

    def usage(self) -> Operation[Usage]:
        """What the thread has cost, from its first turn on."""
        state = yield from blocking(self._thread.read)
        return Usage() if state.tip is None else (yield from blocking(self._thread.spent, state.tip))

    def fork(self, label: str, at: str | RecordedStep | Step | None) -> Operation[Engine]:
        """Make a session that begins where a closed turn of this one ended, by default the last."""
        turn = None if at is None else read_step_id(at, "at")
        thread = yield from blocking(self._thread.fork, read_label(label), turn)
        return Engine(thread)

    # ---- making it shorter ----------------------------------------------------------------------------------

    def compact(self, focus: str, *, dry_run: bool) -> Operation[CompactionReport | None]:
        """Summarise earlier turns because somebody asks for it; None where there is nothing to summarise."""
        from nexus_core.compaction.compact import compact

        return (yield from compact(self._thread, read_text(focus, "focus"), dry_run=read_flag(dry_run, "dry_run")))

    def preview_compaction(self, focus: str) -> Operation[CompactionPreview]:
        """Return what `compact` would do, or why it would do nothing."""
        from nexus_core.compaction.compact import preview_compaction

        return (yield from preview_compaction(self._thread, read_text(focus, "focus")))

    def recover(self, error: BaseException) -> Operation[AssembledContext]:
        """What to send after a provider refused a call as too long."""
        from nexus_core.compaction.recovery import add_recovery_note, recover

        if not isinstance(error, BaseException):
            raise UsageError("recover() takes what the provider's SDK raised", hint="except … as error: recover(error)")
        yield from recover(self._thread, self._last.taken, error)
        try:
            return (yield from self.next())
        except BudgetError as why:
            raise add_recovery_note(error, why.what) from why

    def undo(self) -> Operation[RevertedCompaction]:
        """Take the latest compaction back that counts."""
        from nexus_core.compaction.undo import undo

        return (yield from undo(self._thread))

    def expand(self, compaction: str | RecordedStep | Step) -> Operation[tuple[Step, ...]]:
        """The steps that a compaction stands for."""
        from nexus_core.compaction.undo import list_covered_steps

        return (
            yield from blocking(
                list_covered_steps, self._thread.runtime.ledger, read_step_id(compaction, "a compaction")
            )
        )

    def pin(self, step: str | RecordedStep | Step, *, remove: bool = False) -> Operation[bool]:
        """Have a step stay as it is, or no longer; whether that changed anything."""
        from nexus_core.compaction.undo import pin

        return (yield from pin(self._thread, read_step_id(step), remove=remove))

    # ---- sending --------------------------------------------------------------------------------------------

    def _relieve(self, state: SessionState, plan: CallPlan) -> Operation[AutoCompaction]:
        """Make the session shorter where the next call asks for it; at most once in a turn where nobody can."""
        from nexus_core.compaction.compact import compact_automatically

        relief = yield from compact_automatically(self._thread, state, plan)
        if relief.has_failed:
            self._unrelieved = plan.turn
        return relief

    def _send(self, plan: CallPlan, tip: str, reliefs: Sequence[AutoCompaction]) -> Operation[AssembledContext]:
        findings = tuple(relief.finding for relief in reliefs if relief.finding is not None)
        try:
            context = yield from blocking(build_request, plan._replace(findings=(*plan.findings, *findings)))
        except BudgetError as error:
            told = next((relief.floor for relief in reliefs if relief.floor is not None), error)
            raise name_largest_pieces(told, plan) from None
        self._last.remember(tip, context.token_budget)
        self._thread.left = self._thread.lost_prompt = ""  # its caller is told now
        yield from announce_call(self._thread.runtime.host, context)
        return context

    # ---- telling --------------------------------------------------------------------------------------------

    def _told(self, step: Step) -> Operation[RecordedStep]:
        """A step that has just been added, as its caller sees it; whoever watches is told of it."""
        recorded = yield from blocking(self._recorded, step)
        yield from announce_step(self._thread.runtime.host, step, self.label, recorded.usage, recorded.cache)
        return recorded

    def _recorded(self, step: Step, *, duplicate: bool = False) -> RecordedStep:
        recorded = self._thread.turn(step).recorded(step, duplicate=duplicate)
        return replace(recorded, cache=self._thread.get_cache_report(step)) if step.kind == "reply" else recorded


def _open(state: SessionState) -> Turn:
    if state.open_turn is None:
        raise TurnError("no turn is open", hint="ask(…) opens one")
    return state.open_turn


def open_runtime(
    host: Host,
    load: Callable[[Path, AgentMode], tuple[Request, LoadedLayers]],
    *,
    cwd: Path,
    home: Path,
    ledger: Callable[[], Ledger],
    summarize: SummarizeFunction | None,
) -> SessionRuntime:
    """What the sessions of a Nexus have in common.

    Args:
        host: The plugins.
        load: Loads what lies in a directory, whatever is known of it.
        cwd: The directory the agent works in.
        home: The user's own Nexus directory.
        ledger: Opens the ledger, or gives the one that is open.
        summarize: The caller's own summarizer.
    """
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.request.static_cache import LayerCache, StaticContextCache

    static_contexts = StaticContextCache(host, LayerCache(load))
    return SessionRuntime(
        cwd=cwd, home=home, host=host, ledger=ledger, static_contexts=static_contexts, summarize=summarize
    )


def open_engine(
    runtime: SessionRuntime, label: str, *, any_directory: bool = False, **said: Unpack[SessionArguments]
) -> Engine:
    """The verbs of a session.

    Args:
        runtime: Shared by all sessions of the Nexus.
        label: Its name.
        any_directory: Whether it may have been used in another directory before.
        said: What the caller says about it.

    Raises:
        UsageError: Something is of another kind than it must be, or nobody offers the role.
        MessageError: One of the tools is none.
    """
    told = read_session_options(runtime.dialects, **said)
    if told.role:
        find_agent_role(runtime.host, told.role)
    thread = SessionThread(runtime, read_label(label), told)
    thread.any_directory = read_flag(any_directory, "any_directory")
    return Engine(thread)


def replay_step(runtime: SessionRuntime, step: str | RecordedStep | Step) -> Operation[AssembledContext]:
    """What was sent before a reply, of any session."""
    return Engine(SessionThread(runtime, "", read_session_options(runtime.dialects))).replay(step)


def assemble_request(
    runtime: SessionRuntime, request: object, *, must_fit: bool, announce: bool
) -> Operation[AssembledContext]:
    """What a request is answered with.

    Args:
        runtime: Shared by all sessions of the Nexus.
        request: The request.
        must_fit: Whether it is an error if it does not fit; whoever takes it as it is only looks.
        announce: Whether plugins are told of it, because it is meant to be sent.

    Raises:
        UsageError: It is none, or about another directory.
    """
    if not isinstance(request, Request):
        raise UsageError("expected a Request", hint="nexus.assemble(nexus.request(message=…))")
    if request.cwd != runtime.cwd:
        raise UsageError(f"this Nexus is about {runtime.cwd}, not {request.cwd}", hint=f"Nexus({str(request.cwd)!r})")
    thread = ThreadReader(runtime, request.session, get_request_options(request, runtime.dialects))
    return _announced(
        runtime,
        assemble_existing(thread, read_request_input(request, runtime.dialects), must_fit=must_fit),
        announce and must_fit,
    )


def _announced(
    runtime: SessionRuntime, work: Operation[AssembledContext], announce: bool
) -> Operation[AssembledContext]:
    context = yield from work
    if announce:
        yield from announce_call(runtime.host, context)
    return context
