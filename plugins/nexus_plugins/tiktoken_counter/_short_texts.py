"""Exact counts of short ASCII texts, without a tokenizer.

A tokenizer takes tens of milliseconds to start, which is most of the time of a command that counts a sentence. Here
nothing is built: an index of the ranks is a hash table on disk, and a token is looked up where it is. The tokens are
those of the tokenizer; a test compares them.

The index has 4 bytes a slot: the offset of a token in the ranks plus one, 0 for an empty slot. A token is in the first
slot from its CRC-32 on that is not taken. Only ASCII tokens are in it.
"""

from __future__ import annotations

import re
from binascii import crc32
from functools import cache
from itertools import pairwise
from sys import byteorder
from typing import TYPE_CHECKING

from nexus_plugins.tiktoken_counter._tables import RANK_SEPARATOR, load_tables, read_index, read_ranks

if TYPE_CHECKING:
    from nexus_plugins.tiktoken_counter._tables import RankTable

MAX_CHARACTERS = 20_000
"""Characters that are counted here by a process; a tokenizer counts more in less time, its start included."""
MAX_PIECE_CHARACTERS = 200
"""Longer pieces, such as a line of dashes, need a tokenizer's better algorithm."""

_ASCII_CLASSES = {"L": "A-Za-z", "Ll": "a-z", "Lm": "", "Lo": "", "Lt": "", "Lu": "A-Z", "M": "", "N": "0-9"}
"""Unicode classes of tiktoken's patterns, and what they are in ASCII."""


class ShortTextEncoder:
    """Splits short ASCII texts into tokens.

    Args:
        table: The table.

    Raises:
        FileError: Its ranks or its index cannot be read.
    """

    def __init__(self, table: RankTable) -> None:
        self._ranks = read_ranks(table) + RANK_SEPARATOR  # each token ends with one
        self._slots = memoryview(read_index(table)).cast("I")
        self._mask = len(self._slots) - 1
        self._split = re.compile(translate_pattern(table.pattern), re.ASCII).findall
        self._lengths: dict[bytes, int] = {}
        self._remaining = MAX_CHARACTERS

    def count_within_limit(self, text: str) -> int | None:
        """Return the number of tokens in a text, or None once the process needs a tokenizer, for this text or before.

        All counters of a process share the limit: where one has started a tokenizer, the others use it.
        """
        self._remaining -= len(text)
        tokens = self.count(text) if self._remaining >= 0 and text.isascii() else None
        if tokens is None:
            self._remaining = 0
        return tokens

    def count(self, text: str) -> int | None:
        """Return the number of tokens in an ASCII text, or None if it has a piece that is too long."""
        found = 0
        for piece in self._split(text):
            if len(piece) > MAX_PIECE_CHARACTERS:
                return None
            token = piece.encode()
            length = self._lengths.get(token)
            if length is None:
                length = self._lengths[token] = len(self.encode_piece(token))
            found += length
        return found

    def encode_piece(self, piece: bytes) -> list[bytes]:
        """Return the tokens of a piece: the neighbors with the lowest rank are merged first."""
        if self._find(piece) is not None:
            return [piece]
        parts = [piece[at : at + 1] for at in range(len(piece))]
        ranks = [self._find(first + second) for first, second in pairwise(parts)]
        while True:
            best, at = min(((rank, at) for at, rank in enumerate(ranks) if rank is not None), default=(None, 0))
            if best is None:
                return parts
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
            del ranks[at]
            if at:
                ranks[at - 1] = self._find(parts[at - 1] + parts[at])
            if at < len(ranks):
                ranks[at] = self._find(parts[at] + parts[at + 1])

    def _find(self, token: bytes) -> int | None:
        """Return a number that orders tokens as their ranks do: where it is. None if it is no token."""
        slot = crc32(token) & self._mask
        wanted = token + RANK_SEPARATOR
        while offset := self._slots[slot]:
            if self._ranks.startswith(wanted, offset - 1):
                return offset
            slot = (slot + 1) & self._mask
        return None


def translate_pattern(pattern: str) -> str:
    """Return a pattern of tiktoken for Python and ASCII texts."""
    translated: list[str] = []
    in_class = False
    for found in re.finditer(r"\\p\{(\w+)\}|\\.|.", pattern):
        text = found.group()
        if found[1]:
            members = _ASCII_CLASSES[found[1]]
            text = members if in_class else f"[{members}]"
        elif text == "$":
            text = r"\Z"  # in Python, $ also matches before the last line break
        in_class = text == "[" or (in_class and text != "]")
        translated.append(text)
    return "".join(translated)


@cache
def load_short_text_encoder(table_name: str) -> ShortTextEncoder:
    """Return the encoder of a table, loaded once per process.

    Raises:
        FileError: The ranks or the index cannot be read.
    """
    return ShortTextEncoder(load_tables()[table_name])


def build_index(ranks: bytes) -> bytes:
    """Return the index of a table's ranks, for `scripts/build_ranks.py`."""
    from array import array

    offsets: dict[bytes, int] = {}
    offset = 0
    for token in ranks.split(RANK_SEPARATOR):
        if token and token.isascii():
            offsets[token] = offset
        offset += len(token) + 1
    size = 1
    while size < 2 * len(offsets):
        size *= 2
    slots = array("I", bytes(4 * size))
    for token, start in offsets.items():
        slot = crc32(token) & (size - 1)
        while slots[slot]:
            slot = (slot + 1) & (size - 1)
        slots[slot] = start + 1
    if byteorder == "big":
        slots.byteswap()
    return slots.tobytes()
