"""ApiDialect, the registry of dialects by name, and detection of the dialect of a message list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nexus_core.dialects.fields import describe_json_value, prefix_error_path, to_json_dict
from nexus_core.dialects.requests import read_each
from nexus_core.dialects.rules import NEUTRAL_RULES, RULES_BY_API
from nexus_core.errors import MessageError, UnknownNameError
from nexus_core.host.discovery import has_third_party_plugins
from nexus_core.types.base import dataclass
from nexus_core.types.messages import Message, Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.host.manager import Host
    from nexus_core.types.api import ApiRules, CacheMarkers, Dialect
    from nexus_core.types.budget import Model
    from nexus_core.types.messages import Conversation, Reply, Role

if TYPE_CHECKING:
    BlockAdder = Callable[["Outline", dict[str, Any]], bool]


class Outline:
    """Texts, tool calls and tool results of a message in its API's plain shape.

    A dialect returns one only if reading the element gives a message with exactly these parts and no other field.
    Rarer shapes are read in full. The `add_…` methods return False if a value has the wrong type.

    Attributes:
        role: The role of the message that `read` would return.
        texts: Every text in it, including those of tool results and signed reasoning.
        calls: Id, tool name and arguments of each tool call. Arguments are an object or JSON text; the id is "" if the
            API has none.
        results: Call id and tool name of each tool result; the name is "" if the API does not repeat it.
    """

    __slots__ = ("calls", "results", "role", "texts")

    def __init__(self, role: Role) -> None:
        self.role = role
        self.texts: list[str] = []
        self.calls: list[tuple[str, str, Any]] = []
        self.results: list[tuple[str, str]] = []

    def add_text(self, text: object) -> bool:
        """Add a text."""
        if type(text) is not str:
            return False
        self.texts.append(text)
        return True

    def add_texts(self, blocks: object, kind: str) -> bool:
        """Add a text, or the texts of blocks `{"type": kind, "text": …}`."""
        if type(blocks) is str:
            self.texts.append(blocks)
            return True
        if type(blocks) is not list or not blocks:
            return False
        for block in blocks:
            is_plain = type(block) is dict and len(block) == 2 and block.get("type") == kind  # noqa: PLR2004 - these two
            if not is_plain or not self.add_text(block.get("text")):
                return False
        return True

    def add_call(self, call_id: object, name: object, arguments: object, kind: type) -> bool:
        """Add a tool call whose arguments must have the type `kind`."""
        if type(call_id) is not str or type(name) is not str or type(arguments) is not kind:
            return False
        self.calls.append((call_id, name, arguments))
        return True

    def add_result(self, call_id: object, name: object) -> bool:
        """Add a tool result, without its texts."""
        if type(call_id) is not str or type(name) is not str:
            return False
        self.results.append((call_id, name))
        return True

    def with_tool_role(self, blocks: int) -> Outline | None:
        """Return the outline, with the role `tool` if all blocks are tool results.

        Returns None if tool results are mixed with other blocks or part of a reply, or if a user message has tool
        calls.
        """
        if self.results:
            is_alone = self.role == "user" and len(self.results) == blocks
            self.role = "tool"
            return self if is_alone else None
        return None if self.calls and self.role == "user" else self

    def add_blocks(self, blocks: Iterable[object], adders: Mapping[str, BlockAdder]) -> bool:
        """Add each block with the function that `adders` has for its `type`."""
        for block in blocks:
            if type(block) is not dict:
                return False
            kind = block.get("type")
            add = adders.get(kind) if type(kind) is str else None
            if add is None or not add(self, block):
                return False
        return True


class RequestWriter(Protocol):
    """Signature of `Dialect.write_request`."""

    def __call__(self, conversation: Conversation, marks: CacheMarkers | None = None) -> dict[str, Any]:
        """Return the arguments of the SDK's call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDialect:
    """A `Dialect` built from functions.

    Attributes:
        rules: The limits of the API. `rules.name` is the dialect's name.
        recognises, read, write, read_request, write_request, read_reply, read_tools, write_tools: The methods of the
            `Dialect` protocol.
        outline: Returns the outline of an element in the API's plain shape, and None for any other element. Makes
            `check` and `repair` fast, because they need not read the element. None if the dialect has no outlines.
    """

    rules: ApiRules
    recognises: Callable[[Mapping[str, Any]], bool]
    read: Callable[[object], Message]
    write: Callable[[Iterable[Message]], list[dict[str, Any]]]
    read_request: Callable[[object], Conversation]
    write_request: RequestWriter
    read_reply: Callable[[object], Reply]
    read_tools: Callable[[Iterable[object]], tuple[Tool, ...]]
    write_tools: Callable[[Sequence[Tool]], list[dict[str, Any]]]
    outline: Callable[[object], Outline | None] | None = None

    @property
    def name(self) -> str:
        """The dialect's name."""
        return self.rules.name


