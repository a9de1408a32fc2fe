"""The dialect of Anthropic's Messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.anthropic.outline import outline_message
from nexus_core.dialects.anthropic.reading import read_message
from nexus_core.dialects.anthropic.reply import read_reply
from nexus_core.dialects.anthropic.request import read_request, write_request
from nexus_core.dialects.anthropic.writing import write_messages
from nexus_core.dialects.api_dialect import ApiDialect
from nexus_core.dialects.rules import ANTHROPIC
from nexus_core.dialects.tools import read_tools, write_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.values.api import Dialect

_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "search_result", "container_upload"})
_ENDINGS = ("_tool_use", "_tool_result")


def recognises(item: Mapping[str, Any]) -> bool:
    """Return True if the message has a block type that only Anthropic uses."""
    content = item.get("content")
    return isinstance(content, list) and "parts" not in item and any(map(_is_own_block, content))


def _is_own_block(block: object) -> bool:
    if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str):
        return False
    return kind in _BLOCKS or kind.endswith(_ENDINGS) or (kind in ("image", "document") and "source" in block)


DIALECT: Dialect = ApiDialect(
    rules=ANTHROPIC,
    recognises=recognises,
    read=read_message,
    write=write_messages,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    read_tools=lambda tools: read_tools(tools, "anthropic"),
    write_tools=lambda tools: write_tools(tools, "anthropic"),
    outline=outline_message,
)
