"""Two spellings of every field: `inlineData` in REST, `inline_data` in the Python SDK. Gemini takes both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import at, mapping_of, text_in
from nexus_core.dialects.notes import filled
from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def camel(key: str) -> str:
    """A name as REST spells it."""
    if "_" not in key:
        return key
    first, *others = key.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others) if first else key


class Fields:
    """The fields of an object by their names in REST, to be taken one by one. What is null counts as missing.

    Attributes:
        rest: What was not taken, spelled as it was.
        spelled: The names of what was taken, here and inside, where they were not spelled as in REST.
    """

    def __init__(self, block: dict[str, Any], within: Fields | None = None, path: str = "") -> None:
        self.rest = dict(block)
        self.spelled: list[str] = within.spelled if within else []
        self._path = path
        self._keys: dict[str, str] = {}
        for key in block:
            name = camel(key)
            if name in self._keys:
                raise MessageError(f"it is there twice, as {self._keys[name]!a} and as {key!a}", path=path)
            self._keys[name] = key

    def __contains__(self, name: str) -> bool:
        return self.rest.get(self._keys.get(name, name)) is not None

    def take(self, name: str) -> Any:  # noqa: ANN401 - JSON has many types
        """A field that is there, taken out."""
        key = self._keys[name]
        if key != name:
            self.spelled.append(key)
        return self.rest.pop(key)

    def opened(self, name: str) -> Fields:
        """An object that is there, taken out, to be taken apart in turn."""
        path = self.path(name)
        with at(path):
            return Fields(mapping_of(self.take(name)), self, path)

    def text(self, name: str) -> str:
        """A text that must be there, taken out."""
        with at(self._path):
            text_in(self.rest, self._keys.get(name, name))
        taken: str = self.take(name)
        return taken

    def words(self, name: str) -> str:
        """A text, taken out; where it is empty or missing it stays as it is, and the answer is ""."""
        return self.text(name) if name in self and self.rest[self._keys[name]] != "" else ""

    def path(self, name: str) -> str:
        """Where a field is, for errors."""
        return ".".join(filter(None, (self._path, self._keys.get(name, name))))


def respelled(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """A part of Gemini's own as it was: names spelled that way, and all that was not taken put back."""
    ways = {camel(key): key for key in extra.get("_snake", ())}
    rest = extra.get("_inner", {})
    part = {
        ways.get(name, name): rest | {ways.get(key, key): inner for key, inner in value.items()}
        if isinstance(value, dict)
        else value
        for name, value in body.items()
    }
    return filled(part, extra)
