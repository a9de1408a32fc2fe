"""Dispatcher: the methods of a pool with JSON in and out, for servers of any transport.

A server calls `dispatch` for methods with one result and `stream` for those that yield events. Errors are the typed
errors of Nexus; `error_to_json` writes one for a client.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from nexus_core.agents.events import (
    CompactionEvent,
    DoneEvent,
    MemoryEvent,
    PermissionEvent,
    SteeringMessageEvent,
    StepEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
)
from nexus_core.dialects.fields import describe_json_value
from nexus_core.dialects.neutral import encode_value, message_to_json
from nexus_core.errors import AgentExistsError, NexusError, UnknownNameError, UsageError
from nexus_core.memory.recall import memory_to_json
from nexus_core.rpc.pooled_agent import build_question_id, measure_context
from nexus_core.types.messages import Message
from nexus_core.types.providers import ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from typing import Unpack

    from nexus_core.agents.events import AgentEvent
    from nexus_core.rpc.pool import AgentPool
    from nexus_core.rpc.pooled_agent import AgentTurn, PooledAgent
    from nexus_core.thread.state import RecordedCall
    from nexus_core.types.messages import Usage
    from nexus_core.types.prompt import Placement

MAX_LIMIT = 1_000
"""Messages that one `get_messages` returns, and memories of one `memory_search`."""


class UnknownMethodError(UnknownNameError):
    """Raised when a dispatcher has no method of that name."""

    _max_listed_names = 100  # all of them: the list ends with `send` and `shutdown`


class InvalidParamsError(UsageError):
    """Raised when the parameters of a method are missing, unknown or of the wrong type."""


class AgentOptions(TypedDict, total=False):
    """The options of an agent that a client decides, as for `AgentPool.create`."""

    cwd: str | None
    system_prompt: str | None
    model: str | None
    role: str | None
    parent: str | None
    task: str | None
    level: str | None


class Dispatcher:
    """The methods of a pool: JSON objects in, JSON values out.

    Every method can be called in Python, too: `await dispatcher.get_tokens("worker-1")`.

    Args:
        pool: The pool.
        on_shutdown: Called by the method `shutdown`; None if there is nothing to shut down.
    """

    def __init__(self, pool: AgentPool, *, on_shutdown: Callable[[], None] | None = None) -> None:
        self._pool = pool
        self._on_shutdown = on_shutdown

    # ---- by name --------------------------------------------------------------------------------------------------

    async def dispatch(self, method: str, params: Mapping[str, Any] | Sequence[Any] | None = None) -> Any:  # noqa: ANN401 - JSON
        """Call a method by its name and return its result.

        Args:
            method: The name.
            params: Its parameters: by name, or a list in the order of its arguments.

        Raises:
            UnknownMethodError: There is no such method.
            InvalidParamsError: The parameters do not fit.
            NexusError: The method fails.
        """
        given = _read_params(method, params, METHODS)
        return await getattr(self, method)(**given)

    def stream(
        self, method: str, params: Mapping[str, Any] | Sequence[Any] | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Call a method that yields events, by its name: `send` or `resume`. Errors are those of `dispatch`.

        The turn continues if the caller stops reading; `cancel` ends it.
        """
        given = _read_params(method, params, STREAMS)
        events: AsyncIterator[dict[str, Any]] = getattr(self, method)(**given)
        return events

    # ---- the pool -------------------------------------------------------------------------------------------------

    async def create_agent(self, agent_id: str | None = None, **options: Unpack[AgentOptions]) -> dict[str, Any]:
        """Create an agent and return what is known of it, as `list_agents` does."""
        with _hint_at_methods():
            return self._pool.describe(await self._pool.create(agent_id, **options))

    async def list_agents(self) -> list[dict[str, Any]]:
        """Return what is known of each agent."""
        return self._pool.list()

    async def destroy_agent(self, agent_id: str) -> dict[str, Any]:
        """End an agent and its workers, and return their ids as `destroyed`."""
        return {"destroyed": list(await self._pool.destroy(agent_id))}

    async def memory_search(self, text: str, agent_id: str | None = None, limit: int = 10) -> dict[str, Any]:
        """Search all memory sources, and return the memories, the best first.

        Args:
            text: A question, or some words.
            agent_id: The agent that asks: its directory is searched, and its own turns are left out. None for the
                directory of the pool.
            limit: Most memories to return, up to 1,000.
        """
        _check_limit(limit)
        agent = None if agent_id is None else self._find_searching_agent(agent_id)
        found = await asyncio.to_thread(self._pool.search_memories, text, agent, limit)
        return {
            "memories": [memory_to_json(each) for each in found.memories],
            "findings": [{"code": each.code, "message": each.message} for each in found.findings],
        }

    def _find_searching_agent(self, agent_id: str) -> PooledAgent:
        """Return an agent. The error for an unknown one has the order of the parameters: the agent is not the first."""
        try:
            return self._pool.get(agent_id)
        except UnknownNameError as error:
            names = ", ".join((*METHODS["memory_search"].required, *METHODS["memory_search"].optional))
            error.hint = f"the parameters of memory_search are {names}, in this order; {error.hint}"
            raise

    async def shutdown(self) -> dict[str, Any]:
        """End the server: turns are cancelled, and what was said is stored. Return the running agents."""
        if self._on_shutdown is None:
            raise UsageError("there is no server to shut down", hint="close the pool instead: await pool.close()")
        self._on_shutdown()
        return {"running": [agent.id for agent in self._pool if agent.is_running]}

    # ---- one agent ------------------------------------------------------------------------------------------------

    def send(self, agent_id: str, message: Any, delivery: str = "queue") -> AsyncIterator[dict[str, Any]]:  # noqa: ANN401 - JSON
        """Send a message at once, and return an iterator over the events of its turn.

        Args:
            agent_id: The agent.
            message: A text, or a user message or its parts in any API's format.
            delivery: `queue`, `steer` or `interrupt`, if a turn is running.
        """
        chosen: Any = delivery  # checked by the agent
        return _write_events(self._pool.get(agent_id).send(message, delivery=chosen))

    def resume(self, agent_id: str) -> AsyncIterator[dict[str, Any]]:
        """Continue the open turn of an agent, and return an iterator over its events."""
        return _write_events(self._pool.get(agent_id).resume())

    async def cancel(self, agent_id: str) -> dict[str, bool]:
        """End the running turn of an agent; `cancelled` is false if none was running."""
        return {"cancelled": self._pool.get(agent_id).cancel()}

    async def answer_permission(self, agent_id: str, question: str, allow: bool) -> dict[str, bool]:
        """Let a tool call run that waits for permission, or refuse it; `allowed` repeats the answer.

        Args:
            agent_id: The agent.
            question: The id of the question, from the event `permission` or from `list_agents`.
            allow: Whether the call may run.
        """
        self._pool.get(agent_id).answer_permission(question, allow=allow)
        return {"allowed": allow}

    async def get_tokens(self, agent_id: str) -> dict[str, Any]:
        """Return the tokens of what an agent would send now: system, tools, messages, total, budget and available.

        `estimated` says whether any count is an estimate, `usage` has the tokens of all calls so far.
        """
        return await asyncio.to_thread(self._pool.get(agent_id).context.count_tokens)

    async def get_context(self, agent_id: str) -> dict[str, Any]:
        """Return what an agent would send now: system prompt and its sources, tools, and the number of messages."""
        agent = self._pool.get(agent_id)
        context = await asyncio.to_thread(agent.context.assemble)
        sections = [each for each in context.placements if each.zone == "static" and each.kind != "tool"]
        return {
            **self._pool.describe(agent),
            "model": context.model,
            "provider": context.provider,
            "system_prompt": context.system_prompt,
            "sections": [
                {"name": each.name, "title": each.title, "source": str(each.source), "tokens": each.tokens}
                for each in sections
            ],
            "tools": [encode_value(each) for each in context.tools],
            "messages": len(context.messages),
            "findings": [{"code": each.code, "message": each.message} for each in context.findings],
            "tokens": measure_context(context),
        }

    async def get_messages(self, agent_id: str, offset: int = 0, limit: int = 100) -> dict[str, Any]:
        """Return messages of an agent since its latest summary, in the neutral format.

        Args:
            agent_id: The agent.
            offset: The number of messages to leave out at the beginning; negative to count from the end.
            limit: Most messages to return, up to 1,000.
        """
        _check_limit(limit)
        messages = await self._pool.get(agent_id).session.messages
        first = offset if offset >= 0 else max(0, len(messages) + offset)
        found = messages[first : first + limit]
        return {"total": len(messages), "offset": first, "messages": [message_to_json(each) for each in found]}

    async def compact(self, agent_id: str, focus: str = "") -> dict[str, Any]:
        """Replace earlier turns of an agent by a summary; `compacted` is false if there is nothing to summarize."""
        report = await self._pool.get(agent_id).session.compact(focus)
        if report is None:
            return {"compacted": False}
        return {
            "compacted": True,
            "step": report.step,
            "turns": report.turns,
            "messages": report.messages,
            "tokens_before": report.tokens_before,
            "tokens_after": report.tokens_after,
            "summarizer": report.summarizer,
        }

    async def fork(self, agent_id: str, name: str) -> dict[str, Any]:
        """Create an agent whose session branches off after the last closed turn of another's."""
        with _hint_at_methods():
            return self._pool.describe(await self._pool.fork(agent_id, name))


