"""The directories that Nexus itself owns."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from nexus_core.errors import ConfigError, FileError


def existing_directory(path: str | os.PathLike[str]) -> Path:
    """The directory without links and `..`, so that one place has one name, however it is reached."""
    try:
        directory = Path(path).resolve()
    except FileNotFoundError:
        raise FileError("the current directory does not exist any more", hint="change to one that does") from None
    except (OSError, RuntimeError, ValueError):  # too long, a circle of links, a NUL: `isdir` below says no to it
        directory = Path(path)
    if not os.path.isdir(directory):  # noqa: PTH112 - Path.is_dir raises where a directory cannot be reached
        raise FileError("no such directory, or it cannot be reached", where=str(directory))
    return directory


def home_directory() -> Path:
    """The user's own Nexus directory: `NEXUS_HOME` from the process environment, else `~/.nexus3`."""
    configured = os.environ.get("NEXUS_HOME")
    try:
        return (Path(configured).expanduser() if configured else Path.home() / ".nexus3").absolute()
    except RuntimeError:
        hint = "set NEXUS_HOME to a directory"
        raise ConfigError("no home directory can be found", where=configured, hint=hint) from None
    except FileNotFoundError:
        raise FileError("the current directory does not exist any more", hint="change to one that does") from None


def cache_directory() -> Path:
    """Where things are kept that can be made again: `XDG_CACHE_HOME`, else the system's usual place."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if base:
        return Path(base) / "nexus"
    usual = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return Path(os.path.expanduser("~")) / usual / "nexus"  # noqa: PTH111 - does not raise where there is no home


def defaults_directory() -> Path:
    """The defaults that ship with Nexus: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "defaults"
    return installed if installed.is_dir() else package.parent / "defaults"
