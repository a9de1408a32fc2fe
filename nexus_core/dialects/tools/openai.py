"""Definitions of tools as OpenAI writes them: nested in chat completions, flat in Responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.arguments import FREE_TEXT
from nexus_core.dialects.family import FAMILY
from nexus_core.dialects.fields import at, mapping_in, text_in, without
from nexus_core.dialects.notes import filled, noted
from nexus_core.dialects.plain import plain_mapping
from nexus_core.dialects.tools.schemas import json_schema
from nexus_core.values.conversation import Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.values.parts import JSON

_FREE_TEXT_SCHEMA = {"type": "object", "properties": {FREE_TEXT: {"type": "string"}}, "required": [FREE_TEXT]}


def read_nested(block: dict[str, Any]) -> Tool:
    """A tool of chat completions, or only the function of one."""
    kind = next((kind for kind in ("function", "custom") if isinstance(block.get(kind), dict)), "")
    if not kind:
        return _read(block, "openai", "function", {})
    with at(kind):
        notes = {"outer": without(block, kind, "type"), "untyped": "type" not in block}
        return _read(mapping_in(block, kind), "openai", kind, notes)


def read_functions(items: Iterable[object]) -> tuple[Tool, ...]:
    """What chat completions had before it had tools."""
    tools = []
    for index, item in enumerate(items):
        with at(f"functions[{index}]"):
            tools.append(_read(plain_mapping(item), "openai", "function", {"former": True}))
    return tuple(tools)


def read_flat(block: dict[str, Any]) -> Tool:
    """A tool of Responses; what the provider runs itself is kept whole."""
    kind = block.get("type", "function")
    if kind in ("function", "custom"):
        return _read(without(block, "type"), "responses", kind, {"untyped": "type" not in block})
    name = block.get("name") or block.get("server_label")
    return Tool(name=name if isinstance(name, str) else str(kind), api="responses", extra=noted(block, builtin=True))


def write_nested(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """For chat completions."""
    return [_nested(tool) for tool in tools if _speakable(tool, "openai")]


def write_functions(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """What chat completions had before it had tools: those that were read from there."""
    return [_body(tool, own=True) for tool in tools if is_former(tool)]


def is_former(tool: Tool) -> bool:
    """Whether it was read from `functions`."""
    return tool.api == "openai" and bool(tool.extra.get("_former"))


def write_flat(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """For Responses."""
    return [_flat(tool) for tool in tools if _speakable(tool, "responses")]


def schema_in(block: dict[str, Any], key: str) -> dict[str, Any]:
    """A JSON Schema, or nothing where there is none."""
    return {} if block.get(key) is None else mapping_in(block, key)


def _read(block: dict[str, Any], api: str, kind: str, notes: dict[str, object]) -> Tool:
    description = block.get("description") or ""
    parameters = schema_in(block, "parameters")
    # What is empty or null stays in `extra`, where it can be told from what is missing.
    read = [key for key in ("name", "description", "parameters") if block.get(key)]
    return Tool(
        name=text_in(block, "name"),
        description=description and text_in(block, "description"),
        parameters=_FREE_TEXT_SCHEMA if kind == "custom" else parameters,
        api=api,
        extra=noted(without(block, *read), custom=kind == "custom", **notes),
    )


def _speakable(tool: Tool, api: str) -> bool:
    return tool.api == api or not tool.extra.get("_builtin")


def _nested(tool: Tool) -> dict[str, Any]:
    own = tool.api == "openai"
    kind = "custom" if _is_custom(tool) else "function"
    body = _body(tool, own=own)
    if kind == "custom" and not own and (shape := tool.extra.get("format")):
        body["format"] = _nested_format(shape)
    outer: Any = tool.extra.get("_outer", {}) if own else {}
    head = {} if own and tool.extra.get("_untyped") else {"type": kind}
    return {**head, kind: body, **outer}


def _flat(tool: Tool) -> dict[str, Any]:
    own = tool.api == "responses"
    if own and tool.extra.get("_builtin"):
        return filled({}, tool.extra)
    kind = "custom" if _is_custom(tool) else "function"
    body = _body(tool, own=own)
    if kind == "function" and not own:
        # Responses takes a missing `strict` as true; everybody else takes it as false.
        body = {"parameters": None, **body, "strict": body.get("strict") or False}
    if kind == "custom" and not own and (shape := tool.extra.get("format")):
        body["format"] = _flat_format(shape)
    return ({} if own and tool.extra.get("_untyped") else {"type": kind}) | body


def _body(tool: Tool, *, own: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"name": tool.name}
    if tool.description:
        body["description"] = tool.description
    if tool.parameters and not _is_custom(tool):
        body["parameters"] = tool.parameters if own else json_schema(tool)
    if own:
        return filled(body, tool.extra)
    if tool.api in FAMILY and isinstance(tool.extra.get("strict"), bool):
        body["strict"] = tool.extra["strict"]
    return body


def _is_custom(tool: Tool) -> bool:
    return tool.api in FAMILY and bool(tool.extra.get("_custom"))


def _nested_format(shape: Any) -> object:  # noqa: ANN401 - a field of the other API
    if not isinstance(shape, dict) or shape.get("type") != "grammar":
        return shape
    return {"type": "grammar", "grammar": without(shape, "type")}


def _flat_format(shape: Any) -> object:  # noqa: ANN401 - a field of the other API
    grammar: JSON | None = shape.get("grammar") if isinstance(shape, dict) else None
    return {"type": "grammar", **grammar} if isinstance(grammar, dict) else shape
