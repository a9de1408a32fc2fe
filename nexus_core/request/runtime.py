"""What the sessions of a Nexus have in common: plugins, ledger, surroundings, and what was read or counted before."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nexus_core.dialects.registry import get_default_registry
from nexus_core.request.prefix import PrefixSizer, PrefixStore
from nexus_core.thread.sizes import TokenSizer
from nexus_core.tokens.counters import find_model_finding, get_model, open_counter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from nexus_core.host.manager import Host
    from nexus_core.request.static_cache import StaticContextCache
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.types.budget import Model, TruncationStrategy
    from nexus_core.types.compaction import SummarizeFunction
    from nexus_core.types.ledger import Ledger
    from nexus_core.types.plugins import Finding
    from nexus_core.types.settings import Settings

MAX_RESULT_TOKENS = 8000
"""A longer result of a tool is sent in part, unless `truncation.tool_result_tokens` says otherwise."""
MAX_CACHED_THREADS = 8
"""So many threads are remembered, those used last."""


def get_time_ms() -> int:
    """The time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class SessionRuntime:
    """Where sessions live.

    Args:
        cwd: The directory the agent works in.
        home: The user's own Nexus directory.
        host: The plugins; `dialects` are the shapes that they know, and those that are built in.
        ledger: Opens the ledger, or gives the one that is open.
        static_contexts: Finds out what stands around a conversation.
        summarize: The caller's own summarizer.
    """

    def __init__(
        self,
        *,
        cwd: Path,
        home: Path,
        host: Host,
        ledger: Callable[[], Ledger],
        static_contexts: StaticContextCache,
        summarize: SummarizeFunction | None = None,
    ) -> None:
        self.cwd = cwd
        self.home = home
        self.static_contexts = static_contexts
        self.summarize = summarize
        self.prefixes = PrefixStore(ledger)
        self.host = host
        self.dialects = get_default_registry(host)
        self._open_ledger = ledger
        self._models: dict[str, tuple[Settings, Model, Finding | None]] = {}
        self._sizers: dict[str, TokenSizer] = {}
        self._model_sizers: dict[str, tuple[Settings, TokenSizer]] = {}
        self._prefix_sizers: dict[str, PrefixSizer] = {}
        self._thread_caches: dict[str, ThreadCache] = {}

    def now(self) -> int:
        """The time, in milliseconds since 1970."""
        return get_time_ms()

    @property
    def ledger(self) -> Ledger:
        """Where conversations are kept."""
        return self._open_ledger()

    def get_cache(self, label: str) -> ThreadCache:
        """What is known of a session's thread."""
        from nexus_core.thread.cache import ThreadCache

        cache = self._thread_caches.pop(label, None) or ThreadCache(self.ledger)
        self._thread_caches[label] = cache
        for oldest in list(self._thread_caches)[:-MAX_CACHED_THREADS]:
            self._thread_caches.pop(oldest, None)
        return cache

    def forget(self, labels: Iterable[str]) -> None:
        """Drop what is remembered of sessions that were deleted."""
        for label in labels:
            self._thread_caches.pop(label, None)

    def get_strategy(self, settings: Settings) -> TruncationStrategy:
        """What chooses among messages when not all fit."""
        return self.host.truncations().get(str(settings.get("truncation.strategy", "oldest_first")))

    def get_sizer(self, model: str, settings: Settings) -> TokenSizer:
        """Who weighs for a model; the same for all models with one counter, and for all sessions."""
        asked = self._model_sizers.get(model)
        if asked is None or asked[0] is not settings:
            counter = open_counter(model, host=self.host, settings=settings)
            known = self._sizers.get(counter.name)
            if known is None or known.counter is not counter:
                self._sizers[counter.name] = known = TokenSizer(counter)
            self._model_sizers[model] = asked = settings, known
        return asked[1]

    def get_prefix_sizer(self, counter: CachingCounter) -> PrefixSizer:
        """Return the sizes of system prompts and tools by a counter, shared by all sessions."""
        known = self._prefix_sizers.get(counter.name)
        if known is None or known.counter is not counter:
            self._prefix_sizers[counter.name] = known = PrefixSizer(counter)
        return known

    def get_model(self, name: str, settings: Settings) -> Model:
        """What is known of a model."""
        return self._look_up_model(name, settings)[1]

    def find_model_finding(self, name: str, settings: Settings) -> Finding | None:
        """What to know about a model that nobody knows."""
        return self._look_up_model(name, settings)[2]

    def _look_up_model(self, name: str, settings: Settings) -> tuple[Settings, Model, Finding | None]:
        known = self._models.get(name)
        if known is None or known[0] is not settings:
            model = get_model(name, host=self.host, settings=settings)
            self._models[name] = known = settings, model, find_model_finding(name, host=self.host, settings=settings)
        return known


def get_number(settings: Settings, name: str, default: int) -> int:
    """A setting that is a number."""
    value = settings.get(name, default)
    return value if isinstance(value, int) else default
