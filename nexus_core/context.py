"""The names under which the loading of context is known elsewhere, for programs written against those names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from nexus_core.config.merging import deep_merge
from nexus_core.files.places import defaults_directory, home_directory
from nexus_core.files.reading import read_text
from nexus_core.layers.context import ContextSources, LoadedContext, LoadedSource
from nexus_core.nexus import Nexus
from nexus_core.values.servers import MCPServerConfig, MCPServerWithOrigin

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from nexus_core.config.schema import Config, ContextConfig

__all__ = [
    "Config",
    "ContextConfig",
    "ContextLoader",
    "ContextSources",
    "FilePromptSource",
    "LoadedContext",
    "LoadedPrompt",
    "LoadedSource",
    "MCPServerConfig",
    "MCPServerWithOrigin",
    "PromptLoader",
    "PromptSource",
    "deep_merge",
    "get_system_info",
]


def __getattr__(name: str) -> object:
    if name not in {"Config", "ContextConfig"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nexus_core.config import schema  # noqa: PLC0415 - pydantic is imported only by those who ask for it

    return getattr(schema, name)


class ContextLoader:
    """Loads everything for a directory: `ContextLoader(cwd).load()` or `ContextLoader().load(cwd)`."""

    def __init__(self, cwd: str | os.PathLike[str] | None = None) -> None:
        self._cwd = cwd

    def load(self, cwd: str | os.PathLike[str] | None = None) -> LoadedContext:
        """Find and merge all layers, fresh from disk."""
        return Nexus(cwd if cwd is not None else self._cwd if self._cwd is not None else ".").context()


@runtime_checkable
class PromptSource(Protocol):
    """Somewhere a prompt may come from."""

    def load(self) -> str | None:
        """The prompt, or None when there is none."""

    @property
    def path(self) -> Path | None:
        """Where it comes from, if that is a file."""


@dataclass(frozen=True)
class FilePromptSource:
    """A prompt in a file."""

    file: Path

    def load(self) -> str | None:
        """The content of the file, or None when there is no such file."""
        return read_text(self.file)

    @property
    def path(self) -> Path | None:
        """The file."""
        return self.file


@dataclass(frozen=True)
class LoadedPrompt:
    """A combined prompt, and the files it was made of."""

    content: str
    personal_path: Path | None
    project_path: Path | None


class PromptLoader:
    """Combines a personal prompt, the project's `./NEXUS.md` and the environment under a heading each.

    Args:
        personal_sources: Where a personal prompt may be; the first that has one is used. By default `NEXUS.md` in the
            user's own directory, then the one that ships with Nexus.
    """

    def __init__(self, personal_sources: Sequence[PromptSource] | None = None) -> None:
        self._personal = personal_sources

    def load(self, is_repl: bool = True) -> LoadedPrompt:
        """Read and combine, for the current directory."""
        personal, personal_path = self._first(self._personal if self._personal is not None else _usual_sources())
        project, project_path = self._first([FilePromptSource(Path.cwd() / "NEXUS.md")])
        parts = [
            f"# Personal Configuration\n{personal}" if personal else "",
            f"# Project Configuration\n{project}" if project else "",
            f"# Environment\n{get_system_info(is_repl=is_repl)}",
        ]
        return LoadedPrompt("\n\n".join(filter(None, parts)), personal_path, project_path)

    @staticmethod
    def _first(sources: Sequence[PromptSource]) -> tuple[str, Path | None]:
        for source in sources:
            text = source.load()
            if text is not None:
                return text.strip("\n"), source.path
        return "", None


def get_system_info(is_repl: bool = True) -> str:
    """What is known about the machine and the mode, one fact a line: the text of the environment section."""
    with Nexus(layers=False) as nexus:
        sections = nexus.sections(mode="repl" if is_repl else "server")
    return next((section.text for section in sections if section.id == "environment"), "")


def _usual_sources() -> list[PromptSource]:
    return [FilePromptSource(directory / "NEXUS.md") for directory in (home_directory(), defaults_directory())]
