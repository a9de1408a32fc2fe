"""Replies, tool results and whole turns, read in the format of any API and made into steps.

What was recorded before is found again instead of being stored twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, cast

from nexus_core.dialects.calls import OUTPUT_TYPES
from nexus_core.dialects.fields import ErrorPath, describe_json_value, format_for_error, read_text, to_json_types
from nexus_core.dialects.neutral import decode_value, encode_value
from nexus_core.dialects.registry import BUILT_IN_DIALECTS, read_messages
from nexus_core.errors import MessageError, TurnError
from nexus_core.history.groups import UnansweredCalls
from nexus_core.ledger.store import write_canonical_json
from nexus_core.request.input import build_message_context, build_session_start_message_at
from nexus_core.thread.state import CallResult, DuplicateStep, find_client_calls
from nexus_core.types.base import blake2b
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message, Reply, ToolResult, Usage
from nexus_core.types.payloads import InputPayload, InterruptedPayload, ReplyPayload, ResultPayload

if TYPE_CHECKING:
    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.request.input import UserInput
    from nexus_core.thread.state import Turn
    from nexus_core.types.api import Dialect
    from nexus_core.types.assembled import AgentResult
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import ToolCall
    from nexus_core.types.payloads import ToolCallKey

_OUTPUT = "output"
_FIELDS = {
    "nexus": "neutral",
    "choices": "openai",
    "candidates": "gemini",
    "promptFeedback": "gemini",
    "prompt_feedback": "gemini",
    "usageMetadata": "gemini",
    "usage_metadata": "gemini",
    _OUTPUT: "responses",
    "stop_reason": "anthropic",
}
"""Fields that only one API has in replies and stream events; the first that is present decides."""
_USUAL = {
    "openai": ("choices", "object", "created", "system_fingerprint"),
    "anthropic": ("stop_reason", "content", "stop_sequence"),
    "gemini": ("candidates", "usageMetadata", "usage_metadata", "modelVersion", "model_version", "responseId"),
    "responses": ("output", "object", "created_at", "status", "output_text", "incomplete_details"),
}
"""Fields of complete replies; the first is in every reply of that API."""
_MOST_SHOWN = 6
"""Fields of an unknown object that an error lists at most."""
_MOST_COMPARED, _LONGEST, _ALIKE = 20, 40, 0.8
"""Fields of an unknown object to compare, characters of each, and the similarity from which a name is a misspelling."""
_SPEAKERS = ("assistant", "model")
"""Roles of the model in messages of the APIs."""
_END = "stop_reason"
"""Field that tells a complete reply of Anthropic from all other objects with a role."""
_EVENTS = {"response.": "responses", "message_": "anthropic", "content_block_": "anthropic", "message": "anthropic"}
"""Prefixes of the types of stream events."""


def read_reply(given: object, dialects: DialectRegistry) -> Reply:
    """Read a reply: a dict, an SDK object, the list of a stream's chunks, an assistant message, or a `Reply`.

    Raises:
        MessageError: The format is unknown, or a field is invalid; the error names it.
    """
    if isinstance(given, Reply):
        return given
    if _is_message(given):
        return _build_reply(dialects.recognise([given]).read(given))
    if name := _name_of(given):
        return dialects.get(name).read_reply(given)
    _refuse_error(given)
    speaking = _find_offering_dialect(given, dialects)
    if speaking is None:
        raise _unknown(given)
    return _read_offered(given, speaking)


def is_builtin_reply(given: object) -> bool:
    """Return True if a value is certainly a reply in a built-in format."""
    return isinstance(given, Reply) or _is_message(given) or bool(_name_of(given))


def build_incomplete_stream_error() -> MessageError:
    """Return the error for a streamed reply without an end event."""
    return MessageError(
        "the stream broke off: these pieces do not say how the reply ended",
        hint="next() gives the request again; record(…, interrupted=True) keeps what came and ends the turn; "
        "interrupted=False takes it for the whole reply, where a server never says",
        command="send the request again; --partial keeps what came and ends the turn; "
        '{"reply": …, "interrupted": false} takes it for the whole reply, where a server never says',
    )


def _build_reply(message: Message) -> Reply:
    """Return a reply that consists of a message alone."""
    return Reply(messages=(message,), stop="tools" if message.tool_calls else "end", api=message.api)


def _find_offering_dialect(given: object, dialects: DialectRegistry) -> Dialect | None:
    """Return the plugin's dialect that recognizes a value, or a chunk of a stream; None if there is none."""
    pieces = given if isinstance(given, list | tuple) else (given,)
    return next((found for each in pieces if (found := dialects.offering(each))), None)


