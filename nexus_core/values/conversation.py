"""What goes to a model and what comes back, in no API's shape."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, get_args

from nexus_core.values.checks import require_one_of
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from nexus_core.values.message import Message
    from nexus_core.values.parts import JSON

ToolScope = Literal["general", "messaging", "spawn"]
"""What a tool reaches: the work at hand, other people, other agents."""
SCOPES: tuple[ToolScope, ...] = get_args(ToolScope)

Stop = Literal["end", "tools", "length", "pause", "refusal", "error", "broken", ""]
"""Why a reply ended: it was complete, it waits for tools, it was cut off, the provider wants to be asked again,
the model declined, it failed, its stream broke off; "" when the API did not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a model may ask for.

    Attributes:
        name: What the model calls it.
        description: What it is good for.
        parameters: A JSON Schema of its arguments.
        scope: What it reaches.
        permissions: The permissions it needs: it is offered only to agents that were granted all of them, and to those
            of which nobody said what they may do.
        api: The dialect it was read by.
        extra: What else the API said about it. A tool that the provider itself runs has everything here.
        origin: Who runs it, where that is neither the caller nor the plugin that offers it: `mcp:github`.
    """

    name: str
    description: str = ""
    parameters: JSON = field(default_factory=dict)
    scope: ToolScope = "general"
    api: str = ""
    extra: JSON = field(default_factory=dict)
    origin: str = ""
    permissions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            require_one_of(self.scope, f"the scope of the tool {self.name!r}", SCOPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a call cost, in tokens, as the provider counted.

    Attributes:
        input_tokens: All that was read, cached or not.
        output_tokens: All that was written, reasoning included.
        cached_input_tokens: What of the input came from the provider's cache.
        cache_write_tokens: What of the input was put into the cache.
        reasoning_tokens: What of the output was thought.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A whole request.

    Attributes:
        messages: System messages among them, wherever the API puts those.
        tools: What the model may ask for.
        api: The dialect it was read by.
        extra: The other fields of the request: model, temperature, and so on.
    """

    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    api: str = ""
    extra: JSON = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered.

    Attributes:
        messages: One, or several where the API answers in items.
        stop: Why it ended.
        stop_reason: The same in the API's own word.
        usage: What it cost; None when the API did not say.
        id: The API's name for this reply.
        model: Who answered.
        api: The dialect it was read by.
    """

    messages: tuple[Message, ...]
    stop: Stop = ""
    stop_reason: str = ""
    usage: Usage | None = None
    id: str = ""
    model: str = ""
    api: str = ""
