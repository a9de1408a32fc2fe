"""What steps take, as they are sent; counted once for each counter."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from nexus_core.assembly.hiding import hide_media, told_as_said
from nexus_core.dialects.requests import count_message_bytes
from nexus_core.session.steps.clamping import sent_messages

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from nexus_core.assembly.fitting import Grouped
    from nexus_core.assembly.sent import Sent
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message
    from nexus_core.types.prompt import Placement


class Weighs(Protocol):
    """Whoever says what messages take, in the name of a counter."""

    @property
    def name(self) -> str:
        """The counter."""

    @property
    def projected(self) -> Mapping[str, tuple[Sent, ...]]:
        """What is remembered of steps: their messages, as they are sent."""

    def remember(self, step: str, sent: tuple[Sent, ...]) -> None:
        """Remember the messages of a step."""

    def weigh(self, message: Message) -> int:
        """What a message takes."""

    def weigh_step(self, step: Step) -> list[int]:
        """What each message of a step takes, as it is sent."""

    def measure(self, message: Message) -> int:
        """How many bytes a message has in a request."""


class Weightless:
    """For those who only want to read: nothing is counted, and no counter is needed."""

    name = ""
    projected: Mapping[str, tuple[Sent, ...]] = MappingProxyType({})

    def remember(self, step: str, sent: tuple[Sent, ...]) -> None:
        """Nothing is remembered."""

    def weigh(self, message: Message) -> int:  # noqa: ARG002 - whatever it is
        """Nothing."""
        return 0

    def weigh_step(self, step: Step) -> list[int]:
        """Nothing."""
        return [0] * len(step.messages)

    def measure(self, message: Message) -> int:  # noqa: ARG002 - as above
        """Nothing."""
        return 0


class Scales:
    """Weighs with one counter; what others weighed is weighed again, once.

    Steps are remembered for one thread only: a tail that drops steps has them dropped here too.

    Args:
        counter: Who counts.
    """

    def __init__(self, counter: CachingCounter) -> None:
        self.counter = counter
        self.projected: dict[str, tuple[Sent, ...]] = {}
        self.grouped: dict[object, Grouped] = {}
        self.placed: dict[tuple[str, int, int], Placement] = {}
        self._known: dict[str, list[int]] = {}
        self._hidden: dict[tuple[str, int], Sent] = {}

    @property
    def name(self) -> str:
        """The counter."""
        return self.counter.name

    def forget_all_but(self, steps: Collection[str]) -> None:
        """Drop what is remembered of all steps but some; several threads may weigh meanwhile."""
        keyed: tuple[dict[Any, Any], ...] = (self.projected, self._known, self.placed, self._hidden)
        for known in keyed:
            for key in list(known):
                if (key if isinstance(key, str) else key[0]) not in steps:
                    known.pop(key, None)

    def weigh(self, message: Message) -> int:
        """What a message takes."""
        return self.counter.count_messages([message])

    def measure(self, message: Message) -> int:
        """How many bytes a message has in a request."""
        return count_message_bytes(message)

    def hide(self, sent: Sent) -> Sent:
        """A message with its pictures and documents in words; the same where it has none."""
        key = sent.step, sent.place
        known = self._hidden.get(key)
        if known is None:
            self._hidden[key] = known = hide_media(sent, self.weigh)
        # What was said before it was put into words is not known wherever it is read.
        return known._replace(said=told_as_said(sent)) if known.hidden > sent.hidden else sent

    def remember(self, step: str, sent: tuple[Sent, ...]) -> None:
        """Remember the messages of a step."""
        self.projected[step] = sent

    def weigh_step(self, step: Step) -> list[int]:
        """What each message of a step takes, as it is sent."""
        # What was said counts in its seal, as it is sent.
        if step.counter == self.counter.name and step.kind != "input" and "clamp" not in step.data:
            sizes = step.data.get("sizes")
            if isinstance(sizes, list | tuple) and len(sizes) == len(step.messages):
                return [int(size) for size in sizes]
            if len(step.messages) == 1:
                return [step.tokens]
        known = self._known.get(step.id)
        if known is None:
            self._known[step.id] = known = [self.weigh(message) for message in sent_messages(step)]
        return known
