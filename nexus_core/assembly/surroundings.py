"""Finds out what stands around a conversation, and does no work twice while nothing changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.assembly.static_context import StaticContext
from nexus_core.layers.context import LoadedContext
from nexus_core.layers.load import build_layer_sections, build_permissions_section
from nexus_core.types.request import DEFAULT_MODE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nexus_core.assembly.freshness import FreshLoads
    from nexus_core.host.manager import Host
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.request import AgentMode, Request

Seen = tuple["Request", "LoadedLayers"]
"""The circumstances in a directory, and what was loaded there."""

REMEMBERED = 16
"""So many circumstances are remembered; most programs have one or two."""
SUBAGENT_ORDER = 99
"""A worker's own instructions stand before those it inherits."""


class Surroundings:
    """What stands around the conversations of a Nexus.

    Args:
        host: The plugins.
        loads: Loads what lies on disk, when it has changed.
    """

    def __init__(self, host: Host, loads: FreshLoads) -> None:
        self._host = host
        self._loads = loads
        self._known: list[tuple[tuple[LoadedLayers, ...], StaticContext]] = []

    def look(self, places: Sequence[Path], mode: AgentMode = DEFAULT_MODE) -> list[Seen]:
        """What lies on disk, read again only where something has changed.

        Args:
            places: The directory a conversation works in; before it, for a worker, those of the agents that it inherits
                from.
            mode: How the agent is driven.
        """
        return [self._loads.get(place, mode) for place in places]

    def last_look(self, places: Sequence[Path], mode: AgentMode = DEFAULT_MODE) -> list[Seen] | None:
        """What was last seen on disk; None where nothing was. Arguments as above."""
        seen = [self._loads.last(place, mode) for place in places]
        known = [each for each in seen if each is not None]
        return known if len(known) == len(seen) else None

    def stand(self, found: Sequence[Seen], fields: Mapping[str, Any]) -> StaticContext:
        """What stands around a conversation now.

        Args:
            found: What lies on disk.
            fields: The circumstances that the caller decides: role, renderer, task, tools…

        Raises:
            UnknownNameError: Nobody offers such a role or renderer.
        """
        request = _call_request(found, fields)
        loads = tuple(each for _, each in found)
        for known_loads, known in self._known:
            is_same = len(known_loads) == len(loads) and all(map(_is_same, known_loads, loads))
            if is_same and known.request == request and known.is_current:
                return known
        standing = build_static_context(self._host, found, fields)
        self._known = [(loads, standing), *self._known[: REMEMBERED - 1]]
        return standing


def build_static_context(host: Host, found: Sequence[Seen], fields: Mapping[str, Any]) -> StaticContext:
    """Build the static zone: the one answer to what a session, `nexus show` and `Nexus.system_prompt` print.

    Args:
        host: The plugins.
        found: The loaded directory; before it, for a worker, those of the agents that it inherits from.
        fields: The fields of the request that the caller decides: role, renderer, mode, permissions, task, tools.

    Raises:
        UnknownNameError: No plugin offers the role or the renderer.
    """
    request, (_, loaded) = _call_request(found, fields), found[-1]
    if request.system_prompt:
        return StaticContext(request, loaded, (), host)
    contexts = {
        one.cwd: LoadedContext(
            cwd=one.cwd,
            loaded=each,
            layer_sections=build_layer_sections(each),
            other_sections=host.static_sections(request, each) if each is loaded else (),
            load_for=lambda cwd: contexts[cwd],  # type: ignore[index] # it is asked for what is there
        )
        for one, each in found
    }
    context = contexts[found[0][0].cwd]
    for one, _ in found[1:]:
        if one.cwd != context.cwd:
            context = context.for_subagent(one.cwd)
    own = [replace(section, order=SUBAGENT_ORDER) for section in context.subagent_sections]
    may = build_permissions_section(loaded.settings, request.permissions or ())
    return StaticContext(request, loaded, [*own, *context.layer_sections, may, *context.other_sections], host)


def _call_request(found: Sequence[Seen], fields: Mapping[str, Any]) -> Request:
    return replace(found[-1][0], **fields, is_call=True).standing


def _is_same(one: LoadedLayers, other: LoadedLayers) -> bool:
    return one is other
