"""What a persona is called."""

from __future__ import annotations

from nexus_core.plugin import strip_hidden, visible_line

LONGEST = 64  # characters of a name
LINES = 40  # of a text in which the name is looked for
_DECORATION = " \t*_`#>-"


def persona_id(text: str) -> str:
    """The name in a line like `- **Name:** Atlas`; "" where there is none."""
    for line in text.split("\n", LINES)[:LINES]:
        key, _, value = line.partition(":")
        name = value.strip(_DECORATION)
        if key.strip(_DECORATION).lower() == "name" and name:
            return visible_line(strip_hidden(name))[:LONGEST]
    return ""
