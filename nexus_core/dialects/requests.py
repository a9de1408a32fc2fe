"""The arguments of an SDK's call, as they are given to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import joined, named
from nexus_core.dialects.plain import is_unset, plain
from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Read = TypeVar("Read")


def arguments_of(body: object) -> dict[str, Any]:
    """The arguments that were given, the caller's own objects; an SDK's marks for `not given` are left out."""
    if not isinstance(body, Mapping):
        body = plain(body)
    if not isinstance(body, Mapping):
        raise MessageError(f"expected the arguments of a call, not {named(body)}")
    for name in body:
        if not isinstance(name, str):
            raise MessageError(f"expected text as the name of an argument, not {named(name)}")
    return {name: value for name, value in body.items() if not is_unset(value)}


def listed(value: object, path: str) -> list[Any] | tuple[Any, ...]:
    """What must be a list. Anything that can be read only once is refused: its owner would find it empty."""
    if isinstance(value, list | tuple):
        return value
    raise MessageError(f"expected a list, not {named(value)}", path=path)


def no_list(given: object) -> MessageError:
    """Why something is no list of messages, and what to give instead."""
    hint = None
    if isinstance(given, Mapping):
        hint = "give what its field `messages`, `input` or `contents` holds"
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
        hint = "make it a list: list(messages)"
    return MessageError(f"expected a list of messages, not {named(given)}", path="messages", hint=hint)


def read_each(items: Iterable[object], read: Callable[[object], Read], path: str) -> tuple[Read, ...]:
    """Every element, read; an error says which one it is about."""
    found = []
    for index, item in enumerate(items):
        try:
            found.append(read(item))
        except MessageError as error:
            raise joined(f"{path}[{index}]", error) from None
    return tuple(found)
