"""Directories in which programs keep transcripts: those of a working directory, the newest of all, and all."""

from __future__ import annotations

import json
import os
import re
from functools import partial
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from nexus_core.errors import UnknownNameError
from nexus_core.files.read import READ_FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from nexus_core.types.transcripts import TranscriptLocation, TranscriptReader

MAX_BEGINNING_BYTES = 1 << 18
"""Enough of a file to find the working directory, which one of its first lines names."""
_MAX_LISTED_FILES = 2000
"""Files whose beginnings are read for a list of all transcripts: a second or two."""
_MAX_SEARCHED_FILES = 200
"""Files whose beginnings are read for the newest of a directory: some tens of milliseconds."""
_ESCAPED_ROOTS = ("%2F", "%2f")
"""Beginnings of the escaped path of a directory."""
_SUBAGENTS = "subagents"
_GEMINI_CHATS = "chats"
_GEMINI_SUFFIXES = (".json", ".jsonl")
_MAX_FOLDER_CHARS = 200
"""Claude Code truncates a longer folder name, and appends a hash."""


class TranscriptFile(NamedTuple):
    """A transcript that a program keeps.

    Attributes:
        path: The file.
        size: Its size in bytes.
        changed: Time of its last change, in seconds since 1970.
        program: The program: one of `PROGRAMS`.
        directory: The working directory that it names; "" if it names none.
    """

    path: Path
    size: int
    changed: float
    program: str
    directory: str


def find_transcripts(program: str, cwd: Path, readers: Iterable[TranscriptReader] = ()) -> list[TranscriptFile]:
    """Return the transcripts of a directory, oldest first, then subagents.

    Args:
        program: One of `PROGRAMS`, or the name of a reader.
        cwd: The working directory.
        readers: Readers of plugins. Of their files, those that name the directory are returned.

    Raises:
        UnknownNameError: There is no such program.
    """
    added = {reader.name: reader for reader in readers}
    wanted = {os.path.realpath(cwd), str(cwd)}
    if program not in _SEARCHES:
        if program not in added:
            raise UnknownNameError("program", program, [*_SEARCHES, *added])
        files = [each for path in _list_reader(added[program]) if (each := _read_file(path, program)) is not None]
        named = [each for each in files if each.directory and _resolve(each.directory) in wanted]
        return sorted(named, key=lambda each: (each.changed, str(each.path)))
    # Codex sorts files by date, so that one that names no directory could be from anywhere.
    counts_unnamed = program != "codex"
    paths = _SEARCHES[program](wanted)
    read = [each for path in paths if (each := _read_file(path, program)) is not None]
    found = [each for each in read if (_resolve(each.directory) in wanted if each.directory else counts_unnamed)]
    return sorted(found, key=lambda each: (_is_subagent(each), each.changed, str(each.path)))


def find_all_transcripts(readers: Iterable[TranscriptReader]) -> tuple[list[TranscriptFile], int]:
    """Return the transcripts of all programs and directories, newest first, and how many more there are.

    Subagents are among them, empty files are not. At most `_MAX_LISTED_FILES` are opened.
    """
    listings: dict[str, Callable[[], Iterator[Path]]] = {
        **_LISTINGS,
        "claude": _list_claude,
        "gemini": _list_gemini_all,
    }
    for reader in readers:
        listings.setdefault(reader.name, partial(_list_reader, reader))
    found = _sort_by_time(listings)
    opened = [_read_file(path, program) for path, program in found[:_MAX_LISTED_FILES]]
    return [each for each in opened if each is not None], max(len(found) - _MAX_LISTED_FILES, 0)


def find_newest_transcripts(
    limit: int, readers: Iterable[TranscriptReader] = (), cwd: Path | None = None
) -> tuple[list[TranscriptFile], int]:
    """Return the newest transcripts of all programs and directories, newest first, and how many more there are.

    Subagents of `PROGRAMS` and empty files do not count. Only the files that are returned are opened, and up to
    `_MAX_SEARCHED_FILES` to find one of the working directory.

    Args:
        limit: How many to return.
        readers: Readers of plugins, whose files are among them.
        cwd: A working directory, whose newest transcript comes before all others; None to sort by time only.
    """
    listings = dict(_LISTINGS)
    for reader in readers:
        listings.setdefault(reader.name, partial(_list_reader, reader))
    found = _sort_by_time(listings)
    here = None if cwd is None else _find_newest_about(cwd, found)
    newest = [] if here is None else [here]
    for number, (path, program) in enumerate(found):
        if len(newest) == limit:
            is_after = here is not None and here.path not in [each for each, _ in found[:number]]
            return newest, len(found) - number - is_after
        each = None if here is not None and path == here.path else _read_file(path, program)
        if each is not None:
            newest.append(each)
    return newest, 0


