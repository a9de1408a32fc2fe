"""Arguments of a tool by its JSON schema: name, type, whether it is required, and what it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.plugin.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_LINE_CHARACTERS = 80
MAX_NAME_CHARACTERS = 28
MAX_TYPE_CHARACTERS = 24
_MAX_DEPTH = 3  # of a type inside types; a schema may refer to itself
_MAX_CHOICES = 4


class ToolArgument(NamedTuple):
    """An argument of a tool.

    Attributes:
        name: Its name.
        type: Its type in a few words, such as `string`, `list of integer` or `"a" or "b"`.
        required: True if every call must have it.
        description: What it is for, in one line, as the server says.
    """

    name: str
    type: str
    required: bool
    description: str


def list_arguments(schema: Mapping[str, Any]) -> list[ToolArgument]:
    """Return the arguments that a schema names, in its order, the required ones first."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return []
    needed = set(map(str, required)) if isinstance(required, list) else set()
    arguments = [
        ToolArgument(str(name), _describe_type(each, schema), str(name) in needed, _describe(each))
        for name, each in properties.items()
    ]
    return sorted(arguments, key=lambda each: not each.required)


def format_arguments(arguments: Sequence[ToolArgument]) -> Iterator[str]:
    """Yield a line of at most 80 characters for each argument, in columns."""
    names = [_shorten(each.name, MAX_NAME_CHARACTERS) for each in arguments]
    types = [_shorten(each.type, MAX_TYPE_CHARACTERS) for each in arguments]
    widths = max(map(len, names), default=0), max(map(len, types), default=0)
    for name, type_, each in zip(names, types, arguments, strict=True):
        needed = "required" if each.required else "optional"
        line = f"    {name:<{widths[0]}}  {type_:<{widths[1]}}  {needed}  {each.description}".rstrip()
        yield _shorten(line, MAX_LINE_CHARACTERS)


def _describe(schema: object) -> str:
    text = schema.get("description") if isinstance(schema, dict) else None
    return one_line(" ".join(text.split())) if isinstance(text, str) else ""


def _describe_type(schema: object, root: Mapping[str, Any], depth: int = 0) -> str:
    """Return the type of a value in a few words; `any` if the schema does not say."""
    schema = _follow_reference(schema, root)
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return "any"
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list) and choices:
        shown = " or ".join(map(_quote, choices[:_MAX_CHOICES]))
        return shown if len(choices) <= _MAX_CHOICES else f"{shown} or {len(choices) - _MAX_CHOICES} more"
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            kinds = [_describe_type(each, root, depth + 1) for each in schema[key]]
            return " or ".join(dict.fromkeys(kinds)) or "any"
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(one_line(str(each)) for each in kind) or "any"
    if kind == "array":
        return f"list of {_describe_type(schema['items'], root, depth + 1)}" if "items" in schema else "list"
    return one_line(kind) if isinstance(kind, str) and kind else "any"


def _follow_reference(schema: object, root: Mapping[str, Any]) -> object:
    """Return what a schema refers to inside the tool's schema, or the schema itself. Nothing is fetched."""
    name = schema.get("$ref") if isinstance(schema, dict) else None
    if not isinstance(name, str) or not name.startswith("#/"):
        return schema
    found: object = root
    for part in name[2:].split("/"):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _quote(value: object) -> str:
    return f'"{one_line(value)}"' if isinstance(value, str) else one_line(str(value))


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
