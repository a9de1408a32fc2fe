"""The token counter for a model, which counts every text once."""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from nexus_core.errors import NexusError, PluginError
from nexus_core.host.calls import describe_exception
from nexus_core.host.discovery import OWN_DISTRIBUTION
from nexus_core.host.manager import get_default_host
from nexus_core.tokens.count_cache import CountCache, get_shared_cache, without_stored_counts
from nexus_core.tokens.estimator import SimpleTokenCounter, TextCounter
from nexus_core.tokens.models import find_model, find_unknown_model, is_guessed_model
from nexus_core.types.budget import TokenCount

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nexus_core.host.manager import Host
    from nexus_core.types.budget import Model, ModelCounter
    from nexus_core.types.messages import Message
    from nexus_core.types.plugins import Finding
    from nexus_core.types.settings import Settings

CountArgument = TypeVar("CountArgument")

MAX_CACHED_TEXT_BYTES = 8_000_000
"""Bytes of texts that a counter caches with their counts, the oldest are evicted first: twice as much as a window of
a million tokens holds in English. Evicted counts are still in the cache on disk, if the counter has one."""
_ENTRY_BYTES = 100
"""Bytes of a cache entry besides the text."""


class CachingCounter(TextCounter):
    """Counts with another counter, but each text only once.

    Args:
        counter: The counter to call.
        cache: Counts of all processes on disk; None for none.
        memory: Bytes of texts to cache in memory.
        guessed: True if the model may have another tokenizer; then all counts are estimates.
        plugin: The plugin that provides the counter, for errors.
        model: The model, whose factor and overhead per tool call correct counts that are not exact; None for none.

    Attributes:
        tool_call_tokens: Tokens added for each tool call of a message.
        error: Share by which an estimate of a whole call may differ from the provider's count; 0 if unknown.
    """

    def __init__(
        self,
        counter: ModelCounter,
        cache: CountCache | None = None,
        *,
        memory: int = MAX_CACHED_TEXT_BYTES,
        guessed: bool = False,
        plugin: str = OWN_DISTRIBUTION,
        model: Model | None = None,
    ) -> None:
        self.counter = counter
        is_corrected = model is not None and (guessed or not counter.exact)
        self._factor = model.token_factor if model is not None and is_corrected else 1.0
        self.tool_call_tokens = model.tool_call_tokens if model is not None and is_corrected else 0
        self.error = model.count_error if model is not None and is_corrected else 0.0
        self._plugin = plugin
        self._guessed = guessed
        self._cache = cache
        self._known: dict[str, TokenCount] = {}
        self._size, self._limit = 0, memory
        self._lock = Lock()

    @property
    def name(self) -> str:  # type: ignore[override] # it may change to an estimate's, for the same reason as `exact`
        """The counter's name, with the model's factor and overhead per tool call. Sizes are stored under it."""
        factor = "" if self._factor == 1 else f"*{self._factor:g}"
        return f"{self.counter.name}{factor}{f'+{self.tool_call_tokens}' if self.tool_call_tokens else ''}"

    @property
    def exact(self) -> bool:  # type: ignore[override] # it may become False: a damaged table is noticed in use
        """True if it counts as the model does."""
        return self.counter.exact and not self._guessed

    @property
    def is_corrected(self) -> bool:
        """True if the model's factor or overhead changes the counts."""
        return self._factor != 1 or self.tool_call_tokens > 0

    @property
    def title(self) -> str:
        """The counter's name for display, with the model's factor and overhead."""
        factor = "" if self._factor == 1 else f" times {self._factor:g}"
        overhead = f" plus {self.tool_call_tokens} a tool call" if self.tool_call_tokens else ""
        return f"{self.counter.name}{factor}{overhead}"

    def describe_basis(self, *, exact: bool = True) -> str:
        """Return the accuracy of counts for display: `exact`, `estimated ±10 %`, or `estimated` (error unknown).

        Args:
            exact: False if some tokens are of media, which are estimated.
        """
        if exact and self.exact:
            return "exact"
        return f"estimated ±{self.error * 100:.0f} %" if self.error else "estimated"

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        known = self._known.get(text)
        return self.measure(text).tokens if known is None else known.tokens

    def count_messages(self, messages: Sequence[Message]) -> int:
        """Return the tokens of messages, by the rules of the counter."""
        if getattr(type(self.counter), "count_messages", None) is TextCounter.count_messages:
            return super().count_messages(messages)  # text by text, each of them cached
        calls = sum([len(message.tool_calls) for message in messages]) if self.tool_call_tokens else 0
        counted = self._call_required(self.counter.count_messages, list(messages))
        return self._correct(counted) + calls * self.tool_call_tokens

    def measure(self, text: str) -> TokenCount:
        """Return the tokens of a text and the basis of that number: `cached` if they were counted before."""
        known = self._known.get(text)
        if known is not None:
            return known
        counted = self._look_up(text, self._cache) if self._cache else self._count(text)
        if not self.exact:
            counted = TokenCount(self._correct(counted.tokens), "estimated")
        self._cache_count(text, TokenCount(counted.tokens, "cached") if counted.basis == "exact" else counted)
        return counted

    def _correct(self, tokens: int) -> int:
        """Return a count with the model's factor, at least 1 for any text."""
        return tokens if self._factor == 1 else max(round(tokens * self._factor), min(tokens, 1))

    def _look_up(self, text: str, cache: CountCache) -> TokenCount:
        key = cache.key(self.counter.name, text)
        tokens = cache.find(key)
        if tokens is not None:
            return TokenCount(tokens, "cached")
        counted = self._count(text)
        if counted.basis == "exact":
            cache.keep(key, counted.tokens)
        return counted

    def _count(self, text: str) -> TokenCount:
        """Call the counter. An `exact` count is its tokenizer's, whichever model it is for."""
        if not isinstance(self.counter, TextCounter):
            return TokenCount(self._call_required(self.counter.count, text), "exact")
        tokens = self._call_counter(self.counter.try_count, text)
        return (
            TokenCount(self._call_required(self.counter.count, text), "estimated")
            if tokens is None
            else TokenCount(tokens, "exact")
        )

    def _call_required(self, count: Callable[[CountArgument], object], argument: CountArgument) -> int:
        tokens = self._call_counter(count, argument)
        if tokens is None:
            raise self._counter_error("answered None, expected a number of tokens")
        return tokens

    def _call_counter(self, count: Callable[[CountArgument], object], argument: CountArgument) -> int | None:
        """Call the counter, which may be a plugin's. Raise an error that names it if the result is not a count."""
        try:
            tokens = count(argument)
        except NexusError:
            raise
        except (Exception, SystemExit) as error:
            raise self._counter_error(describe_exception(error)) from error
        if tokens is not None and (not isinstance(tokens, int) or tokens < 0):
            raise self._counter_error(f"answered {tokens!r}, expected a number of tokens")
        return tokens

    def _counter_error(self, what: str) -> PluginError:
        return PluginError(f"its counter {self.name!r} {what}", plugin=self._plugin, hook="nexus_token_counter")

    def _cache_count(self, text: str, counted: TokenCount) -> None:
        size = _get_cached_size(text)
        if size > self._limit // 8:  # one such text would evict all others
            return
        with self._lock:
            if text not in self._known:
                self._known[text] = counted
                self._size += size
            while self._size > self._limit:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._size -= _get_cached_size(oldest)


