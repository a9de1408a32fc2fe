"""The tools that a model may ask for: the caller's and those of plugins, without what role and settings forbid."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.fields import format_for_error
from nexus_core.dialects.neutral import decode_value, encode_value
from nexus_core.errors import MessageError, UnknownNameError, UsageError
from nexus_core.ledger.json_text import write_json
from nexus_core.types.messages import TOOL_SCOPES, Tool
from nexus_core.types.prompt import Source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.types.prompt import AgentRole
    from nexus_core.types.settings import Settings

CALLER_SOURCE = Source(uri="caller:")
_SCOPE, _PERMISSIONS, _OUTER = "scope", "permissions", "_outer"


class ToolOffer(NamedTuple):
    """A tool that somebody offers.

    Attributes:
        tool: The tool.
        source: Who offers it.
        refusal: The rule that keeps it away from the model; "" where nothing does.
    """

    tool: Tool
    source: Source
    refusal: str = ""


def read_tools(tools: Iterable[object], api: str, dialects: DialectRegistry) -> tuple[Tool, ...]:
    """Definitions in the shape of any API; the model's own decides what several could mean.

    One may say besides what it reaches (`"scope": "messaging"`), and which permissions it needs
    (`"permissions": ["mail"]`). Both are for Nexus, and no API is told.

    Raises:
        MessageError: Something in it is no definition of a tool, or a name is missing or there twice.
        UnknownNameError: There is no such scope.
        UsageError: `permissions` is not a list of texts.
    """
    kept = tuple(normalize_tool(_scoped(tool)) for tool in dialects.read_tools(tools, api))
    _require_names(kept)
    return kept


def _scoped(tool: Tool) -> Tool:
    """A tool with the scope and the permissions of its definition, in it or, where an API has two levels, around it."""
    outer = tool.extra.get(_OUTER)
    outer = outer if isinstance(outer, dict) else {}
    scope = tool.extra.get(_SCOPE, outer.get(_SCOPE))
    needed = tool.extra.get(_PERMISSIONS, outer.get(_PERMISSIONS))
    names = {_SCOPE} if isinstance(scope, str) else set()
    names |= {_PERMISSIONS} & {*tool.extra, *outer}
    if not names or "_builtin" in tool.extra:
        return tool
    if not isinstance(scope, str):
        scope = tool.scope
    if scope not in TOOL_SCOPES:
        raise UnknownNameError(f"scope of the tool {tool.name!r}:", scope, TOOL_SCOPES)
    extra = {name: value for name, value in tool.extra.items() if name not in (*names, _OUTER)}
    around = {name: value for name, value in outer.items() if name not in names}
    return replace(
        tool,
        scope=scope,
        permissions=tool.permissions if needed is None else _needed(needed, tool.name),
        extra=extra | ({_OUTER: around} if around else {}),
    )


def _needed(given: object, name: str) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        hint = '"permissions": ["mail"]'
        raise UsageError(f"the permissions of the tool {name!r} must be a list of texts", hint=hint)
    return tuple(given)


def _require_names(tools: Iterable[Tool]) -> None:
    """Refuse what every API refuses. Tools that a provider runs are its own business."""
    taken: set[str] = set()
    for tool in tools:
        if "_builtin" in tool.extra:
            continue
        if not tool.name.strip():
            raise MessageError("a tool has no name", path="tools", hint="a model can only ask for what has one")
        if tool.name in taken:
            raise MessageError(
                f"two tools are called {format_for_error(tool.name)}", path="tools", hint="give each its own name"
            )
        taken.add(tool.name)


def normalize_tool(tool: Tool) -> Tool:
    """A tool as it comes back from a ledger, so that equal ones are equal."""
    # In the order of the caller: a model reads the parameters of a tool in the order in which they are written.
    return decode_value(Tool, json.loads(write_json(encode_value(tool), "a tool")))


def offer_tools(
    given: Iterable[Tool],
    added: Iterable[tuple[Tool, str]],
    role: AgentRole,
    settings: Settings,
    granted: Collection[str] | None = None,
) -> tuple[ToolOffer, ...]:
    """All tools, in an order that does not change, each with what became of it.

    Args:
        given: The caller's, which come first.
        added: Those of plugins, with the name of the plugin.
        role: What part the agent plays.
        settings: What the user and the project permit.
        granted: The permissions of the agent; None where nobody said what it may do.
    """
    every = [ToolOffer(tool, CALLER_SOURCE) for tool in given]
    every += [_added(tool, Source(uri=tool.origin or f"plugin:{plugin}", plugin=plugin)) for tool, plugin in added]
    taken: set[str] = set()
    offered = []
    for each in every:
        is_taken = each.source is not CALLER_SOURCE and each.tool.name in taken
        refusal = each.refusal or ("another tool has that name" if is_taken else "")
        refusal = refusal or _refusal(each.tool, role, settings, granted)
        taken.add(each.tool.name)
        offered.append(each._replace(refusal=refusal))
    return tuple(offered)


def _added(tool: Tool, source: Source) -> ToolOffer:
    """A tool of a plugin. What every API would refuse is kept away, so that it does not cost the whole call."""
    try:
        kept = normalize_tool(tool)
    except MessageError as error:
        return ToolOffer(Tool(name=tool.name, scope=tool.scope), source, f"{error.what}, at {error.path}")
    nameless = not kept.name.strip() and "_builtin" not in kept.extra
    return ToolOffer(kept, source, "it has no name" if nameless else "")


def list_permitted_tools(offered: Iterable[ToolOffer]) -> tuple[Tool, ...]:
    """The tools that reach the model."""
    return tuple(each.tool for each in offered if not each.refusal)


def _refusal(tool: Tool, role: AgentRole, settings: Settings, granted: Collection[str] | None) -> str:
    allow, deny = settings.get("permissions.tools.allow"), settings.get("permissions.tools.deny")
    if isinstance(deny, list) and tool.name in deny:
        return "permissions.tools.deny"
    if isinstance(allow, list) and tool.name not in allow:
        return "permissions.tools.allow"
    if tool.scope not in role.scopes:
        return f"role {role.name}"
    missing = next((each for each in tool.permissions if granted is not None and each not in granted), None)
    return "" if missing is None else f"permission {missing}"
