"""The dialect of OpenAI's Responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.api_dialect import ApiDialect
from nexus_core.dialects.responses.calls import OUTPUTS
from nexus_core.dialects.responses.outline import outline_item
from nexus_core.dialects.responses.reading import read_item
from nexus_core.dialects.responses.reply import read_reply
from nexus_core.dialects.responses.request import read_request, write_request
from nexus_core.dialects.responses.writing import write_items
from nexus_core.dialects.rules import RESPONSES
from nexus_core.dialects.tools import read_tools, write_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.values.api import Dialect

_PARTS = ("input_text", "output_text", "input_image", "input_file")  # no set: what is looked for may be a list


def recognises(item: Mapping[str, Any]) -> bool:
    """Return True if the item, or one of its parts, has a type that only Responses uses."""
    kind, content = item.get("type"), item.get("content")
    if isinstance(content, list):
        return any(isinstance(part, dict) and part.get("type") in _PARTS for part in content)
    if kind == "message":
        return isinstance(content, str)
    return isinstance(kind, str) and (kind in OUTPUTS or kind in OUTPUTS.values() or "role" not in item)


DIALECT: Dialect = ApiDialect(
    rules=RESPONSES,
    recognises=recognises,
    read=read_item,
    write=write_items,
    read_request=read_request,
    write_request=write_request,
    read_reply=read_reply,
    read_tools=lambda tools: read_tools(tools, "responses"),
    write_tools=lambda tools: write_tools(tools, "responses"),
    outline=outline_item,
)
