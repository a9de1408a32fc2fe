"""RecordedStep and RecordedCall: what `Session.record` returns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.deprecation import renamed_attribute
from nexus_core.dialects.calls import INVALID_JSON_ARGUMENT, has_invalid_arguments
from nexus_core.errors import UsageError
from nexus_core.session.arguments import read_flag
from nexus_core.types.assembled import CacheReport
from nexus_core.types.base import dataclass
from nexus_core.types.messages import File, Image, Opaque, Text, ToolResult

if TYPE_CHECKING:
    from nexus_core.types.messages import JSON, ResultPart, ToolCall, Usage

UNKNOWN = CacheReport()
_PARTS = (Text, Image, File, Opaque)


class CallKey(NamedTuple):
    """Identifies a tool call by the step of its reply and its position there, since providers may repeat call ids."""

    step: str
    place: int


class CallResult(NamedTuple):
    """A tool result and the call it answers; `RecordedCall.result` makes one."""

    key: CallKey
    result: ToolResult


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call that the model has made.

    Attributes:
        key: The step and the position of the call.
        call: The call as the model wrote it.
    """

    key: CallKey
    call: ToolCall

    @property
    def id(self) -> str:
        """The provider's id of the call. It may be empty or occur twice."""
        return self.call.id

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.call.name

    @property
    def arguments(self) -> JSON:
        """The arguments; `{"INVALID_JSON": "…"}` with the model's text if they are not a JSON object."""
        return {INVALID_JSON_ARGUMENT: self.call.raw} if self.has_invalid_arguments else self.call.arguments

    @property
    def has_invalid_arguments(self) -> bool:
        """True if the arguments are not a JSON object. Do not run such a call, but record an error as its result."""
        return has_invalid_arguments(self.call)

    @property
    def raw(self) -> str | None:
        """The arguments as the model wrote them, if the API returns text."""
        return self.call.raw

    def result(self, content: str | Iterable[ResultPart] = "", *, is_error: bool = False) -> CallResult:
        """Return the result of the call, for `Session.record`.

        Args:
            content: Text, or parts: texts, images, files.
            is_error: Whether the tool failed.
        """
        is_error = read_flag(is_error, "is_error")
        return CallResult(self.key, ToolResult(self.call.id, _parts(content, self.name), self.name, is_error))

    is_broken = renamed_attribute("RecordedCall", "is_broken", "has_invalid_arguments")

    def __str__(self) -> str:
        return f"{self.name} ({self.id})" if self.id else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """A step that `Session.record` has stored.

    Attributes:
        id: The step's id in the ledger.
        turn: The id of its turn.
        text: The text of the reply, without reasoning and tool calls.
        tool_calls: The tool calls that need a result.
        usage: Tokens of the call; None if the API did not report them.
        done: True if the turn ended with this step.
        cache: How much of the call the provider read from its prompt cache.
        duplicate: True if it was recorded before.
    """

    id: str
    turn: str
    text: str = ""
    tool_calls: tuple[RecordedCall, ...] = ()
    usage: Usage | None = None
    done: bool = False
    cache: CacheReport = UNKNOWN
    duplicate: bool = False


def _parts(content: object, tool: str) -> str | tuple[ResultPart, ...]:
    if isinstance(content, str):
        return content
    if isinstance(content, _PARTS):
        return (content,)
    if isinstance(content, Iterable):
        parts = tuple(content)
        if all(isinstance(part, _PARTS) for part in parts):
            return parts
    raise UsageError(
        f"the result of {tool} must be text or parts, not {type(content).__name__}",
        hint="json.dumps(…) makes text of anything",
    )
