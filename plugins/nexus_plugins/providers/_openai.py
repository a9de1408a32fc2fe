"""Chat completions, as OpenAI made them and most servers know them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_plugins.providers._addresses import host_of
from nexus_plugins.providers._continuing import continue_with
from nexus_plugins.providers._reading import CUT_OFF, THOUGHTS, NoSummary, find, find_text, joined_texts, whole
from nexus_plugins.providers._secrets import Secret

if TYPE_CHECKING:
    from nexus_core.plugin import SummaryRequest

ADDRESS = "https://api.openai.com/v1"
HEADERS: dict[str, str] = {}

# What makes a provider find the conversation in its cache, and nothing that would make an answer other than a text.
_KEPT = (
    *("model", "messages", "tools", "reasoning_effort", "service_tier", "store", "safety_identifier", "user"),
    *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
)
# Local servers have models that think aloud.
_THOUGHTS = re.compile(r"\s*<think>.*?(?:</think>|\Z)", re.DOTALL)


def url(base_url: str) -> str:
    """Where requests go."""
    return f"{base_url.rstrip('/')}/chat/completions"


def authorise(key: Secret) -> dict[str, Secret]:
    """The header with the key."""
    return {"authorization": Secret(f"Bearer {key.reveal()}")}


def write(request: SummaryRequest, model: str, base_url: str) -> dict[str, Any]:
    """The body of a request for a summary."""
    if request.context is None:
        body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": request.prompt}]}
    else:
        body = continue_with(request.context, request.instruction, "openai", model, _KEPT)
    # OpenAI's newer models refuse the old name, and count their thoughts. Most other servers do not know the new one,
    # and many refuse what does not fit beside the prompt.
    if host_of(base_url) == host_of(ADDRESS):
        return {**body, "max_completion_tokens": request.max_tokens + THOUGHTS}
    return {**body, "max_tokens": request.max_tokens}


def read(reply: object) -> str:
    """The summary in an answer.

    Raises:
        NoSummary: There is none.
    """
    choice, message = find(reply, "choices", 0), find(reply, "choices", 0, "message")
    if said := find_text(reply, "error", "message") or find_text(choice, "error", "message"):
        raise NoSummary(f"reported an error: {said}")
    if refusal := find_text(message, "refusal"):
        raise NoSummary(f"refused: {refusal}")
    ended = find_text(choice, "finish_reason")
    if ended == "content_filter":
        raise NoSummary("withheld its answer (content_filter)")
    content = find(message, "content")
    text = whole(content if isinstance(content, str) else joined_texts(content))
    text = _THOUGHTS.sub("", text, count=1).strip() if text.lstrip().startswith("<think>") else text.strip()
    if not text:
        raise NoSummary(_why_empty(message, ended))
    return f"{text}\n{CUT_OFF}" if ended == "length" else text


def _why_empty(message: object, ended: str) -> str:
    if message is None:
        return "answered with JSON that is not a chat completion"
    if find(message, "tool_calls"):
        return "called a tool instead of writing a summary"
    return "ran out of tokens before it wrote anything" if ended == "length" else "wrote nothing"
