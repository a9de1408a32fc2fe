"""Creation of a `.nexus3` directory: a plan, then all of its files or none."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import ExitStack, suppress
from itertools import count
from typing import TYPE_CHECKING, Literal

from nexus_core.errors import FileError
from nexus_core.files.write import current_umask, write_text_atomically
from nexus_core.types.base import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from nexus_core.host.manager import Host
    from nexus_core.types.settings import InitScope

FileAction = Literal["new", "overwritten", "unchanged", "kept"]
"""Outcome for a file: `unchanged` if it has the planned content already, `kept` if it stays with another."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file, its planned content, what happens to an existing one, and the backup path if it is overwritten."""

    path: Path
    text: str
    action: FileAction
    backup: Path | None = None


@dataclass(frozen=True, slots=True)
class InitPlan:
    """The files that `execute_init_plan` will write. Nothing has been written yet."""

    directory: Path
    scope: InitScope
    files: tuple[PlannedFile, ...]

    @property
    def written(self) -> tuple[PlannedFile, ...]:
        """The files that will be written."""
        return tuple(file for file in self.files if file.action in ("new", "overwritten"))


def plan_init(
    host: Host, directory: Path, scope: InitScope, *, force: bool, contents: Mapping[str, str] | None = None
) -> InitPlan:
    """Plan what happens to each file that the plugins provide for a new directory.

    Args:
        host: The plugins.
        directory: The `.nexus3` of a project, or the user's own; it need not exist.
        scope: Which of the two it is.
        force: True to overwrite existing files; each is kept as a backup.
        contents: Contents by file name that replace or extend those of the plugins.

    Raises:
        FileError: Without `force`, all files exist, or one that `contents` names, or any of the user's own, which are
            made together; or the directory or a file is a link or of the wrong type.
    """
    texts = {**host.init_files(scope), **(contents or {})}
    _require_plain_targets(directory, (directory / name for name in texts))
    existing = [name for name in texts if os.path.lexists(directory / name)]
    is_complete = len(existing) == len(texts) or any(name in existing for name in contents or ())
    if existing and not force and (scope == "global" or is_complete):
        raise FileError(
            f"already exists: {', '.join(existing)}",
            where=str(directory),
            hint="--force overwrites, and keeps the old files as <name>.bak",
        )
    return InitPlan(
        directory, scope, tuple(_plan_file(directory / name, text, force=force) for name, text in texts.items())
    )


def execute_init_plan(plan: InitPlan) -> None:
    """Write the planned files. After any failure or interrupt, everything is restored.

    Raises:
        FileError: Something cannot be written, or has changed since the plan was made.
    """
    # Never writable for others, whatever the umask: they could write instructions for the agent.
    mode, directory_mode = (0o600, 0o700) if plan.scope == "global" else (0o644 & ~current_umask(), 0o755)
    try:
        with ExitStack() as undo:
            _require_plain_targets(plan.directory, (file.path for file in plan.files))  # they may be new since the plan
            for file in plan.written:
                _make_directories(file.path.parent, directory_mode, undo)
                _write_planned_file(file, mode, undo)
            undo.pop_all()
    except OSError as error:
        raise FileError(f"cannot write: {error.strerror}", where=str(error.filename or plan.directory)) from error


# ---- planning ---------------------------------------------------------------------------------------------


def _plan_file(path: Path, text: str, *, force: bool) -> PlannedFile:
    if os.path.lexists(path) and not _has_content(path, text):
        if not force:
            return PlannedFile(path, text, "kept")
        return PlannedFile(path, text, "overwritten", _find_free_backup(path))
    return PlannedFile(path, text, "unchanged" if os.path.lexists(path) else "new")


def _has_content(path: Path, text: str) -> bool:
    data = text.encode("utf-8", "surrogatepass")
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:  # a file that cannot be read can still be replaced
        return False


def _find_free_backup(path: Path) -> Path:
    """Return `<name>.bak`, or if that exists `<name>.bak1`, and so on."""
    names = (path.with_name(f"{path.name}.bak{number or ''}") for number in count())
    return next(name for name in names if not os.path.lexists(name))


def _require_plain_targets(directory: Path, paths: Iterable[Path]) -> None:
    """Raise for a link, which may lead anywhere, and for a file in place of a directory or vice versa."""
    _require_file_type(directory, stat.S_ISDIR, "not a directory")
    for path in paths:
        for parent in reversed(path.parents):
            if parent.is_relative_to(directory):
                _require_file_type(parent, stat.S_ISDIR, "not a directory")
        _require_file_type(path, stat.S_ISREG, "not a regular file")


def _require_file_type(path: Path, is_right: Callable[[int], bool], objection: str) -> None:
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror}", where=str(path)) from error
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
    with suppress(OSError):  # another process has put something into it
        directory.rmdir()


def _write_planned_file(file: PlannedFile, mode: int, undo: ExitStack) -> None:
    # The undo is registered before the step: a failure can come after the file was replaced.
    if file.backup is not None:
        _back_up(file.path, file.backup)
        undo.callback(_restore, file.path, file.backup)
    elif os.path.lexists(file.path):
        raise FileError("was created by another process just now", where=str(file.path), hint="look at it first")
    else:
        undo.callback(file.path.unlink, missing_ok=True)
    write_text_atomically(file.path, file.text, mode=mode)
    if file.backup is not None:  # not readable by more users than the file that replaced it
        file.backup.chmod(stat.S_IMODE(file.backup.stat().st_mode) & mode)


def _back_up(path: Path, backup: Path) -> None:
    """Give a file a second name that does not exist yet."""
    try:
        os.link(path, backup)  # unlike a copy, complete at every moment and possible on a full disk
    except OSError:  # not supported by every file system; or the name exists, which `touch` detects
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
        backup.unlink(missing_ok=True)  # renaming one hard link to another of the same file keeps both
    except OSError as error:
        raise FileError(f"cannot be restored: {error.strerror}", where=str(path), hint=f"it is {backup}") from error
