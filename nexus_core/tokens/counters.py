"""The counter for a model, and what else is known of it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from nexus_core.host.default import default_host
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.tokens.memory import RememberingCounter
from nexus_core.tokens.models import find_model, find_unknown_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.host.host import Host
    from nexus_core.values.counting import Model, ModelCounter
    from nexus_core.values.finding import Finding
    from nexus_core.values.settings import Settings


def get_token_counter(model: str = "", *, use_tiktoken: bool = True) -> ModelCounter:
    """A counter for a model, from the user's plugins; an estimate, and one warning, when they have none.

    Args:
        model: The model's name; "" when any will do.
        use_tiktoken: False estimates without asking anybody.
    """
    if not use_tiktoken:
        return SimpleTokenCounter()
    host = default_host()
    return _answers(host).counter(host, model, None)


def open_counter(model: str = "", *, host: Host | None = None, settings: Settings | None = None) -> RememberingCounter:
    """The counter for a model; it counts each text only once, in all processes of the user together.

    Args:
        model: The model's name; "" when any will do.
        host: The plugins to ask; the user's own by default.
        settings: What the user says about models.
    """
    host = host or default_host()
    return _answers(host).remembering(host, model, settings)


def open_model(name: str, *, host: Host | None = None, settings: Settings | None = None) -> Model:
    """What is known of a model; arguments as for `open_counter`."""
    host = host or default_host()
    return _answers(host).model(host, name, settings)


def find_unknown(name: str, *, host: Host, settings: Settings) -> Finding | None:
    """What to know about a model that nobody knows; None for one that somebody does."""
    return find_unknown_model(name, _answers(host).models(host), settings) if name else None


class _Answers:
    """What the plugins of a host say about models; each is asked once."""

    def __init__(self) -> None:
        self._models: Mapping[str, Model] | None = None
        self._found: dict[str, tuple[Settings | None, Model]] = {}
        self._counters: dict[tuple[str, str], ModelCounter] = {}
        self._remembering: dict[tuple[str, str], RememberingCounter] = {}

    def models(self, host: Host) -> Mapping[str, Model]:
        if self._models is None:
            self._models = host.models()
        return self._models

    def model(self, host: Host, name: str, settings: Settings | None) -> Model:
        if not name:  # nobody knows anything of it, and the table takes longer to read than a prompt to count
            return find_model(name, {}, settings)
        said, found = self._found.get(name, (None, None))
        if found is None or said is not settings:  # looking through the table takes longer than counting a message
            found = find_model(name, self.models(host), settings)
            self._found[name] = settings, found
        return found

    def counter(self, host: Host, model: str, settings: Settings | None) -> ModelCounter:
        return self._ask(host, self._question(host, model, settings))

    def remembering(self, host: Host, model: str, settings: Settings | None) -> RememberingCounter:
        question = self._question(host, model, settings)
        if question not in self._remembering:
            self._remembering[question] = _remembering(self._ask(host, question))
        return self._remembering[question]

    def _question(self, host: Host, model: str, settings: Settings | None) -> tuple[str, str]:
        return model, self.model(host, model, settings).encoding if model else ""

    def _ask(self, host: Host, question: tuple[str, str]) -> ModelCounter:
        if question not in self._counters:
            self._counters[question] = host.token_counter(*question) or _estimating()
        return self._counters[question]


_HOSTS: WeakKeyDictionary[Host, _Answers] = WeakKeyDictionary()


def _answers(host: Host) -> _Answers:
    if host not in _HOSTS:
        _HOSTS[host] = _Answers()
    return _HOSTS[host]


def _estimating() -> SimpleTokenCounter:
    warn_that_nobody_counts()
    return SimpleTokenCounter()


def _remembering(counter: ModelCounter) -> RememberingCounter:
    if isinstance(counter, SimpleTokenCounter):
        return RememberingCounter(counter)  # an estimate is made sooner than it is looked up
    from nexus_core.tokens.cache import shared_cache  # noqa: PLC0415 - not for those who count by themselves

    return RememberingCounter(counter, shared_cache())


@cache
def warn_that_nobody_counts() -> None:
    """Say once that tokens are estimated."""
    from logging import getLogger  # noqa: PLC0415 - seldom needed

    getLogger("nexus_core").warning("no plugin counts tokens, so they are estimated; `nexus doctor` may say why")