def _find_newest_about(cwd: Path, found: Sequence[tuple[Path, str]]) -> TranscriptFile | None:
    """Return the newest of the files that names a working directory; None if none of those that are read does."""
    files = (_read_file(path, program) for path, program in found[:_MAX_SEARCHED_FILES])
    return next((each for each in files if each is not None and is_about_directory(each, cwd)), None)


def _sort_by_time(listings: Mapping[str, Callable[[], Iterator[Path]]]) -> list[tuple[Path, str]]:
    """Return the files of programs that are not empty, with their program, those that changed last first."""
    found: list[tuple[float, Path, str]] = []
    for program, list_all in listings.items():
        for path in dict.fromkeys(list_all()):
            try:
                stat = path.lstat()
            except OSError:
                continue
            if S_ISREG(stat.st_mode) and stat.st_size:
                found.append((stat.st_mtime, path, program))
    found.sort(key=lambda each: (-each[0], str(each[1])))
    return [(path, program) for _, path, program in found]


def is_about_directory(file: TranscriptFile, cwd: Path) -> bool:
    """True if a transcript names a working directory as its own."""
    return bool(file.directory) and _resolve(file.directory) == os.path.realpath(cwd)


def get_transcripts_directory(program: str) -> Path:
    """Return the directory in which a program keeps all transcripts."""
    variable, usual, folder = _DIRECTORIES[program]
    return Path(os.environ.get(variable) or os.path.expanduser(usual)) / folder  # noqa: PTH111 - fails without a home


def list_transcript_directories(program: str, readers: Iterable[TranscriptReader] = ()) -> list[Path]:
    """Return the directories that are searched for a program's transcripts."""
    if program in _DIRECTORIES:
        return [get_transcripts_directory(program)]
    places = [place for reader in readers if reader.name == program for place in reader.locations]
    return list(dict.fromkeys(map(_find_root, places)))


_DIRECTORIES = {
    "claude": ("CLAUDE_CONFIG_DIR", "~/.claude", "projects"),
    "codex": ("CODEX_HOME", "~/.codex", "sessions"),
    "gemini": ("GEMINI_CLI_HOME", "~", ".gemini/tmp"),
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


def _search_gemini(directories: Iterable[str]) -> Iterator[Path]:
    """Yield sessions and subagents of the folders that belong to the directories."""
    wanted = set(directories)
    hashes = {sha256(directory.encode()).hexdigest() for directory in wanted}
    for folder in _list_folder(get_transcripts_directory("gemini")):
        if folder.name in hashes or _read_project_root(folder) in wanted:
            chats = folder / _GEMINI_CHATS
            yield from _list_files(chats, _GEMINI_SUFFIXES)
            for session in _list_folder(chats):
                yield from _list_files(session, _GEMINI_SUFFIXES)


def _list_gemini() -> Iterator[Path]:
    """Yield the sessions of all projects."""
    for folder in _list_folder(get_transcripts_directory("gemini")):
        yield from _list_files(folder / _GEMINI_CHATS, _GEMINI_SUFFIXES)


def _list_gemini_all() -> Iterator[Path]:
    """Yield the sessions and subagents of all projects."""
    yield from _list_gemini()
    for folder in _list_folder(get_transcripts_directory("gemini")):
        for session in _list_folder(folder / _GEMINI_CHATS):
            yield from _list_files(session, _GEMINI_SUFFIXES)


def _list_claude() -> Iterator[Path]:
    """Yield the sessions and subagents of all working directories."""
    for folder in _list_folder(get_transcripts_directory("claude")):
        yield from _list_files(folder)
        for session in _list_folder(folder):
            yield from _list_files(session / _SUBAGENTS)


def _list_reader(reader: TranscriptReader) -> Iterator[Path]:
    """Yield the files of a reader's locations."""
    for place in reader.locations:
        try:
            yield from sorted(_find_root(place).glob(place.pattern))
        except (OSError, ValueError, NotImplementedError):  # not readable, or not a pattern
            continue


def _find_root(place: TranscriptLocation) -> Path:
    named = os.environ.get(place.variable) if place.variable else ""
    return Path(named or os.path.expanduser(place.directory))  # noqa: PTH111 - fails without a home


def _read_project_root(folder: Path) -> str:
    """Return the directory that a folder of Gemini CLI belongs to; "" in older ones, which have a hash as a name."""
    found = read_beginning(folder / ".project_root")
    return found[1].decode(errors="replace").strip() if found else ""


def _search_pi(directories: Iterable[str]) -> Iterator[Path]:
    """Yield sessions in a folder named after the working directory."""
    root = get_transcripts_directory("pi")
    for directory in directories:
        name = re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", directory))
        yield from _list_files(root / f"--{name}--")


def _list_projects(program: str) -> Iterator[Path]:
    """Yield the sessions of all working directories, each of which has a folder."""
    for folder in _list_folder(get_transcripts_directory(program)):
        yield from _list_files(folder)


_LISTINGS: dict[str, Callable[[], Iterator[Path]]] = {
    "claude": partial(_list_projects, "claude"),
    "codex": partial(_search_codex, ()),
    "gemini": _list_gemini,
    "pi": partial(_list_projects, "pi"),
}
_SEARCHES: dict[str, Callable[[Iterable[str]], Iterator[Path]]] = {
    "claude": _search_claude,
    "codex": _search_codex,
    "gemini": _search_gemini,
    "pi": _search_pi,
}
PROGRAMS = tuple(_SEARCHES)
"""The programs whose transcripts are found."""
PROGRAM_NAMES = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "pi": "pi"}
"""Their product names."""