def _read_offered(given: object, speaking: Dialect) -> Reply:
    """Read a reply, or its message alone, in a plugin's dialect; only the dialect can tell them apart."""
    try:
        return speaking.read_reply(given)
    except MessageError as error:
        try:
            message = speaking.read(given)
        except MessageError:
            raise error from None
        if message.role != "assistant":
            raise _unknown({"role": message.role}) from None
        return _build_reply(message)


def _is_message(given: object) -> bool:
    """Return True if a value is an assistant message without the fields of a reply."""
    if isinstance(given, Message):
        return given.role == "assistant"
    if isinstance(given, Mapping):
        return given.get("role") in _SPEAKERS and _END not in given
    is_of_an_sdk = hasattr(given, "model_fields_set") and not hasattr(given, _END)
    return is_of_an_sdk and getattr(given, "role", None) in _SPEAKERS


def _refuse_error(given: object) -> None:
    """Raise a MessageError if a value is a provider's error."""
    for each in given if isinstance(given, list | tuple) else (given,):
        error = each.get("error") if isinstance(each, Mapping) else None
        if error:
            said = error.get("message") if isinstance(error, Mapping) else error
            what = f": {said}" if isinstance(said, str) else ""
            hint = "there is nothing to record; try the call again"
            raise MessageError(f"this is an error of the API{what}", path="error", hint=hint)


def _unknown(given: object) -> MessageError:
    seen = [key for key in given if isinstance(key, str)] if isinstance(given, Mapping) else []
    fields = (
        f" with {', '.join(map(format_for_error, seen[:_MOST_SHOWN]))}{', …' if len(seen) > _MOST_SHOWN else ''}"
        if seen
        else ""
    )
    return MessageError(
        f"expected a reply or a result, not {describe_json_value(given)}{fields}", hint=_what_to_do(given, seen)
    )


def _what_to_do(given: object, seen: Sequence[str]) -> str:
    role = given.get("role") if isinstance(given, Mapping) else getattr(given, "role", None)
    if role == "user":
        return "ask(…) takes the user's words, and opens a turn"
    takes = "give what an SDK returned, the model's message, call.result(…), or AgentResult(…)"
    if stream := next((key for key in seen if _is_unread(cast("Mapping[str, object]", given)[key])), ""):
        return f"it holds a stream that was not read; give what that brings: list(…[{stream!r}])"
    api = _nearest(seen)
    return f"nearest is a reply of {api}, which has {_USUAL[api][0]!r}; {takes}" if api else takes


def _is_unread(value: object) -> bool:
    """Return True for an iterator, which can be read only once."""
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | Mapping | list | tuple)


def _nearest(seen: Iterable[str]) -> str:
    """Return the API whose replies have the most fields with these or similar names, or ""."""
    names = [name[:_LONGEST] for name in islice(seen, _MOST_COMPARED)]
    alike = {
        api: sum(bool(get_close_matches(name, usual, 1, _ALIKE)) for name in names) for api, usual in _USUAL.items()
    }
    nearest = max(alike, key=lambda api: alike[api])
    return nearest if alike[nearest] else ""


def _name_of(given: object) -> str:
    """Return the built-in dialect of a reply or of a stream's chunks, or ""."""
    if isinstance(given, list | tuple):
        return next(filter(None, map(_name_of_one, given)), "")
    return _name_of_one(given)


def _name_of_one(given: object) -> str:
    if isinstance(given, Mapping):
        return _name_of_dict(given)
    if not hasattr(given, "model_fields_set"):
        return ""
    try:
        return BUILT_IN_DIALECTS.recognise([given]).name
    except MessageError:  # an object of no SDK that is known; it may still have the fields of one
        return next((name for field, name in _FIELDS.items() if hasattr(given, field)), "")


