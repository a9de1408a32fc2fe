"""A plugin's dialect, held to its contract: whatever goes wrong in it is the plugin's, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from nexus_core.dialects.outline import Outline
from nexus_core.errors import NexusError, PluginError
from nexus_core.host.implementation import describe
from nexus_core.values.conversation import Conversation, Reply, Tool
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nexus_core.values.api import ApiRules, Dialect, Marks

T = TypeVar("T")


class OfferedDialect:
    """A dialect that raises nothing but errors that name what is wrong, and answers with what it must.

    Args:
        speaking: The plugin's own.
        plugin: Its name.
        note: Told that it cannot tell what is its own, which is no reason to stop.
    """

    __slots__ = ("_note", "_plugin", "_speaking", "name", "outline", "rules")

    def __init__(self, speaking: Dialect, plugin: str, note: Callable[[str], None]) -> None:
        self.name: str = speaking.name
        self.rules: ApiRules = speaking.rules
        self.outline = self._outline if getattr(speaking, "outline", None) else None
        self._speaking = speaking
        self._plugin = plugin
        self._note = note

    def recognises(self, item: Mapping[str, Any]) -> bool:
        """Whether it says so; one that fails at it knows nothing, since what it was asked about may be anybody's."""
        try:
            return bool(self._speaking.recognises(item))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a stranger's function may raise anything
            self._note(f"recognises of its dialect {self.name!r} {describe(error)}")
            return False

    def read(self, item: object) -> Message:
        """One element of the API's list."""
        return self._one(Message, "read", item)

    def write(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """The API's list."""
        return self._several(dict, "write", messages)

    def read_request(self, body: object) -> Conversation:
        """A whole request."""
        return self._one(Conversation, "read_request", body)

    def write_request(self, conversation: Conversation, marks: Marks | None = None) -> dict[str, Any]:
        """The arguments of the SDK's call."""
        return self._one(dict, "write_request", conversation, marks)

    def read_reply(self, reply: object) -> Reply:
        """A response."""
        return self._one(Reply, "read_reply", reply)

    def read_tools(self, tools: Iterable[object]) -> tuple[Tool, ...]:
        """Definitions of tools."""
        return tuple(self._several(Tool, "read_tools", tools))

    def write_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Definitions of tools."""
        return self._several(dict, "write_tools", tools)

    def _outline(self, item: object) -> Outline | None:
        found = self._ask("outline", item)
        if found is not None and not isinstance(found, Outline):
            raise self._broken("outline", f"answered {type(found).__name__}, expected an Outline or None")
        return found

    def _one(self, kind: type[T], name: str, *given: object) -> T:
        answer = self._ask(name, *given)
        if not isinstance(answer, kind):
            raise self._broken(name, f"answered {type(answer).__name__}, expected {kind.__name__}")
        return answer

    def _several(self, kind: type[T], name: str, *given: object) -> list[T]:
        answer = self._ask(name, *given)
        if not isinstance(answer, list | tuple) or not all(isinstance(each, kind) for each in answer):
            raise self._broken(name, f"answered something else than a list of {kind.__name__}")
        return list(answer)

    def _ask(self, name: str, *given: object) -> object:
        try:
            answer: object = getattr(self._speaking, name)(*given)
        except NexusError:  # which is addressed to the user
            raise
        except (Exception, SystemExit) as error:
            raise self._broken(name, describe(error)) from error
        return answer

    def _broken(self, name: str, what: str) -> PluginError:
        return PluginError(f"{name} of its dialect {self.name!r} {what}", plugin=self._plugin, hook="nexus_dialects")