@contextmanager
def _hint_at_methods() -> Iterator[None]:
    """Let the error for an id that is in use name methods of the dispatcher, not those of a pool in Python."""
    try:
        yield
    except AgentExistsError as error:
        hint = "`send` sends it a message; `destroy_agent` ends it, so that the id is free"
        raise AgentExistsError(error.what, hint=hint) from None


async def _write_events(turn: AgentTurn) -> AsyncIterator[dict[str, Any]]:
    async for event in turn:
        yield event_to_json(event)


# ---- parameters ---------------------------------------------------------------------------------------------------


class MethodParameters(NamedTuple):
    """The parameters of a method.

    Attributes:
        required: Parameters that must be given, with their types.
        optional: Parameters that may be left out or null, with their types.
    """

    required: Mapping[str, type] = MappingProxyType({})
    optional: Mapping[str, type] = MappingProxyType({})


_AGENT: dict[str, type] = {"agent_id": str}
METHODS: Mapping[str, MethodParameters] = {
    "create_agent": MethodParameters(optional=dict.fromkeys(("agent_id", *AgentOptions.__annotations__), str)),
    "list_agents": MethodParameters(),
    "destroy_agent": MethodParameters(_AGENT),
    "cancel": MethodParameters(_AGENT),
    "answer_permission": MethodParameters(_AGENT | {"question": str, "allow": bool}),
    "get_tokens": MethodParameters(_AGENT),
    "get_context": MethodParameters(_AGENT),
    "get_messages": MethodParameters(_AGENT, {"offset": int, "limit": int}),
    "compact": MethodParameters(_AGENT, {"focus": str}),
    "fork": MethodParameters(_AGENT | {"name": str}),
    "memory_search": MethodParameters({"text": str}, {"agent_id": str, "limit": int}),
    "shutdown": MethodParameters(),
}
"""The methods with one result."""
STREAMS: Mapping[str, MethodParameters] = {
    "send": MethodParameters(_AGENT | {"message": object}, {"delivery": str}),
    "resume": MethodParameters(_AGENT),
}
"""The methods that yield events."""


