"""Answers to numbered menus at a terminal."""

from __future__ import annotations

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
