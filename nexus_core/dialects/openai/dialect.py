"""The dialect of OpenAI's chat completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.api_dialect import ApiDialect
from nexus_core.dialects.openai.outline import outline_message
from nexus_core.dialects.openai.reading import read_message
from nexus_core.dialects.openai.reply import read_reply
from nexus_core.dialects.openai.request import read_request, write_request
from nexus_core.dialects.openai.writing import write_messages
from nexus_core.dialects.rules import OPENAI
from nexus_core.dialects.tools import read_tools, write_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.values.api import Dialect

_FIELDS = frozenset({"tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content", "audio"})
_PARTS = ("image_url", "file", "refusal")  # no set: what is looked for may be a list


def recognises(item: Mapping[str, Any]) -> bool:
    """Return True if the message is a tool result, or has fields or content parts that only chat has."""
    if not isinstance(item.get("role"), str) or "type" in item or "parts" in item:
        return False
    if not _FIELDS.isdisjoint(item) or item["role"] in ("tool", "function"):
        return True
    content = item.get("content")
    return isinstance(content, list) and any(_is_chat_part(part) for part in content)


def _is_chat_part(part: object) -> bool:
    # Anthropic's pictures and documents have a `source`; a file of chat has its field.
    return isinstance(part, dict) and part.get("type") in _PARTS and part["type"] in part


DIALECT: Dialect = ApiDialect(
    rules=OPENAI,
    recognises=recognises,
    read=read_message,
    write=write_messages,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    read_tools=lambda tools: read_tools(tools, "openai"),
    write_tools=lambda tools: write_tools(tools, "openai"),
    outline=outline_message,
)
