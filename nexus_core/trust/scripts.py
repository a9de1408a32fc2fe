"""The program that a command starts, and the files of a workspace that it names.

An approval that covered the words of a command only would let somebody exchange the script behind them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import FileError
from nexus_core.files.reading import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_BYTES = 8 * 1024 * 1024
"""The largest file whose bytes are looked at."""

_MAX_TOTAL = 8 * MAX_BYTES  # for one command, so that a thousand words cannot cost a minute
# `--config=run.js`, `lib/a.jar:lib/b.jar`, `src=run.sh,ro`, `@options`, and for a shell `true;./run.sh|cat`
_SEPARATORS = re.compile("[=:,@;&|<>()]")
# `$PWD/run.sh`, `${workspaceFolder}/run.sh`: most often the workspace is meant
_VARIABLE = re.compile(r"\$\{?[\w:]++\}?/?")
# `${SCRIPT:-./run.sh}`: without the variable, the default is what starts
_DEFAULT = re.compile(r"\$\{[^{}]*?:-([^{}]*)\}")
# What starts where a directory is named: `python3 tool`, `node .`
_ENTRIES = ("__main__.py", "index.js")


class Place(NamedTuple):
    """The root of a workspace, without links, and the directory in which a command is started."""

    root: Path
    cwd: Path

    @classmethod
    def of(cls, root: Path, cwd: object) -> Place:
        """The place of a command whose setting `cwd` says this; without one it is started in the root."""
        real = Path(os.path.realpath(root))
        # With `${workspaceFolder}/tools`, the workspace is meant.
        named = _VARIABLE.sub("", _DEFAULT.sub(r"\1", cwd)) if isinstance(cwd, str) else ""
        return cls(real, real / named if _may_be_path(named) else real)


def find_executable(program: str, place: Place, search_path: object = None) -> str | None:
    """The absolute path of what `program` would start, or None when there is nothing to start.

    Args:
        program: A name to look for, or a path; relative to the directory or the root of `place`.
        place: Where it would be started.
        search_path: The PATH that the command sets for itself; else that of this process.
    """
    if not _may_be_path(program):
        return None
    if Path(program).name != program:
        found = shutil.which(str(place.cwd / program)) or shutil.which(str(place.root / program))
    else:
        path = search_path if isinstance(search_path, str) else os.environ.get("PATH", os.defpath)
        # A relative entry counts from where the program is started, not from where we are; an empty one is that place.
        entries = (str(place.cwd / entry) for entry in path.split(os.pathsep) if not entry or _may_be_path(entry))
        found = shutil.which(program, path=os.pathsep.join(entries))
    return found and os.path.abspath(found)  # noqa: PTH100 - as it is called: links and all


def named_files(arguments: Iterable[str], place: Place) -> dict[str, object]:
    """Every regular file inside the root that is named in `arguments`: its path in the root, and its digest.

    A file that cannot be read whole is there with its size and time, which is less; one that is a link to the outside
    with its target, because nothing outside is read on behalf of a project.
    """
    files: dict[str, object] = {}
    left = _MAX_TOTAL
    for path, status in _existing(arguments, place):
        real = Path(os.path.realpath(path))
        lexical = Path(os.path.normpath(path))
        if real.is_relative_to(place.root):
            name = real.relative_to(place.root).as_posix()
            if name not in files:
                files[name], used = _digest(real, status, left)
                left -= used
        elif lexical.is_relative_to(place.root):
            files[lexical.relative_to(place.root).as_posix()] = {"outside": str(real)}
    return files


def _existing(arguments: Iterable[str], place: Place) -> Iterator[tuple[str, os.stat_result]]:
    """Every regular file that `arguments` name; a megabyte of words that name none must not take long."""
    bases = dict.fromkeys((str(place.cwd), str(place.root)))
    words = [word for argument in arguments for word in _words(argument)]
    for word in filter(None, dict.fromkeys((*words, *_modules(words)))):
        for base in bases:
            path = os.path.join(base, word)  # noqa: PTH118 - a Path takes longer than all the rest
            status = _status(path)
            if status is None:
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, status
            elif stat.S_ISDIR(status.st_mode):
                entries = (os.path.join(path, name) for name in _ENTRIES)  # noqa: PTH118 - as above
                yield from (
                    (each, found) for each in entries if (found := _status(each)) and stat.S_ISREG(found.st_mode)
                )


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return None


def _modules(words: Iterable[str]) -> Iterator[str]:
    """The files that may be meant by what follows `-m`, as in `python -m my.server`."""
    for flag, word in pairwise(words):
        if flag == "-m":
            path = word.replace(".", "/")
            yield from (f"{path}.py", f"{path}/__init__.py", f"{path}/__main__.py")


def _words(argument: str) -> Iterator[str]:
    """Everything in an argument that may be a path: itself, the words of a script for a shell, and their parts."""
    words = list(dict.fromkeys((argument, _DEFAULT.sub(r"\1", argument))))
    for text in words.copy():
        if len(text.split(maxsplit=1)) > 1:
            try:
                words += shlex.split(text)
            except ValueError:  # a quotation without its end
                words += text.split()
    words += [_VARIABLE.sub("", word) for word in words if "$" in word]
    for word in words:
        yield word
        if _SEPARATORS.search(word):
            yield word.partition("=")[2]
            yield from _SEPARATORS.split(word)


def _may_be_path(text: str) -> bool:
    try:
        return bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # half of a surrogate pair, which no file system has
        return False


def _digest(path: Path, status: os.stat_result, left: int) -> tuple[object, int]:
    """What is recorded about a file, and how many bytes had to be read for it."""
    reason = "too large"
    if status.st_size <= min(MAX_BYTES, left):
        try:
            data = read_bytes(path, max_bytes=MAX_BYTES)
        except FileError:
            data = None
        if data is not None:
            return f"sha256:{hashlib.sha256(data).hexdigest()}", len(data)
        reason = "unreadable"
    # Not the bytes, but a change of them leaves a trace here.
    return {"unread": reason, "size": status.st_size, "modified": status.st_mtime_ns}, 0
