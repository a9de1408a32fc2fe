"""Wrapper that checks a plugin's dialect and names the plugin in errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from nexus_core.dialects.registry import Outline
from nexus_core.errors import NexusError, PluginError
from nexus_core.host.calls import describe_exception
from nexus_core.types.messages import Conversation, Message, Reply, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nexus_core.types.api import ApiRules, CacheMarkers, Dialect

T = TypeVar("T")


class PluginDialect:
    """A plugin's dialect with checked results and wrapped exceptions.

    Args:
        dialect: The plugin's dialect.
        plugin: The plugin's name.
        note: Called with a problem that is reported but not raised: a failure of `recognises`.
    """

    __slots__ = ("_dialect", "_note", "_plugin", "name", "outline", "rules")

    def __init__(self, dialect: Dialect, plugin: str, note: Callable[[str], None]) -> None:
        self.name: str = dialect.name
        self.rules: ApiRules = dialect.rules
        self.outline = self._outline if getattr(dialect, "outline", None) else None
        self._dialect = dialect
        self._plugin = plugin
        self._note = note

    def recognises(self, item: Mapping[str, Any]) -> bool:
        """Return True if the dialect recognises the element.

        A failure is reported and counts as False, because the element may belong to any other dialect.
        """
        try:
            return bool(self._dialect.recognises(item))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - plugin code may raise anything
            self._note(f"recognises of its dialect {self.name!r} {describe_exception(error)}")
            return False

    def read(self, item: object) -> Message:
        """Parse one element of the API's list."""
        return self._call_for_one(Message, "read", item)

    def write(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Return the API's list of messages."""
        return self._call_for_list(dict, "write", messages)

    def read_request(self, body: object) -> Conversation:
        """Parse a request."""
        return self._call_for_one(Conversation, "read_request", body)

    def write_request(self, conversation: Conversation, marks: CacheMarkers | None = None) -> dict[str, Any]:
        """Return the arguments of the SDK's call."""
        return self._call_for_one(dict, "write_request", conversation, marks)

    def read_reply(self, reply: object) -> Reply:
        """Parse a response."""
        return self._call_for_one(Reply, "read_reply", reply)

    def read_tools(self, tools: Iterable[object]) -> tuple[Tool, ...]:
        """Parse tool definitions."""
        return tuple(self._call_for_list(Tool, "read_tools", tools))

    def write_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Return tool definitions in the API's shape."""
        return self._call_for_list(dict, "write_tools", tools)

    def _outline(self, item: object) -> Outline | None:
        found = self._call("outline", item)
        if found is not None and not isinstance(found, Outline):
            raise self._build_error("outline", f"answered {type(found).__name__}, expected an Outline or None")
        return found

    def _call_for_one(self, kind: type[T], name: str, *given: object) -> T:
        result = self._call(name, *given)
        if not isinstance(result, kind):
            raise self._build_error(name, f"answered {type(result).__name__}, expected {kind.__name__}")
        return result

    def _call_for_list(self, kind: type[T], name: str, *given: object) -> list[T]:
        result = self._call(name, *given)
        if not isinstance(result, list | tuple) or not all(isinstance(each, kind) for each in result):
            raise self._build_error(name, f"answered something else than a list of {kind.__name__}")
        return list(result)

    def _call(self, name: str, *given: object) -> object:
        try:
            result: object = getattr(self._dialect, name)(*given)
        except NexusError:  # a message for the user
            raise
        except (Exception, SystemExit) as error:
            raise self._build_error(name, describe_exception(error)) from error
        return result

    def _build_error(self, name: str, what: str) -> PluginError:
        return PluginError(f"{name} of its dialect {self.name!r} {what}", plugin=self._plugin, hook="nexus_dialects")