def _name_of_dict(given: Mapping[object, object]) -> str:
    found = next((name for field, name in _FIELDS.items() if field in given), "")
    if found and not (found == "responses" and isinstance(given[_OUTPUT], Mapping)):  # which is a list
        return found
    kind = given.get("type")
    if isinstance(kind, str):
        return next((name for start, name in _EVENTS.items() if kind.startswith(start)), "")
    return ""


_BRINGERS = ("tool", "function", "user")
"""Whose messages bring results."""


class IncomingResult(NamedTuple):
    """A tool result in a message of its own, before it is matched with its call.

    Attributes:
        key: The call that it answers; None if it must be found by id or name.
        message: The message.
    """

    key: ToolCallKey | None
    message: Message

    @property
    def result(self) -> ToolResult:
        """The tool result in the message."""
        return self.message.tool_results[0]


def read_results(given: object, dialects: DialectRegistry) -> tuple[IncomingResult, ...] | None:
    """Read tool results, each in a message of its own. Return None if the value is something else.

    Raises:
        MessageError: A message contains tool results and other parts.
    """
    if isinstance(given, list) and given:
        each = [_read_message(item, dialects) for item in given]
        found = [results for results in each if results is not None]
        return tuple(brought for results in found for brought in results) if len(found) == len(each) else None
    return _read_message(given, dialects)


def _read_message(given: object, dialects: DialectRegistry) -> tuple[IncomingResult, ...] | None:
    if isinstance(given, CallResult):
        return (IncomingResult(given.key, Message("tool", (given.result,))),)
    if isinstance(given, ToolResult):
        return (IncomingResult(None, Message("tool", (given,))),)
    if isinstance(given, Message) or _brings_results(given):
        return _split(dialects.recognise([given]).read(given))
    return None if is_builtin_reply(given) else _read_offered_results(given, dialects)


def _read_offered_results(given: object, dialects: DialectRegistry) -> tuple[IncomingResult, ...] | None:
    """Read tool results in a plugin's dialect, which may also read replies."""
    speaking = dialects.offering(given)
    if speaking is None:
        return None
    try:
        message = speaking.read(given)
    except MessageError:
        return None
    return _split(message)


def match_results(turn: Turn, brought: tuple[IncomingResult, ...]) -> list[tuple[ToolCallKey, IncomingResult]]:
    """Return each result with the key of the call that it answers.

    Raises:
        TurnError: A result answers no call of this turn.
    """
    keys = [key for key in turn.calls if key not in turn.answered]
    waiting = UnansweredCalls(turn.calls[key] for key in keys)
    return [(_key_of(turn, each, waiting, keys), each) for each in brought]


def _key_of(turn: Turn, brought: IncomingResult, waiting: UnansweredCalls, keys: list[ToolCallKey]) -> ToolCallKey:
    if brought.key in turn.calls:
        return brought.key
    place = None if brought.key is not None else waiting.take(brought.result)
    if place is not None:
        return keys[place]
    for key in reversed(turn.answered if brought.key is None else ()):  # the same result may come again
        if key in turn.calls and _could_answer(turn.calls[key], brought.result):
            return key
    raise _unasked(brought.result)


def _could_answer(call: ToolCall, result: ToolResult) -> bool:
    return call.id == result.call_id if result.call_id else call.name == result.name


def _unasked(result: ToolResult) -> TurnError:
    what = " ".join(filter(None, (result.name, result.call_id and f"({result.call_id})"))) or "a tool"
    return TurnError(
        f"a result of {what} answers no call of this turn",
        hint="session.pending_calls lists the pending tool calls; call.result(…) makes the result of one of them",
    )


def _split(message: Message) -> tuple[IncomingResult, ...] | None:
    results = message.tool_results
    if not results:
        return None
    if len(results) != len(message.parts):
        raise MessageError(
            "a message brings results of tools and something else",
            hint="record the results alone, and ask(…) the rest when the turn has ended",
            command="give the results alone; the rest can be said when the turn has ended",
        )
    if len(results) == 1:
        return (IncomingResult(None, message),)
    return tuple(IncomingResult(None, replace(message, parts=(result,), extra={})) for result in results)


