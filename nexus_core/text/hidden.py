r"""Characters that a reader does not see and a model reads: where they are, what they say, the text without them.

A rule file may hold a second text in characters without a glyph (Tags, variation selectors), or show its lines
in another order than the model gets them (bidirectional controls). Scripts and emoji that need such characters
keep them: Persian its non-joiner, Malayalam its joiner, a family of emoji its joiners, a flag its tags.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Hidden(NamedTuple):
    """A run of characters that nobody sees.

    Attributes:
        line: The line in which it begins, from 1; lines end at a newline.
        column: The character of the line at which it begins, from 1.
        name: What it consists of, in words.
        text: What it says, where it can be decoded; otherwise its characters as escapes.
    """

    line: int
    column: int
    name: str
    text: str


# First and last character of each range, and what a report calls them. To find more, add a row.
_RANGES = (
    ("\x00", "\x08", "control character"),
    ("\x0b", "\x1f", "control character"),  # tab and newline are text; so is a return before a newline, see _RUN
    ("\x7f", "\x84", "control character"),
    ("\x85", "\x85", "line separator"),
    ("\x86", "\x9f", "control character"),
    ("\xad", "\xad", "soft hyphen"),
    ("\u034f", "\u034f", "combining grapheme joiner"),
    ("\u061c", "\u061c", "directional mark"),
    ("\u115f", "\u1160", "Hangul filler"),
    ("\u17b4", "\u17b5", "invisible vowel"),
    ("\u180b", "\u180d", "variation selectors"),
    ("\u180e", "\u180e", "zero-width characters"),
    ("\u180f", "\u180f", "variation selectors"),
    ("\u200b", "\u200d", "zero-width characters"),
    ("\u200e", "\u200f", "directional mark"),
    ("\u2028", "\u2029", "line separator"),
    ("\u202a", "\u202e", "bidirectional control"),
    ("\u2060", "\u2064", "zero-width characters"),
    ("\u2065", "\u2065", "format character"),
    ("\u2066", "\u2069", "bidirectional control"),
    ("\u206a", "\u206f", "format character"),
    ("\u3164", "\u3164", "Hangul filler"),
    ("\ufe00", "\ufe0f", "variation selectors"),
    ("\ufeff", "\ufeff", "byte order mark"),
    ("\uffa0", "\uffa0", "Hangul filler"),
    ("\ufff0", "\ufffb", "format character"),
    ("\U000e0000", "\U000e007f", "tag characters"),
    ("\U000e0080", "\U000e00ff", "format character"),
    ("\U000e0100", "\U000e01ef", "variation selectors"),
    ("\U000e01f0", "\U000e0fff", "format character"),
)


def _character_class() -> str:
    # Ranges that touch become one: every range above the basic plane slows the search of every text down.
    bounds: list[list[str]] = []
    for first, last, _ in _RANGES:
        if bounds and ord(first) == ord(bounds[-1][1]) + 1:
            bounds[-1][1] = last
        else:
            bounds.append([first, last])
    return "".join(f"{first}-{last}" for first, last in bounds)


# A return before a newline is part of a line end: no run ends in it.
_RUN = re.compile(f"[{_character_class()}]+(?<!\r(?=\n))")

# ASCII that is seen, besides tab and newline.
_PLAIN = bytes([9, 10, *range(0x20, 0x7F)])

# What follows is needed only for a text with such characters: strings here, compiled (and kept) by `re` on demand.
_EMOJI = "[\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff]"
# Besides emoji: keycaps (# * 0-9) and the signs that have a coloured form.
_STYLED = f"{_EMOJI[:-1]}#*0-9\xa9\xae\u203c\u2049\u2122\u2139\u24c2\u3030\u303d\u3297\u3299]"
_STYLES = "\ufe0e\ufe0f"
# The scripts from Arabic to Sinhala, then Tibetan and Myanmar, Khmer and Mongolian, Tai Tham to Vedic, Phags-pa to
# Devanagari Extended, Javanese to Meetei Mayek, Arabic forms, and those beyond the basic plane up to Adlam.
_JOINING = (
    "[\u0600-\u0dff\u0f00-\u109f\u1780-\u18af\u1a20-\u1cff\ua840-\ua8ff\ua980-\uaaff\uabc0-\uabff"
    "\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f]"
)
_JOINERS = "\u200c\u200d\u17b4\u17b5\u180b\u180c\u180d\u180f"
_RIGHT_TO_LEFT = "[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
_MARKS = "\u200e\u200f\u061c"
# A mark stands beside punctuation or digits whose direction it sets; the word they belong to is this near.
_NEAR = 32
_BLACK_FLAG = "\U0001f3f4"
_FLAGS = tuple(
    "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f" for region in ("gbeng", "gbsct", "gbwls")
)
# An undecodable run may be a megabyte long; this much of it shows what it is.
_SHOWN = 64


def find_hidden(text: str) -> list[Hidden]:
    """Every run of hidden characters in `text`, in order."""
    found: list[Hidden] = []
    described: dict[str, tuple[str, str]] = {}  # a text may have the same run at every other character
    line, line_start, seen = 1, 0, 0
    for start, end in _hidden_runs(text):
        line += text.count("\n", seen, start)
        line_start = max(line_start, text.rfind("\n", seen, start) + 1)
        run = text[start:end]
        name, says = described.get(run) or described.setdefault(run, _describe(run))
        found.append(Hidden(line, start - line_start + 1, name, says))
        seen = end
    return found


def strip_hidden(text: str) -> str:
    """`text` without its hidden characters; the same object if it has none."""
    return replace_hidden(text, lambda _: "")


def replace_hidden(text: str, write: Callable[[str], str]) -> str:
    """`text` with `write` of each run of hidden characters in its place; the same object if it has none."""
    kept: list[str] = []
    position = 0
    for start, end in _hidden_runs(text):
        kept += [text[position:start], write(text[start:end])]
        position = end
    return "".join(kept) + text[position:] if position else text


def bare(text: str) -> str:
    """`text` without any character that could hide, needed or not: for comparing, not for reading."""
    return _RUN.sub("", text)


def locate_bare(text: str, offset: int) -> int:
    """Return the offset in a text that has an offset in `bare(text)`."""
    removed = 0
    for match in _RUN.finditer(text):
        if match.start() - removed > offset:
            break
        removed += match.end() - match.start()
    return offset + removed


def _hidden_runs(text: str) -> Iterator[tuple[int, int]]:
    if not text.encode("utf-8", "surrogatepass").translate(None, _PLAIN):
        return  # ten times as fast as the search, and true of most texts
    # A byte order mark at the very beginning belongs to the file, not to the text.
    for match in _RUN.finditer(text, 1 if text.startswith("\ufeff") else 0):
        start, end = _after_needed(text, *match.span()), match.end()
        if start < end:
            yield start, end


def _after_needed(text: str, start: int, end: int) -> int:
    # Runs are maximal, so that both neighbours of one are visible and stay: what is kept now is kept next time.
    before = text[start - 1 : start]
    flag = next((tags for tags in _FLAGS if before == _BLACK_FLAG and text.startswith(tags, start)), "")
    if flag:
        start += len(flag)
    elif text[start] in _STYLES and re.match(_STYLED, before):
        start += 1
    return end if end - start == 1 and _is_needed(text, start, before) else start


def _is_needed(text: str, at: int, before: str) -> bool:
    character, after = text[at], text[at + 1 : at + 2]
    if character in _MARKS:
        left = text[max(0, at - _NEAR) : at].rpartition("\n")[2]
        right = text[at + 1 : at + 1 + _NEAR].partition("\n")[0]
        return re.search(_RIGHT_TO_LEFT, left + right) is not None
    if character == "\u200d" and re.match(_EMOJI, before) and re.match(_EMOJI, after):
        return True
    # One neighbour is enough: Persian writes "PDF", non-joiner, plural; Malayalam ends words in a joiner.
    return character in _JOINERS and bool(re.match(_JOINING, text[at - 1 : at]) or re.match(_JOINING, after))


def _describe(run: str) -> tuple[str, str]:
    names = dict.fromkeys(map(_name, dict.fromkeys(run)))
    return ", ".join(names), _decode(run) or _escape(run)


def _name(character: str) -> str:
    return next(name for first, last, name in _RANGES if first <= character <= last)


def _decode(run: str) -> str:
    codes = {character: _byte(character) for character in dict.fromkeys(run)}
    data = b"".join(map(codes.__getitem__, run))
    if not any(character.isprintable() for character in data.decode("utf-8", "ignore") if character != " "):
        return ""
    text = data.decode("utf-8", "backslashreplace")
    shown = {
        character: character if character.isprintable() else _escape(character) for character in set(text) - {*"\n\t"}
    }
    return "".join(shown.get(character, character) for character in text)


def _byte(character: str) -> bytes:
    # The two ways in use: a tag is its ASCII character; 256 variation selectors are the bytes of a text in UTF-8.
    for first, last, value in (
        ("\U000e0020", "\U000e007e", 0x20),
        ("\ufe00", "\ufe0f", 0),
        ("\U000e0100", "\U000e01ef", 16),
    ):
        if first <= character <= last:
            return bytes([ord(character) - ord(first) + value])
    return b""


def _escape(run: str) -> str:
    shown = run[:_SHOWN].encode("unicode_escape").decode("ascii")
    return shown if len(run) <= _SHOWN else f"{shown}\u2026 ({len(run)} characters)"
