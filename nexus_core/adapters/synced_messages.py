"""The messages of a framework that a session shows, and the steps that change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from nexus_core.thread.state import add_usages
from nexus_core.tokens.counters import open_counter
from nexus_core.types.ledger import NewStep
from nexus_core.types.payloads import CompactionPayload, ExternalTurnPayload, RevertPayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.host.manager import Host
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message, Usage

K = TypeVar("K")


class SyncedChange(NamedTuple):
    """The change to what a session shows.

    Attributes:
        kept: How many of the wanted keys it shows already.
        steps: The steps that take back the rest.
    """

    kept: int
    steps: list[NewStep]


class SyncedMessages(Generic[K]):
    """Keys of a framework's messages, in the order in which a session shows them.

    A key may stand for several messages, or for none.

    Attributes:
        keys: The keys.
        has_other_messages: True if the session also has messages of another program.
    """

    def __init__(self) -> None:
        self.keys: list[K] = []
        self._counts: list[int] = []
        self.has_other_messages = False
        self._shown_before: dict[str, int] = {}
        self._summarized: dict[str, int] = {}

    def read_step(self, step: Step, added: Iterable[tuple[K, int]] | None) -> None:
        """Add the next step of the session.

        Args:
            step: The step.
            added: The keys that it shows, with the number of messages of each; None if it is not one of the adapter.
        """
        payload = step.payload
        self._shown_before[step.id] = len(self.keys)
        if added is not None:
            for key, count in added:
                self.keys.append(key)
                self._counts.append(count)
        elif isinstance(payload, RevertPayload):
            self._take_back(payload.popped or 0)
        elif isinstance(payload, CompactionPayload):
            if payload.cleared:
                self.keys, self._counts, self.has_other_messages = [], [], False
            first = payload.first_kept
            self._summarized[step.id] = len(self.keys) if first is None else self._shown_before.get(first, 0)
        elif step.messages:
            self.has_other_messages = True

    def plan_change(self, wanted: Sequence[K], tip: Step | None) -> SyncedChange:
        """Return what has to be taken back before the rest of the wanted keys is shown.

        If a summary or messages of another program are in the way, everything is.

        Args:
            wanted: The keys to show.
            tip: The newest step; None before the first.
        """
        pairs = enumerate(zip(self.keys, wanted, strict=False))
        kept = next((index for index, (old, new) in pairs if old != new), min(len(self.keys), len(wanted)))
        if kept == len(self.keys):
            return SyncedChange(kept, [])
        compaction = None if tip is None else tip.compaction
        counter = "" if tip is None else tip.counter
        if self.has_other_messages or kept < self._summarized.get(compaction or "", 0):
            clear = CompactionPayload(cleared=True)
            return SyncedChange(0, [NewStep(kind="compaction", closes=True, counter=counter, data=clear.to_json())])
        popped = RevertPayload(restores=compaction, popped=sum(self._counts[kept:]))
        if not popped.popped:
            return SyncedChange(kept, [])
        return SyncedChange(kept, [NewStep(kind="revert", closes=True, counter=counter, data=popped.to_json())])

    def _take_back(self, popped: int) -> None:
        while popped > 0 and self.keys:
            popped -= self._counts.pop()
            self.keys.pop()


def build_turn_step(
    host: Host,
    state: dict[str, Any],
    messages: Sequence[Message],
    *,
    model: str,
    usages: Sequence[Usage],
    is_continued: bool,
) -> NewStep:
    """Return a step with messages that a framework exchanged, and its state.

    Args:
        host: The plugin manager, for the token counter.
        state: What the framework keeps beside the messages.
        messages: The messages.
        model: The model that replied; "" if it is not known.
        usages: The usage of each call.
        is_continued: True if a turn precedes, which messages without a user message continue.
    """
    counter = open_counter(host=host)
    payload = ExternalTurnPayload(state=state)
    if model:
        payload = payload.replace(model=model)
    if usages:
        payload = payload.replace(usage=add_usages(usages))
    if is_continued and not any(message.role == "user" for message in messages):
        payload = payload.replace(continues=True)
    return NewStep(
        kind="turn",
        closes=True,
        messages=tuple(messages),
        tokens=counter.count_messages(tuple(messages)),
        counter=counter.name,
        data=payload.to_json(),
    )
