"""Finds guides: `<name>/SKILL.md` in the directories for skills. They are text; nothing in them is run."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import FileError
from nexus_core.plugin import (
    MAX_HEAD_CHARACTERS,
    Admission,
    FrontMatterError,
    Skipped,
    read_front_matter,
    real_path,
    strip_hidden,
    visible_line,
)
from nexus_plugins.skills import find_skill_directories
from nexus_plugins.skills._guide import UnusableError, describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from nexus_core.plugin import Layer, Loaded
    from nexus_plugins.skills._guide import Guide

FILE = "SKILL.md"
MAX_BYTES = 256 * 1024
MAX_ENTRIES = 1000  # of one directory
MOST_IN_ALL = 32 * MAX_HEAD_CHARACTERS  # characters in the heads of all guides together


class Fault(NamedTuple):
    """A flaw of a guide.

    Attributes:
        path: Its file.
        line: Where in the file, from 1; 0 for the whole.
        message: The flaw.
        is_used: True if the guide is offered all the same.
        is_note: True if that may well be meant: a nearer layer has another guide of the name.
    """

    path: Path
    line: int
    message: str
    is_used: bool
    is_note: bool = False


class Found(NamedTuple):
    """The guides by name, in the order of their names, and what is wrong with them or with others."""

    guides: dict[str, Guide]
    faults: list[Fault]


def find_guides(loaded: Loaded) -> Found:
    """Return the guides of all layers.

    Of two with one name, that of the nearer layer is used; in a layer, that of `.nexus3`, then `.claude`, `.agents`
    and `.codex`; in a directory, the one whose own directory sorts first.
    """
    search = _Search()
    ranked = list(enumerate(find_skill_directories(loaded.layers)))
    # The user's own are read first: the many guides of a project cannot use up what may be read in all.
    ranked.sort(key=lambda each: (not each[1][0].is_own, each[0]))
    candidates = [
        (rank, candidate)
        for rank, (layer, directory) in ranked
        for candidate in search.read_directory(layer, directory)
    ]
    candidates.sort(key=lambda each: each[0])
    return _choose([candidate for _, candidate in candidates], search.faults)


def read_words(guide: Guide) -> str:
    """What a guide says, without its head; characters that nobody sees are taken out of a project's.

    Raises:
        FileError: It cannot be read any more.
    """
    text = Admission(guide.layer).read_text(guide.path, max_bytes=MAX_BYTES)
    if isinstance(text, Skipped):
        raise FileError(text.reason, where=str(guide.path))
    try:
        words = read_front_matter(text).body.strip("\n")
    except FrontMatterError as error:
        raise FileError(str(error), where=f"{guide.path}:{error.line}") from None
    return words if guide.layer.is_own else strip_hidden(words)


class _Candidate(NamedTuple):
    """A guide that can be offered, and what is odd about it."""

    guide: Guide
    remarks: list[str]


def _choose(candidates: Iterable[_Candidate], faults: list[Fault]) -> Found:
    """Return the first guide of each name, and the flaws, those that were found before included."""
    found: dict[str, Guide] = {}
    files: set[str] = set()
    for guide, remarks in candidates:
        real = os.path.realpath(guide.path)
        if real in files:  # one directory often has links to the guides of another
            continue
        files.add(real)
        winner = found.setdefault(guide.name, guide)
        if winner is not guide and _is_copy(guide, winner):
            continue
        faults += [Fault(guide.path, 0, visible_line(remark), is_used=winner is guide) for remark in remarks]
        if winner is not guide:
            message = visible_line(f"has the same name as {winner.path}, which is used")
            faults.append(Fault(guide.path, 0, message, is_used=False, is_note=winner.layer is not guide.layer))
    return Found({name: found[name] for name in sorted(found)}, faults)


class _Search:
    """Reads directory by directory, and notes what cannot be read."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._left = MOST_IN_ALL

    def read_directory(self, layer: Layer, directory: Path) -> Iterator[_Candidate]:
        admission = Admission(layer)
        for path in self._files(directory, layer, admission):
            if (candidate := self._read(path, layer, admission)) is not None:
                yield candidate

    def _files(self, directory: Path, layer: Layer, admission: Admission) -> Iterator[Path]:
        if not layer.is_own and not real_path(directory).is_relative_to(real_path(admission.root)):
            self._fault(directory, f"leads outside {admission.root}")
            return
        try:
            with os.scandir(directory) as entries:
                names = [entry.name for entry in islice(entries, MAX_ENTRIES + 1)]
        except OSError as error:
            self._fault(directory, f"cannot read: {error.strerror}")
            return
        if len(names) > MAX_ENTRIES:  # which of them come first is the file system's secret
            self._fault(directory, f"has more than {MAX_ENTRIES:,} entries; none is read")
            return
        yield from (directory / name / FILE for name in sorted(names))

    def _read(self, path: Path, layer: Layer, admission: Admission) -> _Candidate | None:
        remarks: list[str] = []
        try:
            text = admission.read_text(path, max_bytes=MAX_BYTES)
            if isinstance(text, Skipped):
                if text.reason != "not there":
                    self._fault(path, text.reason)
                return None
            head = read_front_matter(self._head(text, layer))
            guide = describe(path, layer, head.values, remarks)
        except FrontMatterError as error:
            self._fault(path, str(error), line=error.line)
            return None
        except (FileError, UnusableError) as error:
            self._fault(path, error.what if isinstance(error, FileError) else str(error))
            return None
        return _Candidate(guide, remarks)

    def _head(self, text: str, layer: Layer) -> str:
        """The beginning of a guide, with its head; only so much in all that it cannot take long."""
        if self._left <= 0:
            raise UnusableError(f"the front matter of all skills together has more than {MOST_IN_ALL:,} characters")
        start = text[: MAX_HEAD_CHARACTERS + 16]
        end = start.find("\n---", 1)
        self._left -= len(start) if end < 0 else end
        return start if layer.is_own else strip_hidden(start)

    def _fault(self, path: Path, message: str, *, line: int = 0) -> None:
        self.faults.append(Fault(path, line, visible_line(message), is_used=False))


def _is_copy(guide: Guide, other: Guide) -> bool:
    """True if two guides are the same text under the same name, as where several tools are given the same skills."""
    if guide.path.parent.name != other.path.parent.name:
        return False
    texts = [Admission(each.layer).read_text(each.path, max_bytes=MAX_BYTES) for each in (guide, other)]
    return texts[0] == texts[1]
