"""Replies, results and whole turns as steps; what is recorded already is found again instead.

What a step knows besides its messages (`step.data`):

    epoch, view, cut             by their digests system prompt and tools, and what the model was told since; where the
                                 history begins that is sent
    setup, session               by its digest what the settings say about calls; the session in which it was sealed
    turns, spent, calibration    how many turns the thread has, what it has cost so far, how providers have counted
    windows, request_bytes       by model, how many tokens it reads and how many bytes a request may have, as its
                                 provider says, and as we thought
    pins                         the steps that stay as they are when others are summarised
    model, renderer, told        who was asked, or who answered; in whose words, and with which sections
    event, context               about an input: the occasion; beside each message, what it was put together from
    id, digest, stop,            about a reply or a whole turn: its id and the digest of all it said, why it ended, in
    stop_reason, api, usage      two words, in whose shape it came, what it cost
    interrupted, error           about a reply that was cut off, a turn that failed
    asked                        about a reply: the newest step when the model was asked, where another came between
    answers, clamp               about results: the calls they answer; where long texts are cut when they are sent
    sizes                        what each message takes, where there are several
    imported, time, kinds        about what was imported: the lines of each message, when it was said, whose word it was
"""

from __future__ import annotations

from dataclasses import asdict, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import ErrorPath, to_json_types
from nexus_core.dialects.neutral import encode_value
from nexus_core.dialects.registry import read_messages
from nexus_core.errors import MessageError, TurnError
from nexus_core.ledger.json_text import write_canonical_json
from nexus_core.session.arguments import read_text
from nexus_core.session.asking.inputs import build_session_start_message_at, message_context
from nexus_core.session.recording.results import match
from nexus_core.session.steps.turns import client_calls, read_usage
from nexus_core.session.thread.appending import RecordedBefore
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message, Reply, ToolResult, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.session.asking.inputs import Said
    from nexus_core.session.recording.results import Brought
    from nexus_core.session.steps.recorded import CallKey
    from nexus_core.session.steps.turns import Turn
    from nexus_core.types.assembled import AgentResult
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import ToolCall

GIVEN_UP = "[interrupted: there is no result]"
"""What the model reads in the place of a result that nobody waits for any more."""


def input_step(said: Said, model: str, now: int) -> NewStep:
    """The step that opens a turn, at a time in milliseconds since 1970."""
    context = dict(message_context(said.event, hooks=0, now=now))
    data = {"model": model, "event": dict(said.event), "context": [context]}
    return NewStep(kind="input", messages=(said.message,), data=data)


def build_session_start_step(now: int) -> NewStep:
    """Return the step that a new session begins with, at a time in milliseconds since 1970.

    It is a closed turn of its own, so that the first question stays what its turn is about.
    """
    return NewStep(kind="input", closes=True, messages=(build_session_start_message_at(now),), data={"context": [None]})


def reply_step(turn: Turn | None, reply: Reply, *, interrupted: bool) -> NewStep | RecordedBefore:
    """The step of a reply; the one there is, if it was recorded before.

    Args:
        turn: The turn at the end of the thread, open or not.
        reply: The reply.
        interrupted: Whether it was cut off, and its calls will not be answered.

    Raises:
        TurnError: No reply is expected.
    """
    digest = digest_of(reply)
    if turn is not None:
        expected = turn.is_open and not turn.pending
        for step in turn.replies:
            # Where a server gives no ids, the same words are said again sooner than they are recorded again.
            if step.data.get("digest") == digest and (reply.id or not expected):
                return RecordedBefore(step)
    _ensure_expected(turn)
    messages = reply.messages
    calls = client_calls(messages)
    interrupted = interrupted or reply.stop == "error"  # what a model was about to do when it failed is not done
    if interrupted and calls:
        messages = (*messages, Message("tool", map(_given_up, calls)))
    data: dict[str, Any] = {
        "id": reply.id,
        "digest": digest,
        "stop": reply.stop,
        "stop_reason": reply.stop_reason,
        "model": reply.model,
        "api": reply.api,
        "context": [None] * len(messages),
    }
    if reply.usage is not None:
        data["usage"] = asdict(reply.usage)
    if interrupted:
        data["interrupted"] = True
    closes = interrupted or (not calls and reply.stop != "pause")
    return NewStep(kind="reply", closes=closes, messages=messages, data=data)


