"""Finds `@path` in Markdown, outside of code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

# All of these take linear time: no repetition can match the same text in two ways.
_TOKEN = re.compile(r"(?<!\S)@((?:[\w./~-]|\\ )+)")
_LINE = re.compile(r"[^\n]+\n?|\n")
# A fence may stand in a quotation or a list.
_FENCE = re.compile(r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*(?:(`{3,})[^`\n]*|(~{3,})[^\n]*)$", re.MULTILINE)
_FENCE_END = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*$", re.MULTILINE)
# Code in a line cannot begin in one of these and end in the next.
_BLOCK = re.compile(r"[ \t]*(?:$|[-*+][ \t]|\d{1,9}[.)][ \t]|>|(#{1,6}[ \t]))", re.MULTILINE)
_BACKTICKS = re.compile(r"`+")


class Token(NamedTuple):
    """An import: the part of the text that it takes up, its whole line if it stands alone, and the path as meant."""

    start: int
    end: int
    path: str


def find_tokens(text: str) -> Iterator[Token]:
    """Everything in a text that has the form of an import, in order; whether there is such a file is not asked."""
    regions = _code_regions(text)
    region = next(regions, None)
    for line in _LINE.finditer(text):
        alone = line[0].strip()
        for match in _TOKEN.finditer(text, line.start(), line.end()):
            while region and region[1] <= match.start():
                region = next(regions, None)
            if region and region[0] <= match.start():
                continue
            path = match[1].rstrip(".")  # the end of a sentence
            if not path:
                continue
            start, end = match.start(), match.start() + 1 + len(path)
            if text[start:end] == alone:
                start, end = line.start(), line.end() - line[0].endswith("\n")
            yield Token(start, end, path.replace("\\ ", " "))


def _code_regions(text: str) -> Iterator[tuple[int, int]]:
    """Where code begins and ends, in order: fenced blocks, and spans between backticks."""
    fence, opened, block = "", 0, 0
    for line in _LINE.finditer(text):
        start, end = line.span()
        if fence:
            closing = _FENCE_END.match(text, start, end)
            if closing and closing[1].startswith(fence):
                yield opened, end
                fence, block = "", end
        elif opening := _FENCE.match(text, start, end):
            yield from _code_spans(text, block, start)
            fence, opened = opening[1] or opening[2], start
        elif beginning := _BLOCK.match(text, start, end):
            yield from _code_spans(text, block, start)
            block = start
            if beginning[1]:  # a heading is a block by itself
                yield from _code_spans(text, start, end)
                block = end
    if fence:
        yield opened, len(text)
    else:
        yield from _code_spans(text, block, len(text))


def _code_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Code between two runs of equally many backticks; a run without a counterpart means itself."""
    runs = [match.span() for match in _BACKTICKS.finditer(text, start, end)]
    closing: dict[int, int] = {}
    partner: dict[int, int] = {}
    for index in range(len(runs) - 1, -1, -1):
        length = runs[index][1] - runs[index][0]
        if length in closing:
            partner[index] = closing[length]
        closing[length] = index
    index = 0
    while index < len(runs):
        if index in partner:
            yield runs[index][0], runs[partner[index]][1]
            index = partner[index]
        index += 1
