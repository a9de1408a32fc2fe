"""The values of a conversation as JSON and back: every field by its name, those with their usual value left out.

A field is checked by one rule in both directions, so that whatever is written can be read.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

from nexus_core.dialects.fields import joined, named, shown
from nexus_core.dialects.plain import opened, plain, plain_mapping
from nexus_core.errors import MessageError, did_you_mean
from nexus_core.values.conversation import Conversation, Reply, Stop, Tool, ToolScope, Usage
from nexus_core.values.message import ROLES, Message
from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VERSION = 1
"""Raised when a reader of the version before could misread what is written."""

_MARK, _KIND = "nexus", "kind"
_RESULT_KINDS: dict[str, type[Any]] = {"text": Text, "image": Image, "file": File, "opaque": Opaque}
_KINDS: dict[str, type[Any]] = {
    **_RESULT_KINDS,
    "reasoning": Reasoning,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_WHOLE = frozenset({Message, Conversation, Reply})
"""What stands by itself, and so says which version it is of."""
_WRITTEN = _WHOLE | _NAMES.keys() | {Tool, Usage}

Value = TypeVar("Value")


class _Form(NamedTuple):
    """How a field is written and read.

    Attributes:
        name: The field.
        is_written: Whether it is written even where it has its usual value.
        is_needed: Whether it must be there when it is read.
        usual: What is left out.
        write, read: Give a field of the one form in the other.
    """

    name: str
    is_written: bool
    is_needed: bool
    usual: object
    write: Callable[[Any], object]
    read: Callable[[Any], object]


class _Writing(NamedTuple):
    """How values of a kind are written.

    Attributes:
        beginning: What is said of each of them.
        values: Gets the fields of one, all at once.
        forms: How each field is written: its name, `is_written`, `usual` and `write`.
    """

    beginning: dict[str, Any]
    values: Callable[[object], tuple[Any, ...]]
    forms: list[tuple[str, bool, object, Callable[[Any], object]]]


def encode(value: object) -> dict[str, Any]:
    """A message, part, tool, request or reply as JSON.

    Raises:
        MessageError: A field of it is of another type than it says, or nested too deeply.
    """
    kind: Any = type(value)
    if kind not in _WRITTEN:
        kind = _written_base(value)
    beginning, values, forms = _writing(kind)
    body = dict(beginning)
    for (name, is_written, usual, write), given in zip(forms, values(value), strict=True):
        if is_written or given != usual:
            try:
                body[name] = write(given)
            except MessageError as error:
                raise joined(name, error) from None
    return body


def decode(kind: type[Value], given: object) -> Value:
    """The value that something in JSON stands for.

    Raises:
        MessageError: It is not of the form that `encode` writes, or of a later version.
    """
    return _decoded(kind, opened(given))


def is_marked(block: Any) -> bool:  # noqa: ANN401 - any mapping
    """Whether something says of itself that it is Nexus's."""
    return _MARK in block


def _written_base(value: object) -> type[Any]:
    """What a value of a subclass is written as."""
    for base in type(value).__mro__:
        if base in _WRITTEN:
            return base
    raise MessageError(f"expected a message, part, tool, request or reply, not {named(value)}")


def _decoded(kind: type[Value], block: dict[str, Any]) -> Value:
    version = block.pop(_MARK, VERSION)
    if version != VERSION:
        raise MessageError(f"expected version {VERSION}, not {shown(version)}", path=_MARK, hint="update Nexus")
    forms = _forms(kind)  # type: ignore[arg-type] # classes are hashable
    values: dict[str, Any] = {}
    for name, given in block.items():
        if name not in forms:
            hint = did_you_mean(name, forms) or f"{kind.__name__} has {', '.join(forms)}"
            raise MessageError(f"unknown field {shown(name)}", path=shown(name), hint=hint)
        try:
            values[name] = forms[name].read(given)
        except MessageError as error:
            raise joined(name, error) from None
    for name, form in forms.items():
        if form.is_needed and name not in values:
            raise MessageError(f"there is no {name!r}", path=name)
    return kind(**values)


