"""Which lines of a settings file no error shows, because they may hold a password or a key.

Those about MCP servers, where it may be any of them; those that name the variable of a key, where some put the key
itself; and whatever looks like a secret.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nexus_core.config.json_parser import JsonSyntaxError, parse_json
from nexus_core.text.redaction import redact

if TYPE_CHECKING:
    from nexus_core.config.lines import Lines, Position

_KEYS = ("/mcp_servers", "/mcpServers")
# With zero bytes between the letters, because a file in UTF-16 is shown too when it is refused.
_MENTION = re.compile("\0*".join("mcp") + "[\0_]*" + "\0*".join("servers"), re.IGNORECASE)
_VARIABLE = re.compile(r"key_env\b", re.IGNORECASE)
_BESIDE = 500  # characters on either side of a position; far fewer are shown
_LONGEST = 100_000  # characters that are parsed only to show more of a file


def secret_lines_around(lines: Lines, position: Position) -> frozenset[int]:
    """Those of the line of a position and its two neighbours that are not shown."""
    servers = secret_lines(lines)
    around = range(position.line - 1, position.line + 2)
    return frozenset(number for number in around if number in servers or _is_secret(lines, number, position))


def _is_secret(lines: Lines, number: int, position: Position) -> bool:
    """Whether there is a secret in what would be shown of a line."""
    start = max(0, position.column - _BESIDE) if number == position.line else 0
    text = (lines.line(number) or "")[start : start + 2 * _BESIDE]
    return bool(_VARIABLE.search(text) or redact(text).counts)


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
