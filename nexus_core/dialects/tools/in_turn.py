"""Definitions of tools that may be in the shapes of several dialects, each read by the first that can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import MessageError
from nexus_core.values.conversation import Tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.values.api import Dialect

_FIRST = "tools[0]"


def read_in_turn(items: Iterable[object], readers: Sequence[Dialect]) -> tuple[Tool, ...]:
    """Every definition by the first dialect that can read it; what is a Tool already stays as it is.

    Raises:
        MessageError: None of them can; says what the first one finds wrong.
    """
    return tuple(tool for index, item in enumerate(items) for tool in _read(item, index, readers))


def _read(item: object, index: int, readers: Sequence[Dialect]) -> tuple[Tool, ...]:
    if isinstance(item, Tool):
        return (item,)
    errors: list[MessageError] = []
    for each in readers:
        try:
            return each.read_tools([item])
        except MessageError as error:
            errors.append(error)
    first = errors[0]
    path = f"tools[{index}]{first.path.removeprefix(_FIRST)}" if first.path.startswith(_FIRST) else f"tools[{index}]"
    raise MessageError(first.what, path=path, hint=first.hint, command=first.command)
