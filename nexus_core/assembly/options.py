"""Which of the options in the settings are meant for which API's call."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTENT = frozenset(
    {
        *("model", "messages", "system", "tools", "functions"),
        *("input", "instructions", "conversation", "previous_response_id", "prompt"),
        *("contents", "system_instruction", "cached_content"),
    }
)
"""What a call is made of. Settings have no say in it; whoever makes the call has."""

_ANY_CLIENT = {"extra_body", "extra_headers", "extra_query", "timeout", "stream"}
_SHARED = {"metadata", "moderation", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_options"} | {
    *("prompt_cache_retention", "safety_identifier", "service_tier", "store", "stream_options", "temperature"),
    *("tool_choice", "top_logprobs", "top_p", "user"),
}
KNOWN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "openai": frozenset(_ANY_CLIENT | _SHARED)
        | {
            *("audio", "frequency_penalty", "function_call", "logit_bias", "logprobs", "max_completion_tokens"),
            *("max_tokens", "modalities", "n", "prediction", "presence_penalty", "reasoning_effort"),
            *("response_format", "seed", "stop", "verbosity", "web_search_options"),
        },
        "responses": frozenset(_ANY_CLIENT | _SHARED)
        | {
            *("background", "context_management", "include", "max_output_tokens", "max_tool_calls", "reasoning"),
            *("text", "truncation"),
        },
        "anthropic": frozenset(_ANY_CLIENT)
        | {
            *("betas", "cache_control", "container", "context_management", "inference_geo", "max_tokens"),
            *("mcp_servers", "metadata", "output_config", "service_tier", "speed", "stop_sequences"),
            *("temperature", "thinking", "tool_choice", "top_k", "top_p"),
        },
        "gemini": frozenset(
            {
                *("audio_timestamp", "automatic_function_calling", "candidate_count", "config", "frequency_penalty"),
                *("http_options", "image_config", "labels", "logprobs", "max_output_tokens", "media_resolution"),
                *("model_selection_config", "presence_penalty", "response_json_schema", "response_logprobs"),
                *("response_mime_type", "response_modalities", "response_schema", "routing_config"),
                *("safety_settings", "seed", "speech_config", "stop_sequences", "temperature", "thinking_config"),
                *("tool_config", "top_k", "top_p"),
            }
        ),
    }
)
"""What each API's call takes besides. It need not be complete: it only tells whose an option is not."""


def options_for(api: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that go into an API's call: those it knows, and those that no API is known for."""
    if api not in KNOWN:
        return {name: value for name, value in options.items() if name not in CONTENT}
    others = frozenset().union(*(names for name, names in KNOWN.items() if name != api)) - KNOWN[api]
    return {name: value for name, value in options.items() if name not in CONTENT and name not in others}
