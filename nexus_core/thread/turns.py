"""Turns and their steps, and the values that `Session.record` returns: RecordedStep and RecordedCall."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.deprecation import renamed_attribute
from nexus_core.dialects.calls import INVALID_JSON_ARGUMENT, has_invalid_arguments
from nexus_core.dialects.neutral import decode_value
from nexus_core.errors import UsageError
from nexus_core.thread.arguments import read_flag
from nexus_core.types.assembled import CacheReport
from nexus_core.types.base import dataclass
from nexus_core.types.messages import File, Image, Opaque, Text, ToolResult, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import JSON, Message, ResultPart, ToolCall

NO_CACHE_REPORT = CacheReport()
_PART_TYPES = (Text, Image, File, Opaque)


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
        return CallResult(self.key, ToolResult(self.call.id, _read_parts(content, self.name), self.name, is_error))

    is_broken = renamed_attribute("RecordedCall", "is_broken", "has_invalid_arguments")

    def __str__(self) -> str:
        return f"{self.name} ({self.id})" if self.id else self.name


def _read_parts(content: object, tool: str) -> str | tuple[ResultPart, ...]:
    if isinstance(content, str):
        return content
    if isinstance(content, _PART_TYPES):
        return (content,)
    if isinstance(content, Iterable):
        parts = tuple(content)
        if all(isinstance(part, _PART_TYPES) for part in parts):
            return parts
    raise UsageError(
        f"the result of {tool} must be text or parts, not {type(content).__name__}",
        hint="json.dumps(…) makes text of anything",
    )


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
    cache: CacheReport = NO_CACHE_REPORT
    duplicate: bool = False


class Turn:
    """The steps of one turn.

    Args:
        steps: The steps so far, oldest first.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)

    @property
    def is_open(self) -> bool:
        """True if the turn has not ended."""
        return not self.steps[-1].closes

    @property
    def is_rendered(self) -> bool:
        """True if the rendered input is stored."""
        return any(step.kind == "sealed" for step in self.steps)

    @property
    def input_message(self) -> Message | None:
        """The user message before it was rendered; None if the turn has none."""
        first = self.steps[0]
        return first.messages[0] if first.kind == "input" and first.messages else None

    def get_rendered(self, name: str) -> object:
        """Return a field of the newest rendered step that has it; None if none has."""
        return next(
            (step.data[name] for step in reversed(self.steps) if step.kind == "sealed" and name in step.data), None
        )

    @cached_property
    def replies(self) -> tuple[Step, ...]:
        """The steps with the model's replies."""
        return tuple(step for step in self.steps if step.kind == "reply")

    @cached_property
    def calls(self) -> dict[CallKey, ToolCall]:
        """The tool calls that the caller has to run, in their order."""
        return {
            CallKey(step.id, place): call
            for step in self.replies
            for place, call in enumerate(find_client_calls(step.messages))
        }

    @cached_property
    def answered(self) -> dict[CallKey, AnsweredCall]:
        """The recorded tool results, by their calls."""
        return {
            key: AnsweredCall(step, result)
            for step in self.steps
            for key, result in zip(list_answered_calls(step), list_results(step.messages), strict=False)
        }

    @cached_property
    def pending(self) -> tuple[RecordedCall, ...]:
        """The tool calls without a result; none if the turn has ended."""
        if not self.is_open:
            return ()
        return tuple(RecordedCall(key, call) for key, call in self.calls.items() if key not in self.answered)

    def build_recorded_step(self, step: Step, *, duplicate: bool = False) -> RecordedStep:
        """Return a step of this turn as `Session.record` returns it."""
        is_reply = step.kind in ("reply", "turn")
        return RecordedStep(
            id=step.id,
            turn=step.turn,
            text="\n".join(filter(None, map(_get_reply_text, step.messages))) if is_reply else "",
            tool_calls=tuple(RecordedCall(key, call) for key, call in self.calls.items() if key.step == step.id),
            usage=get_step_usage(step),
            done=step.closes,
            duplicate=duplicate,
        )


class AnsweredCall(NamedTuple):
    """A recorded tool result and the step that holds it."""

    step: Step
    result: ToolResult


def find_client_calls(messages: Iterable[Message]) -> list[ToolCall]:
    """Return the tool calls that have no result among the messages.

    A provider answers the calls of its own tools in the same reply.
    """
    messages = tuple(messages)
    answered = [result.call_id for result in list_results(messages)]
    calls = []
    for message in messages:
        for call in message.tool_calls:
            if call.id in answered:
                answered.remove(call.id)
            else:
                calls.append(call)
    return calls


def list_results(messages: Iterable[Message]) -> list[ToolResult]:
    """Return the tool results of messages."""
    return [result for message in messages for result in message.tool_results]


def list_answered_calls(step: Step) -> list[CallKey]:
    """Return the calls that a step answers, in the order of its results."""
    answers = step.data.get("answers")
    return [CallKey(str(name), int(place)) for name, place in answers] if isinstance(answers, list | tuple) else []


def get_step_usage(step: Step) -> Usage | None:
    """Return the usage of a step's call; None if it is unknown."""
    return read_usage(step.data.get("usage"))


def read_usage(value: object) -> Usage | None:
    """Return a stored usage; None if nothing is stored."""
    return None if value is None else decode_value(Usage, value)


def _get_reply_text(message: Message) -> str:
    return message.content if message.role == "assistant" else ""
