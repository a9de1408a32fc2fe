"""Names that sort by the time they were made: 10 characters of time and 16 of chance, as ULIDs are written."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_AT_ONCE = 256
"""How much chance is asked for at a time, where many names are made."""
_OF_BYTES = _ALPHABET.encode() * (256 // len(_ALPHABET))
"""A character for each byte, every one for as many."""
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)


def new_id(created: int | None = None) -> str:
    """26 characters that nobody else has; of two milliseconds, the earlier sorts first.

    Args:
        created: When it was made, in milliseconds since 1970; now, if it is not said.
    """
    number = (now() if created is None else max(created, 0) % (1 << 50)) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


def new_ids() -> Iterator[str]:
    """Any number of such names, all of this moment."""
    moment = new_id()[:10]
    while True:
        chance = os.urandom(16 * _AT_ONCE).translate(_OF_BYTES).decode()
        for at in range(0, len(chance), 16):
            yield moment + chance[at : at + 16]


def now() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
