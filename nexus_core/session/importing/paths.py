"""A transcript as paths: what was said on each, in order, and where it leaves another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.transcripts.base import (
        BranchKind,
        Transcript,
        TranscriptBranch,
        TranscriptCompaction,
        TranscriptEntry,
    )

    PathKind = Literal["main"] | BranchKind

Key = tuple[int, int]
"""An item of a transcript: its path, and its place there."""


class Summed(NamedTuple):
    """A compaction at its place.

    Attributes:
        compaction: What the transcript says of it.
        kept: The first item of the path that the model still read; None where it read none of them any more.
    """

    compaction: TranscriptCompaction
    kept: int | None


class Path(NamedTuple):
    """Items that follow each other.

    Attributes:
        kind: Why it is one of its own.
        name: The subagent's name.
        items: What was said, and where it was compacted.
        leaves: The path it leaves, by its place in the list; None where nothing comes before it.
        at: How many items of that path come before it.
    """

    kind: PathKind
    name: str
    items: tuple[TranscriptEntry | Summed, ...]
    leaves: int | None = None
    at: int = 0


def time_of(item: TranscriptEntry | Summed) -> str:
    """When it was, as the transcript has it."""
    return item.compaction.time if isinstance(item, Summed) else item.time


def read_paths(transcript: Transcript) -> list[Path]:
    """The main path, then the branches in their order."""
    main = _Main(transcript)
    paths = [Path("main", transcript.agent, main.items)]
    for branch in transcript.branches:
        leaves, at = _start(branch, transcript.branches, main)
        paths.append(Path(branch.kind, branch.name, branch.entries, leaves, at))
    return paths


def in_order(paths: Sequence[Path]) -> list[int]:
    """The paths, each behind the one it leaves; else as they come."""
    done: dict[int, None] = {}
    for number in range(len(paths)):
        waiting: dict[int, None] = {}
        here: int | None = number
        while here is not None and here not in done and here not in waiting:
            waiting[here] = None
            here = paths[here].leaves
        done.update(dict.fromkeys(reversed(waiting)))
    return list(done)


def backwards(paths: Sequence[Path], path: int, count: int) -> Iterator[Key]:
    """The items before a place, the nearest first: of the path, and of those it leaves."""
    seen: set[int] = set()
    here: int | None = path
    while here is not None and here not in seen:
        seen.add(here)
        for place in range(count - 1, -1, -1):
            yield here, place
        left = paths[here]
        here, count = left.leaves, left.at


class _Main:
    """The main path, with its compactions among the entries."""

    def __init__(self, transcript: Transcript) -> None:
        self.places: list[int] = []  # of each entry among the items
        count = len(transcript.entries)
        # One at the end that does not say anything yet is still being written.
        self._compactions = [each for each in transcript.compactions if each.at < count or each.context]
        items: list[TranscriptEntry | Summed] = []
        left = list(self._compactions)
        for number, entry in enumerate(transcript.entries):
            while left and left[0].at <= number:
                items.append(self._summed(left.pop(0)))
            self.places.append(len(items))
            items.append(entry)
        items += [self._summed(each) for each in left]
        self.items = tuple(items)

    def until(self, at: int, line: int) -> int:
        """How many items come before a line that follows so many entries."""
        count = self.places[at - 1] + 1
        return count + sum(each.at == at and each.line < line for each in self._compactions)

    def _summed(self, compaction: TranscriptCompaction) -> Summed:
        is_kept = compaction.kept_from < min(compaction.at, len(self.places))
        return Summed(compaction, self.places[compaction.kept_from] if is_kept else None)


def _start(branch: TranscriptBranch, branches: Sequence[TranscriptBranch], main: _Main) -> tuple[int | None, int]:
    if branch.kind == "subagent" and (branch.leaves is None or branches[branch.leaves].name != branch.name):
        return None, 0  # it has its own task, and reads nothing of what was said before
    if not branch.at:
        return None, 0
    if branch.leaves is None:
        return 0, main.until(branch.at, branch.entries[0].lines[0])
    return branch.leaves + 1, branch.at
