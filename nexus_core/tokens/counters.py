"""The counter for a model, and what else is known of it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from nexus_core.host.default import default_host
from nexus_core.tokens.cache import shared_cache
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.tokens.memory import RememberingCounter
from nexus_core.tokens.models import find_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.host.host import Host
    from nexus_core.values.counting import Model, ModelCounter
    from nexus_core.values.settings import Settings


def get_token_counter(model: str = "", *, use_tiktoken: bool = True) -> ModelCounter:
    """A counter for a model, from the user's plugins; an estimate, and one warning, when they have none.

    Args:
        model: The model's name; "" when any will do.
        use_tiktoken: False estimates without asking anybody.
    """
    return open_counter(model).counter if use_tiktoken else SimpleTokenCounter()


def open_counter(model: str = "", *, host: Host | None = None, settings: Settings | None = None) -> RememberingCounter:
    """The counter for a model; it counts each text only once, in all processes of the user together.

    Args:
        model: The model's name; "" when any will do.
        host: The plugins to ask; the user's own by default.
        settings: What the user says about models.
    """
    host = host or default_host()
    return _answers(host).counter(host, model, settings)


def open_model(name: str, *, host: Host | None = None, settings: Settings | None = None) -> Model:
    """What is known of a model; arguments as for `open_counter`."""
    return find_model(name, _answers(host or default_host()).models, settings)


class _Answers:
    """What the plugins of a host say about models; each is asked once."""

    def __init__(self, host: Host) -> None:
        self.models: Mapping[str, Model] = host.models()
        self._counters: dict[tuple[str, str], RememberingCounter] = {}

    def counter(self, host: Host, model: str, settings: Settings | None) -> RememberingCounter:
        encoding = find_model(model, self.models, settings).encoding if model else ""
        if (model, encoding) not in self._counters:
            self._counters[model, encoding] = _remembering(host.token_counter(model, encoding))
        return self._counters[model, encoding]


_HOSTS: WeakKeyDictionary[Host, _Answers] = WeakKeyDictionary()


def _answers(host: Host) -> _Answers:
    if host not in _HOSTS:
        _HOSTS[host] = _Answers(host)
    return _HOSTS[host]


def _remembering(counter: ModelCounter | None) -> RememberingCounter:
    if counter is None:
        warn_that_nobody_counts()
        return RememberingCounter(SimpleTokenCounter())  # an estimate is made sooner than it is looked up
    return RememberingCounter(counter, shared_cache())


@cache
def warn_that_nobody_counts() -> None:
    """Say once that tokens are estimated."""
    from logging import getLogger  # noqa: PLC0415 - seldom needed

    getLogger("nexus_core").warning("no plugin counts tokens, so they are estimated; `nexus doctor` may say why")
