"""Conversations that branch: every entry names the one it follows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from nexus_core.dialects.transcripts.transcript import Branch

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


def branch_places(path: Sequence[str], counts: Sequence[int], number: int, start: Place) -> dict[str, Place]:
    """The place of each name of a branch.

    Args:
        path: The names.
        counts: How many entries of the branch there are up to each of them.
        number: The branch, by its place among the branches.
        start: Where it leaves another path; what stands before its first entry stands there.
    """
    return {name: (number, count) if count else start for name, count in zip(path, counts, strict=True)}


def oldest_first(found: Sequence[Branch]) -> tuple[Branch, ...]:
    """The branches in the order of the file, which were found, and name each other, newest first."""
    last = len(found) - 1
    return tuple(
        branch if branch.leaves is None else replace(branch, leaves=last - branch.leaves) for branch in found[::-1]
    )
