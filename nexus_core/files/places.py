"""Directories of Nexus and the user, repositories, and ownership of files.

Paths that are used again and again are cached: pathlib takes longer to build one than the system to look it up.
"""

from __future__ import annotations

import os
import stat
import sys
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import ConfigError, FileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


@lru_cache(maxsize=1024)
def file_in(directory: Path, name: str) -> Path:
    """Return `directory / name`, cached."""
    return directory / name


@lru_cache(maxsize=64)
def list_with_parents(directory: Path) -> tuple[Path, ...]:
    """Return the directory and its parents, nearest first."""
    return directory, *directory.parents


def normalize_path(path: str | os.PathLike[str]) -> Path:
    """Return an absolute path without `..`, so that its files have one name. Links stay.

    Raises:
        FileNotFoundError: The path is relative, and the current directory no longer exists.
    """
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute keeps `..`


SUPERUSER_ID = 0


def expand_user(path: str | os.PathLike[str]) -> Path:
    """Return a path with the user's home in place of a leading `~`; `~nobody` stays as it is if there is no such user.

    `Path.expanduser` raises a RuntimeError then, and if the user has no home.
    """
    try:
        return Path(os.path.expanduser(path))  # noqa: PTH111 - fails for a name with a NUL only
    except ValueError:
        return Path(path)


def supports_ownership() -> bool:
    """Return True if files have owners on this system, in a way that Python knows of."""
    return hasattr(os, "geteuid")


def trusted_directory_owners(directory: Path) -> frozenset[int]:
    """Return the trusted owners in a directory: its owner, you, and the superuser. Empty if files have no owners."""
    try:
        return trusted_owners(os.stat(directory).st_uid)  # noqa: PTH116 - faster
    except OSError:
        return trusted_owners(SUPERUSER_ID)


def trusted_owners(owner: int) -> frozenset[int]:
    """Return the trusted owners: `owner`, you, and the superuser. Empty if files have no owners."""
    return frozenset({owner, os.geteuid(), SUPERUSER_ID}) if supports_ownership() else frozenset()


def are_trusted_owners(owners: Collection[int], directory: Path) -> bool:
    """Return True if all of some owners are trusted in a directory."""
    always = trusted_owners(SUPERUSER_ID)
    return not always or always.issuperset(owners) or trusted_directory_owners(directory).issuperset(owners)


def has_untrusted_owner(owners: frozenset[int], *paths: Path | str) -> bool:
    """Return True if one of some files, directories or links belongs to none of `owners`."""
    for path in paths:
        try:
            if owners and os.lstat(path).st_uid not in owners:
                return True
        except OSError:
            continue  # missing or not accessible: then it cannot be read either
    return False


UNKNOWN_IDENTITY = (-1, -1)
"""Device and inode of a directory that does not exist or cannot be accessed."""


class DirectoryLevel(NamedTuple):
    """A directory: the working directory, or one above it.

    Attributes:
        path: Its path.
        identity: Its device and inode, `UNKNOWN_IDENTITY` if it cannot be accessed.
        owner: The user id of its owner.
        is_link: True if it is a link to a directory.
        is_limit: True if the search for a repository ends here: in the user's home directory (a repository there holds
            settings, not the projects below it), and at the root of the file system.
        marker_owner: The owner of its `.git`; None without one. The content of `.git` is never read.
    """

    path: Path
    identity: tuple[int, int] = UNKNOWN_IDENTITY
    owner: int = -1
    is_link: bool = False
    is_limit: bool = False
    marker_owner: int | None = None


