"""What a server says about its tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_plugins.mcp._telling.records import LARGEST, Definition

if TYPE_CHECKING:
    from mcp.client.client import Client

    from nexus_plugins.mcp._running.line import Line

MOST_PAGES = 100
"""In how many pieces a server may list its tools."""


async def list_tools(client: Client, line: Line) -> list[Definition]:
    """The tools of a server, in its order; those that cannot be used are `line.unusable` then.

    Raises:
        ServerError: It describes more than anybody could read.
    """
    found: list[Definition] = []
    line.unusable.clear()
    cursor: str | None = None
    size = 0
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        size += len(page.model_dump_json())
        if size > LARGEST:
            raise line.fault(f"describes its tools in more than {LARGEST >> 20} MiB")
        found += (Definition(each.name, each.description or "", dict(each.input_schema)) for each in page.tools)
        cursor = page.next_cursor
        if not cursor:
            return found
    raise line.fault(f"lists its tools in more than {MOST_PAGES} pieces")
