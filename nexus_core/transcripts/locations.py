"""Where programs keep the sessions of a directory."""

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

BEGINNING = 1 << 18
"""So many bytes of a file are read to find out whose directory it is about."""
SUBAGENTS = "subagents"
_LONGEST_NAME = 200
"""A longer name of a directory is cut off by Claude Code, and something added to it."""


class TranscriptFile(NamedTuple):
    """A session that a program keeps.

    Attributes:
        path: The file.
        size: Its bytes.
        changed: When it was last written to, in seconds since 1970.
    """

    path: Path
    size: int
    changed: float


def find_transcripts(program: str, cwd: Path) -> list[TranscriptFile]:
    """The sessions that a program keeps of a directory, the oldest first, subagents behind all others.

    Args:
        program: Whose: `claude`, `codex` or `pi`.
        cwd: The directory.

    Raises:
        UnknownNameError: It is none of these.
    """
    if program not in PROGRAMS:
        raise UnknownNameError("program", program, PROGRAMS)
    wanted = {os.path.realpath(cwd), str(cwd)}
    # Codex keeps sessions by their date, so that one that does not say where it was could be from anywhere.
    silent = program != "codex"
    found = [
        each for path in PROGRAMS[program](wanted) if (each := _looked_at(path, wanted, silent=silent)) is not None
    ]
    return sorted(found, key=lambda each: (each.path.parent.name == SUBAGENTS, each.changed, str(each.path)))


def transcripts_directory(program: str) -> Path:
    """Where a program keeps sessions, of whatever directory."""
    variable, usual, folder = _PLACES[program]
    return Path(os.environ.get(variable) or os.path.expanduser(usual)) / folder  # noqa: PTH111 - fails without a home


_PLACES = {
    "claude": ("CLAUDE_CONFIG_DIR", "~/.claude", "projects"),
    "codex": ("CODEX_HOME", "~/.codex", "sessions"),
    "pi": ("PI_CODING_AGENT_DIR", "~/.pi/agent", "sessions"),
}


def _of_claude(directories: Iterable[str]) -> Iterator[Path]:
    """Sessions and those of their subagents, in a folder named after the directory."""
    root = transcripts_directory("claude")
    for name in {re.sub(r"[^a-zA-Z0-9]", "-", directory) for directory in directories}:
        for folder in _folders(root, name):
            yield from _files(folder)
            for session in _listed(folder):
                yield from _files(session / SUBAGENTS)


def _of_codex(_directories: Iterable[str]) -> Iterator[Path]:
    """Rollouts by their date, of all directories."""
    root = transcripts_directory("codex")
    for year in _listed(root):
        for month in _listed(year):
            for day in _listed(month):
                yield from _files(day)
    yield from _files(root.with_name("archived_sessions"))


def _of_pi(directories: Iterable[str]) -> Iterator[Path]:
    """Sessions in a folder named after the directory."""
    root = transcripts_directory("pi")
    for directory in directories:
        name = re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", directory))
        yield from _files(root / f"--{name}--")


PROGRAMS: dict[str, Callable[[Iterable[str]], Iterator[Path]]] = {
    "claude": _of_claude,
    "codex": _of_codex,
    "pi": _of_pi,
}


def _folders(root: Path, name: str) -> list[Path]:
    if len(name) <= _LONGEST_NAME:
        return [root / name]
    return [folder for folder in _listed(root) if folder.name.startswith(name[:_LONGEST_NAME])]


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # no folder, or none of ours
        return []


def _files(folder: Path) -> list[Path]:
    return [path for path in _listed(folder) if path.suffix == ".jsonl"]


def _looked_at(path: Path, wanted: set[str], *, silent: bool) -> TranscriptFile | None:
    """A file about one of these directories.

    Args:
        path: The file.
        wanted: The directories.
        silent: Whether one that names no directory counts.
    """
    try:
        descriptor = os.open(path, READ_FLAGS)
    except OSError:
        return None
    try:
        facts = os.fstat(descriptor)
        beginning = os.read(descriptor, BEGINNING) if S_ISREG(facts.st_mode) else None
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if beginning is None:
        return None
    about = _directory_in(beginning)
    is_about = os.path.realpath(about) in wanted if about else silent
    return TranscriptFile(path, facts.st_size, facts.st_mtime) if is_about else None


def _directory_in(beginning: bytes) -> str:
    """The first directory that the lines of a file name; "" for none."""
    for line in beginning.split(b"\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        found = _cwd_of(value) or _cwd_of(value.get("payload") if isinstance(value, dict) else None)
        if found:
            return found
    return ""


def _cwd_of(value: Any) -> str:  # noqa: ANN401 - whatever stands in a line
    found = value.get("cwd") if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
