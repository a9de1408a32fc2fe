"""Paths of files that are looked for again and again; pathlib takes longer to make one than the system to look."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@lru_cache(maxsize=1024)
def file_in(directory: Path, name: str) -> Path:
    """`directory / name`."""
    return directory / name


@lru_cache(maxsize=64)
def with_parents(directory: Path) -> tuple[Path, ...]:
    """The directory and those above it, nearest first."""
    return directory, *directory.parents
