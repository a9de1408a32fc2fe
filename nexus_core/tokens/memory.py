"""A counter that counts a text once."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from nexus_core.errors import NexusError, PluginError
from nexus_core.host.candidates import OWN_DISTRIBUTION
from nexus_core.host.implementation import describe
from nexus_core.tokens.counter import TextCounter
from nexus_core.values.counting import Count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.tokens.cache import CountCache
    from nexus_core.values.counting import ModelCounter
    from nexus_core.values.message import Message

Asked = TypeVar("Asked")

MAX_TEXT_BYTES = 8_000_000
"""Bytes of texts that a counter keeps with their counts, the oldest are dropped first: twice as much as a window of
a million tokens holds in English. What was dropped is still in the cache on disk, if the counter has one."""
_ENTRY = 100
"""Bytes that keeping a text costs besides the text."""


class RememberingCounter(TextCounter):
    """Counts as another counter does, but each text only once in its life.

    Args:
        counter: Who counts.
        cache: What other processes have counted.
        memory: How many bytes of texts to remember.
        guessed: Whether the model that is counted for may have another tokeniser; then all counts are estimates.
        plugin: The plugin that offers the counter, for errors.
    """

    def __init__(
        self,
        counter: ModelCounter,
        cache: CountCache | None = None,
        *,
        memory: int = MAX_TEXT_BYTES,
        guessed: bool = False,
        plugin: str = OWN_DISTRIBUTION,
    ) -> None:
        self.counter = counter
        self._plugin = plugin
        self._guessed = guessed
        self._cache = cache
        self._known: dict[str, Count] = {}
        self._size, self._limit = 0, memory
        self._lock = Lock()

    @property
    def name(self) -> str:  # type: ignore[override] # it may become an estimate, for the same reason as `exact`
        """The counter's name; sizes are stored under it."""
        return self.counter.name

    @property
    def exact(self) -> bool:  # type: ignore[override] # it may cease to be: damage shows when a table is used
        """Whether it counts as the model does."""
        return self.counter.exact and not self._guessed

    def count(self, text: str) -> int:
        """The tokens of a text."""
        known = self._known.get(text)
        return self.measure(text).tokens if known is None else known.tokens

    def count_messages(self, messages: Sequence[Message]) -> int:
        """The tokens of messages, in the way of the counter."""
        if getattr(type(self.counter), "count_messages", None) is TextCounter.count_messages:
            return super().count_messages(messages)  # text by text, each of them remembered
        return self._number(self.counter.count_messages, list(messages))

    def measure(self, text: str) -> Count:
        """The tokens of a text, and how sure that number is: `cached` when they were counted before."""
        known = self._known.get(text)
        if known is not None:
            return known
        counted = self._look_up(text, self._cache) if self._cache else self._count(text)
        if not self.exact:
            counted = Count(counted.tokens, "estimated")
        self._remember(text, Count(counted.tokens, "cached") if counted.basis == "exact" else counted)
        return counted

    def _look_up(self, text: str, cache: CountCache) -> Count:
        key = cache.key(self.name, text)
        tokens = cache.find(key)
        if tokens is not None:
            return Count(tokens, "cached")
        counted = self._count(text)
        if counted.basis == "exact":
            cache.keep(key, counted.tokens)
        return counted

    def _count(self, text: str) -> Count:
        """What the counter says; an `exact` count is its tokeniser's, whichever model it is for."""
        if not isinstance(self.counter, TextCounter):
            return Count(self._number(self.counter.count, text), "exact")
        tokens = self._ask(self.counter.try_count, text)
        return Count(self._number(self.counter.count, text), "estimated") if tokens is None else Count(tokens, "exact")

    def _number(self, count: Callable[[Asked], object], asked: Asked) -> int:
        tokens = self._ask(count, asked)
        if tokens is None:
            raise self._broken("answered None, expected a number of tokens")
        return tokens

    def _ask(self, count: Callable[[Asked], object], asked: Asked) -> int | None:
        """What the counter answers, which may be a stranger's: if it is no number of tokens, the error names it."""
        try:
            tokens = count(asked)
        except NexusError:
            raise
        except (Exception, SystemExit) as error:
            raise self._broken(describe(error)) from error
        if tokens is not None and (not isinstance(tokens, int) or tokens < 0):
            raise self._broken(f"answered {tokens!r}, expected a number of tokens")
        return tokens

    def _broken(self, what: str) -> PluginError:
        return PluginError(f"its counter {self.name!r} {what}", plugin=self._plugin, hook="nexus_token_counter")

    def _remember(self, text: str, counted: Count) -> None:
        size = _size_of(text)
        if size > self._limit // 8:  # one such text would make all others forgotten
            return
        with self._lock:
            if text not in self._known:
                self._known[text] = counted
                self._size += size
            while self._size > self._limit:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._size -= _size_of(oldest)


def _size_of(text: str) -> int:
    """Return the bytes of a kept text, always the same: Python may add its UTF-8 form to the object later."""
    return len(text) * (1 if text.isascii() else 4) + _ENTRY
