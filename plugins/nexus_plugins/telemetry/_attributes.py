"""What is told of calls, replies and tools: numbers and names, and nothing that was said.

`gen_ai.*` are names of OpenTelemetry's conventions for generative AI; `nexus.*` are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.plugin import redact, visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core import AssembledContext, CacheReport, Usage
    from nexus_core.plugin import Step

    Value = str | bool | int | float | list[str]
    Attributes = dict[str, Value]

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
CONVERSATION = "gen_ai.conversation.id"
ERROR = "error.type"

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "responses": "openai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""What the conventions call those whom we call otherwise."""
_OPTIONS = {
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
"""Of the options in the settings, those that have a name in the conventions."""


MAX_TEXT = 256
"""Characters of a value; names are shorter."""


def clean_text(text: str) -> str:
    """Return a name as a span may have it: names of sessions, tools and models are chosen by users and by models."""
    return visible_line(redact(text).text)[:MAX_TEXT]


def clean_attributes(told: Attributes) -> Attributes:
    """Return attributes without secrets and control characters."""
    return {
        name: clean_text(value)
        if isinstance(value, str)
        else [clean_text(each) for each in value]
        if isinstance(value, list)
        else value
        for name, value in told.items()
    }


def provider_of(name: str) -> Attributes:
    """Who serves a model, where that is known."""
    return clean_attributes({PROVIDER: _PROVIDERS.get(name, name)}) if name else {}


def call_attributes(context: AssembledContext) -> Attributes:
    """What is known of a call before it is sent."""
    budget = context.token_budget
    told: Attributes = {
        OPERATION: "chat",
        **provider_of(context.provider),
        **({MODEL: context.model} if context.model else {}),
        CONVERSATION: context.session_label,
        **_options(context.model_config),
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
        told["nexus.decisions"] = [f"{each.action} {each.rule}" for each in context.decisions]
    if context.findings:
        told["nexus.findings"] = [each.code for each in context.findings]
    return clean_attributes(told)


def reply_attributes(step: Step, usage: Usage | None, cache: CacheReport) -> Attributes:
    """What is known of the reply to a call."""
    reason = _word(step, "stop_reason") or _word(step, "stop")
    told: Attributes = {
        **({RESPONSE_MODEL: model} if (model := _word(step, "model")) else {}),
        **({"gen_ai.response.id": name} if (name := _word(step, "id")) else {}),
        **({"gen_ai.response.finish_reasons": [reason]} if reason else {}),
        **({} if usage is None else _spent(usage)),
        "nexus.step.id": step.id,
        "nexus.turn.done": step.closes,
        "nexus.cache.verdict": cache.verdict,
    }
    if cache.expected is not None:
        told["nexus.cache.expected_tokens"] = cache.expected
    if cache.blame is not None:
        told["nexus.cache.blame"] = cache.blame.cause
    return clean_attributes(told)


def tool_attributes(name: str, call: str, session: str) -> Attributes:
    """What is known of a tool that was run."""
    told: Attributes = {OPERATION: "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
    return clean_attributes(told | {CONVERSATION: session} | ({"gen_ai.tool.call.id": call} if call else {}))


def api_of(step: Step) -> str:
    """In whose shape a reply came."""
    return _word(step, "api")


def failure_of(step: Step) -> str:
    """Why a call has failed, in a word; "" where it has not."""
    if step.kind == "interrupted" or step.data.get("interrupted") is True:
        return "error" if _word(step, "stop") == "error" else "interrupted"
    return "error" if step.data.get("error") or _word(step, "stop") == "error" else ""


def _spent(usage: Usage) -> Attributes:
    parts = {
        "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    spent: Attributes = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    return spent | {name: tokens for name, tokens in parts.items() if tokens}


def _options(given: Mapping[str, object]) -> Attributes:
    return {
        f"gen_ai.request.{_OPTIONS[name]}": value
        for name, value in given.items()
        if name in _OPTIONS and isinstance(value, int | float) and not isinstance(value, bool)
    }


def _word(step: Step, name: str) -> str:
    value = step.data.get(name)
    return value if isinstance(value, str) else ""
