"""Finds guides: `skills/<name>/SKILL.md` in the layers. They are text; nothing in them is run."""

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
from nexus_plugins.skills import DIRECTORY, may_have_guides
from nexus_plugins.skills._guide import UnusableError, describe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.plugin import Layer, Loaded
    from nexus_plugins.skills._guide import Guide

FILE = "SKILL.md"
MAX_BYTES = 256 * 1024
MAX_ENTRIES = 1000  # of one directory
MOST_IN_ALL = 32 * MAX_HEAD_CHARACTERS  # characters in the heads of all guides together


class Fault(NamedTuple):
    """What is wrong with a guide; one that `is_used` is offered all the same."""

    path: Path
    line: int
    message: str
    is_used: bool


class Found(NamedTuple):
    """The guides by name, in the order of their names, and what is wrong with them or with others."""

    guides: dict[str, Guide]
    faults: list[Fault]


def find_guides(loaded: Loaded) -> Found:
    """The guides of all layers; of two with one name, that of the nearer layer."""
    search = _Search()
    found: dict[str, Guide] = {}
    for layer in loaded.layers:
        if may_have_guides(layer):
            found |= search.layer(layer)
    return Found({name: found[name] for name in sorted(found)}, search.faults)


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


class _Search:
    """Reads layer by layer, and writes down what is wrong."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._left = MOST_IN_ALL

    def layer(self, layer: Layer) -> dict[str, Guide]:
        found: dict[str, Guide] = {}
        admission = Admission(layer)
        for path in self._files(layer, admission):
            guide = self._guide(path, layer, admission)
            if guide is not None and guide.name in found:
                self._fault(path, f"has the same name as {found[guide.name].path}, which is used")
            elif guide is not None:
                found[guide.name] = guide
        return found

    def _files(self, layer: Layer, admission: Admission) -> Iterator[Path]:
        directory = layer.directory / DIRECTORY
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

    def _guide(self, path: Path, layer: Layer, admission: Admission) -> Guide | None:
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
        for remark in remarks:
            self._fault(path, remark, is_used=True)
        return guide

    def _head(self, text: str, layer: Layer) -> str:
        """The beginning of a guide, with its head; only so much in all that it cannot take long."""
        if self._left <= 0:
            raise UnusableError(f"the front matter of all skills together has more than {MOST_IN_ALL:,} characters")
        start = text[: MAX_HEAD_CHARACTERS + 16]
        end = start.find("\n---", 1)
        self._left -= len(start) if end < 0 else end
        return start if layer.is_own else strip_hidden(start)

    def _fault(self, path: Path, message: str, *, line: int = 0, is_used: bool = False) -> None:
        self.faults.append(Fault(path, line, visible_line(message), is_used))
