"""Definitions of tools as Anthropic writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import mapping_in, text_in, without
from nexus_core.dialects.notes import filled, noted
from nexus_core.dialects.tools.schemas import json_schema
from nexus_core.values.conversation import Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO_ARGUMENTS = {"type": "object", "properties": {}}


def read(block: dict[str, Any]) -> Tool:
    """A tool of Messages; one that comes without a schema is Anthropic's own and kept whole."""
    if "type" in block and block["type"] != "custom" and "input_schema" not in block:
        name = block.get("name") or block.get("mcp_server_name") or block["type"]
        return Tool(name=name if isinstance(name, str) else "", api="anthropic", extra=noted(block, builtin=True))
    parameters = {} if block.get("input_schema") is None else mapping_in(block, "input_schema")
    read_here = [key for key in ("name", "description", "input_schema") if block.get(key)]
    return Tool(
        name=text_in(block, "name"),
        description=(block.get("description") or "") and text_in(block, "description"),
        parameters=parameters,
        api="anthropic",
        extra=noted(without(block, *read_here)),
    )


def write(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """For Messages."""
    return [_written(tool) for tool in tools if tool.api == "anthropic" or not tool.extra.get("_builtin")]


def _written(tool: Tool) -> dict[str, Any]:
    own = tool.api == "anthropic"
    if own and tool.extra.get("_builtin"):
        return filled({}, tool.extra)
    body: dict[str, Any] = {"name": tool.name}
    if tool.description:
        body["description"] = tool.description
    if tool.parameters:
        body["input_schema"] = tool.parameters if own else {"type": "object", **json_schema(tool)}
    if own:
        return filled(body, tool.extra)
    return {**body, "input_schema": body.get("input_schema", _NO_ARGUMENTS)}
