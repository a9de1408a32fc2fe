"""Which lines of a settings file no error shows: those about MCP servers, because any of them may hold a password."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nexus_core.config.json_parser import JsonSyntaxError, parse_json

if TYPE_CHECKING:
    from nexus_core.config.lines import Lines

_KEYS = ("/mcp_servers", "/mcpServers")
# With zero bytes between the letters, because a file in UTF-16 is shown too when it is refused.
_MENTION = re.compile("\0*".join("mcp") + "[\0_]*" + "\0*".join("servers"), re.IGNORECASE)
_LONGEST = 100_000  # characters that are parsed only to show more of a file


def secret_lines(lines: Lines) -> range:
    """The numbers of the lines that the servers take; where that cannot be told, of all from their first mention on."""
    mention = _MENTION.search(lines.text)
    if mention is None:
        return range(0)
    offsets = _servers(lines.text) or (mention.start(), len(lines.text))
    first, last = map(lines.position, offsets)
    return range(first.line, last.line + 1)


def _servers(text: str) -> tuple[int, int] | None:
    """From which offset to which a JSON text is about servers; None if it is no JSON or has none."""
    if len(text) > _LONGEST:
        return None
    try:
        document = parse_json(text)
    except JsonSyntaxError:
        return None
    spans = [span for key in _KEYS if (span := document.span(key))]
    return (min(span.key for span in spans), max(span.end for span in spans)) if spans else None
