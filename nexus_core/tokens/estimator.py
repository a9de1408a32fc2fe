"""Estimates tokens from characters, with no tokeniser at hand.

English prose and source code have about 4 characters to a token. Two things have fewer: other scripts, whose characters
are weighed by script, and dense ASCII (JSON, base64, numbers), in which the places are counted where tokens begin.
The weights are fitted to `cl100k_base` and `o200k_base`, to whichever counts more, so that an estimate is seldom low;
for scripts that `o200k_base` packs well (Arabic, Cyrillic, Indian ones) it is two to three times its count.
"""

from __future__ import annotations

from math import ceil
from operator import mul
from typing import TYPE_CHECKING

from nexus_core.tokens.counter import TextCounter

if TYPE_CHECKING:
    from collections.abc import Iterable

CHARACTERS_PER_TOKEN = 4

_CHUNK = 2048
"""How much is judged at a time: a blob in a long text counts as a blob, a number in prose as prose."""
_TOLERANCE = 1.1
"""ASCII counts as dense where 4 characters to a token would be this much too low."""

_SCRIPTS = (
    (range(0xC2, 0xC3), 1.0),  # signs of Latin-1
    (range(0xC3, 0xCB), 2.0),  # letters with marks; the words around them are cut up more than English ones
    (range(0xCB, 0xCE), 1.0),  # marks
    (range(0xCE, 0xD0), 1.05),  # Greek
    (range(0xD0, 0xD2), 0.57),  # Cyrillic
    (range(0xD2, 0xD4), 2.0),  # its rarer letters
    (range(0xD4, 0xD8), 1.15),  # Armenian, Hebrew
    (range(0xD8, 0xDA), 0.85),  # Arabic
    (range(0xDA, 0xE0), 1.8),  # its rarer letters, Syriac
    (range(0xE0, 0xE2), 1.3),  # Indian scripts, Thai, Georgian; Vietnamese
    (range(0xE2, 0xE3), 1.0),  # dashes, quotes, arrows
    (range(0xE3, 0xE4), 1.0),  # kana
    (range(0xE4, 0xEA), 1.3),  # Chinese characters
    (range(0xEA, 0xEE), 1.3),  # Hangul
    (range(0xEE, 0xF0), 1.5),  # full-width forms
    (range(0xF0, 0xF5), 2.5),  # emoji
)
"""Tokens of a character by the first byte of its UTF-8."""

_CLASSES = "-lUdsnpz"
"""Nothing, lower-case letter, capital, digit, blank, line end, other sign, not ASCII: a byte's class is its place."""
_PAIRS = (
    (1.0, "sl sU nl nU dl dU nd ld Ud pd zd np lp Up dp zp ln Un dn sn zn"),  # a token begins
    (1.0, "sp"),
    (2.0, "sd"),  # two begin: a blank goes with a word, but not with a number
    (1 / 3, "dd"),  # a token has up to three digits
    (2.3, "lU"),  # letters of mixed case are no words
    (0.2, "UU"),
    (0.8, "ns"),
    (0.15, "ss"),
    (0.0, "pp"),
    (0.0, "pl pU"),
)
"""Tokens for each pair of neighbours of these classes."""
_LONE_SIGN = (("pp", "pl pU"), ("sp", "pl pU"))
"""A word takes the sign before it into its first token, unless that sign has company: pairs that follow each other."""


def _codes(shape: str) -> bytes:
    return bytes(map(_CLASSES.index, shape))


def _translation(groups: Iterable[Iterable[int]]) -> bytes:
    """A table that makes the members of the first group the byte 1, those of the second 2, and all others 0."""
    table = bytearray(256)
    for place, group in enumerate(groups, 1):
        for byte in group:
            table[byte] = place
    return bytes(table)


_LOWER, _DIGITS, _BLANKS = b"abcdefghijklmnopqrstuvwxyz", b"0123456789", b"\t\v\f \x1c\x1d\x1e\x1f"
_SIGNS = set(range(0x80)) - set(_LOWER + _LOWER.upper() + _DIGITS + _BLANKS + b"\r\n")
_TO_CLASS = _translation([_LOWER, _LOWER.upper(), _DIGITS, _BLANKS, b"\r\n", _SIGNS, range(0x80, 0x100)])
_WEIGHTS, _GROUPS = [weight for weight, _ in _PAIRS if weight], [group for _, group in _PAIRS]
_TO_PAIR_GROUP = _translation([first + 8 * second for first, second in map(_codes, group.split())] for group in _GROUPS)
_IN_NO_GROUP = bytes(pair for pair, place in enumerate(_TO_PAIR_GROUP) if not place)
_PLACES = range(1, len(_WEIGHTS) + 1)
_TO_SCRIPT = _translation(leads for leads, _ in _SCRIPTS)
_LINE_END = _codes("n")
_LONE = [bytes(_GROUPS.index(group) + 1 for group in pair) for pair in _LONE_SIGN]


def estimate(text: str) -> int:
    """About how many tokens a text has; 0 only for no text."""
    if len(text) <= _CHUNK:
        return ceil(_estimate(text))
    return ceil(sum(_estimate(text[start : start + _CHUNK]) for start in range(0, len(text), _CHUNK)))


def _estimate(chunk: str) -> float:
    data = chunk.encode("utf-8", "surrogatepass")
    others, foreign = 0, 0.0
    if not chunk.isascii():
        scripts = data.translate(_TO_SCRIPT)
        others = len(data) - scripts.count(0)
        foreign = sum(weight * scripts.count(place) for place, (_, weight) in enumerate(_SCRIPTS, 1))
    plain = (len(chunk) - others) / CHARACTERS_PER_TOKEN
    dense = _beginnings(data)
    return foreign + (dense if dense > plain * _TOLERANCE else plain)


def _beginnings(data: bytes) -> float:
    """About how many tokens begin among the ASCII characters."""
    classes = _LINE_END + data.translate(_TO_CLASS)
    # As one long number, so that a shift by five bits puts every class, which has three, above the one before it.
    number = int.from_bytes(classes, "little")
    pairs = (number + (number >> 5)).to_bytes(len(classes), "little")
    # Most pairs are in no group, and none of those comes before the word of a lone sign.
    groups = pairs.translate(_TO_PAIR_GROUP, _IN_NO_GROUP)
    found: float = sum(map(mul, _WEIGHTS, map(groups.count, _PLACES)))
    return found + sum(map(groups.count, _LONE))


class SimpleTokenCounter(TextCounter):
    """Estimates, and needs nothing to do so: about 4 characters to a token, fewer for other scripts and dense text."""

    name = "estimate"
    exact = False

    def count(self, text: str) -> int:
        """About how many tokens a text has."""
        return estimate(text)

    def try_count(self, text: str) -> None:  # noqa: ARG002 - it has no tokeniser to ask
        """Always None: there is no tokeniser."""
        return
