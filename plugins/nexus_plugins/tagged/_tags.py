"""The blocks, the elements in them, and how a text is kept from looking like either."""

from __future__ import annotations

import json
import re

from nexus_core.plugin import escape_markers, strip_hidden, visible_line

CAPABILITIES = "[CAPABILITIES]"
SHARED_MEMORY = "[SHARED_MEMORY count={count}]"
FRIENDS_INFO = "[FRIENDS_INFO]"
THIS_MOMENT = "[THIS_MOMENT]"

HUMAN, NEXUS = "Human", "Nexus"
TIME_UNKNOWN = "time unknown"

INDENT = "  "

MEMORY_LINE = re.compile(r"\[[^\[\]]*\](?:human|nexus)[(:]")
"""How a line of the memory begins, as `escape_markers` compares; a text in the memory must not have such a line."""


def block(tag: str, heading: str, body: str) -> str:
    """A block of the format."""
    return f"{tag}\n{heading}\n\n{body}"


def element(name: str, text: str) -> str:
    """A text between the two tags of an element; it cannot close it."""
    return f"<{name}>\n{escape_markers(text)}\n</{name}>"


def indented(text: str) -> str:
    """A text of which every line but the first is indented, whatever ends the lines."""
    return INDENT.join(text.splitlines(keepends=True))


def outdented(text: str) -> str:
    """What `indented` was given."""
    first, *others = text.splitlines(keepends=True) or [""]
    return first + "".join(line.removeprefix(INDENT) for line in others)


def plain_name(name: str) -> str:
    """A name as it is where it is a word; else quoted as in JSON, so that it ends nothing it stands in."""
    if name.isprintable() and not re.search(r"""[\s"'`\\:,()]""", name) and name:
        return name
    return json.dumps(name).replace("(", "\\u0028").replace(")", "\\u0029")


def one_line(value: object) -> str:
    """Any value on one line, without what nobody sees: a text as it is, everything else as JSON."""
    return visible_line(strip_hidden(value if isinstance(value, str) else as_json(value)))


def as_json(value: object) -> str:
    """JSON for reading; what JSON has no word for, as Python shows it."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(value)