def result_step(turn: Turn | None, brought: tuple[Brought, ...]) -> NewStep | RecordedBefore:
    """The step of results that are not recorded yet; the one there is, if all of them are.

    Raises:
        TurnError: A result answers no call, or its call has another result.
    """
    if turn is None or not turn.calls:
        raise TurnError("no call waits for a result", hint="record the reply first that asks for tools")
    new: dict[CallKey, Brought] = {}
    known: Step | None = None
    for key, each in match(turn, brought):
        there = new[key].result if key in new else turn.answers[key].result if key in turn.answers else None
        if there is None and turn.is_open:
            new[key] = each
        elif there is not None and _are_equal(there, each.result):
            known = turn.answers[key].step if key in turn.answers else known
        else:
            raise _late(turn, key, has_result=there is not None)
    if not new:
        assert known is not None  # noqa: S101 - there is at least one result, and it is new or known
        return RecordedBefore(known)
    data = {"answers": [list(key) for key in new], "context": [None] * len(new)}
    return NewStep(kind="result", messages=tuple(each.message for each in new.values()), data=data)


def interrupted_step(turn: Turn) -> NewStep:
    """The step that ends a turn which nobody will finish; calls that wait get a result that says so."""
    messages = tuple(Message("tool", (_given_up(pending.call),)) for pending in turn.pending)
    answers = [list(pending.key) for pending in turn.pending]
    data = {"answers": answers, "context": [None] * len(messages)}
    return NewStep(kind="interrupted", closes=True, messages=messages, data=data)


def agent_step(
    turn: Turn | None, result: AgentResult, dialects: DialectRegistry, newest: Iterable[Step] = ()
) -> NewStep | RecordedBefore:
    """The step of a whole turn, or of the rest of one that is open; the one there is, if it was recorded before.

    Args:
        turn: The turn at the end of the thread, open or not.
        result: What the agent brings back.
        dialects: The shapes that its messages may be in.
        newest: The steps among which one with an id is looked for; without an id, only the turn's own.
    """
    speaking = dialects.recognise(result.messages)
    messages = read_messages(speaking, result.messages)
    reply = Reply(messages=messages, stop_reason=result.stop_reason, usage=result.usage, id=result.id)
    digest = digest_of(reply)
    is_open = turn is not None and turn.is_open
    for step in newest if result.id else turn.replies if turn else ():
        if step.data.get("digest") == digest:
            return RecordedBefore(step)
    if is_open:
        _ensure_expected(turn)
    calls = client_calls(messages)
    if calls:
        messages = (*messages, Message("tool", map(_given_up, calls)))
    data: dict[str, Any] = {
        "id": result.id,
        "digest": digest,
        "stop_reason": result.stop_reason,
        "api": speaking.name,
        "tool_calls": [to_json_types(_written(call)) for call in result.tool_calls],
        "context": [None] * len(messages),
    }
    if result.usage is not None:
        data["usage"] = asdict(result.usage)
    if result.error is not None:
        data["error"] = result.error
    return NewStep(kind="reply" if is_open else "turn", closes=True, messages=messages, data=data)


def read_agent_result(given: AgentResult) -> AgentResult:
    """What an agent brings back; what it cost may be given as values by name.

    Raises:
        MessageError: Something in it is of another kind than it must be, or nothing was said and nothing went wrong.
    """
    if not given.messages and given.error is None:
        hint = "give all messages of the turn, or say what went wrong: error=…"
        raise MessageError("an agent brings back no messages", path="messages", hint=hint)
    error = None if given.error is None else read_text(given.error, "error")
    usage: object = given.usage
    with ErrorPath("usage"):
        return replace(given, error=error, usage=usage if isinstance(usage, Usage) else read_usage(usage))


def digest_of(reply: Reply) -> str:
    """The address of all that a reply says and cost."""
    return blake2b(write_canonical_json(encode_value(reply)).encode(), digest_size=32).hexdigest()


def _ensure_expected(turn: Turn | None) -> None:
    if turn is None or not turn.is_open:
        raise TurnError(
            "no turn is open, so there is nothing that this could answer",
            hint="ask(…) opens a turn; if another program works on this session, it has ended the turn already",
        )
    if turn.pending:
        waiting = ", ".join(map(str, turn.pending))
        raise TurnError(
            f"another reply is recorded already, and waits for results: {waiting}",
            hint="record these results first, then call next(); if another program works on this session, let it",
        )


def _late(turn: Turn, key: CallKey, *, has_result: bool) -> TurnError:
    """Why a result is not recorded."""
    call = turn.calls[key]
    name = f"{call.name} ({call.id})" if call.id else call.name
    if key in turn.answers and turn.answers[key].step.kind == "interrupted":
        return TurnError(f"the turn in which {name} was called was interrupted", hint="its result comes too late")
    if not has_result:
        return TurnError(f"the turn in which {name} was called has ended", hint="its result comes too late")
    return TurnError(
        f"{name} has another result already", hint="a result is recorded once; ask(…) tells the model something new"
    )


def _given_up(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, GIVEN_UP, call.name, is_error=True)


def _are_equal(one: ToolResult, other: ToolResult) -> bool:
    return write_canonical_json(encode_value(one)) == write_canonical_json(encode_value(other))


def _written(call: object) -> object:
    return encode_value(call) if hasattr(call, "__dataclass_fields__") else call
