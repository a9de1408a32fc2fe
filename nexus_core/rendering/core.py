"""What Nexus itself brings: one renderer and one role; plugins add others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.rendering.labelled import render_system
from nexus_core.values.rendering import AgentRole, Renderer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.host.host import Host
    from nexus_core.values.message import Message
    from nexus_core.values.request import Request
    from nexus_core.values.section import Section


def _render_current(request: Request, sections: Sequence[Section], now: int) -> Message:
    from nexus_core.rendering.current import render_current  # noqa: PLC0415 - `nexus show` renders no message

    return render_current(request, sections, now)


LABELLED = Renderer(name="labelled", system=render_system, current=_render_current)
"""Sections under headings; what was said stays where it was said, so that each call begins with the one before."""

UNIFIED = AgentRole(name="unified")
"""An agent that does everything by itself and talks to nobody but its user."""


def find_agent_role(host: Host, name: str) -> AgentRole:
    """Return the role of that name; a plugin's `unified` takes the place of Nexus's own.

    Raises:
        UnknownNameError: There is none.
    """
    if name == UNIFIED.name and not host.has_third_party("nexus_roles"):
        return UNIFIED  # what ships with Nexus need not be imported for it
    return host.roles([UNIFIED]).get(name)


def find_renderer(host: Host, name: str) -> Renderer:
    """Return the renderer of that name; a plugin's `labelled` takes the place of Nexus's own.

    Raises:
        UnknownNameError: There is none.
    """
    if name == LABELLED.name and not host.has_third_party("nexus_renderers"):
        return LABELLED
    return host.renderers([LABELLED]).get(name)


def find_epoch_renderer(host: Host, name: str, plugin: str) -> Renderer:
    """Return the renderer that an epoch was made with, also where a plugin installed since then has its name.

    Args:
        host: The plugins.
        name: The renderer's name.
        plugin: The plugin that had replaced the bundled renderer then; "" if none had.

    Raises:
        UnknownNameError: There is none.
    """
    registry = host.renderers([LABELLED])
    return registry.get(name) if plugin else registry.get_bundled(name)


def get_replacing_plugin(host: Host, renderer: Renderer) -> str:
    """Return the plugin whose renderer is used in place of a bundled one; "" if it replaces none."""
    return renderer.plugin if host.is_replaced("renderer", renderer.name) else ""
