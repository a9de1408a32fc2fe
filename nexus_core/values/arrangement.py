"""What a renderer may rearrange for each call, and what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from nexus_core.values.conversation import Tool
    from nexus_core.values.message import Message
    from nexus_core.values.request import Request


class Past(NamedTuple):  # of which there are many
    """A message of the history.

    Attributes:
        message: As it was sent.
        created: When, in milliseconds since 1970; 0 when nobody knows.
        is_input: Whether somebody said it to the agent, rather than the agent or a tool.
        said: For an input, what was said before it was rendered; else the message.
    """

    message: Message
    created: int
    is_input: bool
    said: Message


class Arranged(NamedTuple):
    """What stands between the system prompt and what the model has done in this turn so far."""

    history: tuple[Message, ...]
    current: Message | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """What a renderer may rearrange.

    Attributes:
        request: The circumstances of the turn.
        history: The turns before this one, as many as fit.
        current: The input of this turn as the renderer's `current` made it.
        tools: What the model may ask for.
    """

    request: Request
    history: tuple[Past, ...]
    current: Message | None
    tools: tuple[Tool, ...]
