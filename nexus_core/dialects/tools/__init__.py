"""Definitions of tools, in whichever API's shape they are given, and in the shape an API wants.

openai.py        nested in chat completions, flat in Responses
anthropic.py     Anthropic's; gemini.py: Gemini's, where one element declares many
schemas.py       Gemini's schemas as JSON Schema; in_turn.py: definitions in the shapes of several dialects
validity.py      names and schemas that an API would refuse
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import at, mapping_in, named, shown, take_text, take_words, without
from nexus_core.dialects.plain import plain_mapping
from nexus_core.dialects.tools import anthropic, gemini, openai
from nexus_core.errors import MessageError
from nexus_core.values.conversation import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_SHAPES: dict[str, Callable[[dict[str, Any], int], list[Tool]]] = {
    "openai": lambda block, _: [openai.read_nested(block)],
    "responses": lambda block, _: [openai.read_flat(block)],
    "anthropic": lambda block, _: [anthropic.read(block)],
    "gemini": gemini.read,
    "mcp": lambda block, _: [_read_mcp(block)],
}
_WRITERS: dict[str, Callable[[Sequence[Tool]], list[dict[str, Any]]]] = {
    "openai": openai.write_nested,
    "responses": openai.write_flat,
    "anthropic": anthropic.write,
    "gemini": gemini.write,
}
_DATED = re.compile(r"_20\d{6}$")  # the version of a tool that Anthropic brings along: web_search_20250305


def read_tools(items: Iterable[object], api: str) -> tuple[Tool, ...]:
    """Definitions in the shape of any API, of MCP, or Tool objects; `api` decides what several of them could mean.

    Raises:
        MessageError: One of them is no definition of a tool; says which and what is wrong with it.
    """
    tools: list[Tool] = []
    for index, item in enumerate(items):
        with at(f"tools[{index}]"):
            if isinstance(item, Tool):
                tools.append(item)
            else:
                block = _block_of(item)
                tools += _SHAPES[_shape_of(block, api)](block, index)
    return tuple(tools)


def write_tools(tools: Sequence[Tool], api: str) -> list[dict[str, Any]]:
    """Definitions in an API's shape; tools that another provider runs itself are left out."""
    return _WRITERS[api](tools)


def _block_of(item: object) -> dict[str, Any]:
    try:
        return plain_mapping(item)
    except MessageError:
        if not callable(item):
            raise
    raise MessageError(
        f"expected the description of a tool, not {named(item)}",
        hint="Tool(name=…, description=…, parameters={…}) describes one, or your API's own shape does; "
        "Nexus does not run functions",
    )


def _shape_of(block: dict[str, Any], api: str) -> str:
    kind = block.get("type")
    if isinstance(block.get("function"), dict) or isinstance(block.get("custom"), dict):
        return "openai"
    if "input_schema" in block or (isinstance(kind, str) and _DATED.search(kind)):
        return "anthropic"
    if "inputSchema" in block:
        return "mcp"
    if gemini.is_element(block) or (api == "gemini" and gemini.may_be_element(block)):
        return "gemini"
    if isinstance(kind, str):
        # Built-in tools of Anthropic and of OpenAI look alike; custom functions that are flat are OpenAI's.
        return api if api == "anthropic" and kind not in ("function", "custom") else "responses"
    if "name" in block and kind is None:
        return api
    raise MessageError(f"no API defines a tool this way: {shown(sorted(block)[:5])}")


def _read_mcp(block: dict[str, Any]) -> Tool:
    return Tool(
        name=take_text(block, "name"),
        description=take_words(block, "description"),
        parameters=mapping_in(block, "inputSchema"),
        api="mcp",
        extra=without(block, "inputSchema"),
    )