_DIALECT_MODULES = {
    "openai": "nexus_core.dialects.openai",
    "responses": "nexus_core.dialects.responses",
    "anthropic": "nexus_core.dialects.anthropic",
    "gemini": "nexus_core.dialects.gemini",
    "neutral": "nexus_core.dialects.neutral",
}
"""The module of each built-in dialect. It defines `DIALECT` and is imported on first use."""

BUILT_IN_NAMES = tuple(_DIALECT_MODULES)
"""Names of the built-in dialects."""

RESERVED_NAMES = ("neutral",)
"""Names that no plugin can replace: conversations are stored in the neutral format."""

DEFAULT_DIALECT_NAME = "openai"
"""Dialect of a list in which no element is conclusive. Every other dialect has elements that differ from it."""

_SDK_PACKAGES = {
    "openai.types.chat": "openai",
    "openai.types.responses": "responses",
    "anthropic": "anthropic",
    "google.genai": "gemini",
}
"""Packages that define the SDKs' objects. `openai.lib` derives from classes of both OpenAI packages."""

_COMMON_ROLES = ("system", "developer", "user", "assistant")
_COMMON_FIELDS = frozenset({"role", "content", "name"})
"""Roles and fields that several built-in APIs share. With text or null as content, a message fits all of them."""
_TEXT_FIELDS = frozenset({"type", "text", "cache_control"})


