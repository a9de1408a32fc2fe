"""The base class of token counters, and estimates made without a tokenizer.

English prose and source code have about 4 characters per token. Two kinds of text have fewer: other scripts, whose
characters have a weight per script, and dense ASCII (JSON, base64, numbers, random letters and signs), in which the
estimator counts the positions where tokens begin. The weights are fitted to `cl100k_base` and `o200k_base`, to the one
that counts more, so that an estimate is seldom low; for scripts that `o200k_base` packs well (Arabic, Cyrillic, Indian
ones) it is two to six times its count. Languages in plain Latin letters count as English, which is too low for some
(Swahili, Welsh).
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import ceil
from operator import mul
from typing import TYPE_CHECKING

from nexus_core.types.budget import TokenCount

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.types.messages import Message


class TextCounter:
    """A counter that counts messages text by text. Derive from it, and define `name`, `exact` and `count`.

    Attributes:
        name: The name of the tokenizer, by which counts are cached. Equal names give equal counts.
        exact: True if it counts as the model does.
    """

    name: str
    exact: bool

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        raise NotImplementedError(f"{type(self).__name__} does not count texts; define count(text)")

    def try_count(self, text: str) -> int | None:
        """Return the tokens of a text, or None if its tokenizer fails and `count` estimates."""
        return self.count(text)

    def count_many(self, texts: Iterable[str]) -> list[int]:
        """Return the tokens of each text."""
        return [self.count(text) for text in texts]

    def count_messages(self, messages: Sequence[Message]) -> int:
        """Return the tokens of messages, with an overhead of 4 each."""
        from nexus_core.tokens.messages import count_messages

        return count_messages(self, messages)

    def measure(self, text: str) -> TokenCount:
        """Return the tokens of a text, and the basis of that number."""
        tokens = self.try_count(text)
        if tokens is None:
            return TokenCount(self.count(text), "estimated")
        return TokenCount(tokens, "exact" if self.exact else "estimated")


CHARACTERS_PER_TOKEN = 4

_CHUNK_CHARACTERS = 2048
"""Characters estimated at a time: a blob in a long text counts as a blob, a number in prose as prose."""
_TOLERANCE = 1.06
"""ASCII counts as dense if 4 characters per token would be too low by this factor."""

_SCRIPTS = (
    (range(0xC2, 0xC3), 1.0),  # signs of Latin-1
    (range(0xC3, 0xCB), 2.0),  # letters with marks; the words around them are cut up more than English ones
    (range(0xCB, 0xCE), 2.0),  # marks
    (range(0xCE, 0xD0), 1.05),  # Greek
    (range(0xD0, 0xD2), 0.63),  # Cyrillic
    (range(0xD2, 0xD4), 2.0),  # its rarer letters
    (range(0xD4, 0xD6), 2.1),  # Armenian
    (range(0xD6, 0xD8), 1.3),  # Hebrew
    (range(0xD8, 0xDA), 0.85),  # Arabic
    (range(0xDA, 0xDC), 1.8),  # its rarer letters
    (range(0xDC, 0xE0), 2.2),  # Syriac, Thaana, N'Ko
    (range(0xF0, 0xF5), 4.1),  # beyond the basic plane: ancient scripts, rare Chinese characters
)
"""Tokens of a character by the first byte of its UTF-8; those of three bytes are in `_PAGES`."""
_RARE = 3.1
_PAGES = (
    (range(0x09, 0x0A), 1.3),  # Devanagari, Bengali
    (range(0x0A, 0x0B), 1.95),  # Gurmukhi, Gujarati
    (range(0x0B, 0x0C), 1.6),  # Tamil
    (range(0x0C, 0x0D), 2.0),  # Telugu, Kannada
    (range(0x0E, 0x0F), 1.3),  # Thai
    (range(0x0D, 0x11), 2.15),  # Malayalam, Sinhala; Tibetan, Myanmar, Georgian
    (range(0x17, 0x18), 1.95),  # Khmer
    (range(0x1E, 0x1F), 1.3),  # Latin letters with two marks, as in Vietnamese
    (range(0x1F, 0x20), 2.5),  # Greek letters with ancient marks
    (range(0x20, 0x21), 1.0),  # dashes, quotes
    (range(0x21, 0x23), 1.9),  # arrows, mathematics
    (range(0x23, 0x24), 2.9),  # technical signs, as in APL
    (range(0x24, 0x28), 1.8),  # boxes, signs, older emoji
    (range(0x29, 0x2C), 2.0),  # more arrows and mathematics
    (range(0x30, 0x31), 1.0),  # kana
    (range(0x4E, 0xA0), 1.3),  # Chinese characters
    (range(0xAC, 0xD8), 1.3),  # Hangul
    (range(0xFE, 0xFF), 1.5),  # selectors of forms
    (range(0xFF, 0x100), 2.0),  # full-width forms
    (range(0x08, 0x100), _RARE),  # all others, of which each byte is a token: Amharic, Cherokee, Mongolian, Yi ...
)
"""Tokens of a character of three bytes by its code, in steps of 256; the first row that has it counts."""
_BLOCKS = (
    (b"\xe0\xa6", 0.25),  # Bengali
    (b"\xe0\xa7", 0.25),
    (b"\xe0\xac", 1.35),  # Oriya
    (b"\xe0\xad", 1.35),
    (b"\xe0\xba", 0.9),  # Lao
    (b"\xe0\xbb", 0.9),
    (b"\xe2\x80\x8d", 1.4),  # joiners between emoji
    (b"\xf0\x9d", -1.1),  # mathematical letters
    (b"\xf0\x9f", -1.35),  # emoji
)
"""Tokens added for a character whose UTF-8 begins with these bytes."""
_CAPITALS = (("[\u0400-\u042f]", 0.55), ("[\u0386-\u03ab]", 0.9))
"""Tokens added for a Cyrillic or Greek capital: words in capitals are split more."""
_CAPITAL_LEADS = bytes(range(0xCE, 0xD2))

_CLASSES = "-lUdsnpz"
"""Nothing, lower-case letter, capital, digit, blank, line end, other sign, not ASCII: a byte's class is its index."""
_PAIRS = (
    (1.0, "sl sU nl nU dl dU nd ld Ud pd zd np lp Up dp zp ln Un dn sn zn"),  # a token begins
    (1.0, "sp"),
    (2.0, "sd"),  # two begin: a blank joins a word, but not a number
    (1 / 3, "dd"),  # a token has up to three digits
    (2.3, "lU"),  # letters of mixed case are not words
    (0.2, "UU"),
    (1.0, "ns"),
    (0.15, "ss"),
    (0.27, "pp"),
    (0.0, "pl pU"),
)
"""Tokens for each pair of neighbours of these classes."""
_LONE_SIGN = (("pp", "pl pU"), ("sp", "pl pU"))
"""A word and the single sign before it share a token; more signs do not: pairs that follow each other."""


