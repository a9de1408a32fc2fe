"""Who could have written a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

SUPERUSER = 0


def has_owners() -> bool:
    """Whether files belong to somebody on this system, in a way that Python knows of."""
    return hasattr(os, "geteuid")


def accepted_owners(directory: Path) -> frozenset[int]:
    """Who may speak in a directory: its owner, you, and the superuser. Empty where files have no owners."""
    try:
        return owners_beside(os.stat(directory).st_uid)  # noqa: PTH116 - faster
    except OSError:
        return owners_beside(SUPERUSER)


def owners_beside(owner: int) -> frozenset[int]:
    """Who may speak where `owner` does: that one, you, and the superuser. Empty where files have no owners."""
    return frozenset({owner, os.geteuid(), SUPERUSER}) if has_owners() else frozenset()


def are_accepted(owners: Collection[int], directory: Path) -> bool:
    """Whether all of some owners may speak in a directory."""
    always = owners_beside(SUPERUSER)
    return not always or always.issuperset(owners) or accepted_owners(directory).issuperset(owners)


def is_foreign(owners: frozenset[int], *paths: Path | str) -> bool:
    """Whether one of some files, directories or links belongs to none of `owners`."""
    for path in paths:
        try:
            if owners and os.lstat(path).st_uid not in owners:
                return True
        except OSError:
            continue  # not there, or not to be seen: then it cannot be read either
    return False
