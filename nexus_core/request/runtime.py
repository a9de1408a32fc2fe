"""SessionRuntime: plugins, ledger and caches shared by all sessions of a Nexus."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nexus_core.dialects.registry import get_default_registry
from nexus_core.request.placements import PrefixSizer
from nexus_core.request.prefix import PrefixStore
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
"""A longer tool result is sent as head and tail, unless `truncation.tool_result_tokens` sets another limit."""
MAX_CACHED_THREADS = 8
"""Least recently used threads are evicted."""


def get_time_ms() -> int:
    """Return the time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class SessionRuntime:
    """Plugins, ledger, token counters and caches of all sessions of a Nexus.

    Args:
        cwd: The directory that the agent works in.
        home: The user's Nexus directory.
        host: The plugin manager.
        ledger: Returns the ledger, opening it at the first call.
        static_contexts: Cache of static contexts.
        summarize: The caller's summarizer; None for those of plugins.

    Attributes:
        dialects: The built-in API dialects and those of plugins.
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
        """Return the time, in milliseconds since 1970."""
        return get_time_ms()

    @property
    def ledger(self) -> Ledger:
        """The ledger, opened at the first access."""
        return self._open_ledger()

    def get_cache(self, label: str) -> ThreadCache:
        """Return the cached thread of a session."""
        from nexus_core.thread.cache import ThreadCache

        cache = self._thread_caches.pop(label, None) or ThreadCache(self.ledger)
        self._thread_caches[label] = cache
        for oldest in list(self._thread_caches)[:-MAX_CACHED_THREADS]:
            self._thread_caches.pop(oldest, None)
        return cache

    def forget(self, labels: Iterable[str]) -> None:
        """Drop the cached threads of deleted sessions."""
        for label in labels:
            self._thread_caches.pop(label, None)

    def get_strategy(self, settings: Settings) -> TruncationStrategy:
        """Return the truncation strategy of the settings."""
        return self.host.truncations().get(str(settings.get("truncation.strategy", "oldest_first")))

    def get_sizer(self, model: str, settings: Settings) -> TokenSizer:
        """Return the sizer for a model; models with the same token counter share one."""
        cached = self._model_sizers.get(model)
        if cached is None or cached[0] is not settings:
            counter = open_counter(model, host=self.host, settings=settings)
            sizer = self._sizers.get(counter.name)
            if sizer is None or sizer.counter is not counter:
                self._sizers[counter.name] = sizer = TokenSizer(counter)
            self._model_sizers[model] = cached = settings, sizer
        return cached[1]

    def get_prefix_sizer(self, counter: CachingCounter) -> PrefixSizer:
        """Return the prefix sizer of a token counter, shared by all sessions."""
        sizer = self._prefix_sizers.get(counter.name)
        if sizer is None or sizer.counter is not counter:
            self._prefix_sizers[counter.name] = sizer = PrefixSizer(counter)
        return sizer

    def get_model(self, name: str, settings: Settings) -> Model:
        """Return what plugins and settings know of a model."""
        return self._look_up_model(name, settings)[1]

    def find_model_finding(self, name: str, settings: Settings) -> Finding | None:
        """Return the finding about an unknown model; None for a known one."""
        return self._look_up_model(name, settings)[2]

    def _look_up_model(self, name: str, settings: Settings) -> tuple[Settings, Model, Finding | None]:
        cached = self._models.get(name)
        if cached is None or cached[0] is not settings:
            model = get_model(name, host=self.host, settings=settings)
            self._models[name] = cached = settings, model, find_model_finding(name, host=self.host, settings=settings)
        return cached


def get_number(settings: Settings, name: str, default: int) -> int:
    """Return an integer setting; the default if it is missing or not an integer."""
    value = settings.get(name, default)
    return value if isinstance(value, int) else default
