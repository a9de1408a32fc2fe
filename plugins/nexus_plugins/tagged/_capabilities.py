"""The block `[CAPABILITIES]`: what tools there are, what each is for, and what it needs to be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from nexus_core import dialect
from nexus_core.plugin import escape_markers
from nexus_plugins.tagged._tags import CAPABILITIES, as_json, block, indented, one_line, plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core import Tool
    from nexus_plugins.tagged._options import Words


def read_tools(definitions: Iterable[object]) -> tuple[Tool, ...]:
    """Definitions in the shape of any API.

    Raises:
        MessageError: One of them is none; says which.
    """
    return dialect("openai").read_tools(definitions)


def capabilities_block(tools: Iterable[Tool], words: Words) -> str:
    """The block. Every tool is an item; what belongs to it is indented, so that no description can begin another."""
    items = "\n".join(map(_item, tools))
    return block(CAPABILITIES, words.tools, escape_markers(items) if items else words.no_tools)


def _item(tool: Tool) -> str:
    # A tool that the provider runs itself may have nothing but a type.
    name = tool.name or str(tool.extra.get("type", ""))
    lines = [plain_name(name) + (f": {tool.description}" if tool.description else ""), *_parameters(tool.parameters)]
    return "- " + indented("\n".join(lines))


def _parameters(schema: Mapping[str, object]) -> Iterator[str]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    required = schema.get("required")
    needed = required if isinstance(required, list | tuple) else ()
    if properties:
        yield "Parameters:"
    for name, about in properties.items():
        facts = about if isinstance(about, Mapping) else {}
        kind = [_type(facts), *(["required"] if name in needed else [])]
        words = f"- {plain_name(str(name))} ({', '.join(kind)})"
        description = facts.get("description")
        yield f"{words}: {one_line(description)}" if description else words


def _type(facts: Mapping[str, object]) -> str:
    if "enum" in facts:
        return f"one of {one_line(facts['enum'])}"
    kind = facts.get("type", "any")
    if kind == "array" and isinstance(facts.get("items"), Mapping):
        return f"array of {_type(facts['items'])}"  # type: ignore[arg-type]
    if kind == "object" and facts.get("properties"):
        return f"object {one_line(as_json(facts['properties']))}"
    return one_line(kind)
