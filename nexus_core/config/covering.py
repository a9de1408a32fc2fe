"""A text with its words covered, so that a broken file with passwords in it can be shown nevertheless."""

from __future__ import annotations

import re

_COVER = "·"
_KNOWN = frozenset(
    {"servers", "name", "type", "command", "args", "env", "cwd", "url", "headers", "enabled", "true", "false", "null"}
)
"""What stays, where it is all of a text or a word: it says what a line is about, and is no secret."""
_PIECE = re.compile(
    r"""(?P<text>"(?:[^"\\\r\n]|\\[^\r\n])*") | (?P<open>"[^\r\n]*) | (?P<comment>//[^\r\n]*) | [^\s{}\[\],:"]+""",
    re.VERBOSE,
)


def cover(text: str) -> str:
    """The text with everything covered but brackets, commas, colons, quotation marks, blanks, and names of fields.

    Every character keeps its place.
    """
    return _PIECE.sub(_covered, text)


def _covered(match: re.Match[str]) -> str:
    piece = match[0]
    if piece.removeprefix('"').removesuffix('"') in _KNOWN:
        return piece
    if match["text"] is not None:
        return f'"{_COVER * (len(piece) - 2)}"'
    return f'"{_COVER * (len(piece) - 1)}' if match["open"] is not None else _COVER * len(piece)