_RANDOM_LOWER, _RANDOM_CAPITALS, _RANDOM_SIGNS = 0.5, 0.37, 0.95
"""Additional tokens of random letters and signs: per lower-case letter, two capitals, two different signs."""
_VOWELS = 0.24, 0.28
"""Words have a higher share of vowels than this (lower-case, capitals), random letters a lower one."""
_FEW = 3
_CONTROL_CHARACTERS, _CONTROL = bytes([*range(9), *range(0x0E, 0x1C), 0x7F]), 1.15
"""Control characters, and tokens added for each: they join no other sign."""
_BACKSLASH = 0.3
"""Tokens added for a backslash: the words behind it, as in LaTeX, are split more."""
_MAX_SIGN_SHARE = 0.25
"""Up to this share of pairs of different signs, they are common ones (`":"`, `});`) that are one token each."""


def _encode_classes(shape: str) -> bytes:
    return bytes(map(_CLASSES.index, shape))


def _build_translation(groups: Iterable[Iterable[int]]) -> bytes:
    """Return a table that maps members of the first group to the byte 1, of the second to 2, and all others to 0."""
    table = bytearray(256)
    for place, group in enumerate(groups, 1):
        for byte in group:
            table[byte] = place
    return bytes(table)


_LOWER, _DIGITS, _BLANKS = b"abcdefghijklmnopqrstuvwxyz", b"0123456789", b"\t\v\f \x1c\x1d\x1e\x1f"
_SIGNS = set(range(0x80)) - set(_LOWER + _LOWER.upper() + _DIGITS + _BLANKS + b"\r\n")
_TO_CLASS = _build_translation([_LOWER, _LOWER.upper(), _DIGITS, _BLANKS, b"\r\n", _SIGNS, range(0x80, 0x100)])
_WEIGHTS, _GROUPS = [weight for weight, _ in _PAIRS if weight], [group for _, group in _PAIRS]
_TO_PAIR_GROUP = _build_translation(
    [first + 8 * second for first, second in map(_encode_classes, group.split())] for group in _GROUPS
)
_IN_NO_GROUP = bytes(pair for pair, place in enumerate(_TO_PAIR_GROUP) if not place)
_PLACES = range(1, len(_WEIGHTS) + 1)
_TO_SCRIPT = _build_translation(leads for leads, _ in _SCRIPTS)
_BEYOND = len(_SCRIPTS)
_TO_PAGE = _build_translation(reversed([pages for pages, _ in _PAGES]))
_PAGE_WEIGHTS = [weight for _, weight in reversed(_PAGES)]
_THREE_BYTES = bytes(range(0xE0, 0xF0))
_ASCII, _NOT_ASCII = bytes(range(0x80)), bytes(range(0x80, 0x100))
_IS_SIGN, _IS_CAPITAL = _build_translation([_SIGNS]), _build_translation([_LOWER.upper()])
_IS_SET = _build_translation([range(1, 0x100)])
_LINE_END = _encode_classes("n")
_LETTERS_AND_SIGNS = [*_encode_classes("lUp")]
_LONE = [bytes(_GROUPS.index(group) + 1 for group in pair) for pair in _LONE_SIGN]


