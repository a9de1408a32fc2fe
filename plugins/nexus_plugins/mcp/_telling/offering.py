"""The tools of servers as they are offered to a model, from what is known of them; nothing is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import NexusError, Tool
from nexus_core.plugin import strip_hidden
from nexus_plugins.mcp._telling.names import tool_name
from nexus_plugins.mcp._telling.records import read_record
from nexus_plugins.mcp._telling.table import usable_servers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core import Request
    from nexus_core.plugin import Loaded, MCPServerWithOrigin, Settings

_PROSE = frozenset({"description", "title", "$comment"})
"""What in a schema is read and not compared."""


class OfferedTool(NamedTuple):
    """A tool for the model, its server, and what the server calls it."""

    tool: Tool
    server: MCPServerWithOrigin
    name: str


def offered_tools(request: Request, loaded: Loaded) -> Iterator[OfferedTool]:
    """The tools of all servers that an agent in these circumstances has and that may be started, in a fixed order."""
    for server in usable_servers(request, loaded):
        if server.status != "enabled":
            continue
        try:
            record = read_record(request.home, server)
        except NexusError:  # `nexus mcp tools` says what is wrong
            continue
        usable = [each for each in (record.usable if record else ()) if server.config.offers(each.name)]
        for definition in sorted(usable, key=lambda each: each.name):
            tool = Tool(
                name=tool_name(server.config.name, definition.name),
                description=strip_hidden(definition.description),
                parameters=_without_hidden(definition.schema),
                origin=f"mcp:{server.config.name}",
            )
            yield OfferedTool(tool, server, definition.name)


def is_permitted(name: str, settings: Settings) -> bool:
    """Whether models may use a tool: what is not offered is not run either, whoever tells a model its name."""
    allow, deny = settings.get("permissions.tools.allow"), settings.get("permissions.tools.deny")
    return not (isinstance(deny, list) and name in deny) and not (isinstance(allow, list) and name not in allow)


def _without_hidden(schema: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A schema whose texts for readers have nothing in them that no reader sees; names and values stay as they are."""
    if isinstance(schema, Mapping):
        return {
            key: strip_hidden(item) if key in _PROSE and isinstance(item, str) else _without_hidden(item)
            for key, item in schema.items()
        }
    return [_without_hidden(item) for item in schema] if isinstance(schema, list) else schema
