"""Pytest fixtures that keep tests off the user's files and installed plugins."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

import pytest

from nexus_core.nexus import Nexus
from nexus_core.testing.samples import write_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from nexus_core.types.plugins import Problem


class MakeNexus(Protocol):
    """The type of the `make_nexus` fixture."""

    def __call__(
        self,
        files: Mapping[str, str] = ...,
        *,
        cwd: str = ...,
        plugins: Iterable[object] = ...,
        disable: Iterable[str] = ...,
        defaults: bool = ...,
    ) -> Nexus:
        """Return a Nexus in a fresh directory that holds `files`."""


@pytest.fixture
def nexus_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home for Nexus. No installed plugin is loaded, and problems do not stop the run."""
    home = tmp_path / "home" / ".nexus3"
    home.mkdir(parents=True)
    monkeypatch.setenv("NEXUS_HOME", str(home))
    monkeypatch.setenv("NEXUS_PLUGINS", "none")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NEXUS_STRICT", raising=False)
    # The files of other agents must not depend on the machine.
    for variable, agent in (("CLAUDE_CONFIG_DIR", "claude"), ("CODEX_HOME", "codex"), ("GEMINI_CLI_HOME", "gemini")):
        monkeypatch.setenv(variable, str(tmp_path / "agents" / agent))
    # The environment section must not depend on the terminal in which the tests run.
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("TERM_PROGRAM", raising=False)
    return home


@pytest.fixture
def nexus_problems() -> list[Problem]:
    """Return the problems reported by the Nexus objects of `make_nexus`, in order."""
    return []


@pytest.fixture
def make_nexus(tmp_path: Path, nexus_home: Path, nexus_problems: list[Problem]) -> Iterator[MakeNexus]:  # noqa: ARG001 - the home must be in place
    """Return a function that opens a Nexus in `tmp_path/work`, closed when the test ends.

    Args of the fixture's function, all optional, and all but the first by keyword:
        files: Files to write first, relative path to content.
        cwd: The working directory below `tmp_path/work`.
        plugins, disable, defaults: As for `Nexus`; defaults are off.
    """
    with ExitStack() as opened:

        def make(
            files: Mapping[str, str] | None = None,
            *,
            cwd: str = ".",
            plugins: Iterable[object] = (),
            disable: Iterable[str] = (),
            defaults: bool = False,
        ) -> Nexus:
            work = write_files(tmp_path / "work", files or {})
            directory = work / cwd
            directory.mkdir(parents=True, exist_ok=True)
            nexus = Nexus(directory, plugins=plugins, disable=disable, defaults=defaults, report=nexus_problems.append)
            return opened.enter_context(nexus)

        yield make
