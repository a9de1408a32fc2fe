"""The values of a conversation as JSON and back: every field by its name, those with their usual value left out."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from nexus_core.dialects.fields import at, mapping_of, named, shown
from nexus_core.dialects.plain import plain, plain_mapping
from nexus_core.errors import MessageError, did_you_mean
from nexus_core.values.conversation import Conversation, Reply, Stop, Tool, ToolScope, Usage
from nexus_core.values.message import ROLES, Message
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VERSION = 1
"""Raised when a reader of the version before could misread what is written."""

_MARK, _KIND = "nexus", "kind"
_KINDS: dict[str, type[Any]] = {
    "text": Text,
    "image": Image,
    "file": File,
    "reasoning": Reasoning,
    "opaque": Opaque,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_WHOLE = (Message, Conversation, Reply)
"""What stands by itself, and so says which version it is of."""

_WORDS: dict[str, Sequence[str]] = {"Role": ROLES, "ToolScope": get_args(ToolScope), "Stop": get_args(Stop)}
_SHAPES: dict[str, tuple[str, type]] = {
    "str": ("text", str),
    "str | None": ("text", str),
    "bool": ("true or false", bool),
    "int": ("a whole number", int),
    "JSON": ("an object", dict),
}

Value = TypeVar("Value")


def encode(value: object) -> dict[str, Any]:
    """A message, part, tool, request or reply as JSON."""
    kind: Any = type(value)
    body: dict[str, Any] = {_MARK: VERSION} if kind in _WHOLE else {}
    if kind in _NAMES:
        body[_KIND] = _NAMES[kind]
    for name, is_needed, usual, is_list in _written_fields(kind):
        given = getattr(value, name)
        if is_needed or given != usual:
            body[name] = [encode(element) for element in given] if is_list else _encoded(given, name)
    return body


def decode(kind: type[Value], given: object) -> Value:
    """The value that something in JSON stands for.

    Raises:
        MessageError: It is not of the form that `encode` writes, or of a later version.
    """
    return _decoded(kind, plain_mapping(given))


def is_marked(block: Any) -> bool:  # noqa: ANN401 - any mapping
    """Whether something says of itself that it is Nexus's."""
    return _MARK in block


@cache
def _written_fields(kind: type[Any]) -> tuple[tuple[str, bool, object, bool], ...]:
    """Of each field its name, whether it is always written, its usual value, and whether it is a list of values."""
    return tuple(
        (field.name, _is_needed(field), _usual(field), _element_of(field) is not None) for field in fields(kind)
    )


def _encoded(value: object, name: str) -> object:
    if type(value) is str:  # most of them
        return value
    return encode(value) if isinstance(value, Usage) else plain(value, name)


def _decoded(kind: type[Value], block: dict[str, Any]) -> Value:
    version = block.pop(_MARK, VERSION)
    if version != VERSION:
        raise MessageError(f"expected version {VERSION}, not {shown(version)}", path=_MARK, hint="update Nexus")
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for name, given in block.items():
        if name not in known:
            hint = did_you_mean(name, known) or f"{kind.__name__} has {', '.join(known)}"
            raise MessageError(f"unknown field {shown(name)}", path=shown(name), hint=hint)
        with at(name):
            values[name] = _read_field(known[name], given)
    for name, field in known.items():
        if name not in values and _is_needed(field) and not _element_of(field):
            raise MessageError(f"there is no {name!r}", path=name)
    return kind(**values)


def _read_field(field: Field[Any], given: object) -> object:
    if element := _element_of(field):
        return tuple(_elements(element, given))
    written = str(field.type)
    if given is None and "None" in written:
        return None
    if written in _WORDS:
        return _word(given, _WORDS[written])
    if written.startswith("Usage"):
        return _decoded(Usage, mapping_of(given))
    wanted, kind = _SHAPES[written]
    if not isinstance(given, kind) or (kind is int and isinstance(given, bool)):
        raise MessageError(f"expected {wanted}, not {named(given)}")
    return given


def _elements(read: Callable[[dict[str, Any]], object], given: object) -> list[object]:
    if not isinstance(given, list):
        raise MessageError(f"expected a list, not {named(given)}")
    found = []
    for index, item in enumerate(given):
        with at(f"[{index}]"):
            found.append(read(mapping_of(item)))
    return found


def _element_of(field: Field[Any]) -> Callable[[dict[str, Any]], object] | None:
    return {
        "tuple[Part, ...]": _read_part,
        "tuple[ResultPart, ...]": _read_part,
        "tuple[Message, ...]": lambda block: _decoded(Message, block),
        "tuple[Tool, ...]": lambda block: _decoded(Tool, block),
    }.get(str(field.type))


def _read_part(block: dict[str, Any]) -> object:
    return _decoded(_KINDS[_word(block.pop(_KIND, None), tuple(_KINDS), path=_KIND)], block)


def _word(given: object, words: Sequence[str], path: str = "") -> str:
    if isinstance(given, str) and given in words:
        return given
    listed = ", ".join(word or '""' for word in words)
    hint = (did_you_mean(given, words) if isinstance(given, str) else "") or f"one of {listed}"
    raise MessageError(f"unknown word: {named(given)}", path=path, hint=hint)


def _is_needed(field: Field[Any]) -> bool:
    return (field.default is MISSING and field.default_factory is MISSING) or field.name in ("parts", "messages")


def _usual(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()
