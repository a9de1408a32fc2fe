"""A JSON document of which one knows where its pieces stand."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.fields import at
from nexus_core.dialects.transcripts.lines import TOO_MUCH, not_json, require_shallow
from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class Piece(NamedTuple):
    """A member of an object or an element of a list.

    Attributes:
        value: What it says.
        line: Where it begins.
        offset: The same in characters.
    """

    value: Any
    line: int
    offset: int


def parse_document(text: str, name: str) -> Any:  # noqa: ANN401 - JSON has many types
    """What a text says in JSON.

    Raises:
        MessageError: It is no JSON, or nested too deeply; says where.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise MessageError(not_json(error), path=place(name, error.lineno)) from None
    except (ValueError, RecursionError):
        raise MessageError(TOO_MUCH, path=name) from None
    if isinstance(value, dict | list):
        with at(name):
            require_shallow(value)
    return value


def members(text: str, start: Piece | None = None) -> dict[str, Piece]:
    """The members of an object in a text that is JSON; of the whole text, or of a piece of it."""
    found: dict[str, Piece] = {}
    scan = _Scan(text, start)
    while scan.goes_on():
        key = scan.value().value
        scan.skip()  # the colon
        found[key] = scan.value()
    return found


def elements(text: str, start: Piece | None = None) -> Iterator[Piece]:
    """The elements of a list in a text that is JSON; of the whole text, or of a piece of it."""
    scan = _Scan(text, start)
    while scan.goes_on():
        yield scan.value()


def place(name: str, line: int) -> str:
    """A line of a file, as editors understand it."""
    return f"{name}:{line}" if name else f"line {line}"


class _Scan:
    """Goes through an object or a list, piece by piece."""

    def __init__(self, text: str, start: Piece | None) -> None:
        self._text = text
        self._line = start.line if start else 1
        self._at = self._counted = start.offset if start else 0
        self._blanks()

    def goes_on(self) -> bool:
        """Whether there is another piece; goes past the bracket or comma before it."""
        self.skip()
        return self._text[self._at] not in "]}"

    def skip(self) -> None:
        """Go past one sign."""
        self._blanks()
        # A closing bracket is looked at once more, where there is no comma before it.
        if self._text[self._at] not in "]}":
            self._at += 1
        self._blanks()

    def value(self) -> Piece:
        """The piece that begins here."""
        offset = self._at
        self._line += self._text.count("\n", self._counted, offset)
        self._counted = offset
        value, self._at = _DECODER.raw_decode(self._text, offset)
        return Piece(value, self._line, offset)

    def _blanks(self) -> None:
        found = _BLANKS.match(self._text, self._at)
        self._at = found.end() if found else self._at
