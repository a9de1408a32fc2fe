"""The directories that Nexus itself owns."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.errors import ConfigError, FileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKERS = (".git", ".hg", ".jj", ".svn")
_exists = partial(os.access, mode=os.F_OK)  # in one call, because every command asks


def existing_directory(path: str | os.PathLike[str]) -> Path:
    """The directory without links and `..`, so that one place has one name, however it is reached.

    Raises:
        FileError: It is not there, or cannot be reached.
        UsageError: What was given is not a path.
    """
    try:
        directory = Path(path).resolve()
    except TypeError:
        raise UsageError(f"a directory must be given as a path, not as {type(path).__name__}") from None
    except FileNotFoundError:
        raise FileError("the current directory no longer exists", hint="cd to one that does") from None
    except (OSError, RuntimeError, ValueError):  # too long, a circle of links, a NUL: `isdir` below says no to it
        directory = Path(path)
    if not os.path.isdir(directory):  # noqa: PTH112 - Path.is_dir raises where a directory cannot be reached
        raise FileError("no such directory, or it cannot be reached", where=str(directory))
    return directory


def user_home() -> Path:
    """The user's home directory; the path `~` where there is none."""
    return Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is none


def home_directory(cwd: Path) -> Path:
    """The user's own Nexus directory: `NEXUS_HOME` from the process environment, else `~/.nexus3`.

    Args:
        cwd: The directory one works in, without links.

    Raises:
        ConfigError: There is none, or it lies inside the project of `cwd`. Tools like direnv let a project set
            variables, and containers may have the project where they look for the user's home; so it would pass for
            the user.
    """
    configured = os.environ.get("NEXUS_HOME")
    try:
        home = (Path(configured).expanduser() if configured else Path.home() / ".nexus3").absolute()
    except RuntimeError:
        hint = "set NEXUS_HOME to a directory"
        raise ConfigError("no home directory can be found", where=configured, hint=hint) from None
    except FileNotFoundError:
        raise FileError("the current directory no longer exists", hint="cd to one that does") from None
    if configured:
        _refuse_inside(workspace_of(cwd), home)
    else:
        _refuse_user_home_inside(workspace_of(cwd))
    return home


def home_repository(home: Path) -> Path | None:
    """The repository that the user's home directory is or lies in, if `home` lies in it; None for most users.

    What is in such a home may have come with the repository: many keep the settings of their programs in git, and
    containers have a project where programs look for the user's home.
    """
    user = os.path.realpath(user_home())
    device = _device(user)
    place, above = user, ""
    while place != above and _device(place) == device:
        if any(map(_exists, [f"{place}/{marker}" for marker in _MARKERS])):
            return Path(place) if any(Path(each).is_relative_to(place) for each in _way_to(home)) else None
        place, above = os.path.dirname(place), place  # noqa: PTH120 - a name
    return None


def workspace_of(cwd: Path) -> Path | None:
    """The project that one works on in a directory: its repository, else the directory itself.

    None in the user's home directory and above it: what lies there is the user's own, and no project.
    """
    from nexus_core.files.repository import repository_root  # noqa: PLC0415 - most users have no NEXUS_HOME

    user = os.path.realpath(user_home())
    return repository_root(cwd) or (None if Path(user).is_relative_to(cwd) else cwd)


def _refuse_inside(workspace: Path | None, home: Path) -> None:
    """Raise if a home is inside a workspace, or if the way to it leads through a link that lies there."""
    if workspace is None or not any(Path(place).is_relative_to(workspace) for place in _way_to(home)):
        return
    if os.path.realpath(home) != os.path.realpath(
        user_home() / ".nexus3"
    ):  # else NEXUS_HOME says what goes without saying
        raise ConfigError(
            "NEXUS_HOME lies inside the project, which could speak and decide for you there",
            where=str(home),
            hint=f"set it to a directory outside {workspace} or unset it; if you mean it, say --home DIR",
        )


def _refuse_user_home_inside(workspace: Path | None) -> None:
    """Raise if the user's home directory is a part of a project, which then could have put everything there."""
    user = os.path.realpath(user_home())
    if workspace is not None and Path(user) != workspace and Path(user).is_relative_to(workspace):
        raise ConfigError(
            "your home directory lies inside the project, which could speak and decide for you there",
            where=user,
            hint=f"set NEXUS_HOME to a directory outside {workspace}; if you mean it, say --home DIR",
        )


def _device(directory: str) -> int:
    try:
        return os.stat(directory).st_dev  # noqa: PTH116 - faster
    except OSError:
        return -1


def _way_to(path: Path) -> Iterator[str]:
    """The directories on the way to a place, without links, and the place itself."""
    named = Path(os.path.normpath(path))
    place = named.anchor
    for part in named.parts[1:]:
        step = os.path.join(place, part)  # noqa: PTH118 - many times faster
        place = os.path.realpath(step) if os.path.islink(step) else step  # noqa: PTH114 - never fails
        yield place
    yield os.path.realpath(path)  # where `..` follows a link, this is somewhere else


def cache_directory() -> Path:
    """Where things are kept that can be made again: `XDG_CACHE_HOME`, else the system's usual place."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if base and os.path.isabs(base):  # noqa: PTH117 - a relative one does not count, says the XDG specification
        return Path(base) / "nexus"
    usual = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return user_home() / usual / "nexus"


def defaults_directory() -> Path:
    """The defaults that ship with Nexus: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "defaults"
    return installed if installed.is_dir() else package.parent / "defaults"
