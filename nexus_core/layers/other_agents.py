"""A directory through the eyes of another agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.layers.agent_settings import find_agent_homes
from nexus_core.layers.context import LoadedContext
from nexus_core.layers.profiles import read_as
from nexus_core.layers.sections import layer_sections
from nexus_core.values.loaded import Loaded

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path


def context_as(profile: str, cwd: Path, load_for: Callable[[str | os.PathLike[str]], LoadedContext]) -> LoadedContext:
    """What another agent would read when it is started in a directory.

    Args:
        profile: Which agent: `claude`, `codex` or `gemini`.
        cwd: The directory.
        load_for: What a subagent gets of a directory.

    Raises:
        UnknownNameError: There is no such profile.
    """
    view = read_as(profile, cwd, find_agent_homes(cwd))
    layers = tuple(dict.fromkeys(text.layer for text in view.texts if text.layer is not None))
    loaded = Loaded(layers=layers, texts=view.texts, skipped=view.skipped, findings=view.findings)
    return LoadedContext(
        cwd=cwd,
        loaded=loaded,
        layer_sections=layer_sections(loaded),
        other_sections=(),
        load_for=load_for,
        agent_view=view,
    )