def estimate(text: str) -> int:
    """Estimate the tokens of a text, at least 1 unless it is empty."""
    if len(text) <= _CACHED_CHARACTERS:
        return _estimate_short(text)
    if len(text) <= _CHUNK_CHARACTERS:
        return ceil(_estimate(text))
    return ceil(
        sum(_estimate(text[start : start + _CHUNK_CHARACTERS]) for start in range(0, len(text), _CHUNK_CHARACTERS))
    )


_CACHED_CHARACTERS = 128
"""Texts up to this length are cached: names and arguments of tools, and short results, which conversations repeat."""


@lru_cache(maxsize=4096)
def _estimate_short(text: str) -> int:
    return ceil(_estimate(text))


def _estimate(chunk: str) -> float:
    data = chunk.encode("utf-8", "surrogatepass")
    others, foreign = 0, 0.0
    if not chunk.isascii():
        others = len(chunk) - len(data.translate(None, _NOT_ASCII))
        foreign = _estimate_scripts(chunk, data)
    plain = (len(chunk) - others) / CHARACTERS_PER_TOKEN
    classes = data.translate(_TO_CLASS)
    dense = _estimate_beginnings(classes) + _estimate_disorder(data, classes)
    return foreign + (min(dense, len(chunk) - others) if dense > plain * _TOLERANCE else plain)


