"""Definitions of tools that an API would refuse: names and schemas."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.dialects.fields import named, shown
from nexus_core.values.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.values.api import ApiRules
    from nexus_core.values.conversation import Tool

INVALID_TOOL = "invalid-tool"
_OBJECT = "object"


def find_invalid_tools(tools: Iterable[Tool], rules: ApiRules) -> Iterator[Finding]:
    """Report every tool whose name or schema the API would refuse.

    Nothing is renamed: the model calls a tool by its name, and only the caller can change what answers to it.
    """
    for tool in tools:
        if tool.extra.get("_builtin"):
            continue  # the provider's own
        if not _is_name(tool.name, rules):
            limit = f", at most {rules.name_length} characters" if rules.name_length else ""
            what = f"the {rules.name} API does not allow the tool name {shown(tool.name)}"
            yield Finding(INVALID_TOOL, f"{what}; it must match {rules.name_pattern or '.+'}{limit}")
        if problem := _find_schema_problem(tool, rules):
            what = f"the {rules.name} API does not allow the schema of the tool {shown(tool.name)}"
            yield Finding(INVALID_TOOL, f"{what}: {problem}")


def complete_schemas(tools: Iterable[Tool], rules: ApiRules) -> tuple[Tool, ...]:
    """Return the tools, with `"type": "object"` in schemas that name no type, where the API insists on it."""
    return tuple(_completed(tool, rules) for tool in tools)


def _completed(tool: Tool, rules: ApiRules) -> Tool:
    if _is_unchecked(tool, rules) or tool.parameters.get("type") is not None:
        return tool
    if not tool.parameters:
        if rules.schemas != "required" or tool.api != rules.name:
            return tool  # conversion writes one where it is missing
        return replace(tool, parameters={"type": _OBJECT, "properties": {}})
    kind = _OBJECT.upper() if tool.extra.get("_schema") == "own" else _OBJECT  # Gemini's own spelling
    return replace(tool, parameters={"type": kind, **{k: v for k, v in tool.parameters.items() if k != "type"}})


def _find_schema_problem(tool: Tool, rules: ApiRules) -> str:
    if _completed(tool, rules) is not tool:
        return 'there is no "type": "object" at its top'
    kind = tool.parameters.get("type")
    if _is_unchecked(tool, rules) or kind is None or not isinstance(kind, str) or kind.lower() == _OBJECT:
        return ""
    return f'its type must be "object", not {named(kind)}'


def _is_unchecked(tool: Tool, rules: ApiRules) -> bool:
    """True if the provider runs the tool or it takes free text, or if the API takes any schema."""
    return rules.schemas == "any" or bool(tool.extra.get("_builtin") or tool.extra.get("_custom"))


def _is_name(name: str, rules: ApiRules) -> bool:
    if not name.strip() or (rules.name_length and len(name) > rules.name_length):
        return False
    return not rules.name_pattern or re.fullmatch(rules.name_pattern, name) is not None
