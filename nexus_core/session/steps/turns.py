"""What a turn waits for, told from its steps."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.neutral import decode_value
from nexus_core.session.steps.recorded import CallKey, RecordedCall, RecordedStep
from nexus_core.types.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message, ToolCall, ToolResult


class Answer(NamedTuple):
    """A result that is recorded, and the step that has it."""

    step: Step
    result: ToolResult


class Turn:
    """One turn, from its first step on.

    Args:
        steps: Its steps so far, in their order.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)

    @property
    def is_open(self) -> bool:
        """Whether it goes on."""
        return not self.steps[-1].closes

    @property
    def is_sealed(self) -> bool:
        """Whether it is written down how what was said is sent."""
        return any(step.kind == "sealed" for step in self.steps)

    @property
    def said(self) -> Message | None:
        """What it is about, before it was put into words."""
        first = self.steps[0]
        return first.messages[0] if first.kind == "input" and first.messages else None

    def sealed(self, name: str) -> object:
        """What was written down last under a name about how it is sent; None where nothing was."""
        return next(
            (step.data[name] for step in reversed(self.steps) if step.kind == "sealed" and name in step.data), None
        )

    @cached_property
    def replies(self) -> tuple[Step, ...]:
        """What the model answered."""
        return tuple(step for step in self.steps if step.kind == "reply")

    @cached_property
    def calls(self) -> dict[CallKey, ToolCall]:
        """What the model asked the caller for, in the order of the calls."""
        return {
            CallKey(step.id, place): call
            for step in self.replies
            for place, call in enumerate(client_calls(step.messages))
        }

    @cached_property
    def answers(self) -> dict[CallKey, Answer]:
        """The results that are there."""
        return {
            key: Answer(step, result)
            for step in self.steps
            for key, result in zip(answered_by(step), results_in(step.messages), strict=False)
        }

    @cached_property
    def pending(self) -> tuple[RecordedCall, ...]:
        """The calls that wait for their result."""
        if not self.is_open:
            return ()
        return tuple(RecordedCall(key, call) for key, call in self.calls.items() if key not in self.answers)

    def recorded(self, step: Step, *, duplicate: bool = False) -> RecordedStep:
        """A step of this turn, as its caller sees it."""
        is_reply = step.kind in ("reply", "turn")
        return RecordedStep(
            id=step.id,
            turn=step.turn,
            text="\n".join(filter(None, map(_said, step.messages))) if is_reply else "",
            tool_calls=tuple(RecordedCall(key, call) for key, call in self.calls.items() if key.step == step.id),
            usage=usage_of(step),
            done=step.closes,
            duplicate=duplicate,
        )


def client_calls(messages: Iterable[Message]) -> list[ToolCall]:
    """The calls that the caller has to answer: all but those whose result the reply itself brings."""
    messages = tuple(messages)
    answered = [result.call_id for result in results_in(messages)]
    calls = []
    for message in messages:
        for call in message.tool_calls:
            if call.id in answered:
                answered.remove(call.id)
            else:
                calls.append(call)
    return calls


def results_in(messages: Iterable[Message]) -> list[ToolResult]:
    """The results that messages bring."""
    return [result for message in messages for result in message.tool_results]


def answered_by(step: Step) -> list[CallKey]:
    """The calls whose results a step brings, in the order of the results."""
    answers = step.data.get("answers")
    return [CallKey(str(name), int(place)) for name, place in answers] if isinstance(answers, list | tuple) else []


def usage_of(step: Step) -> Usage | None:
    """What a step cost."""
    return read_usage(step.data.get("usage"))


def read_usage(value: object) -> Usage | None:
    """What was written down of a call's cost."""
    return None if value is None else decode_value(Usage, value)


def _said(message: Message) -> str:
    return message.content if message.role == "assistant" else ""
