"""Prompts of a person and of a project, and the environment, combined into one prompt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from nexus_core.files.places import defaults_directory, home_directory
from nexus_core.files.reading import read_text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FilePromptSource", "LoadedPrompt", "PromptLoader", "PromptSource", "get_system_info"]


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
        project, project_path = self._first([_ProjectSource(Path.cwd())])
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
class _ProjectSource:
    """The `NEXUS.md` of a project, made safe; not read where it leads outside or a stranger may have written it."""

    directory: Path

    def load(self) -> str | None:
        from nexus_core.files.admission import Admission  # noqa: PLC0415 - only for those who load a prompt
        from nexus_core.layers.texts import choose_texts  # noqa: PLC0415 - only for those who load a prompt
        from nexus_core.values.layer import Layer, LayerText, Skipped  # noqa: PLC0415 - only for those who load a prompt
        from nexus_core.values.settings import Settings  # noqa: PLC0415 - only for those who load a prompt

        layer = Layer("local", self.directory / ".nexus3", "local", root=self.directory)
        text = Admission(layer).read_text(self.path)
        if isinstance(text, Skipped):
            return None
        return choose_texts([LayerText(self.path, text, layer=layer)], Settings()).texts[0].text

    @property
    def path(self) -> Path:
        return self.directory / "NEXUS.md"


def get_system_info(is_repl: bool = True) -> str:
    """What is known about the machine and the mode, one fact a line: the text of the environment section."""
    from nexus_core.nexus import Nexus  # noqa: PLC0415 - only for those who load a prompt

    with Nexus(layers=False) as nexus:
        sections = nexus.context(mode="repl" if is_repl else "server").sections
    return next((section.text for section in sections if section.id == "environment"), "")


def _usual_sources() -> list[PromptSource]:
    return [
        FilePromptSource(directory / "NEXUS.md") for directory in (home_directory(Path.cwd()), defaults_directory())
    ]
