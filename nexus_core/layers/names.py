"""Settings that name something a plugin offers: the name must be one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.config.pointers import pointer_of
from nexus_core.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.config.validation import Fault
    from nexus_core.host.host import Host
    from nexus_core.host.registry import Registry
    from nexus_core.values.rendering import Renderer
    from nexus_core.values.settings import Settings

TRUNCATIONS = ("truncation.strategy", "context.truncation_strategy")
RENDERER = "renderer"


def find_unknown_names(settings: Settings, host: Host) -> Iterator[Fault]:
    """A fault for each setting whose name nothing answers to; plugins are asked only where something is set."""
    for key in (*TRUNCATIONS, RENDERER):
        name = settings.get(key)
        if not isinstance(name, str):
            continue
        try:
            _renderers(host).get(name) if key == RENDERER else host.truncations().get(name)
        except UnknownNameError as error:
            from nexus_core.config.validation import Fault  # noqa: PLC0415 - only for what is wrong

            yield Fault(pointer_of(key), f"{key}: {error.what}; {error.hint}")


def _renderers(host: Host) -> Registry[Renderer]:
    from nexus_core.rendering.core import LABELLED  # noqa: PLC0415 - most settings name none

    return host.renderers([LABELLED])
