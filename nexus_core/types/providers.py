"""Providers of models: the function that calls one, the events that it yields, and the signal that ends it early."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from nexus_core.types.base import dataclass, require_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.messages import Reply, ToolCall, Usage


class CancelSignal:
    """Signal that cancels a running model call. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._is_set = False

    @property
    def is_set(self) -> bool:
        """True once `cancel` was called."""
        return self._is_set

    def cancel(self) -> None:
        """Set the signal and call what waits for it. A second call does nothing."""
        with self._lock:
            callbacks, self._callbacks = ([] if self._is_set else self._callbacks), []
            self._is_set = True
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Call a function when the signal is set, at once if it is set already. It must be quick and raise nothing."""
        with self._lock:
            if not self._is_set:
                self._callbacks.append(callback)
                return
        callback()

    def forget(self, callback: Callable[[], None]) -> None:
        """Do not call a function any more."""
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's reasoning, or of its summary."""

    text: str


@dataclass(frozen=True, slots=True)
class ProviderToolCall:
    """A tool call of the reply, complete."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ProviderUsage:
    """The token usage of the call, as the provider reports it."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class ProviderReply:
    """The end of a call.

    Attributes:
        reply: The whole reply.
        raw: What the API sent: the events of its stream, or its one response.
    """

    reply: Reply
    raw: object = None


ProviderEvent = TextDelta | ReasoningDelta | ProviderToolCall | ProviderUsage | ProviderReply
"""Events of a provider: pieces of text and reasoning as they arrive, tool calls, usage, and one `ProviderReply`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A named function that calls a model.

    Attributes:
        name: Its name in the setting `provider.provider` and in `provider=` of an agent.
        stream: Sends an assembled call and yields the events of the reply, `ProviderReply` last. It blocks, runs in a
            thread of its own, and raises a `ProviderError` if there is no reply. When the signal is set, it ends soon.
        close: Closes connections that are kept for the next call and not in use; None if there are none. Called when a
            Nexus that knows the provider is closed, while others may go on with it.
        check: Raises a `ProviderError` if no call can be sent, for example without a key; None if nothing is checked.
            It connects to nothing. `nexus chat -p` calls it before it begins a session.
    """

    name: str
    stream: Callable[[AssembledContext, CancelSignal], Iterable[ProviderEvent]]
    close: Callable[[], None] | None = None
    check: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        require_text(self.name, "Provider.name")
        if not callable(self.stream):
            raise ValueError("Provider.stream must be a function")  # noqa: TRY004 - values raise ValueError only
        if self.close is not None and not callable(self.close):
            raise ValueError("Provider.close must be a function, or None")
        if self.check is not None and not callable(self.check):
            raise ValueError("Provider.check must be a function, or None")
