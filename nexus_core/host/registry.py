"""Named things that plugins contribute, with an answer for names that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from nexus_core.errors import UnknownNameError
from nexus_core.host.candidates import OWN_DISTRIBUTION

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


class PluginReplacement(NamedTuple):
    """A bundled thing in whose place a third-party plugin's is used, because it has the same name.

    Attributes:
        plugin: The plugin whose thing is used.
        kind: What it is, in the words of messages: "truncation", "model".
        name: The name that both have.
        owner: The bundled plugin whose thing is not used; the name of our distribution for Nexus itself.
    """

    plugin: str
    kind: str
    name: str
    owner: str

    def __str__(self) -> str:
        owner = "Nexus itself" if self.owner == OWN_DISTRIBUTION else f"the bundled plugin {self.owner}"
        return f"the {self.kind} {self.name!r} of {owner}"


class Registry(Generic[T]):
    """A sorted map from name to value that knows which plugin each value came from.

    Args:
        kind: What the things are called in messages: "command", "renderer".
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, tuple[T, str]] = {}
        self._replaced: dict[str, T] = {}

    def add(self, name: str, value: T, plugin: str) -> str | None:
        """Add a value unless its name is taken; returns the plugin that has taken it, or None."""
        taken = self._entries.setdefault(name, (value, plugin))
        return None if taken[0] is value else taken[1]

    def replace(self, name: str, value: T) -> None:
        """Remember the bundled value in whose place that of a third-party plugin is used."""
        self._replaced[name] = value

    def get_bundled(self, name: str) -> T:
        """Return the bundled value of that name; where there is none, what `get` returns."""
        return self._replaced[name] if name in self._replaced else self.get(name)

    def owner(self, name: str) -> str:
        """The plugin that the value of that name came from."""
        return self._entries[name][1]

    def get(self, name: str) -> T:
        """The value of that name; an UnknownNameError with the nearest name otherwise."""
        try:
            return self._entries[name][0]
        except KeyError:
            raise UnknownNameError(self.kind, name, self._entries) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        return len(self._entries)