def _read_params(method: str, params: object, known: Mapping[str, MethodParameters]) -> dict[str, Any]:
    """Return the parameters of a method by their names, without those that are null.

    Raises:
        UnknownMethodError: There is no such method.
        InvalidParamsError: They are no object or array, or one is missing, unknown or of the wrong type.
    """
    if method not in known:
        raise UnknownMethodError("method", str(method), (*METHODS, *STREAMS))
    spec = known[method]
    listed = (*spec.required, *spec.optional)
    names = ", ".join(listed) or "none"
    if isinstance(params, list):
        if len(params) > len(listed):
            raise InvalidParamsError(f"{method} has no {len(params)} parameters", hint=f"its parameters are {names}")
        params = dict(zip(listed, params, strict=False))
    if not isinstance(params, dict | None):
        raise InvalidParamsError(
            f"the parameters of {method} must be an object or an array", hint=f"its parameters are {names}"
        )
    given = {name: value for name, value in (params or {}).items() if value is not None}
    for name, value in given.items():
        kind = spec.required.get(name) or spec.optional.get(name)
        if kind is None:
            raise InvalidParamsError(f"{method} has no parameter {name!r}", hint=f"its parameters are {names}")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            what = describe_json_value(value)
            raise InvalidParamsError(f"{name} of {method} must be of type {kind.__name__}, and is {what}")
    missing = next((name for name in spec.required if name not in given), None)
    if missing is not None:
        raise InvalidParamsError(f"{method} needs the parameter {missing!r}", hint=f"its parameters are {names}")
    return given


