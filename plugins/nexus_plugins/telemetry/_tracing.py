"""Spans and token metrics of model calls and tool runs.

`gen_ai.*` are attributes of OpenTelemetry's conventions for generative AI, `nexus.*` are ours. They are numbers and
names, never the text of a message.
"""

from __future__ import annotations

import time
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from nexus_core import __version__
from nexus_core.plugin import redact
from nexus_core.plugin.ledgers import ReplyPayload
from nexus_core.plugin.text import visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.metrics import Histogram, MeterProvider
    from opentelemetry.trace import Span

    from nexus_core import AssembledContext, CacheReport, Usage
    from nexus_core.plugin import Step

if TYPE_CHECKING:
    Value = str | bool | int | float | list[str]
    Attributes = dict[str, Value]

OPERATION_ATTRIBUTE = "gen_ai.operation.name"
PROVIDER_ATTRIBUTE = "gen_ai.provider.name"
MODEL_ATTRIBUTE = "gen_ai.request.model"
RESPONSE_MODEL_ATTRIBUTE = "gen_ai.response.model"
CONVERSATION_ATTRIBUTE = "gen_ai.conversation.id"
ERROR_ATTRIBUTE = "error.type"

_PROVIDER_NAMES = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "responses": "openai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""The conventions' names of providers, if they differ from those of Nexus."""
_OPTION_ATTRIBUTES = {
    "frequency_penalty": "frequency_penalty",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
}
"""The options in the settings that have a name in the conventions."""


MAX_TEXT_CHARACTERS = 256
"""Characters of a value; ordinary names are shorter."""


def clean_text(text: str) -> str:
    """Return a name without secrets and control characters, because users and models choose names."""
    return visible_line(redact(text).text)[:MAX_TEXT_CHARACTERS]


def clean_attributes(attributes: Attributes) -> Attributes:
    """Return attributes without secrets and control characters."""
    return {
        name: clean_text(value)
        if isinstance(value, str)
        else [clean_text(each) for each in value]
        if isinstance(value, list)
        else value
        for name, value in attributes.items()
    }


def build_provider_attributes(name: str) -> Attributes:
    """Return the attribute of the provider, or none if it is unknown."""
    return clean_attributes({PROVIDER_ATTRIBUTE: _PROVIDER_NAMES.get(name, name)}) if name else {}


def build_call_attributes(context: AssembledContext) -> Attributes:
    """Return the attributes of a call before it is sent."""
    budget = context.token_budget
    attributes: Attributes = {
        OPERATION_ATTRIBUTE: "chat",
        **build_provider_attributes(context.provider),
        **({MODEL_ATTRIBUTE: context.model} if context.model else {}),
        CONVERSATION_ATTRIBUTE: context.session_label,
        **_build_option_attributes(context.model_config),
        "nexus.turn.id": context.turn_id,
        "nexus.epoch": context.epoch,
        "nexus.role": context.role,
        "nexus.messages": len(context.message_tokens),
        **{f"nexus.tokens.{kind}": tokens for kind, tokens in budget.used.items()},
        "nexus.tokens.total": budget.total,
        "nexus.tokens.available": budget.available,
        "nexus.tokens.window": budget.limit,
        "nexus.tokens.estimated": budget.estimated,
    }
    if context.decisions:
        attributes["nexus.decisions"] = [f"{each.action} {each.rule}" for each in context.decisions]
    if context.findings:
        attributes["nexus.findings"] = [each.code for each in context.findings]
    return clean_attributes(attributes)


def build_reply_attributes(step: Step, usage: Usage | None, cache: CacheReport) -> Attributes:
    """Return the attributes of the reply to a call."""
    reply = _get_reply(step)
    reason = reply.stop_reason or reply.stop
    attributes: Attributes = {
        **({RESPONSE_MODEL_ATTRIBUTE: reply.model} if reply.model else {}),
        **({"gen_ai.response.id": reply.id} if reply.id else {}),
        **({"gen_ai.response.finish_reasons": [reason]} if reason else {}),
        **({} if usage is None else _build_usage_attributes(usage)),
        "nexus.step.id": step.id,
        "nexus.turn.done": step.closes,
        "nexus.cache.verdict": cache.verdict,
    }
    if cache.expected is not None:
        attributes["nexus.cache.expected_tokens"] = cache.expected
    if cache.blame is not None:
        attributes["nexus.cache.blame"] = cache.blame.cause
    return clean_attributes(attributes)


def build_tool_attributes(name: str, call: str, session: str) -> Attributes:
    """Return the attributes of a tool run."""
    attributes: Attributes = {
        OPERATION_ATTRIBUTE: "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        CONVERSATION_ATTRIBUTE: session,
    }
    return clean_attributes(attributes | ({"gen_ai.tool.call.id": call} if call else {}))


def get_api(step: Step) -> str:
    """Return the name of the API that a reply was read from."""
    return _get_reply(step).api


def find_failure(step: Step) -> str:
    """Return the error type of a failed call, or "" if it did not fail."""
    reply = _get_reply(step)
    if step.kind == "interrupted" or reply.interrupted:
        return "error" if reply.stop == "error" else "interrupted"
    return "error" if reply.error or reply.stop == "error" else ""


