"""Workers (subagents): sessions with one task, whose final reply answers a tool call of their parent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.fields import read_path, read_text
from nexus_core.errors import SessionExistsError, TurnError, UsageError
from nexus_core.files.places import resolve_directory
from nexus_core.ledger.store import MAX_LABEL_CHARACTERS, new_id, read_label
from nexus_core.rendering import find_agent_role
from nexus_core.session.options import ALL_SKILLS, read_session_options, read_skills
from nexus_core.session.record import INTERRUPTED_RESULT, IncomingResult, build_result_step
from nexus_core.thread.state import RecordedCall, build_recorded_step, is_session_start_step
from nexus_core.types.base import blake2b
from nexus_core.types.messages import Message, ToolResult
from nexus_core.types.payloads import ReplyPayload, SessionPayload

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.session.options import SessionOptions
    from nexus_core.thread.state import DuplicateStep, SessionState, Turn
    from nexus_core.types.ledger import NewStep, SessionRecord
    from nexus_core.types.payloads import ToolCallKey

WORKER_ROLE = "worker"
"""The role of a worker."""
_EXAMPLE = 'session.spawn("Find out why the build fails.")'


class SpawnArguments(NamedTuple):
    """The arguments of `Session.spawn`.

    Attributes:
        task: The task, part of the system prompt.
        cwd: Its working directory; None for that of its parent.
        call: The tool call that its final reply answers; None for none.
        skills: The skills in its prompt; None or `ALL_SKILLS` for all.
        label: The name of its session; None to derive one from the call.
        model: Its model; None for its parent's.
        tools: Its tools; None for those that its parent's caller offers.
        system_prompt: Its whole system prompt, in place of loaded instructions, task and role; None for these.
        reopen: Whether to open the worker of that name that this parent created before.
    """

    task: str
    cwd: str | os.PathLike[str] | None = None
    call: RecordedCall | None = None
    skills: Sequence[str] | None = None
    label: str | None = None
    model: str | None = None
    tools: Sequence[object] | None = None
    system_prompt: str | None = None
    reopen: bool = False


class WorkerReport(NamedTuple):
    """A worker's final reply: the parent session, the call it answers, the text, and whether the worker failed."""

    parent: str
    key: ToolCallKey
    text: str
    is_error: bool


def create_worker(
    runtime: SessionRuntime, label: str, state: SessionState, orders: SpawnArguments, made: SessionPayload
) -> SessionRecord:
    """Return the session of a worker, created if it does not exist.

    Args:
        runtime: Shared by all sessions of the Nexus.
        label: The name of the parent session.
        state: The parent's state.
        orders: The arguments of `spawn`.
        made: Options that it inherits: model, renderer, permissions.

    Raises:
        UnknownNameError: No plugin provides the role `worker`.
        UsageError: The task is empty, or the call is not a RecordedCall.
        TurnError: That call is not pending.
        SessionExistsError: Another session has that name.
    """
    find_agent_role(runtime.host, WORKER_ROLE)
    task = read_text(orders.task, "a task", hint=_EXAMPLE)
    if not task.strip():
        raise UsageError("a worker needs a task", hint=_EXAMPLE)
    key = _key_of(orders.call, state)
    inherited = state.stored_options.inherits
    places = [str(runtime.cwd)] if inherited is None else list(inherited)
    if orders.cwd is not None:
        cwd = str(resolve_directory(Path(places[-1]) / read_path(orders.cwd, "cwd")))
        places += [] if cwd == places[-1] else [cwd]
    payload = made.merge(
        SessionPayload(cwd=places[-1], inherits=tuple(places), role=WORKER_ROLE, task=task, parent=label, call=key)
    )
    skills = ALL_SKILLS if orders.skills is None else read_skills(orders.skills)
    if skills != ALL_SKILLS:
        payload = payload.replace(skills=skills)
    if orders.system_prompt:
        payload = payload.replace(system_prompt=read_text(orders.system_prompt, "system_prompt"))
    name = None if orders.label is None or orders.label == "" else read_label(orders.label)
    name = name or _label(label, new_id() if key is None else f"{key.step}.{key.place}")
    return _create(runtime, name, payload, reopen=orders.reopen)


def read_worker_options(orders: SpawnArguments, tools: Sequence[object], dialects: DialectRegistry) -> SessionOptions:
    """Return the options of a worker's session that are not stored with it."""
    return read_session_options(dialects, model=orders.model, tools=tools if orders.tools is None else orders.tools)


def find_worker_report(state: SessionState) -> WorkerReport | None:
    """Return the final reply of a finished worker; None if no call waits for it, or it has not finished."""
    parent, call, turn = state.stored_options.parent, state.stored_options.call, state.turn
    if parent is None or call is None or turn is None or turn.is_open:
        return None
    last = turn.steps[-1]
    if is_session_start_step(last):
        return None
    reply = last.payload if isinstance(last.payload, ReplyPayload) else ReplyPayload()
    failed = last.kind == "interrupted" or bool(reply.error) or reply.interrupted
    text = build_recorded_step(last).text or reply.error or (INTERRUPTED_RESULT if failed else "")
    return WorkerReport(parent, call, text, failed)


def build_report_step(turn: Turn | None, report: WorkerReport) -> NewStep | DuplicateStep:
    """Return the step with the result of the call that a worker answers.

    Raises:
        TurnError: The call is no longer pending, or has a different result.
    """
    if turn is None or report.key not in turn.calls:
        raise TurnError("the turn in which the worker was called has ended", hint="its answer comes too late")
    call = turn.calls[report.key]
    result = ToolResult(call.id, report.text, call.name, report.is_error)
    return build_result_step(turn, (IncomingResult(report.key, Message("tool", (result,))),))


def _label(maker: str, name: str) -> str:
    """Return the default name of a worker; a long name of its parent becomes a part of it and a digest."""
    label = f"{maker}/{name}"
    if len(label) <= MAX_LABEL_CHARACTERS:
        return label
    short = f"…{blake2b(maker.encode(), digest_size=16).hexdigest()}/{name}"
    return maker[: MAX_LABEL_CHARACTERS - len(short)] + short


def _key_of(call: object, state: SessionState) -> ToolCallKey | None:
    if call is None:
        return None
    if not isinstance(call, RecordedCall):
        raise UsageError(
            "call must be one of session.pending_calls or step.tool_calls", hint="session.spawn(task, call=call)"
        )
    if state.turn is None or call.key not in state.turn.calls:
        raise TurnError(f"{call} is not pending", hint="session.pending_calls lists the pending tool calls")
    return call.key


def _create(runtime: SessionRuntime, label: str, payload: SessionPayload, *, reopen: bool) -> SessionRecord:
    """Create a session, or return the existing one if it was created for the same call.

    With `reopen`, the same parent is enough.
    """
    try:
        return runtime.ledger.create(label, data=payload.to_json())
    except SessionExistsError:
        there = runtime.ledger.session(label)
        if there is not None and there.payload.parent == payload.parent:
            is_same_call = payload.call is not None and there.payload.call == payload.call
            if reopen or is_same_call:
                return there
        raise
