"""What a model calls the tools of servers: `mcp__<server>__<tool>`, as every provider accepts it."""

from __future__ import annotations

import hashlib
import re

PREFIX = "mcp"
LONGEST = 64
_SEPARATOR = "__"
_FOREIGN = re.compile("[^A-Za-z0-9_-]")
_DIGITS = 8


def tool_name(server: str, tool: str) -> str:
    """The name of a tool; never the same for two tools.

    Letters, digits, `_` and `-` stay, anything else becomes `_`. Where that loses something, where the name could be
    taken apart in two ways, or where it is too long, it ends in a few digits of a digest.
    """
    name = _SEPARATOR.join((PREFIX, _FOREIGN.sub("_", server), _FOREIGN.sub("_", tool)))
    is_plain = name == _SEPARATOR.join((PREFIX, server, tool))
    is_clear = _SEPARATOR not in server and not server.endswith("_") and not tool.startswith("_")
    if is_plain and is_clear and len(name) <= LONGEST and server and tool:
        return name
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{name[: LONGEST - _DIGITS - 1]}_{digest}"