def _build_usage_attributes(usage: Usage) -> Attributes:
    parts = {
        "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    totals: Attributes = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    return totals | {name: tokens for name, tokens in parts.items() if tokens}


def _build_option_attributes(options: Mapping[str, object]) -> Attributes:
    return {
        f"gen_ai.request.{_OPTION_ATTRIBUTES[name]}": value
        for name, value in options.items()
        if name in _OPTION_ATTRIBUTES and isinstance(value, int | float) and not isinstance(value, bool)
    }


def _get_reply(step: Step) -> ReplyPayload:
    """Return the fields of a reply; for a step of another kind they are empty."""
    return step.payload if isinstance(step.payload, ReplyPayload) else ReplyPayload()


_METRIC_ATTRIBUTES = (OPERATION_ATTRIBUTE, PROVIDER_ATTRIBUTE, MODEL_ATTRIBUTE, RESPONSE_MODEL_ATTRIBUTE)
"""Attributes with few values, because a metric is stored per combination; hence no conversation id."""
_BUCKET_BOUNDARIES = [4**power for power in range(14)]


def record_token_usage(call: Attributes, usage: Usage) -> None:
    """Record the tokens of a call.

    Args:
        call: Attributes of the call and its reply.
        usage: Its token usage.
    """
    histogram = _get_histogram(metrics.get_meter_provider())
    common = {name: call[name] for name in _METRIC_ATTRIBUTES if name in call}
    for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
        histogram.record(tokens, {**common, "gen_ai.token.type": kind})


@lru_cache(maxsize=1)
def _get_histogram(provider: MeterProvider) -> Histogram:
    return provider.get_meter("nexus_core", __version__).create_histogram(
        "gen_ai.client.token.usage",
        unit="{token}",
        description="Tokens that calls of models used.",
        explicit_bucket_boundaries_advisory=_BUCKET_BOUNDARIES,
    )


MAX_TRACED_TURNS = 256
"""Turns that are traced at once; beyond that, the least recently updated ones are dropped."""


class _TracedTurn(NamedTuple):
    """An open turn.

    Attributes:
        span: The span of the pending call; None while tools run.
        call: Attributes of the latest call.
        tools_called_at: Time of the last reply with tool calls, in nanoseconds since 1970; 0 if there was none.
        tools: Call id and name of the tools in that reply.
    """

    span: Span | None
    call: Attributes
    tools_called_at: int = 0
    tools: tuple[tuple[str, str], ...] = ()


class CallTracer:
    """Traces calls from assembly to reply. Safe to use from several threads."""

    def __init__(self) -> None:
        self._turns: dict[str, _TracedTurn] = {}
        self._lock = Lock()

    def start_call(self, context: AssembledContext) -> None:
        """Start the span of a call that is about to be sent. A call without a turn is ignored: no reply is recorded."""
        if not context.turn_id:
            return
        attributes = build_call_attributes(context)
        name = f"chat {clean_text(context.model)}" if context.model else "chat"
        span = _get_tracer().start_span(name, kind=SpanKind.CLIENT, attributes=attributes)
        with self._lock:
            dropped = [self._turns.pop(turn, None) for turn in (context.turn_id, context.parent_turn_id or "")]
            self._turns[context.turn_id] = _TracedTurn(span, attributes)
            dropped += [self._turns.pop(turn) for turn in list(self._turns)[:-MAX_TRACED_TURNS]]
        for turn in dropped:
            if turn is not None and turn.span is not None:
                _end_failed_span(turn.span, "unanswered")

    def record_step(self, step: Step, session: str, usage: Usage | None, cache: CacheReport) -> None:
        """Trace a recorded step: the reply to a call, tool results, or the interruption of a turn."""
        with self._lock:
            turn = self._turns.pop(step.turn, None)
            if turn is not None and not step.closes:
                self._turns[step.turn] = turn if step.kind == "result" else _await_tools(turn, step)
        if step.kind in ("reply", "turn"):
            self._end_call(turn, step, usage, cache)
        elif step.kind == "result" and turn is not None:
            _record_tool_spans(turn, step, session)
        elif step.kind == "interrupted" and turn is not None and turn.span is not None:
            _end_failed_span(turn.span, "interrupted")

    def _end_call(self, turn: _TracedTurn | None, step: Step, usage: Usage | None, cache: CacheReport) -> None:
        call = (turn.call if turn else {}) or {OPERATION_ATTRIBUTE: "chat"}
        provider = {} if PROVIDER_ATTRIBUTE in call else build_provider_attributes(get_api(step))
        reply = build_reply_attributes(step, usage, cache)
        if usage is not None:
            record_token_usage(call | provider | reply, usage)
        if turn is None or turn.span is None:
            return
        turn.span.set_attributes(provider | reply)
        if failure := find_failure(step):
            _end_failed_span(turn.span, failure)
        else:
            turn.span.end()


def _await_tools(turn: _TracedTurn, step: Step) -> _TracedTurn:
    """Return the turn after a reply with tool calls."""
    tools = tuple((call.id, call.name) for message in step.messages for call in message.tool_calls)
    return _TracedTurn(None, turn.call, time.time_ns(), tools)


def _record_tool_spans(turn: _TracedTurn, step: Step, session: str) -> None:
    """Record a span for each tool result, from the model's tool call until now."""
    names = dict(turn.tools)
    for message in step.messages:
        for result in message.tool_results:
            name = names.get(result.call_id) or result.name
            if not turn.tools_called_at or not name:
                continue
            span = _get_tracer().start_span(
                f"execute_tool {clean_text(name)}",
                kind=SpanKind.INTERNAL,
                attributes=build_tool_attributes(name, result.call_id, session),
                start_time=turn.tools_called_at,
            )
            if result.is_error:
                _end_failed_span(span, "tool_error")
            else:
                span.end()


def _end_failed_span(span: Span, error_type: str) -> None:
    span.set_attribute(ERROR_ATTRIBUTE, error_type)
    span.set_status(Status(StatusCode.ERROR))
    span.end()


def _get_tracer() -> trace.Tracer:
    # Not cached, because a program may configure its SDK after its first call.
    return trace.get_tracer("nexus_core", __version__)


CALL_TRACER = CallTracer()
"""The tracer of this process, shared by all Nexus objects, because turn ids are unique."""
