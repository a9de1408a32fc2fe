"""Inputs of the static zone: files, sections, role, renderer and tools, valid until a file changes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from nexus_core.rendering import LABELLED_RENDERER, find_agent_role, find_renderer, get_replacing_plugin, sort_sections
from nexus_core.request.renderer import configure_renderer, render_system
from nexus_core.types.prompt import Section, Source

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nexus_core.host.manager import Host
    from nexus_core.request.tools import ToolOffer
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.messages import JSON, Tool
    from nexus_core.types.prompt import AgentRole, Renderer
    from nexus_core.types.request import Request
    from nexus_core.types.settings import Settings


OVERRIDE_SECTION = "system_prompt"
"""The id of the only section if the caller passes a whole system prompt."""


def build_override_section(text: str) -> Section:
    """Return the only section for a system prompt that the caller passes."""
    return Section(OVERRIDE_SECTION, "System Prompt", text, source=Source(uri="caller:"))


class StaticContext:
    """Everything the static zone of a session is built from.

    Calls each plugin hook at most once.

    Args:
        request: The request without what changes from turn to turn.
        loaded: The loaded layers.
        sections: The static sections without those of the renderer.
        host: The plugin manager.

    Raises:
        UnknownNameError: No plugin offers the role or the renderer.
    """

    def __init__(self, request: Request, loaded: LoadedLayers, sections: Iterable[Section], host: Host) -> None:
        self.request = request
        self.loaded = loaded
        self._host = host
        self.role: AgentRole = find_agent_role(host, request.role)
        configured = loaded.settings.get("renderer")
        name = request.renderer or (configured if isinstance(configured, str) else LABELLED_RENDERER.name)
        self.renderer: Renderer = configure_renderer(find_renderer(host, name), loaded)
        self.sections = tuple(sort_sections((*sections, *self.renderer.sections)))
        if request.system_prompt:
            self.sections = (build_override_section(request.system_prompt),)

    @property
    def is_current(self) -> bool:
        """True if the renderer's own sections are unchanged.

        They may come from files that the layer cache does not watch.
        """
        return configure_renderer(self.renderer, self.loaded).sections == self.renderer.sections

    @property
    def cwd(self) -> Path:
        """The directory that the agent works in."""
        return self.request.cwd

    @property
    def settings(self) -> Settings:
        """Settings of the user and the project."""
        return self.loaded.settings

    @property
    def permissions(self) -> tuple[str, ...]:
        """The permission level of the settings, and the caller's permissions."""
        return (str(self.settings.get("permissions.level", "trusted")), *(self.request.permissions or ()))

    @cached_property
    def tool_offers(self) -> tuple[ToolOffer, ...]:
        """All tools, also those that are kept from the model, with the reason."""
        from nexus_core.request.tools import offer_tools

        added = self._host.tools(self.request, self.loaded)
        return offer_tools(self.request.tools or (), added, self.role, self.settings, self.request.permissions)

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model may call."""
        from nexus_core.request.tools import list_permitted_tools

        return list_permitted_tools(self.tool_offers)

    @cached_property
    def prefix_key(self) -> JSON:
        """The values that start a new prefix at once when one of them changes."""
        from nexus_core.dialects.neutral import encode_value

        request, rules = self.request, self.settings.get("permissions")
        plugin = get_replacing_plugin(self._host, self.renderer)
        replacing = {"renderer_plugin": plugin} if plugin else {}
        if request.system_prompt:
            replacing["system_prompt"] = request.system_prompt
        return replacing | {
            "mode": request.mode,
            "role": self.role.name,
            "renderer": self.renderer.name,
            "permissions": list(self.permissions),
            "rules": rules if isinstance(rules, dict) else {},
            "trust": self._list_trusted_parts(),
            "task": request.task,
            "skills": None if request.skills is None else list(request.skills),
            "tools": [encode_value(tool) for tool in request.tools or ()],
        }

    @cached_property
    def sections_blob(self) -> bytes:
        """The sections, serialized."""
        from nexus_core.request.prefix import write_sections

        return write_sections(self.sections)

    @cached_property
    def sections_digest(self) -> str:
        """The digest of `sections_blob`."""
        return _compute_digest(self.sections_blob)

    @cached_property
    def system_prompt(self) -> str:
        """The rendered system prompt."""
        if self.request.system_prompt:
            return self.request.system_prompt
        return render_system(self.renderer, self.sections)

    @cached_property
    def settings_blob(self) -> bytes:
        """The settings of a call, serialized."""
        from nexus_core.request.prefix import write_settings

        return write_settings(self.settings)

    @cached_property
    def settings_digest(self) -> str:
        """The digest of `settings_blob`."""
        return _compute_digest(self.settings_blob)

    def _list_trusted_parts(self) -> list[list[Any]]:
        """Return path, pointer and digest of the project settings in effect.

        Settings that wait for the user's approval have no effect.
        """
        return sorted(
            [str(part.path), part.pointer, _compute_digest(part.content.encode("utf-8", "surrogatepass"))]
            for part in self.loaded.active
            if part.decision == "allowed"
        )


def _compute_digest(content: bytes) -> str:
    from nexus_core.ledger.codec import compute_blob_digest

    return compute_blob_digest(content)