def _brings_results(given: object) -> bool:
    if isinstance(given, Mapping):
        # Compared one by one, because the type may be a list.
        return given.get("role") in _BRINGERS or given.get("type") in tuple(OUTPUT_TYPES.values())
    return hasattr(given, "model_fields_set") and getattr(given, "role", None) in _BRINGERS


INTERRUPTED_RESULT = "[interrupted: there is no result]"
"""Text that the model reads in place of the result of an interrupted tool call."""


def build_input_step(said: UserInput, model: str, now: int) -> NewStep:
    """Return the step that opens a turn, at a time in milliseconds since 1970."""
    context = dict(build_message_context(said.event, hooks=0, now=now))
    payload = InputPayload(model=model, event=dict(said.event), context=[context])
    return NewStep(kind="input", messages=(said.message,), data=payload.to_json())


def build_session_start_step(now: int) -> NewStep:
    """Return the step that a new session begins with, at a time in milliseconds since 1970.

    It is a closed turn of its own, so that the first user message stays the input of its turn.
    """
    messages = (build_session_start_message_at(now),)
    return NewStep(kind="input", closes=True, messages=messages, data=InputPayload(context=[None]).to_json())


def build_reply_step(turn: Turn | None, reply: Reply, *, interrupted: bool) -> NewStep | DuplicateStep:
    """Return the step of a reply, or the existing one if it was recorded before.

    Args:
        turn: The turn at the end of the thread, open or not.
        reply: The reply.
        interrupted: Whether the reply is partial, and its tool calls are not run.

    Raises:
        TurnError: No reply is expected.
    """
    digest = compute_reply_digest(reply)
    if turn is not None:
        expected = turn.is_open and not turn.pending
        for step in turn.replies:
            # Where a server gives no ids, the same words are said again sooner than they are recorded again.
            is_same = isinstance(step.payload, ReplyPayload) and step.payload.digest == digest
            if is_same and (reply.id or not expected):
                return DuplicateStep(step)
    _ensure_expected(turn)
    messages = reply.messages
    calls = find_client_calls(messages)
    interrupted = interrupted or reply.stop == "error"  # what a model was about to do when it failed is not done
    if interrupted and calls:
        messages = (*messages, Message("tool", map(_given_up, calls)))
    payload = ReplyPayload(
        id=reply.id,
        digest=digest,
        stop=reply.stop,
        stop_reason=reply.stop_reason,
        model=reply.model,
        api=reply.api,
        context=[None] * len(messages),
    )
    if reply.usage is not None:
        payload = payload.replace(usage=reply.usage)
    if interrupted:
        payload = payload.replace(interrupted=True)
    closes = interrupted or (not calls and reply.stop != "pause")
    return NewStep(kind="reply", closes=closes, messages=messages, data=payload.to_json())


def build_result_step(turn: Turn | None, brought: tuple[IncomingResult, ...]) -> NewStep | DuplicateStep:
    """Return the step of the new results, or the existing one if all of them were recorded before.

    Raises:
        TurnError: A result matches no call, or its call has a different result.
    """
    if turn is None or not turn.calls:
        raise TurnError("no call waits for a result", hint="record the reply first that asks for tools")
    new: dict[ToolCallKey, IncomingResult] = {}
    known: Step | None = None
    for key, each in match_results(turn, brought):
        there = new[key].result if key in new else turn.answered[key].result if key in turn.answered else None
        if there is None and turn.is_open:
            new[key] = each
        elif there is not None and _are_equal(there, each.result):
            known = turn.answered[key].step if key in turn.answered else known
        else:
            raise _late(turn, key, has_result=there is not None)
    if not new:
        assert known is not None  # noqa: S101 - there is at least one result, and it is new or known
        return DuplicateStep(known)
    payload = ResultPayload(answers=tuple(new), context=[None] * len(new))
    return NewStep(kind="result", messages=tuple(each.message for each in new.values()), data=payload.to_json())


