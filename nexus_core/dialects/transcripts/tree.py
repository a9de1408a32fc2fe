"""Conversations that branch: every entry names the one it follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Mapping


def climb(leaf: str, parents: Mapping[str, str], taken: Container[str] = ()) -> list[str]:
    """The way to a leaf, from the root or from what is taken already; a circle ends where it began."""
    path: dict[str, None] = {}
    here = leaf
    while here and here not in taken and here not in path:
        path[here] = None
        here = parents.get(here, "")
    return list(path)[::-1]