def _estimate_scripts(chunk: str, data: bytes) -> float:
    """Estimate the tokens of the characters that are not ASCII."""
    leads = data.translate(_TO_SCRIPT, _ASCII)
    found = sum(weight * leads.count(place) for place, (_, weight) in enumerate(_SCRIPTS, 1))
    found += sum(more * data.count(block) for block, more in _BLOCKS)
    if len(data.translate(None, _THREE_BYTES)) < len(data):
        # The upper byte of each character's code; of those beyond the basic plane, of each of its two surrogates.
        pages = chunk.encode("utf-16-le", "surrogatepass")[1::2].translate(_TO_PAGE)
        found += sum(weight * pages.count(place) for place, weight in enumerate(_PAGE_WEIGHTS, 1))
        found -= 2 * _RARE * leads.count(_BEYOND)  # counted by script already
    if len(data.translate(None, _CAPITAL_LEADS)) < len(data):
        found += sum(more * len(re.findall(capitals, chunk)) for capitals, more in _CAPITALS)
    return found


def _estimate_disorder(data: bytes, classes: bytes) -> float:
    """Estimate the additional tokens of ASCII letters and signs that form no words and no common pairs."""
    lower, capitals, signs = map(classes.count, _LETTERS_AND_SIGNS)
    found = 0.0
    if signs:
        controls = len(data) - len(data.translate(None, _CONTROL_CHARACTERS))
        found = _BACKSLASH * data.count(b"\\") + _CONTROL * controls
    if 2 * lower > len(data) and _lacks_vowels(data, b"aeiou", _VOWELS[0] * lower):
        found += _RANDOM_LOWER * lower
    if 5 * capitals > len(data) and _lacks_vowels(data, b"AEIOU", _VOWELS[1] * capitals):
        found += _RANDOM_CAPITALS * _count_pairs(int.from_bytes(data.translate(_IS_CAPITAL), "little"))
    if signs > _MAX_SIGN_SHARE * len(data):
        found += _RANDOM_SIGNS * max(_count_different(data) - _MAX_SIGN_SHARE * len(data), 0)
    return found


def _lacks_vowels(data: bytes, vowels: bytes, least: float) -> bool:
    """Return True if fewer than `least` bytes are vowels, and the text is not a repetition of a few characters."""
    return len(data) - len(data.translate(None, vowels)) < least and len(set(data)) > _FEW


def _count_pairs(flags: int) -> int:
    """Return how often two neighbouring bytes are both 1."""
    return (flags & (flags >> 8)).bit_count()


def _count_different(data: bytes) -> int:
    """Return how often two neighbours are both signs, and different."""
    number = int.from_bytes(data, "little")
    unlike = (number ^ (number >> 8)).to_bytes(len(data), "little").translate(_IS_SET)
    signs = int.from_bytes(data.translate(_IS_SIGN), "little")
    return (signs & (signs >> 8) & int.from_bytes(unlike, "little")).bit_count()


def _estimate_beginnings(classes: bytes) -> float:
    """Estimate how many tokens begin among the ASCII characters of these classes."""
    classes = _LINE_END + classes
    # As one long number, so that a shift by five bits puts every class, which has three, above the one before it.
    number = int.from_bytes(classes, "little")
    pairs = (number + (number >> 5)).to_bytes(len(classes), "little")
    # Most pairs are in no group, and none of those precedes the word of a lone sign.
    groups = pairs.translate(_TO_PAIR_GROUP, _IN_NO_GROUP)
    found: float = sum(map(mul, _WEIGHTS, map(groups.count, _PLACES)))
    return found + sum(map(groups.count, _LONE))


class SimpleTokenCounter(TextCounter):
    """Estimates without a tokenizer: about 4 characters per token, fewer for other scripts and dense text."""

    name = "estimate"
    exact = False

    def count(self, text: str) -> int:
        """Return an estimate of the tokens of a text."""
        return estimate(text)

    def try_count(self, text: str) -> None:  # noqa: ARG002 - without a tokenizer
        """Return None: there is no tokenizer."""
        return
