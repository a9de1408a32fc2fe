"""Anthropic's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_plugins.providers._continuing import continue_with
from nexus_plugins.providers._reading import CUT_OFF, THOUGHTS, NoSummary, find, find_text, joined_texts, whole

if TYPE_CHECKING:
    from nexus_core.plugin import SummaryRequest
    from nexus_plugins.providers._secrets import Secret

ADDRESS = "https://api.anthropic.com"
HEADERS = {"anthropic-version": "2023-06-01"}

_KEPT = ("model", "system", "messages", "tools", "thinking", "metadata", "service_tier")  # as for chat completions


def url(base_url: str) -> str:
    """Where requests go; the SDK's addresses end before the version, and others are understood too."""
    return f"{base_url.rstrip('/').removesuffix('/v1')}/v1/messages"


def authorise(key: Secret) -> dict[str, Secret]:
    """The header with the key."""
    return {"x-api-key": key}


def write(request: SummaryRequest, model: str, base_url: str) -> dict[str, Any]:  # noqa: ARG001 - as for others
    """The body of a request for a summary."""
    if request.context is None:
        messages = [{"role": "user", "content": request.prompt}]
        return {"model": model, "messages": messages, "max_tokens": request.max_tokens}
    body = continue_with(request.context, request.instruction, "anthropic", model, _KEPT)
    # To think otherwise than before would leave the messages out of the cache; and thoughts count too.
    thinks = find_text(body, "thinking", "type") not in ("", "disabled")
    budget = find(body, "thinking", "budget_tokens")
    thoughts = (budget if isinstance(budget, int) else THOUGHTS) if thinks else 0
    return {**body, "max_tokens": request.max_tokens + thoughts}


def read(reply: object) -> str:
    """The summary in an answer.

    Raises:
        NoSummary: There is none.
    """
    if said := find_text(reply, "error", "message"):
        raise NoSummary(f"reported an error: {said}")
    blocks, ended = find(reply, "content"), find_text(reply, "stop_reason")
    text = whole(joined_texts(blocks)).strip()
    if ended == "refusal":
        raise NoSummary(f"refused: {text}" if text else "refused")
    if not text:
        raise NoSummary(_why_empty(blocks, ended))
    return f"{text}\n{CUT_OFF}" if ended == "max_tokens" else text


def _why_empty(blocks: object, ended: str) -> str:
    if not isinstance(blocks, list):
        return "answered with JSON that is not a message"
    if ended == "tool_use":
        return "called a tool instead of writing a summary"
    return "ran out of tokens before it wrote anything" if ended == "max_tokens" else "wrote nothing"
