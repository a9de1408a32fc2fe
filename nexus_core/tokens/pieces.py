"""Cuts long texts where it does not change the count."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_BYTES = 64 * 1024
"""Longer texts make some tokenisers fail, or take quadratic time."""

# No token of the GPT family reaches across these: a blank after something, a line end after a word, the border between
# letters and digits, a full stop after Chinese, Japanese or Korean.
_BORDER = (
    r"(?<=\S)(?= )|(?<=[A-Za-z0-9])(?=[\r\n]|(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z])"
    r"|(?<=[\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3])(?=[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f])"
)
_WINDOWS = (256, 4096)
"""How far back a border is looked for, before all of a piece is."""


def cut_pieces(text: str, max_bytes: int = PIECE_BYTES) -> Iterator[str]:
    """Pieces of a text, together the text, each of at most `max_bytes` in UTF-8, but never less than a character.

    Counting them one by one gives the count of the whole, unless a piece has no place where a token surely ends.
    """
    # A multiple of three, because digits are taken by threes: so a long number too may be cut anywhere.
    limit = max(max_bytes // (1 if text.isascii() else 4) // 3 * 3, 1)
    start = 0
    while len(text) - start > limit:
        end = _last_border(text, start, start + limit)
        yield text[start:end]
        start = end
    yield text[start:]


def _last_border(text: str, start: int, end: int) -> int:
    borders = re.compile(_BORDER)  # here, because most texts are short
    for window in (*_WINDOWS, end - start):
        place = 0
        for border in borders.finditer(text, max(start + 1, end - window), end + 1):
            place = border.start()
        if place:
            return place
    return end
