"""Dialect of the neutral message format and its JSON.

Ledgers store this JSON, and other programs read it. Each field is written under its name, unless it has its default.
The same check validates a field when it is written and when it is read, so that everything written can be read.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

from nexus_core.dialects.fields import (
    describe_json_value,
    format_for_error,
    get_raw_fields,
    prefix_error_path,
    to_json_dict,
    to_json_types,
)
from nexus_core.dialects.requests import read_each
from nexus_core.dialects.rules import NEUTRAL_RULES
from nexus_core.dialects.tools import read_tools
from nexus_core.errors import MessageError, did_you_mean
from nexus_core.types.messages import (
    ROLES,
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Reasoning,
    Reply,
    Stop,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    ToolScope,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nexus_core.types.api import ApiRules, CacheMarkers, Dialect

FORMAT_VERSION = 1
"""Version of the JSON format. Increased when readers of the previous version could misread new data."""

_VERSION_KEY, _KIND_KEY = "nexus", "kind"
_RESULT_PART_TYPES: dict[str, type[Any]] = {"text": Text, "image": Image, "file": File, "opaque": Opaque}
_PART_TYPES: dict[str, type[Any]] = {
    **_RESULT_PART_TYPES,
    "reasoning": Reasoning,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
}
_KIND_NAMES = {kind: name for name, kind in _PART_TYPES.items()}
_VERSIONED_TYPES = frozenset({Message, Conversation, Reply})
"""Types that are stored on their own, so their JSON has the format version."""
_ENCODED_TYPES = _VERSIONED_TYPES | _KIND_NAMES.keys() | {Tool, Usage}

Value = TypeVar("Value")


class _FieldCodec(NamedTuple):
    """Conversion of one field to and from JSON.

    Attributes:
        name: The field's name.
        is_written: True if it is written even if it has its default.
        is_required: True if it must be present when it is read.
        default: The value that is not written.
        write, read: Convert the field to JSON and back.
    """

    name: str
    is_written: bool
    is_required: bool
    default: object
    write: Callable[[Any], object]
    read: Callable[[Any], object]


class _TypeEncoder(NamedTuple):
    """Serializer of one type.

    Attributes:
        header: The keys that every value starts with: format version and kind.
        get_values: Returns the values of all fields at once.
        codecs: `name`, `is_written`, `default` and `write` of each field, and the type whose values are written as they
            are; None if there is none.
    """

    header: dict[str, Any]
    get_values: Callable[[object], tuple[Any, ...]]
    codecs: list[tuple[str, bool, object, Callable[[Any], object], type | None]]


def encode_value(value: object) -> dict[str, Any]:
    """Serialize a message, part, tool, request or reply to JSON types.

    Raises:
        MessageError: A field has a wrong type, or is nested too deeply.
    """
    kind: Any = type(value)
    if kind not in _ENCODED_TYPES:
        kind = _find_encoded_base(value)
    header, get_values, codecs = _get_type_encoder(kind)
    body = dict(header)
    for (name, is_written, default, write, plain_type), given in zip(codecs, get_values(value), strict=True):
        if type(given) is plain_type:
            if is_written or given != default:
                body[name] = given
        elif is_written or given != default:
            try:
                body[name] = write(given)
            except MessageError as error:
                raise prefix_error_path(name, error) from None
    return body


def decode_value(kind: type[Value], given: object) -> Value:
    """Parse a value of type `kind` from JSON types.

    Raises:
        MessageError: It does not have the format that `encode_value` writes, or a later version.
    """
    return _decode_fields(kind, dict(given) if type(given) is dict else get_raw_fields(given))


def is_neutral_json(block: Any) -> bool:  # noqa: ANN401 - any mapping
    """Return True if a mapping has the key of the neutral format."""
    return _VERSION_KEY in block


def _find_encoded_base(value: object) -> type[Any]:
    """Return the base class as which a value of a subclass is serialized."""
    for base in type(value).__mro__:
        if base in _ENCODED_TYPES:
            return base
    raise MessageError(f"expected a message, part, tool, request or reply, not {describe_json_value(value)}")


def _decode_fields(kind: type[Value], block: dict[str, Any]) -> Value:
    version = block.pop(_VERSION_KEY, FORMAT_VERSION)
    if version != FORMAT_VERSION:
        raise MessageError(
            f"expected version {FORMAT_VERSION}, not {format_for_error(version)}",
            path=_VERSION_KEY,
            hint="update Nexus",
        )
    codecs = _get_field_codecs(kind)  # type: ignore[arg-type] # classes are hashable
    values: dict[str, Any] = {}
    for name, given in block.items():
        if name not in codecs:
            get_raw_fields(block)  # a name that is not text has an error of its own
            hint = did_you_mean(name, codecs) or f"{kind.__name__} has {', '.join(codecs)}"
            raise MessageError(f"unknown field {format_for_error(name)}", path=format_for_error(name), hint=hint)
        try:
            values[name] = codecs[name].read(given)
        except MessageError as error:
            raise prefix_error_path(name, error) from None
    for name, codec in codecs.items():
        if codec.is_required and name not in values:
            raise MessageError(f"there is no {name!r}", path=name)
    return kind(**values)


@cache
def _get_field_codecs(kind: type[Any]) -> dict[str, _FieldCodec]:
    return {field.name: _build_field_codec(field) for field in fields(kind)}


@cache
def _get_type_encoder(kind: type[Any]) -> _TypeEncoder:
    header: dict[str, Any] = {_VERSION_KEY: FORMAT_VERSION} if kind in _VERSIONED_TYPES else {}
    if kind in _KIND_NAMES:
        header[_KIND_KEY] = _KIND_NAMES[kind]
    codecs = _get_field_codecs(kind).values()  # type: ignore[arg-type] # classes are hashable
    plain_types = {field.name: _PLAIN_TYPES.get(str(field.type)) for field in fields(kind)}
    listed = [(codec.name, codec.is_written, codec.default, codec.write, plain_types[codec.name]) for codec in codecs]
    return _TypeEncoder(header, attrgetter(*(codec.name for codec in codecs)), listed)


def _build_field_codec(field: Field[Any]) -> _FieldCodec:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    annotation = str(field.type)
    is_written = default is MISSING or field.name in ("parts", "messages")
    return _FieldCodec(
        field.name,
        is_written,
        default is MISSING and annotation not in _ELEMENT_DECODERS,
        default,
        *_choose_converters(annotation),
    )


def _choose_converters(annotation: str) -> tuple[Callable[[Any], object], Callable[[Any], object]]:
    """Return the functions that write and read a field with that annotation."""
    if annotation in _ELEMENT_DECODERS:
        read = partial(_convert_each, _ELEMENT_DECODERS[annotation])
        return partial(_convert_each, encode_value), lambda given: tuple(read(given))
    if annotation == "tuple[str, ...]":
        return partial(_convert_each, _check_text), lambda given: tuple(_convert_each(_check_text, given))
    if annotation == "Usage | None":
        return partial(_convert_optional, encode_value), partial(_convert_optional, partial(decode_value, Usage))
    check = _FIELD_CHECKS[annotation]
    return check, check


def _convert_each(convert: Callable[[Any], object], given: object) -> list[object]:
    if type(given) is not tuple and not isinstance(given, list | tuple):
        raise MessageError(f"expected a list, not {describe_json_value(given)}")
    found = []
    for index, item in enumerate(given):
        try:
            found.append(convert(item))
        except MessageError as error:
            raise prefix_error_path(f"[{index}]", error) from None
    return found


def _convert_optional(convert: Callable[[Any], object], given: object) -> object:
    return None if given is None else convert(given)


def _decode_part(kinds: dict[str, type[Any]], given: object) -> object:
    block = dict(given) if type(given) is dict else get_raw_fields(given)
    return _decode_fields(kinds[_check_choice(tuple(kinds), block.pop(_KIND_KEY, None), path=_KIND_KEY)], block)


def _check_object(given: object) -> object:
    return {} if type(given) is dict and not given else to_json_dict(given)


def _check_text(given: object) -> object:
    return given if type(given) is str else _check_scalar("text", str, given)


def _check_scalar(wanted: str, kind: type, given: object) -> object:
    if type(given) is kind:
        return given
    value = to_json_types(given)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise MessageError(f"expected {wanted}, not {describe_json_value(value)}")
    return value


def _check_choice(choices: Sequence[str], given: object, path: str = "") -> str:
    given = given if type(given) is str else to_json_types(given)
    if isinstance(given, str) and given in choices:
        return given
    listed = ", ".join(choice or '""' for choice in choices)
    hint = (did_you_mean(given, choices) if isinstance(given, str) else "") or f"one of {listed}"
    raise MessageError(f"unknown value: {describe_json_value(given)}", path=path, hint=hint)


_ELEMENT_DECODERS: dict[str, Callable[[Any], object]] = {
    "tuple[Part, ...]": partial(_decode_part, _PART_TYPES),
    "tuple[ResultPart, ...]": partial(_decode_part, _RESULT_PART_TYPES),
    "tuple[Message, ...]": partial(decode_value, Message),
    "tuple[Tool, ...]": partial(decode_value, Tool),
}
_PLAIN_TYPES: dict[str, type] = {"str": str, "str | None": str, "bool": bool, "int": int}
"""The type whose values need no check, by annotation."""
_FIELD_CHECKS: dict[str, Callable[[Any], object]] = {
    "str": _check_text,
    "str | None": partial(_convert_optional, _check_text),
    "bool": partial(_check_scalar, "true or false", bool),
    "int": partial(_check_scalar, "a whole number", int),
    "JSON": _check_object,
    "Role": partial(_check_choice, ROLES),
    "ToolScope": partial(_check_choice, get_args(ToolScope)),
    "Stop": partial(_check_choice, get_args(Stop)),
}


def message_to_json(message: Message) -> dict[str, Any]:
    """Serialize a message to JSON types without loss. Equal messages give equal JSON."""
    return encode_value(message)


def message_from_json(given: object) -> Message:
    """Parse a message that `message_to_json` wrote.

    Raises:
        MessageError: It does not have that format, or a later version.
    """
    return decode_value(Message, given)


_TOOL_FIELDS = frozenset(field.name for field in fields(Tool))


class NeutralDialect:
    """Dialect of Message objects and their JSON."""

    name = "neutral"

    @property
    def rules(self) -> ApiRules:
        """Rules with only those limits that all APIs share."""
        return NEUTRAL_RULES

    def recognises(self, item: Mapping[str, Any]) -> bool:
        """Return True if the mapping is a message in the neutral format."""
        return is_neutral_json(item) and "role" in item

    def read(self, item: object) -> Message:
        """Return a Message itself, or parse its JSON."""
        return item if isinstance(item, Message) else message_from_json(item)

    def write(self, messages: Iterable[Message]) -> list[dict[str, Any]]:
        """Serialize messages to JSON types."""
        return [message_to_json(message) for message in messages]

    def read_request(self, body: object) -> Conversation:
        """Return a Conversation itself, or parse its JSON."""
        return body if isinstance(body, Conversation) else decode_value(Conversation, body)

    def write_request(self, conversation: Conversation, marks: CacheMarkers | None = None) -> dict[str, Any]:  # noqa: ARG002 - there is no provider to cache anything
        """Serialize a conversation to JSON types."""
        return encode_value(conversation)

    def read_reply(self, reply: object) -> Reply:
        """Return a Reply itself, or parse its JSON."""
        return reply if isinstance(reply, Reply) else decode_value(Reply, reply)

    def read_tools(self, tools: Iterable[object]) -> tuple[Tool, ...]:
        """Parse Tool objects, their JSON, or definitions in any API's shape."""
        return tuple(tool for found in read_each(tools, _read_tool, "tools") for tool in found)

    def write_tools(self, tools: Sequence[Tool]) -> list[dict[str, Any]]:
        """Serialize tools to JSON types."""
        return [encode_value(tool) for tool in tools]


def _read_tool(item: object) -> tuple[Tool, ...]:
    if isinstance(item, Tool):
        return (item,)
    block = to_json_dict(item)
    if block.keys() <= _TOOL_FIELDS:
        return (decode_value(Tool, block),)
    return read_tools([block], "openai")


DIALECT: Dialect = NeutralDialect()
