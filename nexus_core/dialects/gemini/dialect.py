"""The dialect of Gemini."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.api_dialect import ApiDialect
from nexus_core.dialects.gemini.outline import outline_content
from nexus_core.dialects.gemini.parts import is_part
from nexus_core.dialects.gemini.reading import read_message
from nexus_core.dialects.gemini.reply import read_reply
from nexus_core.dialects.gemini.request import read_request, write_request
from nexus_core.dialects.gemini.writing import write_messages
from nexus_core.dialects.rules import GEMINI
from nexus_core.dialects.tools import read_tools, write_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.values.api import Dialect


def recognises(item: Mapping[str, Any]) -> bool:
    """Return True if the message has parts of a shape that only Gemini uses."""
    parts = item.get("parts")
    if not isinstance(parts, list) or "content" in item or "nexus" in item:  # Nexus's own messages have parts too
        return False
    return item.get("role") == "model" or any(isinstance(part, dict) and is_part(part) for part in parts)


DIALECT: Dialect = ApiDialect(
    rules=GEMINI,
    recognises=recognises,
    read=read_message,
    write=write_messages,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    read_tools=lambda tools: read_tools(tools, "gemini"),
    write_tools=lambda tools: write_tools(tools, "gemini"),
    outline=outline_content,
)