class DialectRegistry(NamedTuple):
    """Built-in dialects, and those of plugins, which are loaded only when needed.

    Attributes:
        offered: Returns the plugins' dialects that have new names.
        replacing: Returns the third-party dialects that have the name of a built-in dialect and replace it.
    """

    offered: Callable[[], Mapping[str, Dialect]]
    replacing: Callable[[], Mapping[str, Dialect]] = dict

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all dialects, the built-in ones first."""
        return (*BUILT_IN_NAMES, *self.offered())

    def get(self, name: str) -> Dialect:
        """Return the dialect called `name`.

        Raises:
            UnknownNameError: No dialect has that name.
        """
        if name in BUILT_IN_NAMES:
            return self._built_in(name)
        try:
            return self.offered()[name]
        except (KeyError, TypeError):  # TypeError: a name that is not hashable
            raise UnknownNameError("dialect", name, self.names) from None

    def rules(self, name: str) -> ApiRules | None:
        """Return the rules of the dialect called `name`, or None if there is none."""
        if not name or not isinstance(name, str):
            return None
        if name in RULES_BY_API:
            return self._built_in(name).rules if name in self.replacing() else RULES_BY_API[name]
        found = self.offered().get(name)
        return None if found is None else found.rules

    def recognise(self, items: Iterable[object]) -> Dialect:
        """Return the dialect of a message list, by its first conclusive element.

        The dialect is `openai` if every element fits several dialects.

        Raises:
            MessageError: An element is not a message in any dialect.
        """
        return self.get(self.told(items) or DEFAULT_DIALECT_NAME)

    def told(self, items: Iterable[object], first: int = 0) -> str:
        """Return the dialect name of a message list, "" if no element is conclusive.

        An element that a built-in dialect recognises decides, wherever it is in the list. Plugins are asked only
        if there is none.

        Args:
            items: Elements of the list.
            first: Index of the first of them in the whole list, for error paths.

        Raises:
            MessageError: An element is not a message in any dialect.
        """
        unsure: list[Mapping[str, object]] = []
        for index, item in enumerate(items, first):
            try:
                name = self._detect_item(item, unsure)
            except MessageError as error:
                raise prefix_error_path(f"messages[{index}]", error) from None
            if name:
                return name
        return next((found.name for item in unsure if (found := self.offering(item))), "") if unsure else ""

    def offering(self, item: object) -> Dialect | None:
        """Return the plugin dialect that recognises a message, reply or event, or None."""
        try:
            block = to_json_dict(item)
        except MessageError:
            return None
        return next((each for each in self.offered().values() if each.recognises(block)), None)

    def read_tools(self, tools: Iterable[object], api: str) -> tuple[Tool, ...]:
        """Parse tool definitions in the shape of any API, of MCP, or Tool objects.

        Args:
            tools: The definitions.
            api: The dialect that reads a definition which several dialects could read. Unknown names are allowed,
                because a model's settings may name one whose plugin is not installed; the default dialect is used then.

        Raises:
            MessageError: An element is not a tool definition. The error has its index and the reason.
        """
        given, preferred = list(tools), self.get(DEFAULT_DIALECT_NAME if self.rules(api) is None else api)
        is_built_in = preferred.name in BUILT_IN_NAMES
        if is_built_in:  # every built-in dialect reads the shapes of all built-in APIs
            try:
                return preferred.read_tools(given)
            except MessageError:
                if not self.offered():
                    raise
        others = [] if is_built_in else [self._built_in(DEFAULT_DIALECT_NAME)]
        return read_tools_by_first_match(given, [preferred, *others, *self.offered().values()])

    def request_limit(self, model: Model, api: str = "") -> int:
        """Return the maximum size of a request body, in bytes.

        The model's own limit wins over the smallest limit of the APIs involved.

        Args:
            model: The model that is called.
            api: The dialect that the request is written in, "" if unknown.
        """
        known = [self.rules(name) for name in (model.api, api) if name != NEUTRAL_RULES.name]
        limits = [rules.request_bytes for rules in known if rules is not None and rules.request_bytes]
        return model.request_bytes or min(limits, default=NEUTRAL_RULES.request_bytes)

    def cache_marks(self) -> frozenset[str]:
        """Return the names of all fields that mark a cache breakpoint."""
        others = (*self.offered().values(), *self.replacing().values())
        every = (*RULES_BY_API.values(), *(each.rules for each in others))
        return frozenset(rules.cache_mark for rules in every if rules.cache_mark)

    def _detect_item(self, item: object, unsure: list[Mapping[str, object]]) -> str:
        """Return the dialect of one element, or "" if several fit.

        Plugins may decide those added to `unsure`.
        """
        if isinstance(item, Message):
            return "neutral"
        if type(item) is not dict and not isinstance(item, Mapping):  # the first is faster, and true for most
            return _find_sdk_dialect(item) or self._detect_unknown_object(item)
        if item.get("role") in _COMMON_ROLES and item.keys() <= _COMMON_FIELDS:
            content = item.get("content")
            if content is None or isinstance(content, str):
                return ""  # the most common element: skip the dialects' own checks
            if _is_untyped_list(content):
                unsure.append(item)  # only plugin dialects have such blocks
                return ""
            if _is_text_list(content):
                return ""
        block = to_json_dict(item)
        found = next((name for name in BUILT_IN_NAMES if self._built_in(name).recognises(block)), "")
        if not found:
            unsure.append(item)
        return found

    def _built_in(self, name: str) -> Dialect:
        """Return a built-in dialect, or the plugin dialect that replaces it."""
        return self.replacing().get(name) or _import_built_in(name)

    def _detect_unknown_object(self, item: object) -> str:
        """Return the plugin dialect of an object that is of no known SDK."""
        found = self.offering(item)
        if found is None:
            raise MessageError(
                f"expected a message, not {describe_json_value(item)}",
                hint="give dicts, objects of an API's SDK, or Message",
                command='a message is an object: {"role": "user", "content": "…"}',
            )
        return found.name


_FIRST_TOOL_PATH = "tools[0]"


def read_tools_by_first_match(items: Iterable[object], readers: Sequence[Dialect]) -> tuple[Tool, ...]:
    """Parse each definition with the first dialect that can read it.

    Tool objects are returned as they are.

    Raises:
        MessageError: No dialect can read a definition. The error is that of the first dialect.
    """
    return tuple(tool for index, item in enumerate(items) for tool in _read_tool_by_first_match(item, index, readers))


def _read_tool_by_first_match(item: object, index: int, readers: Sequence[Dialect]) -> tuple[Tool, ...]:
    if isinstance(item, Tool):
        return (item,)
    errors: list[MessageError] = []
    for each in readers:
        try:
            return each.read_tools([item])
        except MessageError as error:
            errors.append(error)
    first = errors[0]
    path = (
        f"tools[{index}]{first.path.removeprefix(_FIRST_TOOL_PATH)}"
        if first.path.startswith(_FIRST_TOOL_PATH)
        else f"tools[{index}]"
    )
    raise MessageError(first.what, path=path, hint=first.hint, command=first.command)


BUILT_IN_DIALECTS = DialectRegistry(dict)
"""Registry without plugins."""


def create_registry(host: Callable[[], Host], has_third_party: Callable[[], bool] | None = None) -> DialectRegistry:
    """Return a registry of the built-in dialects and those of a host's plugins.

    Args:
        host: Returns the host. Called when a plugin's dialect is first needed.
        has_third_party: Returns True if a plugin could replace a built-in dialect. None asks the host.
    """

    @cache
    def find_all() -> Mapping[str, Dialect]:
        from nexus_core.dialects.plugin_dialect import PluginDialect

        found = host()
        registry = found.dialects(BUILT_IN_NAMES, RESERVED_NAMES)
        return {
            name: PluginDialect(
                registry.get(name), registry.owner(name), partial(found.note, registry.owner(name), "nexus_dialects")
            )
            for name in registry
        }

    @cache
    def offered() -> Mapping[str, Dialect]:
        return {name: each for name, each in find_all().items() if name not in BUILT_IN_NAMES}

    @cache
    def replacing() -> Mapping[str, Dialect]:
        if not (has_third_party() if has_third_party else host().has_third_party("nexus_dialects")):
            return {}  # bundled plugins replace no dialect, so they need not be imported
        return {name: each for name, each in find_all().items() if name in BUILT_IN_NAMES}

    return DialectRegistry(offered, replacing)


def get_default_registry(host: Host | None = None) -> DialectRegistry:
    """Return the registry of a host, by default of all bundled and installed plugins."""
    return (
        create_registry(_get_installed_host, _has_installed_plugins) if host is None else create_registry(lambda: host)
    )


def get_dialect(name: str) -> Dialect:
    """The dialect of that name, built in or of a plugin that is installed; `nexus.dialects` knows those of a `Nexus`.

    Raises:
        UnknownNameError: No dialect has that name.
    """
    return get_default_registry().get(name)


def read_messages(dialect: Dialect, items: Iterable[object]) -> tuple[Message, ...]:
    """Read every element with one dialect. Errors have the element's index."""
    return read_each(items, dialect.read, "messages")


