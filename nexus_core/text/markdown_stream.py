"""Markdown on a terminal that is formatted while it arrives in pieces."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from nexus_core.text.layout import measure_width
from nexus_core.text.markdown import format_markdown
from nexus_core.text.safety import visible
from nexus_core.text.text_stream import TextStream

if TYPE_CHECKING:
    from collections.abc import Callable

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_STYLE = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\\\")
_MIN_REDRAW_SECONDS = 0.05
_REDRAW_SHARE = 5
"""A block is drawn again after this many times as long as drawing it took, so that a long one stays cheap."""


class MarkdownStream(TextStream):
    """Markdown in pieces on a terminal: finished blocks stay, and the last block is drawn again as it grows.

    Args:
        write: Writes to the terminal, and flushes it.
        measure: Returns the columns and lines of the terminal.
        color: True to use styles.
        clock: Returns seconds.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        measure: Callable[[], tuple[int, int]],
        *,
        color: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(write)
        self._measure = measure
        self._color = color
        self._clock = clock
        self._block = ""
        self._drawn = 0  # lines of the unfinished block on the screen
        self._next = 0.0  # when to draw it again
        self._has_blocks = False

    def close(self) -> None:
        """Print the last block. The stream can be used again."""
        super().close()
        self._finish(self._block)
        self._block, self._has_blocks, self._next = "", False, 0.0

    def _print(self, text: str) -> None:
        self._block += text
        while (end := find_block_end(self._block)) is not None:
            self._finish(self._block[:end])
            self._block = self._block[end:]
        self._last = ""  # blocks end their lines themselves
        if self._block.strip() and self._clock() >= self._next:
            started = self._clock()
            self._draw()
            taken = self._clock() - started
            self._next = started + taken + max(_MIN_REDRAW_SECONDS, taken * _REDRAW_SHARE)

    def _finish(self, block: str) -> None:
        """Replace what is drawn by a finished block."""
        if block.strip():
            lines = self._format(block)
            self._write(self._erase() + "".join(f"{line}\n" for line in lines))
            self._has_blocks = True
        elif self._drawn:
            self._write(self._erase())

    def _draw(self) -> None:
        """Draw the unfinished block; of a long one only its end, because what has scrolled away cannot be erased."""
        columns, rows = self._measure()
        lines: list[str] = []
        height = drawn = 0
        for line in reversed(self._format(self._block)):
            # A line that could not be formatted may be longer than the terminal is wide.
            height += max(1, -(-measure_width(_STYLE.sub("", line)) // columns))
            if lines and height > rows - 2:
                break
            lines.insert(0, line)
            drawn = height
        self._write(self._erase() + "\n".join(lines))
        self._drawn = drawn

    def _format(self, block: str) -> list[str]:
        width, _ = self._measure()
        # One column stays free: a terminal would wrap a full line when the cursor is behind it.
        lines = format_markdown(visible(block.strip("\n")), width - 1, color=self._color)
        while lines and not lines[0].strip():  # rich puts empty lines around lists and code
            del lines[0]
        while lines and not lines[-1].strip():
            del lines[-1]
        return ["", *lines] if self._has_blocks else lines

    def _erase(self) -> str:
        if not self._drawn:
            return ""
        up = f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else ""
        self._drawn = 0
        return f"{up}\r\x1b[J"


def find_block_end(text: str) -> int | None:
    """Return where the first block of a Markdown text ends; None while more text may belong to it."""
    fence = ""
    is_list = False
    is_blank = is_started = False
    start = 0
    while (end := text.find("\n", start)) != -1:
        line = text[start:end]
        if fence:
            if _closes_fence(line, fence):
                fence = ""
                if not is_list:
                    return end + 1
        elif not line.strip():
            is_blank = is_started
        else:
            if is_blank and _begins_block(line, is_list=is_list):
                return start
            if not is_started:
                is_started, is_list = True, bool(_LIST_ITEM.match(line))
            is_blank = False
            if found := _FENCE.match(line):
                fence = found[1]
        start = end + 1
    rest = text[start:]
    is_known = bool(rest.strip()) and (not is_list or len(rest) > len("000000000. "))
    return start if is_blank and not fence and is_known and _begins_block(rest, is_list=is_list) else None


def _begins_block(line: str, *, is_list: bool) -> bool:
    """True if a line behind an empty one begins a new block. Indented lines and further items belong to a list."""
    return not is_list or not (line[0] in " \t" or _LIST_ITEM.match(line))


def _closes_fence(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and not stripped.strip(fence[0])
