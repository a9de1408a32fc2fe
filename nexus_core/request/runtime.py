"""SessionRuntime, shared by all sessions of a Nexus, and ContextWindow, the room that a model has in one of them."""

from __future__ import annotations

import time
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.registry import get_default_registry
from nexus_core.dialects.requests import count_message_bytes, count_option_bytes, count_tool_bytes
from nexus_core.history.budget import (
    MAX_RESPONSE_RESERVE_TOKENS,
    MAX_TOOL_RESERVE_TOKENS,
    RESPONSE_RESERVE_DIVISOR,
    TOOL_RESERVE_DIVISOR,
)
from nexus_core.history.truncation import FitLimits
from nexus_core.request.placements import place_static
from nexus_core.request.prefix import PrefixStore
from nexus_core.thread.cache import ThreadCache, TokenSizer
from nexus_core.thread.calibration import find_calibration, find_counted_call
from nexus_core.thread.state import get_learned_limit
from nexus_core.tokens.counters import find_model_finding, get_model, open_counter
from nexus_core.tokens.messages import count_tools
from nexus_core.types.budget import TokenBudget
from nexus_core.types.messages import Message
from nexus_core.types.plugins import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.history.truncation import HistoryItem
    from nexus_core.host.manager import Host
    from nexus_core.request.prefix import Prefix, ToolOffer
    from nexus_core.request.static_context import StaticContextCache
    from nexus_core.request.write import CallWriter
    from nexus_core.thread.state import SessionState
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.types.assembled import AssembledContext, Breakpoint
    from nexus_core.types.budget import Model, TruncationStrategy
    from nexus_core.types.compaction import SummarizeFunction
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.messages import JSON
    from nexus_core.types.prompt import Placement, Section
    from nexus_core.types.settings import Settings


class LazyWriter(NamedTuple):
    """Call writer that imports `request.write` at first use.

    Attributes:
        model: The model that the calls were assembled for.
        find_model: Returns another model by its name.
        settings: Settings of the user and the project.
        dialects: The API dialects.
    """

    model: Model
    find_model: Callable[[str], Model]
    settings: Settings
    dialects: DialectRegistry

    def write(self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool) -> dict[str, Any]:
        """Return the arguments of the SDK's call; see `CallWriter.write`."""
        return self._build_writer().write(context, api, options, cache=cache)

    def plan(
        self, context: AssembledContext, api: str, options: Mapping[str, Any], *, cache: bool
    ) -> tuple[Breakpoint, ...]:
        """Return the cache breakpoints of a call; see `CallWriter.plan`."""
        return self._build_writer().plan(context, api, options, cache=cache)

    def _build_writer(self) -> CallWriter:
        from nexus_core.request.write import build_writer

        return build_writer(self.model, self.find_model, self.settings, self.dialects)


MAX_RESULT_TOKENS = 8000
"""A longer tool result is sent as head and tail, unless `truncation.tool_result_tokens` sets another limit."""
MAX_CACHED_THREADS = 8
"""Least recently used threads are evicted."""


