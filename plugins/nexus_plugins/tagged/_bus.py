"""What a `ContextBuilder` asks of the program around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

REQUEST = "context.build.request"
"""The topic of requests. The content of the message is `{"run": …, "user_profile": …}`, or the run itself, whose
`metadata` then has the `user_profile`."""
RESPONSE = "context.build.response"
"""The topic on which they are given: `{"status": "success", "messages": […], "tools": […]}`, or
`{"status": "error", "error": "…", "messages": [], "tools": []}`."""


class Run(NamedTuple):
    """A user message to answer.

    A `ContextBuilder` also takes any other object or dict with these attributes, and runs with `id`, `owner_key`,
    `history` (the user message is the first in it) and `metadata` (`user_profile`, `client_timestamp_utc`,
    `client_timezone_offset`).

    Attributes:
        owner_key: Whose history it belongs to.
        current_input: The text of the user message.
        timestamp_utc: Time of the message; without one that can be read, the model is given no time.
        timezone_offset: Minutes west of UTC, or the name of a zone.
        id: Messages in the history with this `run_id` belong to the run, and are not repeated as memories.
    """

    owner_key: str
    current_input: str
    timestamp_utc: object = None
    timezone_offset: int | str = 0
    id: str = ""


class BusMessage(NamedTuple):
    """What travels on a bus. Of a request, any object with these attributes will do.

    Attributes:
        content: Of a request, see `REQUEST`; of a response, see `RESPONSE`.
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
        """The newest messages of an owner, in either order: dicts or objects with role, content and timestamp.

        With a `run_id` besides, the messages of the current run are recognised for certain.
        """