def build_interrupted_step(turn: Turn) -> NewStep:
    """Return the step that ends an unfinished turn; each pending call gets a result that says so."""
    messages = tuple(Message("tool", (_given_up(pending.call),)) for pending in turn.pending)
    answers = tuple(pending.key for pending in turn.pending)
    payload = InterruptedPayload(answers=answers, context=[None] * len(messages))
    return NewStep(kind="interrupted", closes=True, messages=messages, data=payload.to_json())


def build_agent_step(
    turn: Turn | None, result: AgentResult, dialects: DialectRegistry, newest: Iterable[Step] = ()
) -> NewStep | DuplicateStep:
    """Return the step of a whole turn, or of the rest of an open one; the existing one if it was recorded before.

    Args:
        turn: The turn at the end of the thread, open or not.
        result: The agent's messages, usage and error.
        dialects: The formats that its messages may have.
        newest: The steps in which a result with an id is looked for; without an id, only those of the turn.
    """
    speaking = dialects.recognise(result.messages)
    messages = read_messages(speaking, result.messages)
    reply = Reply(messages=messages, stop_reason=result.stop_reason, usage=result.usage, id=result.id)
    digest = compute_reply_digest(reply)
    is_open = turn is not None and turn.is_open
    for step in newest if result.id else turn.replies if turn else ():
        if isinstance(step.payload, ReplyPayload) and step.payload.digest == digest:
            return DuplicateStep(step)
    if is_open:
        _ensure_expected(turn)
    calls = find_client_calls(messages)
    if calls:
        messages = (*messages, Message("tool", map(_given_up, calls)))
    payload = ReplyPayload(
        id=result.id,
        digest=digest,
        stop_reason=result.stop_reason,
        api=speaking.name,
        tool_calls=[to_json_types(_written(call)) for call in result.tool_calls],
        context=[None] * len(messages),
    )
    if result.usage is not None:
        payload = payload.replace(usage=result.usage)
    if result.error is not None:
        payload = payload.replace(error=result.error)
    return NewStep(kind="reply" if is_open else "turn", closes=True, messages=messages, data=payload.to_json())


def read_agent_result(given: AgentResult) -> AgentResult:
    """Validate an agent's result; its usage may be a mapping.

    Raises:
        MessageError: A field has the wrong type, or there is neither a message nor an error.
    """
    if not given.messages and given.error is None:
        hint = "give all messages of the turn, or say what went wrong: error=…"
        raise MessageError("an agent brings back no messages", path="messages", hint=hint)
    error = None if given.error is None else read_text(given.error, "error")
    usage: object = given.usage
    with ErrorPath("usage"):
        return replace(given, error=error, usage=usage if isinstance(usage, Usage) else read_usage(usage))


def compute_reply_digest(reply: Reply) -> str:
    """Return the digest of a reply with its usage."""
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


def _late(turn: Turn, key: ToolCallKey, *, has_result: bool) -> TurnError:
    """Return the error for a result that comes too late."""
    call = turn.calls[key]
    name = f"{call.name} ({call.id})" if call.id else call.name
    if key in turn.answered and turn.answered[key].step.kind == "interrupted":
        return TurnError(f"the turn in which {name} was called was interrupted", hint="its result comes too late")
    if not has_result:
        return TurnError(f"the turn in which {name} was called has ended", hint="its result comes too late")
    return TurnError(
        f"{name} has another result already", hint="a result is recorded once; ask(…) tells the model something new"
    )


def _given_up(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, INTERRUPTED_RESULT, call.name, is_error=True)


def _are_equal(one: ToolResult, other: ToolResult) -> bool:
    return write_canonical_json(encode_value(one)) == write_canonical_json(encode_value(other))


def _written(call: object) -> object:
    return encode_value(call) if hasattr(call, "__dataclass_fields__") else call


def read_usage(value: object) -> Usage | None:
    """Return the usage that a caller passes as a mapping; None for None.

    Raises:
        MessageError: It has a field that a usage does not have, or one with the wrong type.
    """
    return None if value is None else decode_value(Usage, value)
