"""Dialects by name, and which one a list is written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.fields import joined, named
from nexus_core.dialects.plain import plain_mapping
from nexus_core.dialects.requests import read_each
from nexus_core.errors import MessageError, UnknownNameError
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.host.host import Host
    from nexus_core.values.api import ApiRules, Dialect
    from nexus_core.values.conversation import Tool
    from nexus_core.values.counting import Model

NAMES = ("openai", "responses", "anthropic", "gemini", "neutral")
"""The built-in dialects. Each is `DIALECT` of `dialect.py` in the package of that name, imported when it is needed."""

RESERVED = ("neutral",)
"""The form in which conversations are kept, which no plugin can replace."""

UNTOLD = "openai"
"""By this one a list is read in which nothing tells: all others can be told from it."""

_PACKAGES = {
    "openai.types.chat": "openai",
    "openai.types.responses": "responses",
    "anthropic": "anthropic",
    "google.genai": "gemini",
}
"""Where the SDKs' own objects live. `openai.lib` makes subclasses of both kinds, in the packages of both."""

_ANYBODYS = ("system", "developer", "user", "assistant")
_COMMON = frozenset({"role", "content", "name"})
"""Roles and fields that several built-in APIs have: with text or nothing as content, nobody's to claim."""
_TEXT = frozenset({"type", "text", "cache_control"})


class Dialects(NamedTuple):
    """The dialects there are: the built-in ones, then those of plugins, which are asked for when none of ours will do.

    Attributes:
        offered: What plugins offer under names of their own; called when it is needed.
        replacing: What third-party plugins offer under the name of a built-in one, in whose place it is used.
    """

    offered: Callable[[], Mapping[str, Dialect]]
    replacing: Callable[[], Mapping[str, Dialect]] = dict

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called, the built-in ones first."""
        return (*NAMES, *self.offered())

    def get(self, name: str) -> Dialect:
        """The dialect of that name.

        Raises:
            UnknownNameError: There is none.
        """
        if name in NAMES:
            return self._built_in(name)
        try:
            return self.offered()[name]
        except (KeyError, TypeError):  # a list is no name of anything
            raise UnknownNameError("dialect", name, self.names) from None

    def rules(self, name: str) -> ApiRules | None:
        """What the API of that name accepts; None where there is no such dialect."""
        from nexus_core.dialects.rules import RULES  # noqa: PLC0415 - most want to speak, not to know what is refused

        if not name or not isinstance(name, str):
            return None
        if name in RULES:
            return self._built_in(name).rules if name in self.replacing() else RULES[name]
        found = self.offered().get(name)
        return None if found is None else found.rules

    def recognise(self, items: Iterable[object]) -> Dialect:
        """The dialect of the first element that is surely of one; `openai` where all of them say as much to several.

        Raises:
            MessageError: An element is no message in any shape.
        """
        return self.get(self.told(items) or UNTOLD)

    def told(self, items: Iterable[object], first: int = 0) -> str:
        """The name of the dialect of the first element that is surely of one; "" where none is.

        What is surely of a built-in one, anywhere in the list, is no plugin's to decide.

        Args:
            items: Some elements of a list.
            first: The place of the first of them in the list.

        Raises:
            MessageError: An element is no message in any shape.
        """
        unsure: list[Mapping[str, object]] = []
        for index, item in enumerate(items, first):
            try:
                name = self._name_of(item, unsure)
            except MessageError as error:
                raise joined(f"messages[{index}]", error) from None
            if name:
                return name
        return next((found.name for item in unsure if (found := self.offering(item))), "") if unsure else ""

    def offering(self, item: object) -> Dialect | None:
        """The plugin's dialect of which something surely is: an element of a list, a reply, or a piece of a stream."""
        try:
            block = plain_mapping(item)
        except MessageError:
            return None
        return next((each for each in self.offered().values() if each.recognises(block)), None)

    def read_tools(self, tools: Iterable[object], api: str) -> tuple[Tool, ...]:
        """Definitions of tools in the shape of any API, of MCP, or Tool objects.

        Args:
            tools: The definitions.
            api: The dialect that decides what several of them could mean; a model may name one that nobody offers.

        Raises:
            MessageError: One of them is no definition of a tool; says which and what is wrong with it.
        """
        from nexus_core.dialects.tools.in_turn import read_in_turn  # noqa: PLC0415 - not every call has tools

        given, speaking = list(tools), self.get(UNTOLD if self.rules(api) is None else api)
        is_built_in = speaking.name in NAMES
        if is_built_in:  # each of these reads the shapes of all of them
            try:
                return speaking.read_tools(given)
            except MessageError:
                if not self.offered():
                    raise
        others = [] if is_built_in else [self._built_in(UNTOLD)]
        return read_in_turn(given, [speaking, *others, *self.offered().values()])

    def request_limit(self, model: Model, api: str = "") -> int:
        """How many bytes a request may have: what is said of the model, else what the APIs take that it goes through.

        Args:
            model: Whom to ask.
            api: The API it is written for, where that is known.
        """
        from nexus_core.dialects.rules import NEUTRAL  # noqa: PLC0415 - as above

        known = [self.rules(name) for name in (model.api, api) if name != NEUTRAL.name]
        limits = [rules.request_bytes for rules in known if rules is not None and rules.request_bytes]
        return model.request_bytes or min(limits, default=NEUTRAL.request_bytes)

    def cache_marks(self) -> frozenset[str]:
        """The fields by which providers are told what to keep in their caches."""
        from nexus_core.dialects.rules import RULES  # noqa: PLC0415 - as above

        others = (*self.offered().values(), *self.replacing().values())
        every = (*RULES.values(), *(each.rules for each in others))
        return frozenset(rules.cache_mark for rules in every if rules.cache_mark)

    def _name_of(self, item: object, unsure: list[Mapping[str, object]]) -> str:
        """The dialect of one element; "" where it could be several's, and is put among what is `unsure`."""
        if isinstance(item, Message):
            return "neutral"
        if not isinstance(item, Mapping):
            return _package_of(item) or self._stranger(item)
        if item.get("role") in _ANYBODYS and item.keys() <= _COMMON:
            content = item.get("content")
            if content is None or isinstance(content, str) or _are_texts(content):
                return ""  # most of most lists: not worth asking every dialect
            if _are_untyped(content):
                unsure.append(item)  # only dialects of plugins have such blocks
                return ""
        block = plain_mapping(item)
        found = next((name for name in NAMES if self._built_in(name).recognises(block)), "")
        if not found:
            unsure.append(item)
        return found

    def _built_in(self, name: str) -> Dialect:
        """Return the dialect that is used under the name of a built-in one."""
        return self.replacing().get(name) or _built_in(name)

    def _stranger(self, item: object) -> str:
        """Whose an object is that is of no SDK we know."""
        found = self.offering(item)
        if found is None:
            raise MessageError(
                f"expected a message, not {named(item)}",
                hint="give dicts, objects of an API's SDK, or Message",
                command='a message is an object: {"role": "user", "content": "…"}',
            )
        return found.name