def get_time_ms() -> int:
    """Return the time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


MAX_CACHED_PREFIXES = 64
"""Prefixes of which sizes are cached; then the cache is cleared."""


class PrefixSizer:
    """Sizes of system prompts and tools by one counter, for all sessions.

    Args:
        counter: The token counter.
    """

    def __init__(self, counter: CachingCounter) -> None:
        self.counter = counter
        self._tokens: dict[str, dict[str, int]] = {}
        self._bytes: dict[str, dict[str, int]] = {}
        self._placements: dict[str, tuple[Sequence[ToolOffer], tuple[Placement, ...]]] = {}

    def count_tokens(self, prefix: Prefix) -> dict[str, int]:
        """Return the tokens of system prompt and tools."""
        cached = self._tokens.get(prefix.digest)
        if cached is None:
            _limit_cache(self._tokens)
            system = self.counter.count_messages([Message("system", prefix.system)]) if prefix.system else 0
            self._tokens[prefix.digest] = cached = {"system": system, "tools": count_tools(self.counter, prefix.tools)}
        return cached

    def count_bytes(self, prefix: Prefix) -> dict[str, int]:
        """Return the bytes of system prompt and tools in a request body."""
        cached = self._bytes.get(prefix.digest)
        if cached is None:
            _limit_cache(self._bytes)
            system = count_message_bytes(Message("system", prefix.system)) if prefix.system else 0
            self._bytes[prefix.digest] = cached = {"system": system, "tools": count_tool_bytes(prefix.tools)}
        return cached

    def place(self, digest: str, sections: Iterable[Section], offers: Sequence[ToolOffer]) -> tuple[Placement, ...]:
        """Return the placements of the static zone, cached by the digest of the prefix."""
        cached = self._placements.get(digest)
        if cached is None or cached[0] is not offers:
            _limit_cache(self._placements)
            self._placements[digest] = cached = offers, place_static(sections, offers, self.counter)
        return cached[1]


def _limit_cache(cache: dict[str, Any]) -> None:
    if len(cache) >= MAX_CACHED_PREFIXES:
        cache.clear()


class SessionRuntime:
    """Plugins, ledger, token counters and caches of all sessions of a Nexus.

    Args:
        cwd: The directory that the agent works in.
        home: The user's Nexus directory.
        host: The plugin manager.
        open_ledger: Returns the ledger, opening it at the first call.
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
        open_ledger: Callable[[], Ledger],
        static_contexts: StaticContextCache,
        summarize: SummarizeFunction | None = None,
    ) -> None:
        self.cwd = cwd
        self.home = home
        self.static_contexts = static_contexts
        self.summarize = summarize
        self.prefixes = PrefixStore(open_ledger)
        self.host = host
        self.dialects = get_default_registry(host)
        self.open_ledger = open_ledger
        self._models: dict[str, tuple[Settings, Model, Finding | None]] = {}
        self._sizers: dict[str, TokenSizer] = {}
        self._model_sizers: dict[str, tuple[Settings, TokenSizer]] = {}
        self._prefix_sizers: dict[str, PrefixSizer] = {}
        self._thread_caches: dict[str, ThreadCache] = {}

    def at(self, cwd: Path) -> SessionRuntime:
        """Return a runtime for another directory that shares plugins, ledger, token counters and all caches."""
        other = copy(self)
        other.cwd = cwd
        return other

    def now(self) -> int:
        """Return the time, in milliseconds since 1970."""
        return get_time_ms()

    @property
    def ledger(self) -> Ledger:
        """The ledger, opened at the first access."""
        return self.open_ledger()

    def get_cache(self, label: str) -> ThreadCache:
        """Return the cached thread of a session."""
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


ESTIMATE_MARGIN_DIVISOR = 10
"""A tenth is added to the tokens of the input if they are estimated, because it was never counted by the provider."""