def parent_levels(directory: Path) -> list[DirectoryLevel]:
    """Return the directory itself and all above it, nearest first. Each is read from disk once."""
    home = _stat_identity(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() fails without a home
    *below, root = list_with_parents(directory)
    return [
        *(_stat_level(path, str(path), home) for path in below),
        DirectoryLevel(root, _stat_identity(str(root)), is_limit=True),
    ]


def find_repository(levels: Sequence[DirectoryLevel]) -> Path | None:
    """Return the nearest of some levels, each right above the one before, that is a repository, or None.

    The search ends at the border of the file system. A repository with an untrusted owner does not count.
    """
    first = levels[0]
    for level in levels:
        if level.is_limit or level.identity[0] != first.identity[0]:
            return None
        if level.marker_owner is not None:
            owners = trusted_owners(first.owner)
            if level.marker_owner in owners or not owners:
                return level.path
    return None


def find_repository_root(directory: Path) -> Path | None:
    """Return the nearest directory at or above `directory` that is a repository, or None."""
    return find_repository(parent_levels(directory))


def _stat_identity(place: str) -> tuple[int, int]:
    try:
        status = os.stat(place)  # noqa: PTH116 - faster
    except (OSError, ValueError):
        return UNKNOWN_IDENTITY
    return status.st_dev, status.st_ino


def _stat_level(path: Path, name: str, home: tuple[int, int]) -> DirectoryLevel:
    try:
        status = os.lstat(name)
        is_link = stat.S_ISLNK(status.st_mode)
        if is_link:
            status = os.stat(name)  # noqa: PTH116 - faster
    except (OSError, ValueError):
        return DirectoryLevel(path)
    place = status.st_dev, status.st_ino
    is_limit = place == home
    marker = f"{name}/.git"
    has_marker = not is_limit and os.path.exists(marker)  # noqa: PTH110 - never fails
    # A broken link marks nothing; of a valid one, its own owner counts.
    return DirectoryLevel(
        path, place, status.st_uid, is_link, is_limit, os.lstat(marker).st_uid if has_marker else None
    )


_REPOSITORY_MARKERS = (".git", ".hg", ".jj", ".svn")
_exists = partial(os.access, mode=os.F_OK)  # one system call, because every command needs it


def resolve_directory(path: str | os.PathLike[str]) -> Path:
    """Return the directory without links and `..`, so that it has one path however it is reached.

    Raises:
        FileError: It does not exist, or cannot be reached.
        UsageError: The argument is not a path.
    """
    try:
        directory = Path(path).resolve()
    except TypeError:
        raise UsageError(f"a directory must be given as a path, not as {type(path).__name__}") from None
    except FileNotFoundError:
        raise FileError("the current directory no longer exists", hint="cd to one that does") from None
    except (OSError, RuntimeError, ValueError):  # too long, circular links, a NUL: `isdir` below is False for it
        directory = Path(path)
    if not os.path.isdir(directory):  # noqa: PTH112 - Path.is_dir raises for an unreachable directory
        raise FileError("no such directory, or it cannot be reached", where=str(directory))
    return directory


def user_home() -> Path:
    """Return the user's home directory, or the path `~` if there is none."""
    return Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises if there is none


def find_nexus_home(cwd: Path) -> Path:
    """Return the user's own Nexus directory: `NEXUS_HOME` from the process environment, else `~/.nexus3`.

    Args:
        cwd: The working directory, without links.

    Raises:
        ConfigError: There is none, or it lies inside the project of `cwd`. Tools like direnv let a project set
            variables, and containers may mount the project as the user's home; so the project would act as the
            user.
    """
    configured = os.environ.get("NEXUS_HOME")
    try:
        home = normalize_path(Path(configured).expanduser() if configured else Path.home() / ".nexus3")
    except RuntimeError:
        hint = "set NEXUS_HOME to a directory"
        raise ConfigError("no home directory can be found", where=configured, hint=hint) from None
    except FileNotFoundError:
        raise FileError("the current directory no longer exists", hint="cd to one that does") from None
    if configured:
        _refuse_home_inside(find_workspace(cwd), home)
    else:
        _refuse_user_home_inside(find_workspace(cwd))
    return home


def find_home_repository(home: Path) -> Path | None:
    """Return the repository that contains both the user's home directory and `home`, or None for most users.

    Files in such a home may have come with the repository: many users keep their settings in git, and containers may
    mount a project as the user's home.
    """
    user = os.path.realpath(user_home())
    device = _stat_device(user)
    place, above = user, ""
    while place != above and _stat_device(place) == device:
        if any(map(_exists, [f"{place}/{marker}" for marker in _REPOSITORY_MARKERS])):
            return Path(place) if any(Path(each).is_relative_to(place) for each in _resolve_way_to(home)) else None
        place, above = os.path.dirname(place), place  # noqa: PTH120 - a name
    return None


def find_workspace(cwd: Path) -> Path | None:
    """Return the project of a directory: its repository, or else the directory itself.

    None in the user's home directory and above it: files there are the user's own and belong to no project.
    """
    user = os.path.realpath(user_home())
    return find_repository_root(cwd) or (None if Path(user).is_relative_to(cwd) else cwd)


def _refuse_home_inside(workspace: Path | None, home: Path) -> None:
    """Raise if a home is inside a workspace, or if its path leads through a link that lies there."""
    if workspace is None or not any(Path(place).is_relative_to(workspace) for place in _resolve_way_to(home)):
        return
    if os.path.realpath(home) != os.path.realpath(user_home() / ".nexus3"):  # else NEXUS_HOME only repeats the default
        raise ConfigError(
            "NEXUS_HOME lies inside the project, which could act as you there",
            where=str(home),
            hint=f"set it to a directory outside {workspace} or unset it; if you mean it, use --home DIR",
        )


def _refuse_user_home_inside(workspace: Path | None) -> None:
    """Raise if the user's home directory is a part of a project, which could then have put everything there."""
    user = os.path.realpath(user_home())
    if workspace is not None and Path(user) != workspace and Path(user).is_relative_to(workspace):
        raise ConfigError(
            "your home directory lies inside the project, which could act as you there",
            where=user,
            hint=f"set NEXUS_HOME to a directory outside {workspace}; if you mean it, use --home DIR",
        )


def _stat_device(directory: str) -> int:
    try:
        return os.stat(directory).st_dev  # noqa: PTH116 - faster
    except OSError:
        return -1


def _resolve_way_to(path: Path) -> Iterator[str]:
    """Yield the directories on the path to a file, links resolved, and the file itself."""
    named = Path(os.path.normpath(path))
    place = named.anchor
    for part in named.parts[1:]:
        step = os.path.join(place, part)  # noqa: PTH118 - many times faster
        place = os.path.realpath(step) if os.path.islink(step) else step  # noqa: PTH114 - never fails
        yield place
    yield os.path.realpath(path)  # differs where `..` follows a link


def cache_directory() -> Path:
    """Return the directory for data that can be rebuilt: `XDG_CACHE_HOME`, else the default of the system."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if base and os.path.isabs(base):  # noqa: PTH117 - the XDG specification ignores a relative one
        return Path(base) / "nexus"
    default = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return user_home() / default / "nexus"


def defaults_directory() -> Path:
    """Return the directory of the defaults that ship with Nexus: in the installed package, or beside it."""
    package = Path(__file__).parents[1]
    installed = package / "defaults"
    return installed if installed.is_dir() else package.parent / "defaults"


# Not `lib`, `app` and `src`, which begin aliases of modules such as `@/lib/utils`.
_SYSTEM_DIRECTORIES = frozenset(
    [
        "Applications",
        "Library",
        "System",
        "Users",
        "Volumes",
        "bin",
        "boot",
        "dev",
        "etc",
        "home",
        "media",
        "mnt",
        "opt",
        "private",
        "proc",
        "root",
        "run",
        "sbin",
        "srv",
        "sys",
        "tmp",
        "usr",
        "var",
    ]
)


def is_outside_path(name: str) -> bool:
    """Return True if a word can only be the path of a file outside a project: `~/x`, `../x`, `/etc/x`.

    The answer depends on the word alone: looking for the file could open a connection to a directory that is mounted
    on demand.
    """
    first, _, rest = name.partition("/")
    if first in {"~", ".."}:
        return bool(rest.strip("./"))
    directory, _, inside = rest.partition("/")
    return not first and directory in _SYSTEM_DIRECTORIES and bool(inside)
