r"""Nexus's own structural lines, and the one way to keep a text from forging them.

The model tells instructions from quoted content by headings, tags and fences that Nexus writes. A file, a tool
result or a person may hold the same lines; `neutralise` puts a backslash into those, which Markdown shows as the
literal text, and leaves everything else as it is. Letter case, extra white space, full-width forms and hidden
characters make no difference: what a model takes for a marker is one.

`neutralise` may be used on what was neutralised before, and changes nothing then. `escape` is for whoever reads the
text back: it adds a backslash to a marker that has some already, and `unescape` takes exactly that away.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from nexus_core.text.hidden import bare

if TYPE_CHECKING:
    from collections.abc import Iterator

AGENTS = ("Claude", "Codex", "Gemini")
"""Other agents through whose eyes a prompt may be shown."""
INSTRUCTIONS = "{agent} Instructions ({place})"
"""The title of a text that such an agent would read."""

# One row for each marker, beginning with #, [ or ---; "…" stands for anything. A marker fills its line, unless its
# row ends in "…".
HEADINGS = (
    "# System Configuration",
    "## Default Configuration",
    "## Default Configuration (…)",
    "## Global Configuration",
    "## Global Configuration (…)",
    "## Ancestor Configuration",
    "## Ancestor Configuration (…)",
    "## Project Configuration",
    "## Project Configuration (…)",
    "# Subagent Context",
    "## Subagent Configuration",
    "## Workspace Rules (…)",
    "## Agent Soul",
    "## Agent Identity",
    "## User Identity",
    "## Agent Permissions",
    "## Nexus Environment",
    "## Messaging Rules",
    "## Environment",
    "## Active Configuration",
    "## MCP Servers",
    "## Active MCP Servers",
    *(f"## {INSTRUCTIONS.format(agent=agent, place='…')}" for agent in AGENTS),
)
TAGS = (
    "[CORE_IDENTITY]",
    "[CAPABILITIES]",
    "[SHARED_MEMORY]",
    "[SHARED_MEMORY count=…]",
    "[FRIENDS_INFO]",
    "[THIS_MOMENT]",
)
FENCES = (
    "--- BEGIN DOCUMENTATION…",
    "--- END DOCUMENTATION…",
    "--- BEGIN SUMMARY…",
    "--- END SUMMARY…",
)
SUMMARIES = ("[CONTEXT SUMMARY…", "[Previous conversation summary]…", "[Session started:…")
# Elements count anywhere in a line, opened or closed.
ELEMENTS = ("human_input", "current_time", "current_facts", "current_section", "memory_summary")

_LINES = (*HEADINGS, *TAGS, *FENCES, *SUMMARIES)
# The characters that Unicode (NFKC) takes for # [ < > and, generously, for a hyphen.
_HASH, _LESS, _MORE = "#\uff03\ufe5f", "<\uff1c\ufe64", ">\uff1e\ufe65"
_DASH = "\\-\u2010-\u2015\u2212\ufe58\ufe63\uff0d"
_OPENERS = f"{_HASH}\\[\uff3b\ufe47{_DASH}"
_RULER = f"[{_DASH}]{{3,}}"
_ESCAPES = r"\\*+"
# Longer than any marker, however it is spaced, so that the two ends of a line are enough to compare. Normalising more
# could take time in the square of its length.
_LONGEST = 96


@cache
def _candidate() -> re.Pattern[str]:
    # Finds every text with a marker, and few without: an opening character that is wide; or a plain one, then the
    # words of a row, or plain letters up to a character that is not plain. No opening character is run over twice.
    starts = dict.fromkeys(_words(row) for row in _LINES if "…" in row)
    begun = "|".join(starts)
    whole = "|".join(words for words in map(_words, (*_LINES, *ELEMENTS)) if words not in starts)
    return re.compile(
        f"[<{_OPENERS}\uff1c\ufe64]"
        "(?:(?<=[\ufe47-\uff3b])|(?:(?<=[#\\[])|(?<=<)[\\s/]*+|(?<=[^\t\n\r -,.-~][^#<\\[]))"
        f"[\t ]*+(?:(?ai:(?:{whole})(?![\t ]*+\\w)|{begun})|[A-Za-z_\t ]*+[^\t\n\r -~]))"
    )


def _words(row: str) -> str:
    letters = row.lstrip("#-[ ")
    end = next((at for at, letter in enumerate(letters) if not (letter.isalpha() or letter in "_ ")), len(letters))
    return letters[:end].rstrip().translate({ord(" "): "\\s++", ord("_"): "\\s*+_\\s*+"})


def neutralise(text: str) -> str:
    """`text` with a backslash in each line or element that only Nexus may write; the same object if it has none."""
    return _with_backslashes(text, _points(text))


def escape(text: str, also: re.Pattern[str] | None = None) -> str:
    r"""`text` with one backslash more in each line or element that only Nexus may write, so that none is one.

    Args:
        text: Anything.
        also: Further lines of the format at hand. It is held against the beginning of a line as it is compared: in
            small letters, plain characters, without white space beside punctuation.
    """
    return _with_backslashes(text, _points(text, escaped=True, also=also))


def unescape(text: str, also: re.Pattern[str] | None = None) -> str:
    """What was escaped with the same `also`, as it was."""
    points = [point for point in _points(text, escaped=True, also=also) if text.startswith("\\", point)]
    ends = [*points, len(text)]
    return "".join(text[start:end] for start, end in zip([0, *(point + 1 for point in points)], ends, strict=True))


def forged(text: str) -> list[tuple[int, str]]:
    """The lines that `neutralise` would change, each with its number, from 1."""
    lines: dict[int, str] = {}
    number, seen = 1, 0
    for point in _points(text):
        number += text.count("\n", seen, point)
        seen = point
        if number not in lines:
            start, end = text.rfind("\n", 0, point) + 1, text.find("\n", point)
            lines[number] = text[start : end if end >= 0 else None].rstrip("\r")
    return list(lines.items())


def _with_backslashes(text: str, points: list[int]) -> str:
    return "\\".join(text[start:end] for start, end in pairwise([0, *points, len(text)])) if points else text


def _points(text: str, *, escaped: bool = False, also: re.Pattern[str] | None = None) -> list[int]:
    # Where a backslash goes; where the first one is, of markers that have some, if those are wanted too.
    if also is None and _candidate().search(text.replace("\\", "") if escaped else text) is None:
        return []
    return sorted([*_line_points(text, escaped, also), *_element_points(text, escaped)])


def _line_points(text: str, escaped: bool, also: re.Pattern[str] | None) -> Iterator[int]:
    # Compiled (and kept) by `re` on demand: few texts get here. What precedes a marker may be invisible; a hyphen
    # before a blank is a bullet.
    opening = re.compile(f"([^!-~{_OPENERS}]*+){_ESCAPES if escaped else ''}[{_OPENERS}](?<!-(?=[\t -,.-~]))")
    offset = 0
    for line in text.splitlines(keepends=True):
        if (found := opening.match(line)) and _is_marker(found[1] + line[found.end() - 1 :], also):
            yield offset + found.end(1)
        offset += len(line)


def _element_points(text: str, escaped: bool) -> Iterator[int]:
    for found in re.finditer(f"[{_LESS}]({_ESCAPES if escaped else ''})([^{_LESS}{_MORE}]*+)[{_MORE}]", text):
        name = " ".join(bare(found[2]).split())
        if _fold(name[:_LONGEST]) in _elements():
            yield found.start(1)


def _is_marker(line: str, also: re.Pattern[str] | None) -> bool:
    plain = re.sub(_RULER, "---", " ".join(bare(line).split()))
    if plain[0] in _HASH:
        plain = plain.rstrip(f"{_HASH} ")  # Markdown allows a heading to be closed: ## Title ##
    head, tail = plain[:_LONGEST], plain[-_LONGEST:]
    folded = _fold(head)
    if also is not None and also.match(folded):
        return True
    whole, open_ended = _rows()
    return folded in whole or any(folded.startswith(start) and _fold(tail).endswith(end) for start, end in open_ended)


@cache
def _elements() -> frozenset[str]:
    return frozenset(_fold(slash + name) for name in ELEMENTS for slash in ("", "/"))


@cache
def _rows() -> tuple[frozenset[str], tuple[tuple[str, str], ...]]:
    whole = frozenset(_fold(row) for row in _LINES if "…" not in row)
    parts = (row.partition("…") for row in _LINES if "…" in row)
    return whole, tuple((_fold(start), _fold(end)) for start, _, end in parts)


def _fold(text: str) -> str:
    import unicodedata  # noqa: PLC0415 - a text without candidates does not need its tables

    folded = unicodedata.normalize("NFKC", text).casefold()
    # White space beside punctuation says nothing.
    return re.sub(r" (?=[^\w -]|_|---)|(?:(?<=[^\w -])|(?<=_)|(?<=---)) ", "", folded)
