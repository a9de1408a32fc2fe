"""Schemas of a tool's arguments: Gemini writes them its own way, everybody else as JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nexus_core.values.conversation import Tool

_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
_ONE = ("items", "additionalProperties", "additional_properties", "not")
_MANY = ("anyOf", "any_of", "prefixItems", "oneOf", "allOf")
_NAMED = ("properties", "defs", "$defs", "definitions", "patternProperties")
_GEMINI_ONLY = ("nullable", "propertyOrdering", "property_ordering")
_SPELLINGS = {
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


def json_schema(tool: Tool) -> dict[str, Any]:
    """What a tool's arguments must look like, as JSON Schema."""
    if tool.api != "gemini" or tool.extra.get("_schema") == "json":
        return dict(tool.parameters)
    converted: dict[str, Any] = _converted(dict(tool.parameters))
    return converted


def _converted(schema: Any) -> Any:  # noqa: ANN401 - a schema may be an object or a boolean
    if not isinstance(schema, dict):
        return schema
    given: dict[str, Any] = schema
    kept = {key: value for key, value in given.items() if key not in _GEMINI_ONLY}
    body = {_SPELLINGS.get(key, key): _member(key, value) for key, value in kept.items()}
    kind = body.get("type")
    if schema.get("nullable") is True and isinstance(kind, str):
        body["type"] = [kind, "null"]
    return body


def _member(key: str, value: Any) -> Any:  # noqa: ANN401 - as above
    if key == "type" and isinstance(value, str):
        return value.lower() if value in _TYPES else value
    if key in _ONE:
        return _converted(value)
    if key in _MANY and isinstance(value, list):
        return [_converted(each) for each in value]
    if key in _NAMED and isinstance(value, dict):
        return {name: _converted(each) for name, each in value.items()}
    return value
