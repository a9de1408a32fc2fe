"""Bundled things in whose place those of third-party plugins are used."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from nexus_core.errors import NexusError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.host.registry import PluginReplacement
    from nexus_core.nexus import Nexus
    from nexus_core.values.loaded import Loaded


def find_replacements(nexus: Nexus, loaded: Loaded | None = None) -> tuple[PluginReplacement, ...]:
    """Return what third-party plugins replace; bundled plugins are loaded only where there may be something.

    Args:
        nexus: The plugins.
        loaded: The layers and settings that summarizers depend on; read from disk if None.
    """
    for hook, ask in _questions(nexus, loaded).items():
        if nexus.host.has_third_party(hook):
            with suppress(NexusError):  # settings that cannot be read are reported by those who need them
                ask()
    return nexus.host.replacements


def _questions(nexus: Nexus, loaded: Loaded | None) -> dict[str, Callable[[], object]]:
    """Return, by hook, a function that asks all plugins for what they offer under a name."""
    host = nexus.host

    def ask_renderers() -> object:
        from nexus_core.rendering.core import LABELLED  # noqa: PLC0415 - few plugins offer one

        return host.renderers([LABELLED])

    def ask_roles() -> object:
        from nexus_core.rendering.core import UNIFIED  # noqa: PLC0415 - as above

        return host.roles([UNIFIED])

    def ask_summarizers() -> object:
        from nexus_core.compaction.extractive import extractive_summariser  # noqa: PLC0415 - as above

        return host.summarisers(nexus.load() if loaded is None else loaded, [extractive_summariser(len)])

    return {
        "nexus_renderers": ask_renderers,
        "nexus_dialects": lambda: nexus.dialects.replacing(),  # noqa: PLW0108 - loads the dialects
        "nexus_roles": ask_roles,
        "nexus_models": host.models,
        "nexus_truncations": host.truncations,
        "nexus_summarisers": ask_summarizers,
    }