def _is_text_list(content: object) -> bool:
    """Return True for a list of text blocks, a shape that several APIs share."""
    return isinstance(content, list) and all(map(_is_text_block, content))


def _is_untyped_list(content: object) -> bool:
    """Return True for a list of blocks without `type`.

    Only plugin dialects have such blocks.
    """
    if type(content) is not list or not content:
        return False
    for part in content:  # noqa: SIM110 - `all` with a generator is three times slower
        if type(part) is not dict or "type" in part:
            return False
    return True


def _is_text_block(part: object) -> bool:
    return (
        type(part) is dict
        and part.get("type") == "text"
        and type(part.get("text")) is str
        and part.keys() <= _TEXT_FIELDS
    )


def _import_built_in(name: str) -> Dialect:
    found: Dialect = import_module(_DIALECT_MODULES[name]).DIALECT
    return found


def _get_installed_host() -> Host:
    from nexus_core.host.manager import get_installed_host

    return get_installed_host()


def _has_installed_plugins() -> bool:
    return has_third_party_plugins()


def _find_sdk_dialect(item: object) -> str:
    """Return the dialect of an SDK's object, or "" for any other object."""
    for kind in type(item).__mro__:
        for package, name in _SDK_PACKAGES.items():
            if kind.__module__ == package or kind.__module__.startswith(f"{package}."):
                return name
    return ""
