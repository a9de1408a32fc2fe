"""The file that `nexus session record` is given, piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.cli.given_file import STANDARD_INPUT, read_given_text
from nexus_core.cli.given_json import parse_json, parse_lines
from nexus_core.cli.session.items import Answer, Item, read_item, read_text
from nexus_core.errors import FileError, MessageError, NexusError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.cli.session.items import Speaker
    from nexus_core.dialects.finding import Dialects


class GivenItem(NamedTuple):
    """Something to be recorded, and where it stands: `replies.jsonl:3`."""

    item: Item
    where: str


def read_items(directory: Path, name: str, dialects: Dialects) -> list[GivenItem]:
    """What a file holds: one thing, `{"items": […]}`, or one thing on each line.

    Raises:
        ConfigError: It is not JSON; shows where.
        FileError: It cannot be read, or there is nothing in it.
        MessageError: Something in it is in no shape that is known; says where.
    """
    return [GivenItem(_read(value, where, dialects), where) for value, where in _values(directory, name)]


def read_words(directory: Path, name: str, speaker: Speaker) -> list[GivenItem]:
    """A file of plain words; the line break at its end is not one of them."""
    path, text = read_given_text(directory, name)
    return [GivenItem(read_text(text.removesuffix("\n"), speaker), _shown(path, name))]


def read_answer(directory: Path, name: str, call: str, *, is_error: bool) -> list[GivenItem]:
    """A file that a tool has written, as the result of a call."""
    path, text = read_given_text(directory, name)
    return [GivenItem(Answer(call, text.removesuffix("\n"), is_error), _shown(path, name))]


def read_tools(directory: Path, name: str) -> list[Any]:
    """A file with a list of tools."""
    path, text = read_given_text(directory, name)
    tools = parse_json(path, text, text)
    if not isinstance(tools, list):
        raise FileError("expected a list of tools", where=_shown(path, name))
    return tools


def _values(directory: Path, name: str) -> Iterator[tuple[Any, str]]:
    path, text = read_given_text(directory, name)
    shown = _shown(path, name)
    if not text.strip():
        raise FileError("there is nothing in it", where=shown, hint="nothing was recorded")
    lines = parse_lines(path, text)
    if lines is not None:
        for number, value in lines:
            yield value, f"{shown}:{number}"
        return
    if text.lstrip()[0] not in "{[":
        hint = "--as user takes it for what the user said, --as assistant for an answer, --call CALL for a result"
        raise MessageError("expected JSON, not words", path=shown, hint=hint)
    value = parse_json(path, text, text)
    if isinstance(value, dict) and value.keys() == {"items"} and isinstance(value["items"], list):
        if not value["items"]:
            raise FileError("there is nothing in it", where=f"{shown}: items", hint="nothing was recorded")
        for place, item in enumerate(value["items"]):
            yield item, f"{shown}: items[{place}]"
        return
    yield value, shown


def _read(value: object, where: str, dialects: Dialects) -> Item:
    try:
        return read_item(value, dialects)
    except NexusError as error:
        inside = error.path if isinstance(error, MessageError) else ""
        path, hint = ": ".join(filter(None, (where, inside))), error.command or error.hint
        raise MessageError(error.what, path=path, hint=hint) from None


def _shown(path: Path, name: str) -> str:
    """What is given, as errors call it."""
    return str(path) if name == STANDARD_INPUT else name
