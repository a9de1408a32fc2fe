"""Dialects by name, and which one a list is written in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from nexus_core.dialects.fields import joined, named
from nexus_core.dialects.plain import plain_mapping
from nexus_core.dialects.requests import read_each
from nexus_core.errors import MessageError, UnknownNameError
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.api import Dialect

NAMES = ("openai", "responses", "anthropic", "gemini", "neutral")
"""Every dialect. Each is the constant DIALECT of the module of that name, imported when it is first asked for."""

UNTOLD = "openai"
"""By this one a list is read in which nothing tells: all others can be told from it."""

_PACKAGES = {
    "openai.types.chat": "openai",
    "openai.types.responses": "responses",
    "anthropic": "anthropic",
    "google.genai": "gemini",
}
"""Where the SDKs' own objects live. `openai.lib` makes subclasses of both kinds, in the packages of both."""

_ANYBODYS = ("system", "user", "assistant")
"""Roles that say nothing about the API, where the content is a text and there is nothing else."""
_BOTH = 2


def dialect(name: str) -> Dialect:
    """The dialect of that name.

    Raises:
        UnknownNameError: There is none.
    """
    if name not in NAMES:
        raise UnknownNameError("dialect", name, NAMES)
    found: Dialect = import_module(f"nexus_core.dialects.{name}").DIALECT
    return found


def recognise(items: Iterable[object]) -> Dialect:
    """The dialect of the first element that is surely of one; `openai` where all of them say as much to several APIs.

    Raises:
        MessageError: An element is no message in any shape.
    """
    return dialect(told(items) or UNTOLD)


def told(items: Iterable[object], first: int = 0) -> str:
    """The name of the dialect of the first element that is surely of one; "" where none is.

    Args:
        items: Some elements of a list.
        first: The place of the first of them in the list.

    Raises:
        MessageError: An element is no message in any shape.
    """
    for index, item in enumerate(items, first):
        try:
            name = _name_of(item)
        except MessageError as error:
            raise joined(f"messages[{index}]", error) from None
        if name:
            return name
    return ""


def read_messages(speaking: Dialect, items: Iterable[object]) -> tuple[Message, ...]:
    """Every element, read by one dialect; an error says which element it is about."""
    return read_each(items, speaking.read, "messages")


def _name_of(item: object) -> str:
    if isinstance(item, Message):
        return "neutral"
    if not isinstance(item, Mapping):
        return _package_of(item)
    if len(item) == _BOTH and isinstance(item.get("content"), str) and item.get("role") in _ANYBODYS:
        return ""  # most of most lists: not worth asking every dialect
    block = plain_mapping(item)
    return next((name for name in NAMES if dialect(name).recognises(block)), "")


def _package_of(item: object) -> str:
    for kind in type(item).__mro__:
        for package, name in _PACKAGES.items():
            if kind.__module__ == package or kind.__module__.startswith(f"{package}."):
                return name
    raise MessageError(
        f"expected a message, not {named(item)}",
        hint="give dicts, objects of an API's SDK, or Message",
        command='a message is an object: {"role": "user", "content": "…"}',
    )
