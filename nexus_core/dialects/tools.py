"""Tool definitions: conversion between the APIs and MCP, and validation."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.calls import FREE_TEXT_ARGUMENT
from nexus_core.dialects.fields import (
    ErrorPath,
    add_provider_fields,
    describe_json_value,
    format_for_error,
    get_list,
    get_object,
    get_provider_fields,
    get_text,
    omit_keys,
    take_optional_text,
    take_text,
    to_json_dict,
    with_metadata,
)
from nexus_core.dialects.requests import OPENAI_APIS
from nexus_core.errors import MessageError
from nexus_core.types.messages import Tool
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nexus_core.types.api import ApiRules
    from nexus_core.types.messages import JSON

_GEMINI_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
_SUBSCHEMA_KEYS = ("items", "additionalProperties", "additional_properties", "not")
_SUBSCHEMA_LIST_KEYS = ("anyOf", "any_of", "prefixItems", "oneOf", "allOf")
_SUBSCHEMA_MAP_KEYS = ("properties", "defs", "$defs", "definitions", "patternProperties")
_GEMINI_ONLY_KEYS = ("nullable", "propertyOrdering", "property_ordering")
_JSON_SCHEMA_KEYS = {
    "any_of": "anyOf",
    "additional_properties": "additionalProperties",
    "max_items": "maxItems",
    "min_items": "minItems",
    "max_length": "maxLength",
    "min_length": "minLength",
    "max_properties": "maxProperties",
    "min_properties": "minProperties",
    "defs": "$defs",
    "ref": "$ref",
}


def to_json_schema(tool: Tool) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    if tool.api != "gemini" or tool.extra.get("_schema") == "json":
        return dict(tool.parameters)
    converted: dict[str, Any] = _convert_gemini_schema(dict(tool.parameters))
    return converted


def _convert_gemini_schema(schema: Any) -> Any:  # noqa: ANN401 - a schema may be an object or a boolean
    if not isinstance(schema, dict):
        return schema
    given: dict[str, Any] = schema
    kept = {key: value for key, value in given.items() if key not in _GEMINI_ONLY_KEYS}
    body = {_JSON_SCHEMA_KEYS.get(key, key): _convert_schema_member(key, value) for key, value in kept.items()}
    kind = body.get("type")
    if schema.get("nullable") is True and isinstance(kind, str):
        body["type"] = [kind, "null"]
    return body


def _convert_schema_member(key: str, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if key == "type" and isinstance(value, str):
        return value.lower() if value in _GEMINI_TYPES else value
    if key in _SUBSCHEMA_KEYS:
        return _convert_gemini_schema(value)
    if key in _SUBSCHEMA_LIST_KEYS and isinstance(value, list):
        return [_convert_gemini_schema(each) for each in value]
    if key in _SUBSCHEMA_MAP_KEYS and isinstance(value, dict):
        return {name: _convert_gemini_schema(each) for name, each in value.items()}
    return value


_FREE_TEXT_SCHEMA = {
    "type": "object",
    "properties": {FREE_TEXT_ARGUMENT: {"type": "string"}},
    "required": [FREE_TEXT_ARGUMENT],
}


def read_chat_tool(block: dict[str, Any]) -> Tool:
    """Parse a tool of Chat Completions, or only its `function` object."""
    kind = next((kind for kind in ("function", "custom") if isinstance(block.get(kind), dict)), "")
    if not kind:
        return _read_openai_tool(block, "openai", "function", {})
    with ErrorPath(kind):
        metadata = {"outer": omit_keys(block, kind, "type"), "untyped": "type" not in block}
        return _read_openai_tool(get_object(block, kind), "openai", kind, metadata)


def read_legacy_functions(items: Iterable[object]) -> tuple[Tool, ...]:
    """Parse the legacy `functions` of Chat Completions."""
    tools = []
    for index, item in enumerate(items):
        with ErrorPath(f"functions[{index}]"):
            tools.append(_read_openai_tool(to_json_dict(item), "openai", "function", {"former": True}))
    return tuple(tools)


def read_responses_tool(block: dict[str, Any]) -> Tool:
    """Parse a tool of Responses.

    The definition of a server-side tool is kept unchanged in `extra`.
    """
    kind = block.get("type", "function")
    if kind in ("function", "custom"):
        return _read_openai_tool(omit_keys(block, "type"), "responses", kind, {"untyped": "type" not in block})
    name = block.get("name") or block.get("server_label")
    return Tool(
        name=name if isinstance(name, str) else str(kind), api="responses", extra=with_metadata(block, builtin=True)
    )


def write_chat_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return the `tools` of a Chat Completions request."""
    return [_write_chat_tool(tool) for tool in tools if _is_writable(tool, "openai")]


