"""Messages as pi writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import (
    joined,
    mapping_in,
    mapping_of,
    named,
    optional_text_in,
    text_in,
    without,
)
from nexus_core.dialects.responses.dialect import DIALECT as RESPONSES
from nexus_core.dialects.transcripts.lines import require_shallow, word_in
from nexus_core.errors import MessageError
from nexus_core.values.conversation import Usage
from nexus_core.values.message import Message
from nexus_core.values.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from nexus_core.values.conversation import Stop
    from nexus_core.values.parts import Part, ResultPart

FORMAT = "pi"

_APIS = {
    "anthropic-messages": "anthropic",
    "openai-completions": "openai",
    "openai-responses": "responses",
    "google-generative-ai": "gemini",
}
_STOPS: dict[str, Stop] = {"stop": "end", "toolUse": "tools", "length": "length", "error": "error", "aborted": "error"}


def read_message(body: dict[str, Any]) -> Message:
    """A message of any of pi's roles.

    Raises:
        MessageError: It is in a shape that is new.
    """
    role = text_in(body, "role")
    if role == "assistant":
        return Message("assistant", read_parts(body.get("content"), _APIS.get(word_in(body, "api"), "")))
    if role == "toolResult":
        parts: Any = read_parts(body.get("content"))
        name, failed = optional_text_in(body, "toolName"), body.get("isError") is True
        return Message("tool", (ToolResult(text_in(body, "toolCallId"), parts, name, failed),))
    if role == "bashExecution":
        return Message("user", _ran(body))
    if role in ("user", "custom", "hookMessage"):
        return Message("user", read_parts(body.get("content")))
    if role in ("branchSummary", "compactionSummary"):
        return Message("user", text_in(body, "summary"))
    raise MessageError(f"unknown role {role!a}", path="role")


def read_parts(content: object, api: str = "") -> tuple[Part, ...]:
    """What stands in a message: a text, or a list of blocks."""
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list):
        raise MessageError(f"expected text or a list of blocks, not {named(content)}", path="content")
    require_shallow(content)
    parts = []
    for index, block in enumerate(content):
        try:
            parts.append(_read_part(mapping_of(block), api))
        except MessageError as error:
            raise joined(f"content[{index}]", error) from None
    return tuple(parts)


def read_usage(body: dict[str, Any]) -> Usage | None:
    """What an answer cost; pi counts what touches the cache apart."""
    given = body.get("usage")
    if not isinstance(given, dict):
        return None
    fresh, written, cached, output = (_number(given, key) for key in ("input", "cacheWrite", "cacheRead", "output"))
    return Usage(
        input_tokens=fresh + written + cached,
        output_tokens=output,
        cached_input_tokens=cached,
        cache_write_tokens=written,
    )


def read_stop(body: dict[str, Any]) -> Stop:
    """Why an answer ended."""
    return _STOPS.get(word_in(body, "stopReason"), "")


def _read_part(block: dict[str, Any], api: str) -> Part:
    kind = text_in(block, "type")
    if kind == "text":
        return Text(text_in(block, "text"), without(block, "type", "text"))
    if kind == "image":
        return _image(block)
    if kind == "thinking":
        return _thought(block, api)
    if kind == "toolCall":
        extra = without(block, "type", "id", "name", "arguments")
        return ToolCall(text_in(block, "id"), text_in(block, "name"), mapping_in(block, "arguments"), extra=extra)
    return Opaque(FORMAT, block)


def _image(block: dict[str, Any]) -> ResultPart:
    return Image(
        mime=optional_text_in(block, "mimeType"),
        data=text_in(block, "data"),
        extra=without(block, "type", "mimeType", "data"),
    )


def _thought(block: dict[str, Any], api: str) -> Part:
    signature = optional_text_in(block, "thinkingSignature")
    if api == "responses" and signature.startswith("{"):  # the whole item
        try:
            item = RESPONSES.read(json.loads(signature))
        except (ValueError, RecursionError, MessageError):
            pass
        else:
            return item.parts[0]
    text, rest = text_in(block, "thinking"), without(block, "type", "thinking", "thinkingSignature")
    if rest.get("redacted") is True:
        return Reasoning(encrypted=signature, api=api, extra=rest)
    return Reasoning(text=text, signature=signature, api=api, extra=rest)


def _ran(body: dict[str, Any]) -> str:
    """What a command printed that the user ran, as the model is told of it."""
    output = optional_text_in(body, "output")
    code = body.get("exitCode")
    ended = f"\n\nExit code {code}" if isinstance(code, int) and code else ""
    return f"Ran `{text_in(body, 'command')}`\n```\n{output}\n```{ended}"


def _number(value: dict[str, Any], key: str) -> int:
    found = value.get(key)
    return found if type(found) is int and found >= 0 else 0
