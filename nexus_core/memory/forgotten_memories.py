"""The list of memories that must not return, in the user's own directory.

It names memories, steps, files and sessions, and holds no text of them: what is forgotten is not kept in another place.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.errors import FileError
from nexus_core.files.write import directory_lock, make_directories, write_text_atomically

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from nexus_core.types.memory import Memory

_FIELDS = ("ids", "uris", "sessions")


class ForgottenMemories(NamedTuple):
    """The memories that must not return.

    Attributes:
        ids: Ids of memories.
        uris: Steps (`step:<id>`) and files, of which no memory is used.
        sessions: Names of sessions, of which no memory is used; older versions wrote them.
    """

    ids: frozenset[str] = frozenset()
    uris: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()

    def has(self, memory: Memory) -> bool:
        """True if a memory must not be used."""
        return memory.id in self.ids or memory.source.uri in self.uris or memory.session in self.sessions


class ForgetRecord(NamedTuple):
    """What one command has forgotten.

    Attributes:
        what: The name of what the user asked to forget.
        ids: Ids of memories.
        uris: Steps and files.
    """

    what: str
    ids: frozenset[str]
    uris: frozenset[str]


def find_forgotten_path(home: Path) -> Path:
    """Return the path of the list."""
    return home / "memory" / "forgotten.json"


def read_forgotten_memories(home: Path) -> ForgottenMemories:
    """Return a user's list of forgotten memories, empty if there is no file.

    Raises:
        FileError: It cannot be read. Nothing may be recalled then, because it could be something forgotten.
    """
    names: dict[str, set[str]] = {field: set() for field in _FIELDS}
    for entry in _read_entries(find_forgotten_path(home)):
        for field in _FIELDS:
            names[field].update(map(str, entry.get(field, ())))
    return ForgottenMemories(*(frozenset(names[field]) for field in _FIELDS))


def read_forget_records(home: Path) -> list[ForgetRecord]:
    """Return what each command has forgotten, oldest first.

    Raises:
        FileError: The list cannot be read.
    """
    entries = _read_entries(find_forgotten_path(home))
    return [
        ForgetRecord(
            str(entry.get("what", "")),
            frozenset(map(str, entry.get("ids", ()))),
            frozenset(map(str, entry.get("uris", ()))),
        )
        for entry in entries
    ]


def hide_file_name(path: str) -> str:
    """Return a path with a digest for the name of the file: that of a note has the words of its text."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f"sha256-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}")  # noqa: PTH118 - a name


def record_forgotten_memories(
    home: Path,
    *,
    when: str,
    what: str = "",
    ids: Iterable[str] = (),
    uris: Iterable[str] = (),
    removed: Iterable[str] = (),
    calls: Iterable[str] = (),
) -> None:
    """Add to the list, with a record of what was removed.

    Args:
        home: The user's Nexus directory.
        when: The time, as ISO 8601.
        what: The name of what the user asked to forget; no text of it.
        ids: Ids of memories.
        uris: Steps and files.
        removed: Files that were deleted, by `hide_file_name`.
        calls: Names of sessions whose calls had them.

    Raises:
        FileError: The list cannot be read or written.
    """
    path = find_forgotten_path(home)
    make_directories(path.parent, mode=0o700)
    given = {"ids": ids, "uris": uris, "removed": removed, "calls": calls}
    entry = {"time": when, "what": what, **{name: sorted(values) for name, values in given.items()}}
    with directory_lock(path.parent):
        entries = [*_read_entries(path), {name: value for name, value in entry.items() if value}]
        write_text_atomically(path, json.dumps({"schema": 1, "forgotten": entries}, indent=2) + "\n")


def restore_forgotten(home: Path, *, ids: Collection[str], uris: Collection[str]) -> bool:
    """Take memories off the list, because the user added them again.

    The records of removed files stay.

    Args:
        home: The user's Nexus directory.
        ids: Ids of memories.
        uris: Steps and files.

    Returns:
        True if one of them was on the list.

    Raises:
        FileError: The list cannot be read or written.
    """
    path = find_forgotten_path(home)
    if not path.exists():
        return False
    with directory_lock(path.parent):
        entries = _read_entries(path)
        kept = [_remove_names(_remove_names(entry, "ids", ids), "uris", uris) for entry in entries]
        if kept == entries:
            return False
        write_text_atomically(path, json.dumps({"schema": 1, "forgotten": kept}, indent=2) + "\n")
    return True


def _remove_names(entry: dict[str, Any], field: str, names: Collection[str]) -> dict[str, Any]:
    kept = [each for each in entry.get(field, ()) if str(each) not in names]
    return {name: kept if name == field else value for name, value in entry.items() if name != field or kept}


def _read_entries(path: Path) -> list[dict[str, Any]]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        hint = "repair it or delete it; then what it lists may be recalled again"
        raise FileError("the list of forgotten memories cannot be read", where=str(path), hint=hint) from error
    entries = document.get("forgotten") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not all(map(_is_entry, entries)):
        hint = 'it must be {"schema": 1, "forgotten": [...]}; delete it to begin another'
        raise FileError("the list of forgotten memories has another form", where=str(path), hint=hint)
    return entries


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and all(isinstance(entry.get(field, []), list) for field in _FIELDS)