BUILT_IN = Dialects(dict)
"""Without those of plugins."""


def dialects_of(host: Callable[[], Host], has_third_party: Callable[[], bool] | None = None) -> Dialects:
    """The built-in dialects, and those of a host's plugins, which is asked for when it is needed.

    Args:
        host: Returns the host.
        has_third_party: True if a plugin could replace a built-in dialect; the host knows, if it is not given.
    """

    @cache
    def find_all() -> Mapping[str, Dialect]:
        from nexus_core.dialects.offered import OfferedDialect  # noqa: PLC0415 - most speak what is built in

        found = host()
        registry = found.dialects(NAMES, RESERVED)
        return {
            name: OfferedDialect(
                registry.get(name), registry.owner(name), partial(found.note, registry.owner(name), "nexus_dialects")
            )
            for name in registry
        }

    @cache
    def offered() -> Mapping[str, Dialect]:
        return {name: each for name, each in find_all().items() if name not in NAMES}

    @cache
    def replacing() -> Mapping[str, Dialect]:
        if not (has_third_party() if has_third_party else host().has_third_party("nexus_dialects")):
            return {}  # what ships with Nexus need not be imported for it
        return {name: each for name, each in find_all().items() if name in NAMES}

    return Dialects(offered, replacing)


def default_dialects(host: Host | None = None) -> Dialects:
    """Those of a host; without one, of the bundled plugins and those the user has installed."""
    return dialects_of(_default_host, _has_installed_plugins) if host is None else dialects_of(lambda: host)


def dialect(name: str) -> Dialect:
    """The dialect of that name, built in or of a plugin that is installed; `nexus.dialects` knows those of a `Nexus`.

    Raises:
        UnknownNameError: There is none.
    """
    return default_dialects().get(name)


def read_messages(speaking: Dialect, items: Iterable[object]) -> tuple[Message, ...]:
    """Every element, read by one dialect; an error says which element it is about."""
    return read_each(items, speaking.read, "messages")


def _are_texts(content: object) -> bool:
    """Whether content is a list of texts, as several APIs have them."""
    return isinstance(content, list) and all(map(_is_text, content))


def _are_untyped(content: object) -> bool:
    """True for a list of blocks without a `type`, by which all built-in dialects tell their own."""
    if type(content) is not list or not content:
        return False
    for part in content:  # noqa: SIM110 - `all` with a generator takes three times as long
        if type(part) is not dict or "type" in part:
            return False
    return True


def _is_text(part: object) -> bool:
    return type(part) is dict and part.get("type") == "text" and type(part.get("text")) is str and part.keys() <= _TEXT


def _built_in(name: str) -> Dialect:
    found: Dialect = import_module(f"nexus_core.dialects.{name}.dialect").DIALECT
    return found


def _default_host() -> Host:
    from nexus_core.host.default import default_host  # noqa: PLC0415 - plugins are looked for when needed

    return default_host()


def _has_installed_plugins() -> bool:
    from nexus_core.host.installed import has_third_party_plugins  # noqa: PLC0415 - as above

    return has_third_party_plugins()


def _package_of(item: object) -> str:
    """The dialect of an SDK's own object; "" for an object of something else."""
    for kind in type(item).__mro__:
        for package, name in _PACKAGES.items():
            if kind.__module__ == package or kind.__module__.startswith(f"{package}."):
                return name
    return ""
