"""The events of a turn, in the order in which an agent yields them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from nexus_core.types.base import dataclass
from nexus_core.types.messages import Usage
from nexus_core.types.providers import ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from nexus_core.thread.state import RecordedCall, RecordedStep
    from nexus_core.types.messages import Stop, ToolResult
    from nexus_core.types.prompt import Placement


@dataclass(frozen=True, slots=True)
class ToolCallEvent:
    """A tool call that is about to be decided on and run. It is stored already."""

    call: RecordedCall


@dataclass(frozen=True, slots=True)
class PermissionEvent:
    """A tool call that needs permission; the agent's `ask` is called next.

    Attributes:
        call: The call.
        reason: Why it needs permission.
    """

    call: RecordedCall
    reason: str


@dataclass(frozen=True, slots=True)
class ToolResultEvent:
    """The stored result of a tool call.

    Attributes:
        call: The call.
        result: What the model will read.
        seconds: How long the tool ran; 0 if it was not run.
    """

    call: RecordedCall
    result: ToolResult
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class StepEvent:
    """A reply or tool result is stored: a crash does not lose it any more."""

    step: RecordedStep


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """Earlier turns were replaced by a summary.

    Attributes:
        reason: `context_limit` if the next call would not have fitted, `overflow_recovery` if a provider refused one.
    """

    reason: Literal["context_limit", "overflow_recovery"]


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """Memories were added to the user message.

    Attributes:
        memories: Each with its source, its tokens and the reason why it was recalled.
    """

    memories: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class SteeringMessageEvent:
    """A user message that arrived during the turn is stored. The model reads it next.

    Attributes:
        message: The message as it was passed.
    """

    message: object


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """The token usage of one model call, as the provider reports it."""

    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneEvent:
    """The end of a turn.

    Attributes:
        text: The final reply; what had arrived of it if the turn was cancelled.
        stop: Why the reply ended.
        cancelled: True if the turn was cancelled.
        usage: The tokens of all model calls of this run.
        calls: The number of model calls of this run.
    """

    text: str
    stop: Stop = ""
    cancelled: bool = False
    usage: Usage = Usage()
    calls: int = 0


AgentEvent = (
    TextDelta
    | ReasoningDelta
    | ToolCallEvent
    | PermissionEvent
    | ToolResultEvent
    | StepEvent
    | CompactionEvent
    | MemoryEvent
    | SteeringMessageEvent
    | UsageEvent
    | DoneEvent
)
"""Events of a turn: pieces of text and reasoning as they arrive, stored steps, tool calls, and one `DoneEvent`."""
