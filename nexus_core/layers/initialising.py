"""Sets up a `.nexus3` directory: says what would be written, then writes all of it or nothing."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import ExitStack, suppress
from itertools import count
from typing import TYPE_CHECKING, Literal

from nexus_core.errors import FileError
from nexus_core.files.writing import current_umask, write_text_atomically
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from nexus_core.host.host import Host
    from nexus_core.values.declarations import InitScope

FileAction = Literal["new", "overwritten", "unchanged"]
"""What becomes of a file: `unchanged` is one that says all of it already."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file, what it will hold, what becomes of the one that is there, and where that is kept if overwritten."""

    path: Path
    text: str
    action: FileAction
    backup: Path | None = None


@dataclass(frozen=True, slots=True)
class InitPlan:
    """What `carry_out` will write; nothing has been written yet."""

    directory: Path
    scope: InitScope
    files: tuple[PlannedFile, ...]

    @property
    def written(self) -> tuple[PlannedFile, ...]:
        """The files that are not left alone."""
        return tuple(file for file in self.files if file.action != "unchanged")


def plan_init(
    host: Host, directory: Path, scope: InitScope, *, force: bool, contents: Mapping[str, str] | None = None
) -> InitPlan:
    """Decide what becomes of each file that the plugins want in a new directory.

    Args:
        host: The plugins.
        directory: The `.nexus3` of a project, or the user's own; it need not exist.
        scope: Which of the two it is.
        force: Whether files that are there are overwritten; each of them is kept under another name.
        contents: By name, files that hold something else than the plugins say.

    Raises:
        FileError: A file is there and `force` is off; or the directory or a file is a link or not what it should be.
    """
    texts = {**host.init_files(scope), **(contents or {})}
    _refuse_oddities(directory, (directory / name for name in texts))
    existing = [name for name in texts if os.path.lexists(directory / name)]
    if existing and not force:
        raise FileError(
            f"already exists: {', '.join(existing)}",
            where=str(directory),
            hint="--force overwrites, and keeps the old files as <name>.bak",
        )
    return InitPlan(directory, scope, tuple(_plan_file(directory / name, text) for name, text in texts.items()))


def carry_out(plan: InitPlan) -> None:
    """Write what was planned; after any failure or interrupt, everything is as it was before.

    Raises:
        FileError: Something cannot be written, or is not what it was when the plan was made.
    """
    # Never writable for others, whatever the umask: they could speak to the agent.
    mode, directory_mode = (0o600, 0o700) if plan.scope == "global" else (0o644 & ~current_umask(), 0o755)
    try:
        with ExitStack() as undo:
            _refuse_oddities(plan.directory, (file.path for file in plan.files))  # they may have come since
            for file in plan.written:
                _make_directories(file.path.parent, directory_mode, undo)
                _write(file, mode, undo)
            undo.pop_all()
    except OSError as error:
        raise FileError(f"cannot write: {error.strerror}", where=str(error.filename or plan.directory)) from error


# ---- planning ---------------------------------------------------------------------------------------------


def _plan_file(path: Path, text: str) -> PlannedFile:
    if os.path.lexists(path) and not _holds(path, text):
        return PlannedFile(path, text, "overwritten", _free_backup(path))
    return PlannedFile(path, text, "unchanged" if os.path.lexists(path) else "new")


def _holds(path: Path, text: str) -> bool:
    data = text.encode("utf-8", "surrogatepass")
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:  # who cannot read it can still put another in its place
        return False


def _free_backup(path: Path) -> Path:
    """`<name>.bak`; where that is taken `<name>.bak1`, and so on."""
    names = (path.with_name(f"{path.name}.bak{number or ''}") for number in count())
    return next(name for name in names if not os.path.lexists(name))


def _refuse_oddities(directory: Path, paths: Iterable[Path]) -> None:
    """Raise for a link, which may lead anywhere, and for a file or directory where the other should be."""
    _require(directory, stat.S_ISDIR, "not a directory")
    for path in paths:
        for parent in reversed(path.parents):
            if parent.is_relative_to(directory):
                _require(parent, stat.S_ISDIR, "not a directory")
        _require(path, stat.S_ISREG, "not a regular file")


def _require(path: Path, is_right: Callable[[int], bool], objection: str) -> None:
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise FileError(f"cannot be looked at: {error.strerror}", where=str(path)) from error
    if stat.S_ISLNK(mode):
        raise FileError("is a link", where=str(path), hint="nexus init does not write through links; remove it first")
    if not is_right(mode):
        raise FileError(objection, where=str(path), hint="remove it or give it another name")


# ---- writing ----------------------------------------------------------------------------------------------


def _make_directories(directory: Path, mode: int, undo: ExitStack) -> None:
    for each in reversed((directory, *directory.parents)):
        if not os.path.lexists(each):
            each.mkdir(mode=mode)
            undo.callback(_remove_directory, each)


def _remove_directory(directory: Path) -> None:
    with suppress(OSError):  # somebody has put something into it
        directory.rmdir()


def _write(file: PlannedFile, mode: int, undo: ExitStack) -> None:
    # What undoes a step is known before the step: a failure can come after the file has taken its place.
    if file.backup is not None:
        _keep(file.path, file.backup)
        undo.callback(_restore, file.path, file.backup)
    elif os.path.lexists(file.path):
        raise FileError("has been written by somebody else just now", where=str(file.path), hint="look at it first")
    else:
        undo.callback(file.path.unlink, missing_ok=True)
    write_text_atomically(file.path, file.text, mode=mode)
    if file.backup is not None:  # no more open than what has taken its place
        file.backup.chmod(stat.S_IMODE(file.backup.stat().st_mode) & mode)


def _keep(path: Path, backup: Path) -> None:
    """Give a file a second name; never one that is taken."""
    try:
        os.link(path, backup)  # unlike a copy, whole at every moment and possible on a full disk
    except OSError:  # not every file system can do that; or it is taken, which is noticed again
        backup.touch(mode=0o600, exist_ok=False)
        try:
            shutil.copyfile(path, backup)
            with backup.open("r+b") as copy:
                os.fsync(copy.fileno())
            shutil.copymode(path, backup)
        except BaseException:
            backup.unlink()
            raise


def _restore(path: Path, backup: Path) -> None:
    try:
        backup.replace(path)
        backup.unlink(missing_ok=True)  # two names of one file do not replace each other
    except OSError as error:
        raise FileError(f"cannot be put back: {error.strerror}", where=str(path), hint=f"it is {backup}") from error
