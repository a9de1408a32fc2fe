"""How a request is put into words, and what part the agent plays in it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from nexus_core.values.checks import require_type, require_words
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.values.arrangement import Arranged, Arrangement
    from nexus_core.values.conversation import ToolScope
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.message import Message
    from nexus_core.values.request import Request
    from nexus_core.values.section import Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Renderer:
    """A way to put sections and messages into words.

    All of its functions give the same answer for the same arguments.

    Attributes:
        name: What `renderer` in the settings calls it.
        system: The sections of the static zone in their order, as one text. Asked once for an epoch.
        current: What was said in a turn, with the circumstances and the sections of the current zone around it; also
            given the time, in milliseconds since 1970. Asked once for a turn: the answer is kept and sent again.
            It must not be empty where something was said.
        arrange: Puts history and input into another form for each call; None where they are sent as they are, so that
            the beginning of a call is the whole of the one before and a provider's cache can hold it. What it goes by
            besides its argument does not change: it is asked again when a past call is looked at.
        sections: What it says in the static zone by itself, such as an identity; given to `system` among the others.
        configure: The same renderer as the settings and the files of a place want it; asked for every turn, so that it
            notices when they change. None where there is nothing to set.
        plugin: The plugin that offers it; stamped by the host.
    """

    name: str
    system: Callable[[Sequence[Section]], str]
    current: Callable[[Request, Sequence[Section], int], Message]
    arrange: Callable[[Arrangement], Arranged] | None = None
    sections: tuple[Section, ...] = ()
    configure: Callable[[Loaded], Renderer] | None = None
    plugin: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        require_words(self.name, "Renderer.name")
        require_type(self.sections, "Renderer.sections", tuple)
        for name in ("system", "current"):
            if not callable(getattr(self, name)):
                raise ValueError(f"Renderer.{name} must be a function")  # noqa: TRY004 - values raise ValueError only


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRole:
    """A part that an agent can play.

    Attributes:
        name: What `Request.role` calls it.
        scopes: What its tools may reach.
        sees_platform: Whether it is told where the user is and what can be done there.
    """

    name: str
    scopes: tuple[ToolScope, ...] = ("general", "messaging", "spawn")
    sees_platform: bool = False

    def __post_init__(self) -> None:
        require_words(self.name, "AgentRole.name")
        require_type(self.scopes, "AgentRole.scopes", tuple)
