"""MCP servers as settings name them: many shapes become one form.

normalising.py   the settings of a file with its servers in that form, and what was not used; the way in
shapes.py        a list of servers, or an object that has them by name
entry.py         one server
fields.py        the names its fields go by in the files of different tools, and what their values may be
references.py    references in the place of secrets that are written out
unheeded.py      what other tools write about a server and Nexus does not do, and why

All of it is imported only where there are servers.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SETTING = "mcp_servers"
ALIAS = "mcpServers"
"""What most other tools call the setting."""


def has_servers(settings: Mapping[str, object]) -> bool:
    """Whether the settings of a file say anything about servers."""
    return ALIAS in settings or settings.get(SETTING, []) != []