def write_legacy_functions(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return the legacy `functions` field: the tools that were read from it."""
    return [_write_openai_body(tool, is_native=True) for tool in tools if is_legacy_function(tool)]


def is_legacy_function(tool: Tool) -> bool:
    """Return True if the tool was read from the legacy `functions` field."""
    return tool.api == "openai" and bool(tool.extra.get("_former"))


def write_responses_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return the `tools` of a Responses request."""
    return [_write_responses_tool(tool) for tool in tools if _is_writable(tool, "responses")]


def get_schema(block: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a JSON Schema field, {} if it is missing or null."""
    return {} if block.get(key) is None else get_object(block, key)


def _read_openai_tool(block: dict[str, Any], api: str, kind: str, metadata: dict[str, object]) -> Tool:
    description = block.get("description") or ""
    parameters = get_schema(block, "parameters")
    # An empty or null field stays in `extra`, so that it differs from a missing one when written back.
    read = [key for key in ("name", "description", "parameters") if block.get(key)]
    return Tool(
        name=get_text(block, "name"),
        description=description and get_text(block, "description"),
        parameters=_FREE_TEXT_SCHEMA if kind == "custom" else parameters,
        api=api,
        extra=with_metadata(omit_keys(block, *read), custom=kind == "custom", **metadata),
    )


def _is_writable(tool: Tool, api: str) -> bool:
    return tool.api == api or not tool.extra.get("_builtin")


def _write_chat_tool(tool: Tool) -> dict[str, Any]:
    is_native = tool.api == "openai"
    kind = "custom" if _is_custom_tool(tool) else "function"
    body = _write_openai_body(tool, is_native=is_native)
    if kind == "custom" and not is_native and (shape := tool.extra.get("format")):
        body["format"] = _to_nested_format(shape)
    outer: Any = tool.extra.get("_outer", {}) if is_native else {}
    head = {} if is_native and tool.extra.get("_untyped") else {"type": kind}
    return {**head, kind: body, **outer}


def _write_responses_tool(tool: Tool) -> dict[str, Any]:
    is_native = tool.api == "responses"
    if is_native and tool.extra.get("_builtin"):
        return add_provider_fields({}, tool.extra)
    kind = "custom" if _is_custom_tool(tool) else "function"
    body = _write_openai_body(tool, is_native=is_native)
    if kind == "function" and not is_native:
        # A missing `strict` means true in Responses and false in every other API.
        body = {"parameters": None, **body, "strict": body.get("strict") or False}
    if kind == "custom" and not is_native and (shape := tool.extra.get("format")):
        body["format"] = _to_flat_format(shape)
    return ({} if is_native and tool.extra.get("_untyped") else {"type": kind}) | body


def _write_openai_body(tool: Tool, *, is_native: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"name": tool.name}
    if tool.description:
        body["description"] = tool.description
    if tool.parameters and not _is_custom_tool(tool):
        body["parameters"] = tool.parameters if is_native else to_json_schema(tool)
    if is_native:
        return add_provider_fields(body, tool.extra)
    if tool.api in OPENAI_APIS and isinstance(tool.extra.get("strict"), bool):
        body["strict"] = tool.extra["strict"]
    return body


def _is_custom_tool(tool: Tool) -> bool:
    return tool.api in OPENAI_APIS and bool(tool.extra.get("_custom"))


def _to_nested_format(shape: Any) -> object:  # noqa: ANN401 - a field of the other API
    if not isinstance(shape, dict) or shape.get("type") != "grammar":
        return shape
    return {"type": "grammar", "grammar": omit_keys(shape, "type")}


def _to_flat_format(shape: Any) -> object:  # noqa: ANN401 - a field of the other API
    grammar: JSON | None = shape.get("grammar") if isinstance(shape, dict) else None
    return {"type": "grammar", **grammar} if isinstance(grammar, dict) else shape


_EMPTY_SCHEMA = {"type": "object", "properties": {}}


def read_anthropic_tool(block: dict[str, Any]) -> Tool:
    """Parse a tool of Anthropic.

    One without a schema is built in, and its definition kept in `extra`.
    """
    if "type" in block and block["type"] != "custom" and "input_schema" not in block:
        name = block.get("name") or block.get("mcp_server_name") or block["type"]
        return Tool(
            name=name if isinstance(name, str) else "", api="anthropic", extra=with_metadata(block, builtin=True)
        )
    parameters = {} if block.get("input_schema") is None else get_object(block, "input_schema")
    read_here = [key for key in ("name", "description", "input_schema") if block.get(key)]
    return Tool(
        name=get_text(block, "name"),
        description=(block.get("description") or "") and get_text(block, "description"),
        parameters=parameters,
        api="anthropic",
        extra=with_metadata(omit_keys(block, *read_here)),
    )


def write_anthropic_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return the `tools` of an Anthropic request."""
    return [_write_anthropic_tool(tool) for tool in tools if tool.api == "anthropic" or not tool.extra.get("_builtin")]


def _write_anthropic_tool(tool: Tool) -> dict[str, Any]:
    is_native = tool.api == "anthropic"
    if is_native and tool.extra.get("_builtin"):
        return add_provider_fields({}, tool.extra)
    body: dict[str, Any] = {"name": tool.name}
    if tool.description:
        body["description"] = tool.description
    if tool.parameters:
        body["input_schema"] = tool.parameters if is_native else {"type": "object", **to_json_schema(tool)}
    if is_native:
        return add_provider_fields(body, tool.extra)
    return {**body, "input_schema": body.get("input_schema", _EMPTY_SCHEMA)}


_DECLARATION_KEYS = ("functionDeclarations", "function_declarations")
_SCHEMA_KEYS = ("parameters", "parametersJsonSchema", "parameters_json_schema")
_GEMINI_TOOL_KEYS = frozenset(
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
"""Fields of Gemini's server-side tools."""


def is_gemini_element(block: dict[str, Any]) -> bool:
    """Return True if a dict has a field that only Gemini's `tools` elements have."""
    return not ("name" in block or "type" in block) and any(
        _to_camel_case(key) in {*_DECLARATION_KEYS, *_GEMINI_TOOL_KEYS} for key in block
    )


def may_be_gemini_element(block: dict[str, Any]) -> bool:
    """Return True if a dict could be a newer Gemini tool.

    Every field of one is an object or list.
    """
    return "name" not in block and bool(block) and all(isinstance(value, dict | list) for value in block.values())


def read_gemini_element(block: dict[str, Any], element: int) -> list[Tool]:
    """Parse an element of Gemini's `tools`: functions, and one tool for other fields.

    Args:
        block: The element, or a single function declaration.
        element: Its index in the list. Stored, so that its tools are written into one element again.
    """
    if "name" in block:
        return [_read_declaration(block, {})]
    key = next((key for key in _DECLARATION_KEYS if isinstance(block.get(key), list)), "")
    tools = []
    for index, item in enumerate(get_list(block, key) if key else ()):
        with ErrorPath(f"{key}[{index}]"):
            tools.append(_read_declaration(to_json_dict(item), {"key": key, "element": element + 1}))
    rest = omit_keys(block, key) if tools else block
    if rest or not tools:
        name = next(iter(rest), "")
        tools.append(Tool(name=name, api="gemini", extra=with_metadata(rest, builtin=True, element=element + 1)))
    return tools


def write_gemini_elements(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return Gemini's `tools`.

    Tools that were read from Gemini keep their elements. All others are declared in one element.
    """
    elements: dict[object, dict[str, Any]] = {}
    for tool in tools:
        is_native = tool.api == "gemini"
        if is_native and tool.extra.get("_builtin"):
            elements.setdefault(tool.extra.get("_element"), {}).update(get_provider_fields(tool.extra))
        elif is_native or not tool.extra.get("_builtin"):
            element = elements.setdefault(tool.extra.get("_element") if is_native else None, {})
            key: Any = tool.extra.get("_key", _DECLARATION_KEYS[0]) if is_native else _DECLARATION_KEYS[0]
            element.setdefault(key, []).append(_write_declaration(tool, is_native=is_native))
    return list(elements.values())


def _read_declaration(block: dict[str, Any], metadata: dict[str, object]) -> Tool:
    key = next((key for key in _SCHEMA_KEYS if block.get(key)), "")
    read_here = [name for name in ("name", "description", key) if block.get(name)]
    return Tool(
        name=get_text(block, "name"),
        description=(block.get("description") or "") and get_text(block, "description"),
        parameters=get_object(block, key) if key else {},
        api="gemini",
        extra=with_metadata(
            omit_keys(block, *read_here), schema=key and _get_schema_kind(key), schema_key=key, **metadata
        ),
    )


def _write_declaration(tool: Tool, *, is_native: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"name": tool.name}
    if tool.description:
        body["description"] = tool.description
    if is_native:
        if tool.parameters:
            key: Any = tool.extra.get("_schema_key", "parametersJsonSchema")
            body[key] = tool.parameters
        return add_provider_fields(body, tool.extra)
    # `parameters` supports only a subset of JSON Schema.
    return body | ({"parametersJsonSchema": to_json_schema(tool)} if tool.parameters else {})


def _get_schema_kind(key: str) -> str:
    return "own" if key == "parameters" else "json"


def _to_camel_case(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(word.capitalize() for word in others)


_TOOL_READERS: dict[str, Callable[[dict[str, Any], int], list[Tool]]] = {
    "openai": lambda block, _: [read_chat_tool(block)],
    "responses": lambda block, _: [read_responses_tool(block)],
    "anthropic": lambda block, _: [read_anthropic_tool(block)],
    "gemini": read_gemini_element,
    "mcp": lambda block, _: [_read_mcp_tool(block)],
}
_TOOL_WRITERS: dict[str, Callable[[Sequence[Tool]], list[dict[str, Any]]]] = {
    "openai": write_chat_tools,
    "responses": write_responses_tools,
    "anthropic": write_anthropic_tools,
    "gemini": write_gemini_elements,
}
_DATED_TYPE = re.compile(r"_20\d{6}$")  # version of Anthropic's built-in tools: web_search_20250305


def read_tools(items: Iterable[object], api: str) -> tuple[Tool, ...]:
    """Parse tool definitions in the shape of any API, of MCP, or Tool objects.

    Args:
        items: The definitions.
        api: The API whose shape a definition has that several APIs could have.

    Raises:
        MessageError: An element is not a tool definition. The error has its index and the reason.
    """
    tools: list[Tool] = []
    for index, item in enumerate(items):
        with ErrorPath(f"tools[{index}]"):
            if isinstance(item, Tool):
                tools.append(item)
            else:
                block = _to_definition_dict(item)
                tools += _TOOL_READERS[_detect_shape(block, api)](block, index)
    return tuple(tools)


def write_tools(tools: Sequence[Tool], api: str) -> list[dict[str, Any]]:
    """Return definitions in an API's shape.

    Server-side tools of other providers are left out.
    """
    return _TOOL_WRITERS[api](tools)


def _to_definition_dict(item: object) -> dict[str, Any]:
    try:
        return to_json_dict(item)
    except MessageError:
        if not callable(item):
            raise
    raise MessageError(
        f"expected the description of a tool, not {describe_json_value(item)}",
        hint="pass Tool(name=…, description=…, parameters={…}) or a definition in your API's shape; "
        "Nexus does not run functions",
    )


def _detect_shape(block: dict[str, Any], api: str) -> str:
    kind = block.get("type")
    if isinstance(block.get("function"), dict) or isinstance(block.get("custom"), dict):
        return "openai"
    if "input_schema" in block or (isinstance(kind, str) and _DATED_TYPE.search(kind)):
        return "anthropic"
    if "inputSchema" in block:
        return "mcp"
    if is_gemini_element(block) or (api == "gemini" and may_be_gemini_element(block)):
        return "gemini"
    if isinstance(kind, str):
        # Built-in tools of Anthropic and OpenAI have the same shape; flat functions and custom tools are OpenAI's.
        return api if api == "anthropic" and kind not in ("function", "custom") else "responses"
    if "name" in block and kind is None:
        return api
    raise MessageError(f"no API defines a tool this way: {format_for_error(sorted(block)[:5])}")


def _read_mcp_tool(block: dict[str, Any]) -> Tool:
    return Tool(
        name=take_text(block, "name"),
        description=take_optional_text(block, "description"),
        parameters=get_object(block, "inputSchema"),
        api="mcp",
        extra=omit_keys(block, "inputSchema"),
    )


INVALID_TOOL_CODE = "invalid-tool"
_OBJECT_TYPE = "object"


def find_invalid_tools(tools: Iterable[Tool], rules: ApiRules) -> Iterator[Finding]:
    """Yield a finding for every tool whose name or schema the API would reject.

    Tools are not renamed: the model calls a tool by its name, and only the caller can register another one.
    """
    for tool in tools:
        if tool.extra.get("_builtin"):
            continue  # the provider defines it
        if not _is_allowed_name(tool.name, rules):
            limit = f", at most {rules.name_length} characters" if rules.name_length else ""
            what = f"the {rules.name} API does not allow the tool name {format_for_error(tool.name)}"
            yield Finding(INVALID_TOOL_CODE, f"{what}; it must match {rules.name_pattern or '.+'}{limit}")
        if problem := _find_schema_problem(tool, rules):
            what = f"the {rules.name} API does not allow the schema of the tool {format_for_error(tool.name)}"
            yield Finding(INVALID_TOOL_CODE, f"{what}: {problem}")


def complete_schemas(tools: Iterable[Tool], rules: ApiRules) -> tuple[Tool, ...]:
    """Add `"type": "object"` to schemas without a type if the API requires it."""
    return tuple(_complete_schema(tool, rules) for tool in tools)


def _complete_schema(tool: Tool, rules: ApiRules) -> Tool:
    if _skips_schema_check(tool, rules) or tool.parameters.get("type") is not None:
        return tool
    if not tool.parameters:
        if rules.schemas != "required" or tool.api != rules.name:
            return tool  # `write_tools` adds the missing schema
        return replace(tool, parameters={"type": _OBJECT_TYPE, "properties": {}})
    kind = _OBJECT_TYPE.upper() if tool.extra.get("_schema") == "own" else _OBJECT_TYPE  # Gemini's spelling of types
    return replace(tool, parameters={"type": kind, **{k: v for k, v in tool.parameters.items() if k != "type"}})


def _find_schema_problem(tool: Tool, rules: ApiRules) -> str:
    if _complete_schema(tool, rules) is not tool:
        return 'there is no "type": "object" at its top'
    kind = tool.parameters.get("type")
    if _skips_schema_check(tool, rules) or kind is None or not isinstance(kind, str) or kind.lower() == _OBJECT_TYPE:
        return ""
    return f'its type must be "object", not {describe_json_value(kind)}'


def _skips_schema_check(tool: Tool, rules: ApiRules) -> bool:
    """Return True for built-in and free-text tools, and if the API accepts any schema."""
    return rules.schemas == "any" or bool(tool.extra.get("_builtin") or tool.extra.get("_custom"))


def _is_allowed_name(name: str, rules: ApiRules) -> bool:
    if not name.strip() or (rules.name_length and len(name) > rules.name_length):
        return False
    return not rules.name_pattern or re.fullmatch(rules.name_pattern, name) is not None
