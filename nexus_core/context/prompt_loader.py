"""Prompt loader of the seeds: personal, project and environment text in one prompt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from nexus_core.files.places import defaults_directory, find_nexus_home
from nexus_core.files.read import LayerReader, read_text
from nexus_core.layers.load import choose_texts
from nexus_core.nexus import Nexus
from nexus_core.types.layers import Layer, LayerText, SkippedFile
from nexus_core.types.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FilePromptSource", "LoadedPrompt", "PromptLoader", "PromptSource", "get_system_info"]


@runtime_checkable
class PromptSource(Protocol):
    """Protocol: a source of a prompt."""

    def load(self) -> str | None:
        """Return the prompt, or None if there is none."""

    @property
    def path(self) -> Path | None:
        """The file it comes from, or None."""


@dataclass(frozen=True)
class FilePromptSource:
    """A prompt in a file."""

    file: Path

    def load(self) -> str | None:
        """Return the content of the file, or None if there is no such file."""
        return read_text(self.file)

    @property
    def path(self) -> Path | None:
        """The file."""
        return self.file


@dataclass(frozen=True)
class LoadedPrompt:
    """A combined prompt, and the files it was built from."""

    content: str
    personal_path: Path | None
    project_path: Path | None


class PromptLoader:
    """Combines a personal prompt, the project's `./NEXUS.md` and the environment under a heading each.

    Args:
        personal_sources: Sources of a personal prompt; the first that has one is used. By default `NEXUS.md` in the
            user's own directory, then the one that ships with Nexus.
    """

    def __init__(self, personal_sources: Sequence[PromptSource] | None = None) -> None:
        self._personal = personal_sources

    def load(self, is_repl: bool = True) -> LoadedPrompt:
        """Read and combine the prompts for the current directory."""
        personal, personal_path = self._first(
            self._personal if self._personal is not None else _build_default_sources()
        )
        project, project_path = self._first([_ProjectPromptSource(Path.cwd())])
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


@dataclass(frozen=True)
class _ProjectPromptSource:
    """The `NEXUS.md` of a project, sanitized. Not read if it leads outside or has an untrusted owner."""

    directory: Path

    def load(self) -> str | None:
        layer = Layer("local", self.directory / ".nexus3", "local", root=self.directory)
        text = LayerReader(layer).read_text(self.path)
        if isinstance(text, SkippedFile):
            return None
        return choose_texts([LayerText(self.path, text, layer=layer)], Settings()).texts[0].text

    @property
    def path(self) -> Path:
        return self.directory / "NEXUS.md"


def get_system_info(is_repl: bool = True) -> str:
    """Return the text of the environment section: facts about the machine and the mode, one per line."""
    with Nexus(layers=False) as nexus:
        sections = nexus.context(mode="repl" if is_repl else "server").sections
    return next((section.text for section in sections if section.id == "environment"), "")


def _build_default_sources() -> list[PromptSource]:
    return [
        FilePromptSource(directory / "NEXUS.md") for directory in (find_nexus_home(Path.cwd()), defaults_directory())
    ]
