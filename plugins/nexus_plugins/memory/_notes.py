"""Notes: one Markdown file each, in `memory` directories."""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import FileError, Finding, Source, UsageError
from nexus_core.plugin import Layer, Memory, SkippedFile
from nexus_core.plugin.files import LayerReader, directory_lock, make_directories, real_path, write_text_atomically
from nexus_core.plugin.memory import rank_texts, read_forgotten_memories
from nexus_core.plugin.text import FrontMatterError, read_front_matter, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core import Request
    from nexus_core.plugin import LoadedLayers, MemoryQuery
    from nexus_core.plugin.text import FlowValue

DIRECTORY = "memory"
MAX_NOTES = 2000
"""Notes of one directory that are read, by name: more are not notes that a person keeps."""
MAX_NOTE_BYTES = 64 * 1024
MAX_NAME_WORDS, MAX_NAME_CHARACTERS = 6, 60
"""Words and characters of a note in the name of its file."""
NOTE_KINDS = ("note", "preference")
_FINDING, _FORGOTTEN = "broken-note", "forgotten-note"
_WEB = re.compile(r"https?://", re.IGNORECASE)


class _ParsedNote(NamedTuple):
    """A note file as a memory, or None, and its findings."""

    memory: Memory | None
    findings: tuple[Finding, ...]


_cache: dict[tuple[object, ...], _ParsedNote] = {}
"""Notes by layer, path and what changes with the content of a file, so that each version of it is read once."""
MAX_CACHED_NOTES = 4 * MAX_NOTES
MIN_SETTLED_NS = 2_000_000_000
"""A file that changed a moment ago may change again without another time: it is read again until then."""


class FoundNotes(NamedTuple):
    """Notes of all layers as memories, and findings about unusable files."""

    memories: list[Memory]
    findings: list[Finding]


def search_notes(request: Request, loaded: LoadedLayers, query: MemoryQuery) -> list[Memory]:
    """Return the notes that match a query, the best first."""
    from dataclasses import replace

    notes = read_notes(request, loaded).memories
    texts = [f"{_read_name(note.source.uri)}\n{note.text}" for note in notes]
    found = rank_texts(query.text, texts, entities=query.entities, limit=query.limit, min_score=query.min_score)
    return [replace(notes[each.place], score=each.score, reason=each.reason) for each in found]


def list_notes(request: Request, loaded: LoadedLayers, query: MemoryQuery) -> list[Memory]:  # noqa: ARG001 - as a source is called
    """Return all notes, the newest first."""
    return sorted(read_notes(request, loaded).memories, key=lambda note: (-note.time, note.source.uri))


def add_note(request: Request, memory: Memory) -> str:
    """Write a note to the user's or the project's directory. Return its path.

    Raises:
        FileError: It cannot be written, or would not be read because there are too many.
        UsageError: It would not be read because it is too long.
    """
    is_local = memory.source.layer == "local"
    name = "-".join(re.findall(r"[^\W_]+", (memory.title or memory.text).casefold())[:MAX_NAME_WORDS]) or "note"
    created = datetime.fromtimestamp(memory.time / 1000, tz=UTC).date().isoformat()
    origin = "" if memory.source.uri == "caller:" else f"source: {json.dumps(memory.source.uri, ensure_ascii=False)}\n"
    text = f"---\nkind: {memory.kind}\ncreated: {created}\n{origin}---\n{memory.text.strip()}\n"
    if (size := len(text.encode(errors="surrogatepass"))) > MAX_NOTE_BYTES:
        what = f"the note has {size:,} bytes in its file; only {MAX_NOTE_BYTES:,} are read, so it is not written"
        raise UsageError(what, hint="make several notes of it")
    directory = (request.cwd / ".nexus3" if is_local else request.home) / DIRECTORY
    if is_local and not real_path(directory).is_relative_to(real_path(request.cwd)):
        hint = "remove the link, or leave out --project"
        raise FileError("a link leads out of the project, so nothing is written there", where=str(directory), hint=hint)
    make_directories(directory, mode=0o755 if is_local else 0o700)
    with directory_lock(directory):  # another program may choose the same name
        path = _choose_path(directory, name[:MAX_NAME_CHARACTERS])
        write_text_atomically(path, text, mode=0o644 if is_local else 0o600)
    return str(path)


