"""The names under which the loading of context is known elsewhere, for programs written against those names."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from nexus_core.files.places import defaults_directory, home_directory
from nexus_core.files.reading import read_text

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from nexus_core.compaction.prompts import build_summarize_prompt
    from nexus_core.compaction.selection import CompactionResult, select_messages_for_compaction
    from nexus_core.compaction.summary import create_summary_message
    from nexus_core.config.merging import deep_merge
    from nexus_core.config.schema import Config, ContextConfig
    from nexus_core.history.manager import ContextManager
    from nexus_core.layers.context import ContextSources, LoadedContext, LoadedSource
    from nexus_core.layers.context_layer import ContextLayer
    from nexus_core.tokens.counter import TextCounter
    from nexus_core.tokens.counters import get_token_counter
    from nexus_core.tokens.estimator import SimpleTokenCounter
    from nexus_core.values.agent_result import AgentResult
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.budget import TokenBudget
    from nexus_core.values.conversation import Conversation
    from nexus_core.values.counting import TokenCounter
    from nexus_core.values.message import Message
    from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
    from nexus_core.values.servers import MCPServerConfig, MCPServerWithOrigin

    class TiktokenCounter(TextCounter):
        """Described to type checkers; the class itself is a plugin's, and the core imports no plugin."""

        encoding_name: str

        def __init__(self, encoding_name: str = ..., *, exact: bool = ...) -> None: ...


__all__ = [
    "AgentResult",
    "AssembledContext",
    "CompactionResult",
    "Config",
    "ContextConfig",
    "ContextLayer",
    "ContextLoader",
    "ContextManager",
    "ContextSources",
    "Conversation",
    "File",
    "FilePromptSource",
    "Image",
    "LoadedContext",
    "LoadedPrompt",
    "LoadedSource",
    "MCPServerConfig",
    "MCPServerWithOrigin",
    "Message",
    "Opaque",
    "PromptLoader",
    "PromptSource",
    "Reasoning",
    "SimpleTokenCounter",
    "Text",
    "TiktokenCounter",
    "TokenBudget",
    "TokenCounter",
    "ToolCall",
    "ToolResult",
    "build_summarize_prompt",
    "create_summary_message",
    "deep_merge",
    "get_system_info",
    "get_token_counter",
    "select_messages_for_compaction",
]


# Each is imported by those who ask for it: pydantic for the settings, all of Nexus for loading, neither for counting.
_HOMES = {
    "AgentResult": "values.agent_result",
    "AssembledContext": "values.assembled",
    "CompactionResult": "compaction.selection",
    "Config": "config.schema",
    "ContextConfig": "config.schema",
    "ContextLayer": "layers.context_layer",
    "ContextManager": "history.manager",
    "ContextSources": "layers.context",
    "Conversation": "values.conversation",
    "File": "values.parts",
    "Image": "values.parts",
    "LoadedContext": "layers.context",
    "LoadedSource": "layers.context",
    "MCPServerConfig": "values.servers",
    "MCPServerWithOrigin": "values.servers",
    "Message": "values.message",
    "Opaque": "values.parts",
    "Reasoning": "values.parts",
    "SimpleTokenCounter": "tokens.estimator",
    "Text": "values.parts",
    "TokenBudget": "values.budget",
    "TokenCounter": "values.counting",
    "ToolCall": "values.parts",
    "ToolResult": "values.parts",
    "build_summarize_prompt": "compaction.prompts",
    "create_summary_message": "compaction.summary",
    "deep_merge": "config.merging",
    "get_token_counter": "tokens.counters",
    "select_messages_for_compaction": "compaction.selection",
}


# Hidden from type checkers, which would otherwise take any misspelt name for an object.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name == "TiktokenCounter":
            from nexus_core.host.default import load_plugin  # noqa: PLC0415 - only those who ask for it

            value = getattr(load_plugin("tiktoken_counter"), name)
        elif name in _HOMES:
            value = getattr(import_module(f"nexus_core.{_HOMES[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


class ContextLoader:
    """Loads everything for a directory: `ContextLoader(cwd).load()` or `ContextLoader().load(cwd)`."""

    def __init__(self, cwd: str | os.PathLike[str] | None = None) -> None:
        self._cwd = cwd

    def load(self, cwd: str | os.PathLike[str] | None = None) -> LoadedContext:
        """Find and merge all layers, fresh from disk."""
        from nexus_core.nexus import Nexus  # noqa: PLC0415 - as above

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
        from nexus_core.files.admission import Admission  # noqa: PLC0415 - as above
        from nexus_core.layers.texts import choose_texts  # noqa: PLC0415 - as above
        from nexus_core.values.layer import Layer, LayerText, Skipped  # noqa: PLC0415 - as above
        from nexus_core.values.settings import Settings  # noqa: PLC0415 - as above

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
    from nexus_core.nexus import Nexus  # noqa: PLC0415 - as above

    with Nexus(layers=False) as nexus:
        sections = nexus.sections(mode="repl" if is_repl else "server")
    return next((section.text for section in sections if section.id == "environment"), "")


def _usual_sources() -> list[PromptSource]:
    return [
        FilePromptSource(directory / "NEXUS.md") for directory in (home_directory(Path.cwd()), defaults_directory())
    ]
