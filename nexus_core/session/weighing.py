"""What steps take, as they are sent; counted once for each counter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from nexus_core.session.clamping import sent_messages

if TYPE_CHECKING:
    from nexus_core.tokens.memory import RememberingCounter
    from nexus_core.values.ledger import Step
    from nexus_core.values.message import Message


class Weighs(Protocol):
    """Whoever says what messages take, in the name of a counter."""

    @property
    def name(self) -> str:
        """The counter."""

    def weigh(self, message: Message) -> int:
        """What a message takes."""

    def weigh_step(self, step: Step) -> list[int]:
        """What each message of a step takes, as it is sent."""


class Weightless:
    """For those who only want to read: nothing is counted, and no counter is needed."""

    name = ""

    def weigh(self, message: Message) -> int:  # noqa: ARG002 - whatever it is
        """Nothing."""
        return 0

    def weigh_step(self, step: Step) -> list[int]:
        """Nothing."""
        return [0] * len(step.messages)


class Scales:
    """Weighs with one counter; what others weighed is weighed again, once.

    Args:
        counter: Who counts.
    """

    def __init__(self, counter: RememberingCounter) -> None:
        self.counter = counter
        self._known: dict[str, list[int]] = {}

    @property
    def name(self) -> str:
        """The counter."""
        return self.counter.name

    def weigh(self, message: Message) -> int:
        """What a message takes."""
        return self.counter.count_messages([message])

    def weigh_step(self, step: Step) -> list[int]:
        """What each message of a step takes, as it is sent."""
        if step.counter == self.counter.name and "clamp" not in step.data:
            sizes = step.data.get("sizes")
            if isinstance(sizes, list | tuple) and len(sizes) == len(step.messages):
                return [int(size) for size in sizes]
            if len(step.messages) == 1:
                return [step.tokens]
        if step.id not in self._known:
            self._known[step.id] = [self.weigh(message) for message in sent_messages(step)]
        return self._known[step.id]
