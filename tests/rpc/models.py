"""Models without a network for agents of a pool."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

from nexus_core import AssembledContext
from nexus_core.plugin import CancelSignal, Provider, ProviderReply, TextDelta
from nexus_core.plugin.dialects import Reply
from tests.agents.fakes import replied


class ScriptedModel:
    """Answers each call with what a function says; the function may block until `release`."""

    def __init__(self, says: Callable[[AssembledContext], Reply]) -> None:
        self.says = says
        self.contexts: list[AssembledContext] = []
        self.provider = Provider(name="scripted", stream=self.stream)

    def stream(self, context: AssembledContext, cancel: CancelSignal) -> Iterator[Any]:  # noqa: ARG002 - the contract
        self.contexts.append(context)
        reply = self.says(context)
        for message in reply.messages:
            if message.content:
                yield TextDelta(message.content)
        yield ProviderReply(reply, {"said": [message.content for message in reply.messages]})


def last_text(context: AssembledContext) -> str:
    """The text of the newest user message, without the time before it."""
    return next(each.content for each in reversed(context.messages) if each.role == "user").rpartition("\n\n")[2]


def echo(context: AssembledContext) -> Reply:
    """Repeat the newest user message, with the name of the session."""
    return replied(f"{context.session_label}: {last_text(context)}")


class Gate:
    """Holds a model until a test lets it go on; tells the test that it was reached."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def wait(self) -> None:
        self.reached.set()
        assert self.opened.wait(60)

    async def until_reached(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 60)
