"""Text that is printed while it arrives in pieces, as a model's reply does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.text.safety import visible

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_HELD = 32
"""Characters at the end of a piece that the next piece may change: half of a line end, or characters that join."""


class TextStream:
    """Plain text in pieces. Control characters and hidden characters are escaped.

    Args:
        write: Writes to the output, and flushes it.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._held = ""
        self._last = ""

    def write(self, piece: str) -> None:
        """Print a piece, as far as the next one cannot change how it is shown."""
        text = (self._held + piece).replace("\r\n", "\n")
        end = len(text)
        while end > max(len(text) - _MAX_HELD, 0) and text[end - 1] != "\n" and not " " <= text[end - 1] <= "~":
            end -= 1
        self._held = text[end:]
        self._print(text[:end])

    def close(self) -> None:
        """Print the rest, and end the line. The stream can be used again."""
        held, self._held = self._held, ""
        self._print(held)
        if self._last not in ("", "\n"):
            self._write("\n")
        self._last = ""

    def _print(self, text: str) -> None:
        if text:
            self._write(visible(text))
            self._last = text[-1]
