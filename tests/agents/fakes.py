"""A model without a network: a provider that says what it is told to say."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from nexus_core import AssembledContext, Message, Usage
from nexus_core.plugin import CancelSignal, Provider, ProviderReply, TextDelta, ToolCall
from nexus_core.plugin.dialects import Reply

_NUMBERS = count(1)


def replied(text: str, *calls: ToolCall) -> Reply:
    """A reply that ends the turn, or calls tools."""
    parts: list[Any] = [*Message("assistant", text).parts, *calls]
    usage = Usage(input_tokens=10, output_tokens=2)
    stop: Any = "tools" if calls else "end"
    return Reply(messages=(Message("assistant", parts),), stop=stop, usage=usage, id=f"r{next(_NUMBERS)}")


def called(name: str, arguments: dict[str, Any], text: str = "") -> Reply:
    """A reply that calls one tool."""
    return replied(text, ToolCall(f"c{next(_NUMBERS)}", name, arguments))


class FakeModel:
    """Answers with replies, one after the other; raises those that are exceptions; waits for those that are events."""

    def __init__(self, *says: Reply | BaseException | threading.Event | Callable[[AssembledContext], Reply]) -> None:
        self.says = list(says)
        self.contexts: list[AssembledContext] = []
        self.signals: list[CancelSignal] = []
        self.provider = Provider(name="fake", stream=self.stream)

    def stream(self, context: AssembledContext, cancel: CancelSignal) -> Iterator[Any]:
        self.contexts.append(context)
        self.signals.append(cancel)
        said = self.says.pop(0)
        if isinstance(said, threading.Event):
            yield TextDelta("So far")
            said.wait(30)
            return
        if isinstance(said, BaseException):
            raise said
        reply = said if isinstance(said, Reply) else said(context)
        for message in reply.messages:
            if message.content:
                yield TextDelta(message.content)
        yield ProviderReply(reply)
