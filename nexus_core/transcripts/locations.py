"""Directories in which programs keep the transcripts of a working directory."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.errors import UnknownNameError
from nexus_core.files.read import READ_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_MAX_READ_BYTES = 1 << 18
"""Enough of a file to find the working directory, which one of its first lines names."""
_SUBAGENTS = "subagents"
_MAX_FOLDER_CHARS = 200
"""Claude Code truncates a longer folder name, and appends a hash."""


class TranscriptFile(NamedTuple):
    """A transcript that a program keeps.

    Attributes:
        path: The file.
        size: Its size in bytes.
        changed: Time of its last change, in seconds since 1970.
    """

    path: Path
    size: int
    changed: float


def find_transcripts(program: str, cwd: Path) -> list[TranscriptFile]:
    """Return the transcripts of a directory, oldest first, then subagents.

    Args:
        program: `claude`, `codex` or `pi`.
        cwd: The working directory.

    Raises:
        UnknownNameError: There is no such program.
    """
    if program not in _SEARCHES:
        raise UnknownNameError("program", program, _SEARCHES)
    wanted = {os.path.realpath(cwd), str(cwd)}
    # Codex sorts files by date, so that one that names no directory could be from anywhere.
    counts_unnamed = program != "codex"
    paths = _SEARCHES[program](wanted)
    found = [each for path in paths if (each := _check_file(path, wanted, counts_unnamed=counts_unnamed)) is not None]
    return sorted(found, key=lambda each: (each.path.parent.name == _SUBAGENTS, each.changed, str(each.path)))


def get_transcripts_directory(program: str) -> Path:
    """Return the directory in which a program keeps all transcripts."""
    variable, usual, folder = _DIRECTORIES[program]
    return Path(os.environ.get(variable) or os.path.expanduser(usual)) / folder  # noqa: PTH111 - fails without a home


_DIRECTORIES = {
    "claude": ("CLAUDE_CONFIG_DIR", "~/.claude", "projects"),
    "codex": ("CODEX_HOME", "~/.codex", "sessions"),
    "pi": ("PI_CODING_AGENT_DIR", "~/.pi/agent", "sessions"),
}


def _search_claude(directories: Iterable[str]) -> Iterator[Path]:
    """Yield sessions and subagents, in a folder named after the directory."""
    root = get_transcripts_directory("claude")
    for name in {re.sub(r"[^a-zA-Z0-9]", "-", directory) for directory in directories}:
        for folder in _find_folders(root, name):
            yield from _list_files(folder)
            for session in _list_folder(folder):
                yield from _list_files(session / _SUBAGENTS)


def _search_codex(_directories: Iterable[str]) -> Iterator[Path]:
    """Yield sessions of all working directories, by their date."""
    root = get_transcripts_directory("codex")
    for year in _list_folder(root):
        for month in _list_folder(year):
            for day in _list_folder(month):
                yield from _list_files(day)
    yield from _list_files(root.with_name("archived_sessions"))


def _search_pi(directories: Iterable[str]) -> Iterator[Path]:
    """Yield sessions in a folder named after the working directory."""
    root = get_transcripts_directory("pi")
    for directory in directories:
        name = re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", directory))
        yield from _list_files(root / f"--{name}--")


_SEARCHES: dict[str, Callable[[Iterable[str]], Iterator[Path]]] = {
    "claude": _search_claude,
    "codex": _search_codex,
    "pi": _search_pi,
}


def _find_folders(root: Path, name: str) -> list[Path]:
    if len(name) <= _MAX_FOLDER_CHARS:
        return [root / name]
    return [folder for folder in _list_folder(root) if folder.name.startswith(name[:_MAX_FOLDER_CHARS])]


def _list_folder(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # missing, not a folder, or not readable
        return []


def _list_files(folder: Path) -> list[Path]:
    return [path for path in _list_folder(folder) if path.suffix == ".jsonl"]


def _check_file(path: Path, wanted: set[str], *, counts_unnamed: bool) -> TranscriptFile | None:
    """Return a file if it belongs to one of the working directories.

    Args:
        path: The file.
        wanted: The working directories.
        counts_unnamed: True if a file that names no directory counts.
    """
    try:
        descriptor = os.open(path, READ_FLAGS)
    except OSError:
        return None
    try:
        stat = os.fstat(descriptor)
        beginning = os.read(descriptor, _MAX_READ_BYTES) if S_ISREG(stat.st_mode) else None
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if beginning is None:
        return None
    directory = _find_directory(beginning)
    is_wanted = os.path.realpath(directory) in wanted if directory else counts_unnamed
    return TranscriptFile(path, stat.st_size, stat.st_mtime) if is_wanted else None


def _find_directory(beginning: bytes) -> str:
    """Return the first working directory in the lines of a file, or ""."""
    for line in beginning.split(b"\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        found = _get_cwd(value) or _get_cwd(value.get("payload") if isinstance(value, dict) else None)
        if found:
            return found
    return ""


def _get_cwd(value: Any) -> str:  # noqa: ANN401 - any JSON
    found = value.get("cwd") if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
