"""Conversations that branch: every entry names the one it follows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.dialects.transcripts.transcript import Branch

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from nexus_core.dialects.transcripts.transcript import Entry

    Place = tuple[int | None, int]
    """A path, None being the main one, and how many of its entries come before what follows."""


def climb(leaf: str, parents: Mapping[str, str], taken: Container[str] = ()) -> list[str]:
    """The way to a leaf, from the root or from what is taken already; a circle ends where it began."""
    path: dict[str, None] = {}
    here = leaf
    while here and here not in taken and here not in path:
        path[here] = None
        here = parents.get(here, "")
    return list(path)[::-1]


def read_branches(
    newest: Iterable[str],
    parents: Mapping[str, str],
    places: dict[str, Place],
    read: Callable[[Sequence[str]], tuple[list[Entry], list[int]]],
) -> tuple[Branch, ...]:
    """What was said beside the main path, in the order of the file.

    Args:
        newest: All names, the newest first.
        parents: What each of them follows.
        places: Where the names of the main path stand; those of branches are added.
        read: Gives what is said on a path, and how much of it up to each name.
    """
    found: list[Branch] = []
    for leaf in newest:
        path = climb(leaf, parents, places)
        if not path:
            continue
        entries, counts = read(path)
        parent = parents.get(path[0], "")
        # What stands before the first entry of a branch stands where the branch leaves another path.
        start = places.get(parent, (None, 0))
        places |= {name: (len(found), count) if count else start for name, count in zip(path, counts, strict=True)}
        if entries:
            found.append(Branch(kind="fork", entries=tuple(entries), parent=parent, leaves=start[0], at=start[1]))
    return _oldest_first(found)


def _oldest_first(found: Sequence[Branch]) -> tuple[Branch, ...]:
    """The branches in the order of the file, which were found, and name each other, newest first."""
    last = len(found) - 1
    return tuple(
        branch if branch.leaves is None else replace(branch, leaves=last - branch.leaves) for branch in found[::-1]
    )