@cache
def _forms(kind: type[Any]) -> dict[str, _Form]:
    return {field.name: _form(field) for field in fields(kind)}


@cache
def _writing(kind: type[Any]) -> _Writing:
    beginning: dict[str, Any] = {_MARK: VERSION} if kind in _WHOLE else {}
    if kind in _NAMES:
        beginning[_KIND] = _NAMES[kind]
    forms = _forms(kind).values()  # type: ignore[arg-type] # classes are hashable
    listed = [(form.name, form.is_written, form.usual, form.write) for form in forms]
    return _Writing(beginning, attrgetter(*(form.name for form in forms)), listed)


def _form(field: Field[Any]) -> _Form:
    usual = field.default if field.default_factory is MISSING else field.default_factory()
    written = str(field.type)
    is_written = usual is MISSING or field.name in ("parts", "messages")
    return _Form(field.name, is_written, usual is MISSING and written not in _ELEMENTS, usual, *_ways(written))


def _ways(written: str) -> tuple[Callable[[Any], object], Callable[[Any], object]]:
    """How a field of a type is written and read; the same function where it is the same in both forms."""
    if written in _ELEMENTS:
        read = partial(_each, _ELEMENTS[written])
        return partial(_each, encode), lambda given: tuple(read(given))
    if written == "tuple[str, ...]":
        return partial(_each, _text), lambda given: tuple(_each(_text, given))
    if written == "Usage | None":
        return partial(_or_none, encode), partial(_or_none, partial(decode, Usage))
    check = _CHECKS[written]
    return check, check


def _each(convert: Callable[[Any], object], given: object) -> list[object]:
    if type(given) is not tuple and not isinstance(given, list | tuple):
        raise MessageError(f"expected a list, not {named(given)}")
    found = []
    for index, item in enumerate(given):
        try:
            found.append(convert(item))
        except MessageError as error:
            raise joined(f"[{index}]", error) from None
    return found


def _or_none(convert: Callable[[Any], object], given: object) -> object:
    return None if given is None else convert(given)


def _read_part(kinds: dict[str, type[Any]], given: object) -> object:
    block = opened(given)
    return _decoded(kinds[_word(tuple(kinds), block.pop(_KIND, None), path=_KIND)], block)


def _text(given: object) -> object:
    return given if type(given) is str else _scalar("text", str, given)


def _scalar(wanted: str, kind: type, given: object) -> object:
    value = plain(given)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise MessageError(f"expected {wanted}, not {named(value)}")
    return value


def _word(words: Sequence[str], given: object, path: str = "") -> str:
    given = given if type(given) is str else plain(given)
    if isinstance(given, str) and given in words:
        return given
    listed = ", ".join(word or '""' for word in words)
    hint = (did_you_mean(given, words) if isinstance(given, str) else "") or f"one of {listed}"
    raise MessageError(f"unknown value: {named(given)}", path=path, hint=hint)


_ELEMENTS: dict[str, Callable[[Any], object]] = {
    "tuple[Part, ...]": partial(_read_part, _KINDS),
    "tuple[ResultPart, ...]": partial(_read_part, _RESULT_KINDS),
    "tuple[Message, ...]": partial(decode, Message),
    "tuple[Tool, ...]": partial(decode, Tool),
}
_CHECKS: dict[str, Callable[[Any], object]] = {
    "str": _text,
    "str | None": partial(_or_none, _text),
    "bool": partial(_scalar, "true or false", bool),
    "int": partial(_scalar, "a whole number", int),
    "JSON": plain_mapping,
    "Role": partial(_word, ROLES),
    "ToolScope": partial(_word, get_args(ToolScope)),
    "Stop": partial(_word, get_args(Stop)),
}
