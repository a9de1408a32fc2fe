"""Inputs of the static zone: files, sections, role, renderer and tools, valid until something on disk changes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.neutral import encode_value
from nexus_core.rendering import LABELLED_RENDERER, find_agent_role, find_renderer, get_replacing_plugin, sort_sections
from nexus_core.request.prefix import OLD_MODE
from nexus_core.request.renderer import configure_renderer, render_system
from nexus_core.request.tools import CALLER_SOURCE, ToolOffer
from nexus_core.types.layers import LoadedLayers
from nexus_core.types.prompt import Section, Source
from nexus_core.types.request import DEFAULT_MODE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nexus_core.host.manager import Host
    from nexus_core.request.prefix import Prefix
    from nexus_core.types.messages import JSON, Tool
    from nexus_core.types.prompt import AgentRole, Renderer
    from nexus_core.types.request import AgentMode, Request
    from nexus_core.types.settings import Settings


OVERRIDE_SECTION = "system_prompt"
"""The section of a system prompt that the caller gives in place of everything."""


def build_override_section(text: str) -> Section:
    """Return the only section of a system prompt that takes the place of everything."""
    return Section(OVERRIDE_SECTION, "System Prompt", text, source=Source(uri="caller:"))


class StaticContext:
    """Everything the static zone of a session is built from. Calls each plugin hook at most once.

    Args:
        request: The circumstances, without what changes from turn to turn.
        loaded: What was loaded.
        sections: The static zone without what the renderer brings.
        host: The plugins.

    Raises:
        UnknownNameError: Nobody offers such a role or renderer.
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
        """Whether its renderer says by itself what it said before; that may come from files that no load has read."""
        return configure_renderer(self.renderer, self.loaded).sections == self.renderer.sections

    @property
    def cwd(self) -> Path:
        """The directory that the agent works in."""
        return self.request.cwd

    @property
    def settings(self) -> Settings:
        """What the user and the project set."""
        return self.loaded.settings

    @property
    def permissions(self) -> tuple[str, ...]:
        """What the agent may do: the level of the settings, and the caller's words."""
        return (str(self.settings.get("permissions.level", "trusted")), *(self.request.permissions or ()))

    @cached_property
    def tool_offers(self) -> tuple[ToolOffer, ...]:
        """All tools, with what became of each."""
        from nexus_core.request.tools import offer_tools

        added = self._host.tools(self.request, self.loaded)
        return offer_tools(self.request.tools or (), added, self.role, self.settings, self.request.permissions)

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may ask for."""
        from nexus_core.request.tools import list_permitted_tools

        return list_permitted_tools(self.tool_offers)

    @cached_property
    def prefix_key(self) -> JSON:
        """What begins another epoch at once when it changes."""
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
        """The sections as they are stored."""
        from nexus_core.request.prefix import write_sections

        return write_sections(self.sections)

    @cached_property
    def sections_digest(self) -> str:
        """Their address."""
        return _address_of(self.sections_blob)

    @cached_property
    def system_prompt(self) -> str:
        """The static zone in words."""
        if self.request.system_prompt:
            return self.request.system_prompt
        return render_system(self.renderer, self.sections)

    @cached_property
    def settings_blob(self) -> bytes:
        """What the settings say about calls, as it is stored."""
        from nexus_core.request.prefix import write_settings

        return write_settings(self.settings)

    @cached_property
    def settings_digest(self) -> str:
        """Its address."""
        return _address_of(self.settings_blob)

    def _list_trusted_parts(self) -> list[list[Any]]:
        """What a project is allowed to do; what waits for the user's word has no effect yet."""
        return sorted(
            [str(part.path), part.pointer, _address_of(part.content.encode("utf-8", "surrogatepass"))]
            for part in self.loaded.active
            if part.decision == "allowed"
        )


def _address_of(content: bytes) -> str:
    from nexus_core.ledger.codec import compute_blob_digest

    return compute_blob_digest(content)


class StoredStaticContext(StaticContext):
    """System prompt, tools and permissions of an epoch; nothing that a project wants to start is allowed here.

    Args:
        request: The circumstances, as the epoch has them.
        settings: The settings as they were kept.
        epoch: The epoch.
        told: The sections that the model was told last.
        host: The plugins.
    """

    def __init__(
        self, request: Request, settings: Settings, epoch: Prefix, told: Iterable[Section], host: Host
    ) -> None:
        super().__init__(request, LoadedLayers(settings=settings), (), host)
        permissions = epoch.key.get("permissions")
        self._permissions = tuple(map(str, permissions)) if isinstance(permissions, list) else super().permissions
        self.sections = tuple(told)
        self.tool_offers = tuple(ToolOffer(tool, CALLER_SOURCE) for tool in epoch.tools)
        self.prefix_key = {name: value for name, value in epoch.key.items() if name != "reloads"}

    @property
    def permissions(self) -> tuple[str, ...]:
        """What the agent may do, as it was."""
        return self._permissions


def prefix_matches(epoch: Prefix, request: Request) -> bool:
    """Whether an epoch was made for what a request says about the agent."""
    basis, permissions = epoch.key, epoch.key.get("permissions")
    return (
        basis.get("role") == request.role
        and request.renderer in ("", basis.get("renderer"))
        and isinstance(permissions, list)
        and permissions[1:] == list(request.permissions or ())
        and basis.get("system_prompt", "") == request.system_prompt
        and basis.get("task") == request.task
        and _agrees_with_mode(basis.get("mode"), request.mode)
        and basis.get("skills") == (None if request.skills is None else list(request.skills))
        and basis.get("tools") == [encode_value(tool) for tool in request.tools or ()]
    )


def _agrees_with_mode(epoch_mode: object, wanted: AgentMode) -> bool:
    """True if an epoch can go on in a mode; an old one that names none was made for both of these."""
    return epoch_mode == wanted if epoch_mode is not None else wanted in (DEFAULT_MODE, OLD_MODE)
