"""Definitions of tools as Gemini writes them: one element declares many functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import at, list_in, mapping_in, text_in, without
from nexus_core.dialects.notes import fields_of, filled, noted
from nexus_core.dialects.plain import plain_mapping
from nexus_core.dialects.tools.schemas import json_schema
from nexus_core.values.conversation import Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

_DECLARATIONS = ("functionDeclarations", "function_declarations")
_SCHEMAS = ("parameters", "parametersJsonSchema", "parameters_json_schema")
_OWN = frozenset(
    {
        "codeExecution",
        "computerUse",
        "enterpriseWebSearch",
        "fileSearch",
        "googleMaps",
        "googleSearch",
        "googleSearchRetrieval",
        "mcpServers",
        "retrieval",
        "urlContext",
    }
)
"""What Gemini runs itself, one field each."""


def is_element(block: dict[str, Any]) -> bool:
    """Whether something is surely an element of Gemini's list of tools."""
    return not ("name" in block or "type" in block) and any(_camel(key) in {*_DECLARATIONS, *_OWN} for key in block)


def may_be_element(block: dict[str, Any]) -> bool:
    """Whether something may be one that is newer than what is known here: fields that are options of a tool."""
    return "name" not in block and bool(block) and all(isinstance(value, dict | list) for value in block.values())


def read(block: dict[str, Any], element: int) -> list[Tool]:
    """One element: a tool for each function, and one for whatever else stands in it."""
    if "name" in block:
        return [_declared(block, {})]
    key = next((key for key in _DECLARATIONS if isinstance(block.get(key), list)), "")
    tools = []
    for index, item in enumerate(list_in(block, key) if key else ()):
        with at(f"{key}[{index}]"):
            tools.append(_declared(plain_mapping(item), {"key": key, "element": element + 1}))
    rest = without(block, key) if tools else block
    if rest or not tools:
        name = next(iter(rest), "")
        tools.append(Tool(name=name, api="gemini", extra=noted(rest, builtin=True, element=element + 1)))
    return tools


def write(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """The elements: Gemini's own as they were; the functions of others declared together."""
    elements: dict[object, dict[str, Any]] = {}
    for tool in tools:
        own = tool.api == "gemini"
        if own and tool.extra.get("_builtin"):
            elements.setdefault(tool.extra.get("_element"), {}).update(fields_of(tool.extra))
        elif own or not tool.extra.get("_builtin"):
            element = elements.setdefault(tool.extra.get("_element") if own else None, {})
            key: Any = tool.extra.get("_key", _DECLARATIONS[0]) if own else _DECLARATIONS[0]
            element.setdefault(key, []).append(_declaration(tool, own=own))
    return list(elements.values())


def _declared(block: dict[str, Any], notes: dict[str, object]) -> Tool:
    key = next((key for key in _SCHEMAS if block.get(key)), "")
    read_here = [name for name in ("name", "description", key) if block.get(name)]
    return Tool(
        name=text_in(block, "name"),
        description=(block.get("description") or "") and text_in(block, "description"),
        parameters=mapping_in(block, key) if key else {},
        api="gemini",
        extra=noted(without(block, *read_here), schema=key and _schema_of(key), schema_key=key, **notes),
    )


def _declaration(tool: Tool, *, own: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"name": tool.name}
    if tool.description:
        body["description"] = tool.description
    if own:
        if tool.parameters:
            key: Any = tool.extra.get("_schema_key", "parametersJsonSchema")
            body[key] = tool.parameters
        return filled(body, tool.extra)
    # `parameters` takes only a part of JSON Schema.
    return body | ({"parametersJsonSchema": json_schema(tool)} if tool.parameters else {})


def _schema_of(key: str) -> str:
    return "own" if key == "parameters" else "json"


def _camel(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(word.capitalize() for word in others)
