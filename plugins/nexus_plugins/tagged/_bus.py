"""What a `ContextBuilder` asks of the program around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

REQUEST = "context.build.request"
"""The topic on which contexts are asked for: a `BusMessage` whose content has `run` and `user_profile`."""
RESPONSE = "context.build.response"
"""The topic on which they are given: `{"status": "success", "messages": […], "tools": […]}`, or
`{"status": "error", "error": "…", "messages": [], "tools": []}`."""


class Run(NamedTuple):
    """What is to be answered. Any object with these attributes will do.

    Attributes:
        owner_key: Whose history it belongs to.
        current_input: What was said.
        timestamp_utc: When; None for now.
        timezone_offset: Where: minutes west of UTC, or the name of a zone.
    """

    owner_key: str
    current_input: str
    timestamp_utc: object = None
    timezone_offset: int | str = 0


class BusMessage(NamedTuple):
    """What travels on a bus. Of a request, any object with these attributes will do.

    Attributes:
        content: What it says.
        run_id: What it is about; a response repeats it.
        owner_key: On whose behalf; a response repeats it.
    """

    content: Mapping[str, object]
    run_id: str = ""
    owner_key: str = ""


class Bus(Protocol):
    """Carries messages from those who publish to those who have subscribed."""

    def subscribe(self, topic: str, handler: Callable[[BusMessage], Awaitable[None]], /) -> object:
        """Have a function called with every message on a topic."""

    async def publish(self, topic: str, message: BusMessage, /) -> object:
        """Send a message to all that have subscribed to its topic."""


class ToolRegistry(Protocol):
    """Knows the tools there are."""

    def get_all_tool_definitions(self) -> Sequence[object]:
        """All of them, in the shape of any API. May take its time: it is called in a thread."""


class Persistence(Protocol):
    """Keeps what was said."""

    async def get_history(self, owner_key: str, limit: int) -> Sequence[object]:
        """The newest messages of an owner, in either order: dicts or objects with role, content and timestamp."""