def _choose_path(directory: Path, name: str) -> Path:
    """Return a path for a new note that no file has.

    Raises:
        FileError: There are too many notes.
    """
    if (count := len(_list_names(str(directory)))) >= MAX_NOTES:
        hint = "delete notes that are no longer true"
        raise FileError(f"there are {count:,} notes; only {MAX_NOTES:,} are read", where=str(directory), hint=hint)
    for number in range(1, MAX_NOTES):
        path = directory / f"{name}{f'-{number}' if number > 1 else ''}.md"
        if not os.path.lexists(path):
            return path
    raise FileError("there are too many notes of that name", where=str(directory), hint="give it another --title")


def remove_note(request: Request, loaded: LoadedLayers, memory: Memory) -> str:
    """Delete the file of a note, and return its path.

    Raises:
        FileError: It is not a note of this directory, or cannot be deleted.
    """
    path = memory.source.uri
    if not any(path in each.paths for each in _list_directories(request, loaded)):
        raise FileError("there is no such note here", where=path)
    try:
        Path(path).unlink()
    except OSError as error:
        raise FileError(f"cannot delete the note: {error.strerror}", where=path) from error
    return path


def read_notes(request: Request, loaded: LoadedLayers) -> FoundNotes:
    """Read the notes of the user and of the project."""
    found = FoundNotes([], [])
    for each in _list_directories(request, loaded):
        if each.excess:
            what = f"there are {MAX_NOTES + each.excess:,} notes; only the first {MAX_NOTES:,} by name are read"
            found.findings.append(Finding(_FINDING, what, each.layer.directory / DIRECTORY))
        for path in each.paths:
            parsed = _read_cached(each.layer, path)
            found.findings.extend(parsed.findings)
            if parsed.memory is not None:
                found.memories.append(parsed.memory)
    return found


def diagnose_notes(request: Request, loaded: LoadedLayers) -> list[Finding]:
    """Return findings about notes that cannot be used, and about forgotten ones."""
    notes = read_notes(request, loaded)
    try:
        forgotten = read_forgotten_memories(request.home)
    except FileError as error:
        what = f"no note is used: {error.what}; {error.hint}"
        return [*notes.findings, Finding(_FORGOTTEN, what, Path(error.where or request.home))]
    hidden = (_build_forgotten_finding(request, each) for each in notes.memories if forgotten.has(each))
    return [*notes.findings, *hidden]


def _build_forgotten_finding(request: Request, note: Memory) -> Finding:
    path = Path(note.source.uri)
    place, options = path.parents[2], " --kind preference" if note.kind == "preference" else ""
    command = f"nexus memory add TEXT{options}"
    if note.source.trust != "user":
        command = f"nexus{'' if place == request.cwd else f' -C {quote(str(place))}'} memory add TEXT --project"
    what = f"this note was forgotten, so it is not used: delete the file, or add its text again with `{command}`"
    return Finding(_FORGOTTEN, what, path, line=note.source.lines[0] if note.source.lines else 0, is_note=True)


def _read_cached(layer: Layer, path: str) -> _ParsedNote:
    """Return the note in a file, read again if the file has changed."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a stat of a Path takes twice as long, for each note in each turn
    except OSError:
        return _parse_file(layer, Path(path))
    times = status.st_mtime_ns, status.st_ctime_ns
    file = (layer.name, layer.is_own, layer.boundary, path, status.st_dev, status.st_ino, status.st_size, *times)
    parsed = _cache.get(file)
    if parsed is None:
        parsed = _parse_file(layer, Path(path))
        if time.time_ns() - max(times) > MIN_SETTLED_NS:
            if len(_cache) >= MAX_CACHED_NOTES:
                _cache.clear()
            _cache[file] = parsed
    return parsed


def _parse_file(layer: Layer, path: Path) -> _ParsedNote:
    try:
        text = LayerReader(layer).read_text(path, max_bytes=MAX_NOTE_BYTES)
    except FileError as error:
        return _ParsedNote(None, (Finding(_FINDING, f"this note is left out: {error.what}", path),))
    if isinstance(text, SkippedFile):
        return _ParsedNote(None, (Finding(_FINDING, f"this note is left out: {text.reason}", path),))
    findings: list[Finding] = []
    memory = _read_note(layer, path, text, findings)
    return _ParsedNote(memory, tuple(findings))


class _NoteDirectory(NamedTuple):
    """The notes of a layer: the paths of those that are read, and the number of others."""

    layer: Layer
    paths: list[str]
    excess: int


def _list_directories(request: Request, loaded: LoadedLayers) -> Iterator[_NoteDirectory]:
    """Yield the directories with notes that are read, the user's first."""
    for layer in _list_note_layers(request, loaded):
        directory = str(layer.directory / DIRECTORY)
        names = _list_names(directory)
        paths = [f"{directory}{os.sep}{name}" for name in names[:MAX_NOTES]]
        yield _NoteDirectory(layer, paths, max(len(names) - MAX_NOTES, 0))


