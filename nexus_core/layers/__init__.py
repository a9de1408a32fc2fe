"""Layers of a directory: their settings, texts and MCP servers, and the prompt.

load.py                layers found by plugins, settings merged, texts chosen, cleaned and turned into sections
policy.py              the policy for project settings: user-only, tighten-only, and after approval
mcp.py                 MCP servers among the merged settings
approval.py            approvals of programs, checked again right before a start
context.py             LoadedContext: the prompt and settings of a directory, its layers, and a subagent's share
agent_view.py          the view of another agent, and the files of Claude Code, Codex and Gemini CLI
agent_instructions.py  the files of Cursor, GitHub Copilot, opencode, goose and Cline
agent_profiles.py      those agents, and the rules by which they read, with sources
instruction_files.py   reading of their files: inside the project, within limits, with imports
rule_files.py          rules with front matter, and the files that they are for
path_globs.py          globs of paths, compiled once and within limits
agent_settings.py      settings of those agents that decide which files they read
on_demand.py           skills, subagents and commands that those agents load when they are used
explain.py             origin of a setting, a file or a sentence, and the agents that read it
diagnose.py            findings about settings and texts: invalid, unknown, duplicate, too large, uncacheable
init.py                a new `.nexus3` directory, written as a whole or not at all

`LayerLoader`, below, is the front of the room. It imports the other modules lazily, because every command imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.config.load import read_early_settings
from nexus_core.files.places import resolve_directory
from nexus_core.types.layers import LoadedLayers
from nexus_core.types.request import DEFAULT_MODE, Request, get_subagent_mode

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nexus_core.errors import FileError
    from nexus_core.host.manager import Host
    from nexus_core.layers.context import LoadedContext
    from nexus_core.types.request import AgentMode
    from nexus_core.types.settings import Settings

OWN_PROFILE = "nexus"
"""The profile that is used unless another agent is named."""


class LayerLoader:
    """Loads the layers of any directory, and builds a context from them.

    Args:
        host: Returns the plugins; raises when they are closed.
        home: The user's own directory.
        defaults: The directory of the default layer, used if there is no global layer; None for no defaults.
        looks: False to load no layers at all.
    """

    def __init__(self, host: Callable[[], Host], home: Path, *, defaults: Path | None, looks: bool) -> None:
        self._host = host
        self._home = home
        self._defaults = defaults
        self._looks = looks
        self._valid: set[str] = set()  # settings that were found valid, as `repr`
        # By model and by the setting `models`, because finding the first model reads a table.
        self._windows: dict[tuple[str, str], int | None] = {}

    def request(self, cwd: Path, mode: AgentMode) -> Request:
        """Return the request for a directory, with the settings that are read before all others."""
        settings = read_early_settings(self._home, cwd / ".nexus3")
        return Request(
            cwd=cwd,
            home=self._home,
            defaults=self._defaults,
            ancestor_depth=settings.ancestor_depth,
            plugin_tables=settings.plugin_tables,
            mode=mode,
        )

    def load(self, request: Request) -> LoadedLayers:
        """Load the layers of a request, their settings and texts, fresh from disk.

        Raises:
            ConfigError: A settings file is malformed, or sets something that is not allowed.
            FileError: A text cannot be read.
        """
        return self._load(request)

    def load_settings(self, request: Request) -> Settings:
        """Load the settings of a request, even if a text cannot be read.

        Raises:
            ConfigError: As for `load`.
        """
        return self._load(request, unreadable=[]).settings

    def _load(self, request: Request, unreadable: list[FileError] | None = None) -> LoadedLayers:
        from nexus_core.layers.load import load_layers

        if not self._looks:
            return LoadedLayers()
        loaded = load_layers(self._host(), request, unreadable=unreadable)
        # Our own tests validate the defaults, and most directories have nothing else.
        if any(config.layer is None or config.layer.scope != "defaults" for config in loaded.configs):
            self._ensure_valid(loaded.settings)
        return loaded

    def context(self, request: Request) -> LoadedContext:
        """Return everything that makes up the system prompt of a request, in the form of `ContextLoader`."""
        return self._context(request, self.load(request))

    def context_as(self, profile: str, cwd: Path, files: Sequence[str | os.PathLike[str]] = ()) -> LoadedContext:
        """Return what another agent would read in a directory, and for files that it works on.

        Raises:
            UnknownNameError: There is no such agent.
        """
        from nexus_core.layers.agent_view import build_agent_context

        targets = [cwd / file for file in files]
        return build_agent_context(profile, cwd, lambda other: self._subagent_context(other, DEFAULT_MODE), targets)

    def _context(self, request: Request, loaded: LoadedLayers) -> LoadedContext:
        from nexus_core.layers.context import LoadedContext
        from nexus_core.layers.load import build_active_configuration, build_layer_sections

        static = self._host().static_sections(request, loaded)
        return LoadedContext(
            cwd=request.cwd,
            loaded=loaded,
            layer_sections=build_layer_sections(loaded),
            other_sections=(*static, build_active_configuration(loaded.settings, self._window(loaded.settings))),
            load_for=lambda cwd: self._subagent_context(cwd, get_subagent_mode(request.mode)),
        )

    def _window(self, settings: Settings) -> int | None:
        """Return the context window of the configured model in tokens, or None if it is unknown."""
        name, window = settings.model_id(), settings.get("provider.context_window")
        if window or not name:
            return window if isinstance(window, int) else None
        model = name, repr(settings.get("models"))
        if model not in self._windows:
            from nexus_core.tokens.models import find_model, find_unknown_model

            models = self._host().models()
            is_known = find_unknown_model(name, models, settings) is None
            self._windows[model] = find_model(name, models, settings).window if is_known else None
        return self._windows[model]

    def _subagent_context(self, cwd: str | os.PathLike[str], mode: AgentMode) -> LoadedContext:
        """Return the context of a subagent in a directory: everything but MCP servers."""
        request = self.request(resolve_directory(cwd), mode)
        return self._context(request, self.load(request).without_servers())

    def _ensure_valid(self, settings: Settings) -> None:
        content = repr(settings.value)
        if content in self._valid:
            return
        from nexus_core.config.validate import ensure_valid
        from nexus_core.layers.load import find_unknown_names

        host = self._host()
        ensure_valid(settings, host.setting_models(), list(find_unknown_names(settings, host)))
        self._valid.add(content)
