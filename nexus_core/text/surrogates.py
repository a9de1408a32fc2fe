"""Halves of characters, which no UTF-8 can hold: what cutting a text amid an emoji leaves."""

from __future__ import annotations


def join_halves(text: str) -> str:
    """`text` with each two halves of a character made one, and a half alone made U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
