"""Says so where a server of a project takes the place of another one, although it may not be started itself."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from nexus_core.plugin import pointer_to

if TYPE_CHECKING:
    from nexus_core.plugin import MCPServerWithOrigin


def shadow_of(server: MCPServerWithOrigin) -> str:
    """What a person is told about a server that takes the place of another; "" if it does not."""
    if server.shadows is None:
        return ""
    name = server.config.name
    whose = "your own" if server.shadows.layer == "global" else "that"
    command = f"nexus trust deny {quote(pointer_to('/mcp_servers', name))}"
    return (
        f"server {name!r} takes the place of {whose} in {server.shadows}, which is off until you decide; "
        f"`{command}` brings it back"
    )
