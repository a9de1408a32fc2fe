"""Numbered menus at a terminal: paths in their rows, and answers."""

from __future__ import annotations

import os

from nexus_core.files.places import user_home
from nexus_core.text.layout import measure_width, shorten_to_width
from nexus_core.text.safety import shorten, visible_line

_MAX_SHOWN_CHARACTERS = 40
_MAX_DIGITS = 9
"""More than any menu has numbers; Python converts none of thousands of digits."""


def is_menu_number(answer: str, last: int) -> bool:
    """Return True if an answer is a number from 1 to the last of a menu."""
    is_number = answer.isascii() and answer.isdigit() and len(answer) <= _MAX_DIGITS
    return is_number and 1 <= int(answer) <= last


def describe_refused_answer(answer: str, last: int) -> str:
    """Return why an answer to a menu is refused."""
    shown = visible_line(repr(shorten(answer, _MAX_SHOWN_CHARACTERS)))
    return f"{shown} is not a number from 1 to {last}."


def shorten_home(path: str) -> str:
    """Return a path with `~` for the user's directory."""
    home = str(user_home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(home + os.sep) else path


def shorten_path(path: str, width: int) -> str:
    """Return the last parts of a path that fit a number of cells, after an ellipsis if it is longer."""
    if measure_width(path) <= width:
        return path
    parts = path.split("/")[1:]
    end = f"…/{'/'.join(parts)}"
    while len(parts) > 1 and measure_width(end) > width:
        parts = parts[1:]
        end = f"…/{'/'.join(parts)}"
    return shorten_to_width(end, width)