def _get_cached_size(text: str) -> int:
    """Return the bytes of a cached text, always the same: Python may add its UTF-8 form to the object later."""
    return len(text) * (1 if text.isascii() else 4) + _ENTRY_BYTES


def get_token_counter(model: str = "", *, use_tiktoken: bool = True) -> ModelCounter:
    """Return a counter for a model from the user's plugins, or an estimator, with one warning.

    Args:
        model: The model's name; "" if any counter will do.
        use_tiktoken: False to estimate without calling plugins.
    """
    if not use_tiktoken:
        return SimpleTokenCounter()
    host = get_default_host()
    return _get_host_counters(host).counter(host, model, None)


def open_counter(
    model: str = "", *, host: Host | None = None, settings: Settings | None = None, stored: bool = True
) -> CachingCounter:
    """Return the counter for a model, which counts each text only once across all processes of the user.

    Args:
        model: The model's name; "" if any counter will do.
        host: The plugins to call; None for the user's own.
        settings: The user's settings about models.
        stored: False to count each text once in this process only, without the counts on disk.
    """
    host = host or get_default_host()
    return _get_host_counters(host).get_caching_counter(host, model, settings, stored=stored)


def get_model(name: str, *, host: Host | None = None, settings: Settings | None = None) -> Model:
    """Return the metadata of a model. Arguments as for `open_counter`."""
    host = host or get_default_host()
    return _get_host_counters(host).model(host, name, settings)


def find_model_finding(name: str, *, host: Host | None = None, settings: Settings | None = None) -> Finding | None:
    """Return a finding about a model that is unknown or matched by a similar name, or None for a known one."""
    host = host or get_default_host()
    return _get_host_counters(host).look_up(host, name, settings).finding if name else None


class _ModelLookup(NamedTuple):
    """The metadata of a model under some settings.

    Attributes:
        guessed: True if its encoding is only that of a model with a similar name.
        finding: A finding about the model, or None.
    """

    settings: Settings | None
    model: Model
    guessed: bool
    finding: Finding | None


