"""Tools of the caller and of plugins, filtered by role, settings and permissions."""

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
    """A tool and the rule that keeps it from the model, if any.

    Attributes:
        tool: The tool.
        source: The caller, or the plugin that offers it.
        refusal: The rule that keeps it from the model; "" if it is sent.
    """

    tool: Tool
    source: Source
    refusal: str = ""


def read_tools(tools: Iterable[object], api: str, dialects: DialectRegistry) -> tuple[Tool, ...]:
    """Parse tool definitions in the format of any API.

    `api` decides if a definition fits several.

    A definition may have a scope (`"scope": "messaging"`) and the permissions it needs (`"permissions": ["mail"]`).
    Both are for Nexus and are not sent.

    Raises:
        MessageError: A definition is invalid, or a name is missing or repeated.
        UnknownNameError: A scope is unknown.
        UsageError: `permissions` is not a list of texts.
    """
    read = tuple(normalize_tool(_read_nexus_fields(tool)) for tool in dialects.read_tools(tools, api))
    _require_names(read)
    return read


def _read_nexus_fields(tool: Tool) -> Tool:
    """Return a tool with the scope and permissions of its definition.

    They may be at either level, if the API nests definitions.
    """
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
        permissions=tool.permissions if needed is None else _read_permissions(needed, tool.name),
        extra=extra | ({_OUTER: around} if around else {}),
    )


def _read_permissions(value: object, name: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        hint = '"permissions": ["mail"]'
        raise UsageError(f"the permissions of the tool {name!r} must be a list of texts", hint=hint)
    return tuple(value)


def _require_names(tools: Iterable[Tool]) -> None:
    """Raise a MessageError for a missing or repeated name.

    Tools that a provider runs may have none.
    """
    names: set[str] = set()
    for tool in tools:
        if "_builtin" in tool.extra:
            continue
        if not tool.name.strip():
            raise MessageError("a tool has no name", path="tools", hint="a model can only ask for what has one")
        if tool.name in names:
            raise MessageError(
                f"two tools are called {format_for_error(tool.name)}", path="tools", hint="give each its own name"
            )
        names.add(tool.name)


def normalize_tool(tool: Tool) -> Tool:
    """Round-trip a tool through JSON, so that it equals the stored one."""
    # Keys keep the caller's order, because a model reads parameters in the order in which they are written.
    return decode_value(Tool, json.loads(write_json(encode_value(tool), "a tool")))


def offer_tools(
    caller_tools: Iterable[Tool],
    plugin_tools: Iterable[tuple[Tool, str]],
    role: AgentRole,
    settings: Settings,
    granted: Collection[str] | None = None,
) -> tuple[ToolOffer, ...]:
    """Return all tools in a stable order, with the reasons for refusals.

    Args:
        caller_tools: The caller's tools, which come first.
        plugin_tools: Tools of plugins, each with the name of its plugin.
        role: The agent role, which limits scopes.
        settings: Settings of the user and the project, which allow and deny tools.
        granted: The permissions of the agent; None if they are not limited.
    """
    offers = [ToolOffer(tool, CALLER_SOURCE) for tool in caller_tools]
    offers += [
        _offer_plugin_tool(tool, Source(uri=tool.origin or f"plugin:{plugin}", plugin=plugin))
        for tool, plugin in plugin_tools
    ]
    names: set[str] = set()
    checked = []
    for each in offers:
        is_repeated = each.source is not CALLER_SOURCE and each.tool.name in names
        refusal = each.refusal or ("another tool has that name" if is_repeated else "")
        refusal = refusal or _find_refusal(each.tool, role, settings, granted)
        names.add(each.tool.name)
        checked.append(each._replace(refusal=refusal))
    return tuple(checked)


def _offer_plugin_tool(tool: Tool, source: Source) -> ToolOffer:
    """Return the offer of a plugin's tool.

    An invalid tool is refused here, because it would fail the whole call.
    """
    try:
        normalized = normalize_tool(tool)
    except MessageError as error:
        return ToolOffer(Tool(name=tool.name, scope=tool.scope), source, f"{error.what}, at {error.path}")
    nameless = not normalized.name.strip() and "_builtin" not in normalized.extra
    return ToolOffer(normalized, source, "it has no name" if nameless else "")


def list_permitted_tools(offers: Iterable[ToolOffer]) -> tuple[Tool, ...]:
    """Return the tools that are sent to the model."""
    return tuple(each.tool for each in offers if not each.refusal)


def _find_refusal(tool: Tool, role: AgentRole, settings: Settings, granted: Collection[str] | None) -> str:
    allow, deny = settings.get("permissions.tools.allow"), settings.get("permissions.tools.deny")
    if isinstance(deny, list) and tool.name in deny:
        return "permissions.tools.deny"
    if isinstance(allow, list) and tool.name not in allow:
        return "permissions.tools.allow"
    if tool.scope not in role.scopes:
        return f"role {role.name}"
    missing = next((each for each in tool.permissions if granted is not None and each not in granted), None)
    return "" if missing is None else f"permission {missing}"
