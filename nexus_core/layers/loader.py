"""From a directory to what an agent reads there, with the plugins of one Nexus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.config.early import read_early_settings
from nexus_core.files.places import existing_directory
from nexus_core.values.request import DEFAULT_MODE, Request, subagent_mode

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from nexus_core.host.host import Host
    from nexus_core.layers.context import LoadedContext
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.request import Mode
    from nexus_core.values.settings import Settings

OWN_PROFILE = "nexus"
"""Through whose eyes a directory is read, unless another agent is named."""


class LayerLoader:
    """Loads the layers of any directory, and makes a context of them.

    Args:
        host: Gives the plugins; raises when they are gone.
        home: The user's own directory.
        defaults: What stands in for a missing global layer, if anything.
        looks: Whether to look for layers at all.
    """

    def __init__(self, host: Callable[[], Host], home: Path, *, defaults: Path | None, looks: bool) -> None:
        self._host = host
        self._home = home
        self._defaults = defaults
        self._looks = looks
        self._valid: set[str] = set()  # settings that were found valid, as text
        # By model and by what the settings say of models: a table is read for the first one.
        self._windows: dict[tuple[str, str], int | None] = {}

    def request(self, cwd: Path, mode: Mode) -> Request:
        """The circumstances in a directory, as far as its first settings tell."""
        settings = read_early_settings(self._home, cwd / ".nexus3")
        return Request(
            cwd=cwd,
            home=self._home,
            defaults=self._defaults,
            ancestor_depth=settings.ancestor_depth,
            plugin_tables=settings.plugin_tables,
            mode=mode,
        )

    def load(self, request: Request) -> Loaded:
        """The layers of a request, their settings and texts, fresh from disk.

        Raises:
            ConfigError: A settings file is malformed, or sets something that is not allowed.
            FileError: A text cannot be read.
        """
        from nexus_core.layers.loading import load_layers  # noqa: PLC0415 - commands about plugins load nothing
        from nexus_core.values.loaded import Loaded  # noqa: PLC0415 - as above

        if not self._looks:
            return Loaded()
        loaded = load_layers(self._host(), request)
        # The defaults are checked by our own tests; most directories have nothing else.
        if any(config.layer is None or config.layer.scope != "defaults" for config in loaded.configs):
            self._ensure_valid(loaded.settings)
        return loaded

    def context(self, request: Request) -> LoadedContext:
        """Everything that makes up the system prompt of a request, in the form of `ContextLoader`."""
        return self._context(request, self.load(request))

    def context_as(self, profile: str, cwd: Path) -> LoadedContext:
        """What another agent would read in a directory: `claude`, `codex` or `gemini`.

        Raises:
            UnknownNameError: There is no such agent.
        """
        from nexus_core.layers.other_agents import context_as  # noqa: PLC0415 - only those who ask for another agent

        return context_as(profile, cwd, lambda other: self._subagent_context(other, DEFAULT_MODE))

    def _context(self, request: Request, loaded: Loaded) -> LoadedContext:
        from nexus_core.layers.context import LoadedContext  # noqa: PLC0415 - as above
        from nexus_core.layers.sections import active_configuration, layer_sections  # noqa: PLC0415 - as above

        static = self._host().static_sections(request, loaded)
        return LoadedContext(
            cwd=request.cwd,
            loaded=loaded,
            layer_sections=layer_sections(loaded),
            other_sections=(*static, active_configuration(loaded.settings, self._window(loaded.settings))),
            load_for=lambda cwd: self._subagent_context(cwd, subagent_mode(request.mode)),
        )

    def _window(self, settings: Settings) -> int | None:
        """How many tokens the model takes that is set; None where nobody says so."""
        name, window = settings.model_id(), settings.get("provider.context_window")
        if window or not name:
            return window if isinstance(window, int) else None
        model = name, repr(settings.get("models"))
        if model not in self._windows:
            from nexus_core.tokens.models import find_model, find_unknown_model  # noqa: PLC0415 - many set no model

            models = self._host().models()
            is_known = find_unknown_model(name, models, settings) is None
            self._windows[model] = find_model(name, models, settings).window if is_known else None
        return self._windows[model]

    def _subagent_context(self, cwd: str | os.PathLike[str], mode: Mode) -> LoadedContext:
        """What a subagent gets of a directory: everything but servers."""
        request = self.request(existing_directory(cwd), mode)
        return self._context(request, self.load(request).without_servers())

    def _ensure_valid(self, settings: Settings) -> None:
        content = repr(settings.value)
        if content in self._valid:
            return
        from nexus_core.config.remembered import ensure_valid  # noqa: PLC0415 - many directories have no settings
        from nexus_core.layers.names import find_unknown_names  # noqa: PLC0415 - as above

        host = self._host()
        ensure_valid(settings, host.setting_models(), list(find_unknown_names(settings, host)))
        self._valid.add(content)