class _CounterKey(NamedTuple):
    """The cache key of a counter.

    Attributes:
        guessed: True if the encoding is only that of a model with a similar name.
        correction: Factor, overhead per tool call and error of counts that are not exact.
    """

    model: str
    encoding: str
    guessed: bool
    correction: tuple[float, int, float] = (1.0, 0, 0.0)

    @property
    def is_corrected(self) -> bool:
        """True if counts of a tokenizer are changed for the model."""
        return self.correction[:2] != (1.0, 0)


class _HostCounters:
    """The models and counters of a host's plugins. Each hook is called once."""

    def __init__(self) -> None:
        self._models: Mapping[str, Model] | None = None
        self._found: dict[str, _ModelLookup] = {}
        self._counters: dict[_CounterKey, tuple[ModelCounter, str]] = {}
        self._caching_counters: dict[tuple[_CounterKey, bool], CachingCounter] = {}

    def models(self, host: Host) -> Mapping[str, Model]:
        if self._models is None:
            self._models = host.models()
        return self._models

    def model(self, host: Host, name: str, settings: Settings | None) -> Model:
        if not name:  # no plugin knows it, and reading the table takes longer than counting a prompt
            return find_model(name, {}, settings)
        return self.look_up(host, name, settings).model

    def look_up(self, host: Host, name: str, settings: Settings | None) -> _ModelLookup:
        known = self._found.get(name)
        if known is None or known.settings is not settings:  # searching the table takes longer than counting
            models = self.models(host)
            known = _ModelLookup(
                settings,
                find_model(name, models, settings),
                is_guessed_model(name, models, settings),
                find_unknown_model(name, models, settings),
            )
            self._found[name] = known
        return known

    def counter(self, host: Host, model: str, settings: Settings | None) -> ModelCounter:
        key = self._build_key(host, model, settings)
        if key.guessed or key.is_corrected:
            return self.get_caching_counter(host, model, settings)
        return self._get_counter(host, key)[0]

    def get_caching_counter(
        self, host: Host, model: str, settings: Settings | None, *, stored: bool = True
    ) -> CachingCounter:
        key = self._build_key(host, model, settings)
        if (key, stored) not in self._caching_counters:
            found = self.model(host, model, settings)
            if stored:
                opened = _build_caching_counter(*self._get_counter(host, key), guessed=key.guessed, model=found)
            else:
                opened = self._build_unstored_counter(host, key, found)
            self._caching_counters[key, stored] = opened
        return self._caching_counters[key, stored]

    def _build_unstored_counter(self, host: Host, key: _CounterKey, model: Model) -> CachingCounter:
        with without_stored_counts():
            counter, plugin = self._get_counter(host, key)
        return CachingCounter(counter, guessed=key.guessed, plugin=plugin, model=model)

    def _build_key(self, host: Host, model: str, settings: Settings | None) -> _CounterKey:
        if not model:
            return _CounterKey("", "", guessed=False)
        known = self.look_up(host, model, settings)
        found = known.model
        correction = found.token_factor, found.tool_call_tokens, found.count_error
        return _CounterKey(model, found.encoding, known.guessed, correction)

    def _get_counter(self, host: Host, key: _CounterKey) -> tuple[ModelCounter, str]:
        """Return the counter for a key, with the plugin that provides it."""
        key = key._replace(correction=(1.0, 0, 0.0))
        if key not in self._counters:
            found = host.token_counter(key.model, key.encoding)
            self._counters[key] = found or (_build_estimator(), OWN_DISTRIBUTION)
        return self._counters[key]


_COUNTERS_BY_HOST: WeakKeyDictionary[Host, _HostCounters] = WeakKeyDictionary()


def _get_host_counters(host: Host) -> _HostCounters:
    if host not in _COUNTERS_BY_HOST:
        _COUNTERS_BY_HOST[host] = _HostCounters()
    return _COUNTERS_BY_HOST[host]


def _build_estimator() -> SimpleTokenCounter:
    warn_about_estimates()
    return SimpleTokenCounter()


def _build_caching_counter(counter: ModelCounter, plugin: str, *, guessed: bool, model: Model) -> CachingCounter:
    if isinstance(counter, SimpleTokenCounter):
        return CachingCounter(counter, model=model)  # estimating is faster than reading the cache
    return CachingCounter(counter, get_shared_cache(), guessed=guessed, plugin=plugin, model=model)


@cache
def warn_about_estimates() -> None:
    """Log once that tokens are estimated."""
    from logging import getLogger

    getLogger("nexus_core").warning("no plugin counts tokens, so they are estimated; `nexus doctor` may say why")
