"""The counter for a model, and what else is known of it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from nexus_core.host.candidates import OWN_DISTRIBUTION
from nexus_core.host.default import default_host
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.tokens.memory import RememberingCounter
from nexus_core.tokens.models import find_model, find_unknown_model, is_guessed

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


def find_unknown(name: str, *, host: Host | None = None, settings: Settings | None = None) -> Finding | None:
    """What to know about a model that nobody knows, or that is taken for another; None for one that is known."""
    host = host or default_host()
    return _answers(host).look_up(host, name, settings).finding if name else None


class _Known(NamedTuple):
    """What is known of a model, by which settings.

    Attributes:
        guessed: Whether its encoding is only that of a model with a similar name.
        finding: What to know about it.
    """

    settings: Settings | None
    model: Model
    guessed: bool
    finding: Finding | None


class _Question(NamedTuple):
    """What a counter is asked for by, and whether the encoding is only that of a model with a similar name."""

    model: str
    encoding: str
    guessed: bool


class _Answers:
    """What the plugins of a host say about models; each is asked once."""

    def __init__(self) -> None:
        self._models: Mapping[str, Model] | None = None
        self._found: dict[str, _Known] = {}
        self._counters: dict[_Question, tuple[ModelCounter, str]] = {}
        self._remembering: dict[_Question, RememberingCounter] = {}

    def models(self, host: Host) -> Mapping[str, Model]:
        if self._models is None:
            self._models = host.models()
        return self._models

    def model(self, host: Host, name: str, settings: Settings | None) -> Model:
        if not name:  # nobody knows anything of it, and the table takes longer to read than a prompt to count
            return find_model(name, {}, settings)
        return self.look_up(host, name, settings).model

    def look_up(self, host: Host, name: str, settings: Settings | None) -> _Known:
        known = self._found.get(name)
        if known is None or known.settings is not settings:  # to look through the table takes longer than to count
            models = self.models(host)
            known = _Known(
                settings,
                find_model(name, models, settings),
                is_guessed(name, models, settings),
                find_unknown_model(name, models, settings),
            )
            self._found[name] = known
        return known

    def counter(self, host: Host, model: str, settings: Settings | None) -> ModelCounter:
        question = self._question(host, model, settings)
        return self.remembering(host, model, settings) if question.guessed else self._ask(host, question)[0]

    def remembering(self, host: Host, model: str, settings: Settings | None) -> RememberingCounter:
        question = self._question(host, model, settings)
        if question not in self._remembering:
            counter, plugin = self._ask(host, question)
            self._remembering[question] = _remembering(counter, plugin, guessed=question.guessed)
        return self._remembering[question]

    def _question(self, host: Host, model: str, settings: Settings | None) -> _Question:
        if not model:
            return _Question("", "", guessed=False)
        known = self.look_up(host, model, settings)
        return _Question(model, known.model.encoding, known.guessed)

    def _ask(self, host: Host, question: _Question) -> tuple[ModelCounter, str]:
        """Return the counter for a question, with the plugin that offers it."""
        if question not in self._counters:
            found = host.token_counter(question.model, question.encoding)
            self._counters[question] = found or (_estimating(), OWN_DISTRIBUTION)
        return self._counters[question]


_HOSTS: WeakKeyDictionary[Host, _Answers] = WeakKeyDictionary()


def _answers(host: Host) -> _Answers:
    if host not in _HOSTS:
        _HOSTS[host] = _Answers()
    return _HOSTS[host]


def _estimating() -> SimpleTokenCounter:
    warn_that_nobody_counts()
    return SimpleTokenCounter()


def _remembering(counter: ModelCounter, plugin: str, *, guessed: bool) -> RememberingCounter:
    if isinstance(counter, SimpleTokenCounter):
        return RememberingCounter(counter)  # an estimate is made sooner than it is looked up
    from nexus_core.tokens.cache import shared_cache  # noqa: PLC0415 - not for those who count by themselves

    return RememberingCounter(counter, shared_cache(), guessed=guessed, plugin=plugin)


@cache
def warn_that_nobody_counts() -> None:
    """Say once that tokens are estimated."""
    from logging import getLogger  # noqa: PLC0415 - seldom needed

    getLogger("nexus_core").warning("no plugin counts tokens, so they are estimated; `nexus doctor` may say why")
