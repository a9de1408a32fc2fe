"""What a caller gets of a step that was recorded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.arguments import INVALID_JSON, is_broken
from nexus_core.errors import UsageError
from nexus_core.session.arguments import read_flag
from nexus_core.values.cache import CacheReport
from nexus_core.values.fast_dataclass import dataclass
from nexus_core.values.parts import File, Image, Opaque, Text, ToolResult

if TYPE_CHECKING:
    from nexus_core.values.conversation import Usage
    from nexus_core.values.parts import JSON, ResultPart, ToolCall

UNKNOWN = CacheReport()
_PARTS = (Text, Image, File, Opaque)


class CallKey(NamedTuple):
    """Which call is meant, whatever id the provider gave it: the step of the reply, and the call's place in it."""

    step: str
    place: int


class CallResult(NamedTuple):
    """A result on its way to its call."""

    key: CallKey
    result: ToolResult


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool that the model asks for.

    Attributes:
        key: Which call it is.
        call: The call as the model made it.
    """

    key: CallKey
    call: ToolCall

    @property
    def id(self) -> str:
        """What the provider calls it; may be empty, or occur twice."""
        return self.call.id

    @property
    def name(self) -> str:
        """The tool."""
        return self.call.name

    @property
    def arguments(self) -> JSON:
        """What to run it with; of arguments that are broken, what the model wrote, as `{"INVALID_JSON": "…"}`."""
        return {INVALID_JSON: self.call.raw} if self.is_broken else self.call.arguments

    @property
    def is_broken(self) -> bool:
        """Whether the model wrote arguments that are no JSON object: a call that should not be run, but told so."""
        return is_broken(self.call)

    @property
    def raw(self) -> str | None:
        """The arguments as the model wrote them, where an API hands over text."""
        return self.call.raw

    def result(self, content: str | Iterable[ResultPart] = "", *, is_error: bool = False) -> CallResult:
        """What running it brought, to be given to `record`.

        Args:
            content: Text, or parts: text, images, files.
            is_error: Whether the tool failed.
        """
        is_error = read_flag(is_error, "is_error")
        return CallResult(self.key, ToolResult(self.call.id, _parts(content, self.name), self.name, is_error))

    def __str__(self) -> str:
        return f"{self.name} ({self.id})" if self.id else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """A step that is kept.

    Attributes:
        id: Its name in the ledger.
        turn: The turn it belongs to.
        text: What the model said, without reasoning and calls.
        tool_calls: What the model asks for and has to be answered.
        usage: What the call cost; None when the API did not say.
        done: Whether the turn ended with it.
        cache: What became of the provider's cache.
        duplicate: Whether it had been recorded before.
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
