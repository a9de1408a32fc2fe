"""The calls that are under way in this program, each with its span, until they are answered."""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from nexus_core import __version__
from nexus_plugins.telemetry import _attributes as told
from nexus_plugins.telemetry._tokens import count_tokens

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from nexus_core import AssembledContext, CacheReport, Usage
    from nexus_core.plugin import Step
    from nexus_plugins.telemetry._attributes import Attributes

MOST = 256
"""So many turns are followed at once; of more, those that were heard of longest ago are let go."""


class _Turn(NamedTuple):
    """What is known of a turn that goes on.

    Attributes:
        span: The call that is under way, None while tools are.
        call: What was told of the latest call.
        asked_at: When the model last asked for tools, in nanoseconds since 1970.
        tools: The tools that it asked for by then, by the ids of the calls.
    """

    span: Span | None
    call: Attributes
    asked_at: int = 0
    tools: tuple[tuple[str, str], ...] = ()


class Watch:
    """Follows calls from when they are put together until they are answered; may be told of them from many threads."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}
        self._lock = Lock()

    def begin(self, context: AssembledContext) -> None:
        """A call is about to be sent. One without a turn is passed over: nobody would hear of its answer."""
        if not context.turn_id:
            return
        attributes = told.call_attributes(context)
        name = f"chat {told.clean_text(context.model)}" if context.model else "chat"
        span = _tracer().start_span(name, kind=SpanKind.CLIENT, attributes=attributes)
        with self._lock:
            before = [self._turns.pop(turn, None) for turn in (context.turn_id, context.parent_turn_id or "")]
            self._turns[context.turn_id] = _Turn(span, attributes)
            before += [self._turns.pop(turn) for turn in list(self._turns)[:-MOST]]
        for turn in before:
            if turn is not None and turn.span is not None:
                _fail(turn.span, "unanswered")

    def follow(self, step: Step, session: str, usage: Usage | None, cache: CacheReport) -> None:
        """Something was recorded: the answer to a call, results of tools, or that a turn is given up."""
        with self._lock:
            turn = self._turns.pop(step.turn, None)
            if turn is not None and not step.closes:
                self._turns[step.turn] = turn if step.kind == "result" else _waiting(turn, step)
        if step.kind in ("reply", "turn"):
            self._answer(turn, step, usage, cache)
        elif step.kind == "result" and turn is not None:
            _end_tools(turn, step, session)
        elif step.kind == "interrupted" and turn is not None and turn.span is not None:
            _fail(turn.span, "interrupted")

    def _answer(self, turn: _Turn | None, step: Step, usage: Usage | None, cache: CacheReport) -> None:
        call = (turn.call if turn else {}) or {told.OPERATION: "chat"}
        provider = {} if told.PROVIDER in call else told.provider_of(told.api_of(step))
        reply = told.reply_attributes(step, usage, cache)
        if usage is not None:
            count_tokens(call | provider | reply, usage)
        if turn is None or turn.span is None:
            return
        turn.span.set_attributes(provider | reply)
        if failure := told.failure_of(step):
            _fail(turn.span, failure)
        else:
            turn.span.end()


def _waiting(turn: _Turn, step: Step) -> _Turn:
    """A turn in which the model has asked for tools."""
    tools = tuple((call.id, call.name) for message in step.messages for call in message.tool_calls)
    return _Turn(None, turn.call, time.time_ns(), tools)


def _end_tools(turn: _Turn, step: Step, session: str) -> None:
    """A span for each result, from when the model asked for it until now."""
    names = dict(turn.tools)
    for message in step.messages:
        for result in message.tool_results:
            name = names.get(result.call_id) or result.name
            if not turn.asked_at or not name:
                continue
            span = _tracer().start_span(
                f"execute_tool {told.clean_text(name)}",
                kind=SpanKind.INTERNAL,
                attributes=told.tool_attributes(name, result.call_id, session),
                start_time=turn.asked_at,
            )
            if result.is_error:
                _fail(span, "tool_error")
            else:
                span.end()


def _fail(span: Span, why: str) -> None:
    span.set_attribute(told.ERROR, why)
    span.set_status(Status(StatusCode.ERROR))
    span.end()


def _tracer() -> trace.Tracer:
    # Asked for each time: a program may set its SDK up after its first call.
    return trace.get_tracer("nexus_core", __version__)


WATCH = Watch()
"""Of this program: turns have names that no other has, whichever Nexus they belong to."""
