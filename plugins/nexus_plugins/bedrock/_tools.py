"""Definitions of tools: `toolSpec`, what Bedrock itself offers (`systemTool`), and marks between them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core import MessageError, Tool, dialect
from nexus_core.plugin import error_inside, fields_of, noted, plain_mapping
from nexus_plugins.bedrock._fields import API, mapping_in, text_in, without, words_in
from nexus_plugins.bedrock._writing import MARK, new_mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core import Message
    from nexus_plugins.bedrock._fields import Block

_OWN = ("toolSpec", "systemTool", MARK)
_FIRST = "tools[0]"
_GONE = "Was available earlier in this conversation, and is not any more."
_NO_ARGUMENTS = {"type": "object", "properties": {}}


def read_tools(tools: Iterable[object]) -> tuple[Tool, ...]:
    """Definitions in Bedrock's shape, or in that of any other API, of MCP, or Tool objects."""
    found: list[Tool] = []
    for index, item in enumerate(tools):
        try:
            _read_into(found, item)
        except MessageError as error:
            raise error_inside(f"tools[{index}]", _without_place(error)) from None
    return tuple(found)


def write_tools(tools: Sequence[Tool]) -> list[Block]:
    """Definitions for `toolConfig`; tools that another provider runs itself are left out."""
    return [block for tool in tools for block in (_write_own(tool) if tool.api == API else _write_foreign(tool))]


def mark_end(tools: Sequence[Block], lifetime: str) -> list[Block]:
    """The same with a mark at the end, unless there is one."""
    return list(tools) if not tools or MARK in tools[-1] else [*tools, new_mark(lifetime)]


def stand_ins(messages: Iterable[Message]) -> list[Block]:
    """Definitions for tools that were called before, and that nobody defines now.

    "The toolConfig field must be defined when using toolUse and toolResult content blocks" (langgenius/dify#17545).
    """
    names = dict.fromkeys(call.name for message in messages for call in message.tool_calls)
    return [_spec({"name": name, "description": _GONE, "inputSchema": {"json": _NO_ARGUMENTS}}) for name in names]


def _without_place(error: MessageError) -> MessageError:
    """An error of another dialect, which read a list of one."""
    path = error.path.removeprefix(_FIRST).lstrip(".")
    return MessageError(error.what, path=path, hint=error.hint, command=error.command)


def _read_into(found: list[Tool], item: object) -> None:
    """Read one element; a mark belongs to the tool before it."""
    block = {} if isinstance(item, Tool) or callable(item) else plain_mapping(item)
    kind = next((kind for kind in _OWN if block.get(kind) is not None), "")
    if not kind:
        found += dialect("openai").read_tools([item])
    elif kind == "toolSpec":
        found.append(_read_spec(mapping_in(block, kind), without(block, kind)))
    elif kind == MARK and found and found[-1].api == API and MARK not in found[-1].extra and block.keys() == {MARK}:
        found[-1] = replace(found[-1], extra={**found[-1].extra, MARK: block[MARK]})
    else:
        name = words_in(mapping_in(block, kind), "name", kind) or kind
        found.append(Tool(name=name, api=API, extra=noted(block, builtin=True)))


def _read_spec(spec: Block, rest: Block) -> Tool:
    name, description = text_in(spec, "name", "toolSpec"), words_in(spec, "description", "toolSpec")
    schema: Any = spec.get("inputSchema")
    parameters = schema.get("json") if isinstance(schema, dict) else None
    if not isinstance(parameters, dict) or not parameters:
        parameters = {}
    elif schema.keys() == {"json"}:
        spec = without(spec, "inputSchema")
    inner = without(spec, "name", "description" if description else "")
    extra = noted({}, inner=inner, outer=rest)
    return Tool(name=name, description=description, parameters=parameters, api=API, extra=extra)


def _write_own(tool: Tool) -> list[Block]:
    extra: Any = tool.extra
    mark = extra.get(MARK)
    if isinstance(mark, dict) and mark.get("type") == "ephemeral":  # as Nexus itself writes marks
        mark = new_mark(str(mark.get("ttl", "")))[MARK]
    after = [] if mark is None else [{MARK: mark}]
    if "_builtin" in extra:
        whole = without(fields_of(extra), MARK)
        return [whole, *after] if whole else after
    spec: Block = {"name": tool.name} | ({"description": tool.description} if tool.description else {})
    spec |= {"inputSchema": {"json": dict(tool.parameters)}} if tool.parameters else {}
    return [_spec(spec | extra.get("_inner", {}), extra.get("_outer", {})), *after]


def _write_foreign(tool: Tool) -> list[Block]:
    """As Anthropic has it: a name, perhaps a description, and a JSON Schema of an object."""
    written = dialect("anthropic").write_tools([tool])
    if not written or "input_schema" not in written[0]:
        return []
    schema = {"type": "object", **written[0]["input_schema"]}
    described = {"description": tool.description} if tool.description.strip() else {}
    return [_spec({"name": tool.name, **described, "inputSchema": {"json": schema}})]


def _spec(spec: Block, rest: Block | None = None) -> Block:
    return {"toolSpec": spec, **(rest or {})}