def _find_folders(root: Path, name: str) -> list[Path]:
    if len(name) <= _MAX_FOLDER_CHARS:
        return [root / name]
    return [folder for folder in _list_folder(root) if folder.name.startswith(name[:_MAX_FOLDER_CHARS])]


def _list_folder(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # missing, not a folder, or not readable
        return []


def _list_files(folder: Path, suffixes: Container[str] = (".jsonl",)) -> list[Path]:
    return [path for path in _list_folder(folder) if path.suffix in suffixes]


def _is_subagent(found: TranscriptFile) -> bool:
    folder = found.path.parent.name
    return folder != _GEMINI_CHATS if found.program == "gemini" else folder == _SUBAGENTS


def _read_file(path: Path, program: str) -> TranscriptFile | None:
    """Return a file with the working directory that it names, or None if it is not a readable file."""
    found = read_beginning(path)
    if found is None:
        return None
    stat, beginning = found
    if program == "gemini":
        directory = _find_gemini_directory(path)
    else:
        directory = _find_directory(beginning) or _find_folder_directory(path)
    return TranscriptFile(path, stat.st_size, stat.st_mtime, program, directory)


def read_beginning(path: Path) -> tuple[os.stat_result, bytes] | None:
    """Return the status and the first `MAX_BEGINNING_BYTES` of a file, or None if it is not a readable file."""
    try:
        descriptor = os.open(path, READ_FLAGS)
    except OSError:
        return None
    try:
        stat = os.fstat(descriptor)
        return (stat, os.read(descriptor, MAX_BEGINNING_BYTES)) if S_ISREG(stat.st_mode) else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _find_gemini_directory(path: Path) -> str:
    """Return the project of a session, which only the folder names."""
    chats = path.parent if path.parent.name == _GEMINI_CHATS else path.parent.parent
    return _read_project_root(chats.parent)


def _find_directory(beginning: bytes) -> str:
    """Return the first working directory in the lines of a file, or ""."""
    lines = beginning.split(b"\n")
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        found = _get_cwd(value) or _get_cwd(value.get("payload") if isinstance(value, dict) else None)
        if found or (found := _find_nested_cwd(value)):
            return found
    return _find_member_cwd(lines)


def _find_member_cwd(lines: Sequence[bytes]) -> str:
    """Return the working directory among the members of an indented document, or ""."""
    if len(lines) == 1 or lines[0].strip() != b"{":
        return ""
    indent = lines[1][: len(lines[1]) - len(lines[1].lstrip())]
    for line in lines[1:]:
        if line.startswith(indent + b'"cwd":'):
            try:
                return _get_cwd(json.loads(b"{%b}" % line.strip().rstrip(b",")))
            except (ValueError, RecursionError):
                return ""
    return ""


def _find_folder_directory(path: Path) -> str:
    """Return the working directory whose escaped path is the name of a folder around a file, as Grok CLI has it."""
    named = (unquote(folder.name) for folder in path.parents if folder.name.startswith(_ESCAPED_ROOTS))
    return next(named, "")


def _resolve(directory: str) -> str:
    """Return a directory without links, "" if no directory can have this name."""
    try:
        return os.path.realpath(directory)
    except (OSError, ValueError):  # a NUL or a lone surrogate in it
        return ""


def _find_nested_cwd(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return the directory of a Copilot event, a record of Kimi, a document of OpenCode or a state of OpenHands, ""."""
    if not isinstance(value, dict):
        return ""
    data, info = value.get("data"), value.get("info")
    inner = data.get("context") if isinstance(data, dict) else value.get("environmentDisclosure")
    document = info if isinstance(info, dict) else value
    directory = document.get("directory") if "projectID" in document else ""
    workspace = value.get("workspace")
    if isinstance(workspace, dict):
        directory = workspace.get("working_dir")
    return _get_cwd(inner) or (directory if isinstance(directory, str) else "")


def _get_cwd(value: Any) -> str:  # noqa: ANN401 - any JSON
    found = value.get("cwd") if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