def _check_limit(limit: int) -> None:
    if limit < 1 or limit > MAX_LIMIT:
        raise InvalidParamsError(f"limit must be between 1 and {MAX_LIMIT:,}, not {limit}")


# ---- JSON ---------------------------------------------------------------------------------------------------------


def event_to_json(event: AgentEvent) -> dict[str, Any]:
    """Return an event as JSON; `type` names its kind."""
    name, write = _EVENT_WRITERS[type(event)]
    return {"type": name, **write(event)}


_EVENT_WRITERS: dict[type, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    TextDelta: ("text", lambda event: {"text": event.text}),
    ReasoningDelta: ("reasoning", lambda event: {"text": event.text}),
    ToolCallEvent: ("tool_call", lambda event: _write_call(event.call)),
    PermissionEvent: (
        "permission",
        lambda event: {
            "question": build_question_id(event.call),
            **_write_call(event.call),
            "reason": event.reason,
        },
    ),
    ToolResultEvent: (
        "tool_result",
        lambda event: {
            "id": event.call.id,
            "name": event.call.name,
            "is_error": event.result.is_error,
            "result": encode_value(event.result),
            "seconds": event.seconds,
        },
    ),
    StepEvent: (
        "step",
        lambda event: {"step": event.step.id, "turn": event.step.turn, "done": event.step.done},
    ),
    CompactionEvent: ("compaction", lambda event: {"reason": event.reason}),
    MemoryEvent: ("memory", lambda event: {"memories": [_write_memory(each) for each in event.memories]}),
    SteeringMessageEvent: ("user_message", lambda event: {"message": _write_user_message(event.message)}),
    UsageEvent: ("usage", lambda event: {"usage": _write_usage(event.usage)}),
    DoneEvent: (
        "done",
        lambda event: {
            "text": event.text,
            "stop": event.stop,
            "cancelled": event.cancelled,
            "usage": _write_usage(event.usage),
            "calls": event.calls,
        },
    ),
}
"""By class of event, the name of its kind and the function that writes its fields."""


def _write_memory(placed: Placement) -> dict[str, Any]:
    return {"name": placed.name, "source": str(placed.source), "tokens": placed.tokens, "reason": placed.reason}


def error_to_json(error: BaseException) -> dict[str, Any]:
    """Return an error as JSON: its type, and for errors of Nexus what happened, where, and what to do about it."""
    if not isinstance(error, NexusError):
        return {"type": type(error).__name__, "message": str(error)}
    found = {"type": type(error).__name__, "message": error.what, "where": str(error.where or ""), "hint": error.hint}
    return {name: value for name, value in found.items() if value}


def _write_call(call: RecordedCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": dict(call.arguments)}


def _write_usage(usage: Usage) -> dict[str, int]:
    return asdict(usage)


def _write_user_message(message: object) -> object:
    return message_to_json(message) if isinstance(message, Message) else message
