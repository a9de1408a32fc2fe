"""What a call says besides the conversation: sections, tools, roles, and how they are rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.api import Dialect
    from nexus_core.values.conversation import Tool
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.rendering import AgentRole, Renderer
    from nexus_core.values.request import Request
    from nexus_core.values.section import Section


@hookspec
def nexus_static_sections(request: Request, loaded: Loaded) -> Iterable[Section]:
    """Contribute sections to the stable part of the prompt.

    Collects. Asked once per load; in a session, once per epoch (the span in which this part is frozen). Sorted by
    `Section.order`, then by id, then by plugin.

    Args:
        request: The working directory, mode, role and so on. Whatever changes from turn to turn is not in it.
        loaded: The layers that were found and their texts.

    Returns:
        Sections whose text depends only on the request and the machine. Providers cache this part of the prompt, so a
        clock or a random number in it costs money on every call. A section of the kind `memory` is used, and reported.

    Example:
        import sys

        from nexus_core import Section, hookimpl

        @hookimpl
        def nexus_static_sections(request):
            return [Section("python", title="Python", text=f"Python {sys.version.split()[0]}")]
    """


@hookspec
def nexus_current_sections(request: Request, loaded: Loaded) -> Iterable[Section]:
    """Contribute sections to what is said in this turn.

    Collects. Asked once per turn, when the user's message comes in. Sorted by `Section.order`, then by id, then by
    plugin.

    Args:
        request: The message, the session, the platform and everything else about this turn.
        loaded: The layers that were found and their texts.

    Returns:
        Sections about this moment. They are stored with the message and sent again with it in later calls, unchanged. A
        section of the kind `memory` is left out if there is no room for it; any other counts as part of the event.

    Example:
        from nexus_core import Section, hookimpl

        @hookimpl
        def nexus_current_sections(request):
            return [Section("git", title="Git", text=status(request.cwd))]
    """


@hookspec
def nexus_tools(request: Request, loaded: Loaded) -> Iterable[Tool]:
    """Offer tools to the model.

    Collects. Asked once per epoch. The caller's own tools come first. If two tools have the same name, the caller's
    wins, then that of the plugin whose name sorts first.

    Args:
        request: The working directory, role, the caller's tools and so on.
        loaded: The layers that were found and their settings.

    Returns:
        Definitions. Nexus leaves out tools that the role or the permissions do not allow. It never runs a tool; whoever
        calls the model does.

    Example:
        from nexus_core import Tool, hookimpl

        @hookimpl
        def nexus_tools(request):
            return [Tool(name="git_status", description="What git says.", parameters={"type": "object"})]
    """


@hookspec
def nexus_renderers() -> Iterable[Renderer]:
    """Offer ways to render sections and messages as text.

    Collects. Asked once per Nexus. Yours replaces a bundled one of the same name, also `labelled`, which is built in.
    Of two installed plugins with the same name, that of the plugin whose name sorts first wins.

    Returns:
        Renderers by name.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Renderer

        @hookimpl
        def nexus_renderers():
            return [Renderer(name="plain", system=join_texts, current=lambda request, sections, now: request.message)]
    """


@hookspec
def nexus_dialects() -> Iterable[Dialect]:
    """Offer the shape of another API: its messages, tools, requests and replies.

    Collects. Asked once per Nexus, when a dialect is first needed. `openai`, `responses`, `anthropic`, `gemini` and
    `neutral` are built in. Yours replaces a bundled or built-in one of the same name, except `neutral`, in which
    conversations are kept. Of two installed plugins with the same name, that of the plugin whose name sorts first wins.

    Returns:
        Dialects by name: objects of any class that have what `Dialect` has, or `ApiDialect`, which is made of
        functions. docs/how-to/speak-another-api.md writes one.

    Example:
        from nexus_core import hookimpl

        @hookimpl
        def nexus_dialects():
            return [AcmeDialect()]
    """


@hookspec
def nexus_roles() -> Iterable[AgentRole]:
    """Define roles that an agent can have.

    Collects. Asked once per Nexus. Yours replaces a bundled one of the same name, also `unified`, which is built in.
    Of two installed plugins with the same name, that of the plugin whose name sorts first wins.

    Returns:
        Roles by name, each with the scopes of the tools it may use. To give a role instructions, answer
        `nexus_static_sections` as well.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import AgentRole

        @hookimpl
        def nexus_roles():
            return [AgentRole(name="reviewer", scopes=("general",))]
    """
