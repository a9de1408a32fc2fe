"""Globs of paths from files of a project, compiled once and within limits."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_GLOB_CHARACTERS = 1_000
"""Longer than any path that a person writes down."""
MAX_GLOB_ALTERNATIVES = 2_000
"""Globs without braces in one view of an agent. Claude Code expands one pattern to 1,000 at most."""

# Possessive, so that a brace which is never closed is passed over once, not once for each of its commas.
_BRACES = re.compile(r"\{([^{},]*+,[^{}]*+)\}")
_ANY_NAMES = "**"
_GLOB_START = re.compile(r"\A[^*?\[\\]*")
# A set has at most 100 characters, so that brackets which are never closed take linear time.
_GLOB_SIGN = re.compile(r"\\(?P<escaped>[*?\[])|(?P<star>\*+)|(?P<any>\?)|\[(?P<not>[!^]?+)(?P<set>\]?+[^\]]{0,99}+)\]")


class PathGlobs:
    """Globs of which a path has to match one: `*`, `**`, `?`, `[…]` and `{a,b}`.

    Attributes:
        alternatives: The globs without braces.
    """

    def __init__(self, alternatives: Sequence[str]) -> None:
        self.alternatives = tuple(dict.fromkeys(alternatives))
        self._compiled: dict[str, re.Pattern[str]] = {}

    def matches(self, path: str) -> bool:
        """Return True if a path, with slashes, matches one of the globs."""
        name = f"{path}/"
        return name.startswith(self._all_starts) and any(
            name.startswith(start) and self._compile(glob).match(name) for start, glob in self._starts
        )

    @cached_property
    def _starts(self) -> tuple[tuple[str, str], ...]:
        # Most globs begin like none of the paths, and to compile one takes as long as a thousand comparisons.
        return tuple((_GLOB_START.findall(each)[0], each) for each in self.alternatives)

    @cached_property
    def _all_starts(self) -> tuple[str, ...]:
        return tuple({start for start, _ in self._starts})

    def _compile(self, glob: str) -> re.Pattern[str]:
        if glob not in self._compiled:
            self._compiled[glob] = re.compile(_translate_glob(glob))
        return self._compiled[glob]


class CompiledGlobs(NamedTuple):
    """Globs, and the patterns that are not among them, because they exceed a limit."""

    globs: PathGlobs
    refused: tuple[str, ...]


class GlobCompiler:
    """Compiles the patterns of one view, which share a limit: a project may have many, each with many braces."""

    def __init__(self) -> None:
        self._left = MAX_GLOB_ALTERNATIVES

    def compile(self, patterns: Sequence[str]) -> CompiledGlobs:
        """Return the globs of some patterns. One that exceeds a limit is refused as a whole."""
        alternatives: list[str] = []
        refused: list[str] = []
        for pattern in patterns:
            expanded = _expand_braces(pattern, self._left)
            self._left -= len(expanded)
            alternatives += expanded
            refused += [] if expanded else [pattern]
        return CompiledGlobs(PathGlobs(alternatives), tuple(refused))


def _expand_braces(pattern: str, limit: int) -> list[str]:
    """Return a pattern without braces, once for each choice between them; [] if that exceeds a limit."""
    if len(pattern) > MAX_GLOB_CHARACTERS:
        return []
    pending, found = [pattern], list[str]()
    while pending:
        if len(pending) + len(found) > limit:
            return []
        text = pending.pop()
        group = _BRACES.search(text)
        if group is None:
            found.append(text)
        else:
            options = reversed(group[1].split(","))
            pending += [text[: group.start()] + option + text[group.end() :] for option in options]
    return found


def _translate_glob(glob: str) -> str:
    """Return a regular expression for a path that ends with a slash.

    The names between two `**` are taken at the first place where they match, and so are the characters between two
    stars of a name, without another try: a later place never allows more. So the time is not exponential.
    """
    runs: list[list[str]] = [[]]
    for name in glob.split("/"):
        if name == _ANY_NAMES:
            runs.append([])
        else:
            runs[-1].append(f"{_translate_name(name)}/")
    first, *others = ["".join(run) for run in runs]
    if not others:
        return rf"{first}\Z"
    *middle, last = others
    inner = "".join(rf"(?>(?:[^/]*+/)*?{run})" for run in middle if run)
    return rf"{first}{inner}(?:[^/]*+/)*?{last}\Z"


def _translate_name(name: str) -> str:
    runs: list[str] = [""]
    at = 0
    for sign in _GLOB_SIGN.finditer(name):
        runs[-1] += re.escape(name[at : sign.start()])
        at = sign.end()
        if sign["star"]:
            runs.append("")
        elif sign["escaped"]:
            runs[-1] += re.escape(sign["escaped"])
        else:
            runs[-1] += "[^/]" if sign["any"] else _translate_set(sign["set"], is_negated=bool(sign["not"]))
    runs[-1] += re.escape(name[at:])
    first, *others = runs
    if not others:
        return first
    *middle, last = others
    return f"{first}{''.join(f'(?>[^/]*?{run})' for run in middle if run)}[^/]*{last}"


def _translate_set(characters: str, *, is_negated: bool) -> str:
    """Return a set of characters. A range from a later character to an earlier one is empty."""
    inner = ""
    for each in re.finditer(r"(?s)(.)-(.)|.", characters):
        if each[1] is None:
            inner += re.escape(each[0])
        elif each[1] <= each[2]:
            inner += f"{re.escape(each[1])}-{re.escape(each[2])}"
    if is_negated:
        return f"[^/{inner}]"
    return f"[{inner}]" if inner else "(?!)"