def _list_note_layers(request: Request, loaded: LoadedLayers) -> list[Layer]:
    """Return the layers whose notes are read, the user's first."""
    usable = [layer for layer in loaded.layers if not layer.only_rules and layer.scope != "defaults"]
    if all(layer.directory != request.home for layer in usable):  # a user without instructions may have notes
        usable.insert(0, Layer("global", request.home, "global"))
    return usable


def _list_names(directory: str) -> list[str]:
    """Return the names of the note files in a directory, in order."""
    names: list[str] = []
    with suppress(OSError):
        names = sorted(os.listdir(directory))  # noqa: PTH208 - a Path for each note costs more than its status
    return [name for name in names if name.endswith(".md") and not name.startswith(".")]


def _read_note(layer: Layer, path: Path, text: str, findings: list[Finding]) -> Memory | None:
    head: dict[str, FlowValue] = {}
    body = text
    if text.partition("\n")[0].rstrip() == "---":  # more dashes are a line of the text
        try:
            head, body = read_front_matter(text)
        except FrontMatterError as error:
            findings.append(Finding(_FINDING, f"this note is left out: {error}", path, line=error.line))
            return None
    first = text[: len(text) - len(body)].count("\n") + 1
    stripped = body.strip("\n")
    if not stripped.strip():
        findings.append(Finding(_FINDING, "this note is left out: it has no text", path, line=first))
        return None
    first += len(body) - len(body.lstrip("\n"))
    kind = head.get("kind", "note")
    if kind not in NOTE_KINDS:
        what = f"its kind must be {' or '.join(NOTE_KINDS)}, not {visible_line(str(kind))}; it is read as a note"
        findings.append(Finding(_FINDING, what, path, line=_find_line(text, "kind")))
        kind = "note"
    created = _parse_date(head.get("created"))
    if created is None:
        what = f"its date must be like 2026-11-17, not {visible_line(str(head.get('created')))}"
        findings.append(Finding(_FINDING, what, path, line=_find_line(text, "created")))
    is_web = _WEB.search(str(head.get("source", ""))) is not None  # it may be a list of several
    return Memory(
        text=stripped,
        # A file of a project is never a rule of the user.
        kind="preference" if kind == "preference" and layer.is_own and not is_web else "note",
        source=Source(
            uri=str(path),
            layer=layer.name,
            lines=(first, first + stripped.count("\n")),
            trust="user" if layer.is_own else "project",
        ),
        origin="web" if is_web else "user" if layer.is_own else "file",
        title=_build_title(str(path), "" if is_web or not layer.is_own else stripped),
        time=created or 0,
    )


def _read_name(path: str) -> str:
    """Return the words in the name of a note's file."""
    name = path[path.rfind(os.sep) + 1 :].removesuffix(".md")
    return name.replace("-", " ").replace("_", " ")


def _build_title(path: str, text: str) -> str:
    """Return a short title for a note: its file name or first line.

    Args:
        path: The file. A long name may be the beginning of a text that `add` cut, and is no title.
        text: The text; "" for text that is quoted, which no heading repeats outside of the quote.
    """
    name = _read_name(path)
    if len(name.split()) < MAX_NAME_WORDS and len(name) < MAX_NAME_CHARACTERS:
        return name
    first = text.partition("\n")[0].lstrip("#").strip()
    return first if len(first) <= MAX_NAME_CHARACTERS else ""


def _find_line(text: str, key: str) -> int:
    return next((number for number, line in enumerate(text.split("\n"), 1) if line.lstrip().startswith(f"{key}:")), 1)


def _parse_date(value: object) -> int | None:
    """Return a date in milliseconds since 1970, 0 if missing, None if invalid."""
    if value is None or value == "":
        return 0
    try:
        parsed = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1000)