class ContextWindow:
    """The context window of a model in a session.

    Args:
        runtime: Shared by all sessions of the Nexus.
        settings: Settings of the user and the project.
        model: The name of the model.
        state: State of the session, with its calibration and learned limits.
        cache: The session's thread, which caches sizes of its steps; None for a conversation that is not stored.

    Attributes:
        budget: Limits and reserves of a call, before anything is counted.
        available_tokens: Tokens available for a call, by our own count.
        last_counted: The last call that both sides have counted.
        findings: Warnings about the model and its limits.
        options: Options of the API call from the settings.
        writer: Writes calls in the format of an API.
    """

    def __init__(
        self, runtime: SessionRuntime, settings: Settings, model: str, state: SessionState, cache: ThreadCache | None
    ) -> None:
        self.settings = settings
        self.model = runtime.get_model(model, settings)
        shared = runtime.get_sizer(model, settings)
        self.sizer = shared if cache is None else cache.get_sizer(shared)
        self.prefix_sizer = runtime.get_prefix_sizer(shared.counter)
        self.strategy = runtime.get_strategy(settings)
        limit = get_learned_limit(state.newest.windows, model, self.model.window)
        self.last_counted = (
            find_counted_call(cache, state.tip, model, shared.name, limit) if cache and state.tip else None
        )
        calibration = find_calibration(state.newest.calibration, model, shared.counter, self.last_counted)
        assumed_size = runtime.dialects.request_limit(self.model)
        size = get_learned_limit(state.newest.request_bytes, model, assumed_size)
        findings = (
            runtime.find_model_finding(model, settings),
            _warn_of_smaller_window(model, limit, self.model.window),
            _warn_of_smaller_requests(model, size, assumed_size),
        )
        self.findings: tuple[Finding, ...] = tuple(finding for finding in findings if finding is not None)
        self.budget = TokenBudget(
            limit=limit,
            reserve_response=min(
                settings.get_number("budget.reserve_response", MAX_RESPONSE_RESERVE_TOKENS),
                limit // RESPONSE_RESERVE_DIVISOR,
            ),
            reserve_tools=min(
                settings.get_number("budget.reserve_tools", MAX_TOOL_RESERVE_TOKENS), limit // TOOL_RESERVE_DIVISOR
            ),
            calibration=calibration,
            byte_limit=size,
        )
        options = settings.get("provider.options")
        self.options: JSON = options if isinstance(options, dict) else {}
        self.provider = str(settings.get("provider.provider") or self.model.api)
        self.writer = LazyWriter(self.model, partial(runtime.get_model, settings=settings), settings, runtime.dialects)
        self._available = available = self.budget.available
        self.available_tokens = available if calibration is None else calibration.compute_available(available)

    def limits(self, turn: str, tip: Step | None, prefix: Prefix | None = None) -> FitLimits:
        """Return the limits for the messages of a call, next to a prefix if one is given."""
        prefix_tokens = 0 if prefix is None else sum(self.prefix_sizer.count_tokens(prefix).values())
        fixed_bytes = 0 if prefix is None else sum(self.count_fixed_bytes(prefix).values())
        return FitLimits(
            room=self.available_tokens - prefix_tokens,
            bytes=self.budget.byte_limit - fixed_bytes,
            limit=self._available,
            byte_limit=self.budget.byte_limit,
            replace_media=self.sizer.replace_media,
            truncation=self.strategy,
            turn=turn,
            compaction=tip.compaction if tip is not None else None,
            known=self.sizer.groups,
            pinned=tip.payload.pins if tip is not None else (),
        )

    def count_fixed_bytes(self, prefix: Prefix) -> dict[str, int]:
        """Return the bytes of a request body without messages, by part."""
        return self.prefix_sizer.count_bytes(prefix) | {"options": count_option_bytes(self.options)}

    def size_input(self, item: HistoryItem) -> HistoryItem:
        """Return a rendered input with its bytes and its tokens with a margin."""
        tokens = self.sizer.count_tokens(item.message)
        return self._add_margin(item._replace(tokens=tokens, size=self.sizer.count_bytes(item.message)))

    def add_input_margin(self, items: Iterable[HistoryItem], turn: str) -> list[HistoryItem]:
        """Return the messages, with a safety margin on the input of the open turn."""
        return [self._add_margin(each) if each.is_input and each.turn == turn else each for each in items]

    def _add_margin(self, item: HistoryItem) -> HistoryItem:
        if self.sizer.counter.exact:
            return item
        margin = -(-item.tokens // ESTIMATE_MARGIN_DIVISOR)
        return item._replace(tokens=item.tokens + margin, margin=margin)


def _warn_of_smaller_window(model: str, limit: int, assumed: int) -> Finding | None:
    """Return a warning if the context window is smaller than assumed."""
    if limit == assumed:
        return None
    message = f"the provider of {model!r} reported a window of {limit:,} tokens, not {assumed:,}"
    return Finding("smaller-window", f"{message}; models.{model}.window sets what counts")


def _warn_of_smaller_requests(model: str, size: int, assumed: int) -> Finding | None:
    """Return a warning if the provider accepts smaller requests than assumed."""
    if size == assumed:
        return None
    message = f"a request of {size + 1:,} bytes to {model!r} was refused as too large"
    return Finding("smaller-request", f"{message}; models.{model}.request_bytes sets what counts")
