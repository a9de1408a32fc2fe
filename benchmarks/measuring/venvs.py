"""Environments of their own for Nexus and for those it is measured beside."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring.processes import run_program
from benchmarks.measuring.reports import CannotMeasureError

ROOT = Path(__file__).resolve().parents[2]


class Venv(NamedTuple):
    """A virtual environment; programs in it run through its interpreter, as a shebang line would do."""

    directory: Path

    @property
    def python(self) -> str:
        """The interpreter."""
        return str(self.directory / "bin" / "python")

    def script(self, name: str) -> str:
        """The console script of that name."""
        return str(self.directory / "bin" / name)


OWN = Venv(Path(sys.prefix))
"""The environment that this runs in."""


class Peers:
    """Gives out environments with peers, and remembers which could not be had.

    Args:
        cache: Where environments are kept.
        without: Whether all are left out.
    """

    def __init__(self, cache: Path, *, without: bool = False) -> None:
        self._cache, self._without = cache, without
        self.versions: dict[str, str] = {}
        self.missing: dict[str, str] = {}

    def get(self, name: str, *also: str) -> Venv | None:
        """An environment with a distribution, and others that it is measured with; None when it cannot be had."""
        if self._without:
            self.missing[name] = "left out as asked"
            return None
        try:
            venv = make_venv(open_cache(self._cache), name)
            install(venv, name, *also)
            self.versions[name] = read_version(venv, name)
        except CannotMeasureError as error:
            print(f"{name} cannot be installed, its rows are left out: {error}", file=sys.stderr)
            self.missing[name] = "it could not be installed"
            return None
        return venv

    def nexus(self) -> Venv:
        """An environment with Nexus as it is now; the one that this runs in where peers are left out."""
        if self._without and is_installed():
            return OWN
        return install_nexus(open_cache(self._cache))


def is_installed() -> bool:
    """Whether this environment has the command `nexus`."""
    return Path(OWN.script("nexus")).exists()


def open_cache(directory: Path) -> Path:
    """The cache directory, made if need be."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if directory.stat().st_uid != os.getuid():
        # The default lies where every user may write, and what is found in it will be run.
        raise CannotMeasureError(f"{directory} belongs to another user; choose another with --cache")
    return directory.resolve()


def install_nexus(cache: Path) -> Venv:
    """A venv with Nexus as it is in the working tree now, installed as a user would."""
    venv = make_venv(cache, "nexus")
    install(venv, "--upgrade", str(ROOT))
    install(venv, "--force-reinstall", "--no-deps", str(ROOT))  # the version may be the same, the tree is not
    return venv


def make_venv(cache: Path, name: str) -> Venv:
    """The venv of that name for this interpreter, made if it is not there yet."""
    venv = Venv(cache / f"{name}-{sys.implementation.cache_tag}")
    if not Path(venv.script("pip")).exists():  # pip comes last, so a venv left half made is made again
        run_program(sys.executable, "-m", "venv", str(venv.directory))
    return venv


def install(venv: Venv, *what: str) -> None:
    """Install with bytecode, whatever pip's configuration says."""
    # Without the version check the last line of a failure is the failure, not an advertisement for a newer pip.
    run_program(venv.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--compile", *what)


def read_version(venv: Venv, distribution: str) -> str:
    """The version of a distribution that is installed in the venv."""
    return run_program(venv.python, "-c", f"from importlib.metadata import version; print(version({distribution!r}))")
