"""Detection of a transcript's format from all lines of the file.

Every line (or element, or the object of a document) gets a score for every format. A format is a candidate if the file
has a line that only its program writes. The candidate that explains most lines wins; among equals, the first listed.
Only counts are stored, so a file of any size can be scored while it is read.

Formats do not score the line itself but its outline (`extract_line_shape`): the same object without content. Most lines
of a file share a few outlines, and each outline is scored once. Since a format sees only the outline, lines with the
same outline always have the same score. A format that needs more of a line adds the key to `_TEXT_KEYS` or
`_OBJECT_KEYS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.transcripts.base import SCORE_OWN

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from nexus_core.transcripts.base import TranscriptFormat

_TEXT_KEYS = ("type", "role", "kind", "source", "schema_version")
"""Keys whose texts are part of an outline."""
_OBJECT_KEYS = ("message", "time")
"""Keys whose objects are part of an outline, with their keys."""
_LIST_KEYS = ("messages", "conversations")
"""Keys whose lists are part of an outline, with the keys of their objects."""
_MAX_CACHED_OUTLINES = 1000
"""Maximum number of cached outlines per file. Lines with further outlines are scored one by one."""


class _OutlineCount:
    """Scores of an outline by format, and its uncounted lines."""

    __slots__ = ("lines", "scores")

    def __init__(self, scores: Sequence[int]) -> None:
        self.scores = scores
        self.lines = 1


class FormatDetector:
    """Counts the lines that each format explains.

    Args:
        formats: The formats, the most specific first.

    Attributes:
        lines: Number of objects scored so far.
    """

    def __init__(self, formats: Iterable[TranscriptFormat]) -> None:
        self._formats = tuple(formats)
        self._outlines: dict[Hashable, _OutlineCount] = {}
        self._own = [0] * len(self._formats)
        self._explained = [0] * len(self._formats)
        self.lines = 0

    def add(self, value: dict[str, Any]) -> None:
        """Score an object."""
        self.lines += 1
        shape = _build_shape_key(value)
        known = self._outlines.get(shape)
        if known is not None:
            known.lines += 1
            return
        outline = extract_line_shape(value)
        new = _OutlineCount([form.score_line(outline) for form in self._formats])
        if len(self._outlines) < _MAX_CACHED_OUTLINES:
            self._outlines[shape] = new
        else:
            self._add_up(new)

    def _add_up(self, *outlines: _OutlineCount) -> None:
        """Add the lines of outlines to the counts of the formats that explain them."""
        for each in outlines:
            for index, score in enumerate(each.scores):
                self._explained[index] += each.lines * bool(score)
                self._own[index] += each.lines * (score == SCORE_OWN)
            each.lines = 0

    def best(self) -> TranscriptFormat | None:
        """Return the format that explains most lines, or None."""
        self._add_up(*self._outlines.values())
        found = [index for index, own in enumerate(self._own) if own]
        return self._formats[max(found, key=self._explained.__getitem__)] if found else None

    def nearest(self) -> tuple[str, int]:
        """Return the format that explains most lines, and how many.

        Returns `("", 0)` if none explains any.
        """
        self._add_up(*self._outlines.values())
        index = max(range(len(self._formats)), key=lambda each: (self._explained[each], self._own[each]))
        return (self._formats[index].name, self._explained[index]) if self._explained[index] else ("", 0)


def extract_line_shape(value: dict[str, Any]) -> dict[str, Any]:
    """Return the outline of an object: its keys, with empty values of the same types.

    The outline also has the texts of `_TEXT_KEYS`, the keys of the objects `message` and `time`, and in the lists
    `messages` and `conversations` one object for each set of keys that occurs in it.
    """
    outline = _empty_values(value)
    for key in _TEXT_KEYS:
        if isinstance(value.get(key), str):
            outline[key] = value[key]
    for key in _OBJECT_KEYS:
        if isinstance(value.get(key), dict):
            outline[key] = _empty_values(value[key])
    for key in _LIST_KEYS:
        if isinstance(value.get(key), list):
            outline[key] = [dict.fromkeys(keys) for keys in _collect_keys(value[key])]
    return outline


def _empty_values(value: dict[str, Any]) -> dict[str, Any]:
    return {key: type(inner)() for key, inner in value.items()}


def _collect_keys(listed: list[Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(dict.fromkeys(tuple(each) for each in listed if isinstance(each, dict)))


def _build_shape_key(value: dict[str, Any]) -> Hashable:
    """Return a hashable key of an object's outline.

    Objects share it only if `extract_line_shape` is the same.
    """
    shape: list[Hashable] = [tuple(value), tuple(map(type, value.values()))]
    shape += [value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str)]
    for key in _OBJECT_KEYS:
        if isinstance(value.get(key), dict):
            shape += tuple(value[key]), tuple(map(type, value[key].values()))
    shape += [_collect_keys(value[key]) for key in _LIST_KEYS if isinstance(value.get(key), list)]
    return tuple(shape)
